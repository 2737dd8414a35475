"""The logical algebra: what a query means, with columns known by position and nothing of Spark in it."""
