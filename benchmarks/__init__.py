"""Benchmarks: ratios against Spark recomputing the same query, measured in the same run."""
