"""Epochs on Spark's executors: the same steps on the same runs, as one job."""
