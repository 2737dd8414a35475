"""The families, in the order in which they run."""

from __future__ import annotations

from benchmarks import (
    attached,
    cluster,
    durable,
    incremental,
    load,
    long_run,
    many_views,
    provenance,
    recursion,
    sketch_sweeps,
    sketch_tpch,
    sketches,
    skew,
    smallest,
    streams,
    synthetic,
    tpch,
)
from benchmarks.workload import Family

FAMILIES = {
    "smallest": Family(smallest.WORKLOADS),
    "synthetic": Family(synthetic.WORKLOADS),
    "incremental": Family(incremental.WORKLOADS),
    "tpch": Family(tpch.WORKLOADS, tpch.summary),
    "skew": Family(skew.WORKLOADS),
    "many_views": Family(many_views.WORKLOADS),
    "long_run": Family(long_run.WORKLOADS),
    "load": Family(load.WORKLOADS),
    "durable": Family(durable.WORKLOADS),
    "cluster": Family(cluster.WORKLOADS, cluster.summary),
    "attached": Family(attached.WORKLOADS),
    "provenance": Family(provenance.WORKLOADS),
    "recursion": Family(recursion.WORKLOADS),
    "sketches": Family((*sketches.WORKLOADS, *sketch_tpch.WORKLOADS, *sketch_sweeps.WORKLOADS)),
    "streams": Family(streams.WORKLOADS),
}
