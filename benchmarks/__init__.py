"""Benchmarks: how long a change takes to reach a view, beside Spark recomputing the same query in the same minute.

A *family* is a module with a tuple `WORKLOADS`. A *workload* runs in a process of its own and gives *figures*: numbers, each
with the target that applies to it, if there is one. What counts are ratios: both sides run on one machine in one process.
"""
