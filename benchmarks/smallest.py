"""The smallest things: a commit of ten rows through a join and an aggregate, beside the smallest Spark job with a shuffle."""

from __future__ import annotations

from statistics import median

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import WARM_UPS, commits, connected, load, note, require_spark_agrees, seconds
from benchmarks.workload import Figure, Scale, Workload

ROWS = 10_000
GROUPS = 100
VIEW = "SELECT x, sum(b) AS sb, count(*) AS n FROM r JOIN s ON a = ttid WHERE b < 90 GROUP BY x"


def measure(scale: Scale) -> list[Figure]:
    table = Changing.of(facts(GROUPS), ROWS)
    repeats = 10 * scale.recomputes
    with connected() as session:
        load(session, "r", table.base, "id")
        others = partners(GROUPS, GROUPS, 1)
        load(session, "s", others, "hid")
        session.create_view("v", VIEW)
        job = session.spark.range(10).selectExpr("id % 2 AS parity").groupBy("parity").count()
        note("Spark's smallest job")
        for _ in range(WARM_UPS):
            job.collect()
        spark = median(seconds(job.collect) for _ in range(repeats))
        note("commits of ten rows")
        commits(session, "r", table, 10, 10)
        refresh = median(commits(session, "r", table, 10, repeats))
        require_spark_agrees(session, {"r": table.rows(), "s": others}, {"v": VIEW})
    details = {"refresh_s": refresh, "recompute_s": spark}
    return [Figure("join and aggregate", "join", "speedup", spark / refresh, "×", 10, details)]


WORKLOADS = (Workload("join and aggregate", measure),)
