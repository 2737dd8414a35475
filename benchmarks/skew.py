"""Skew: one group, or one key of a join, that holds half of the rows, beside keys that are evenly spread.

Changes are drawn like the rows: half of them touch the large key. A median must look at its whole group, so it has no target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.data import Changing
from benchmarks.measuring import commits, connected, load, note, require_spark_agrees
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from benchmarks.data import Maker

GROUPS = 5_000
DELTAS = (10, 1_000)


@dataclass(frozen=True)
class Query:
    """A view of `r`, or of `r` and `s`."""

    name: str
    kind: str
    text: str


QUERIES = (
    Query("sums", "aggregate", "SELECT a, count(*) AS n, sum(b) AS b, avg(c) AS c FROM r GROUP BY a"),
    Query("minimum and maximum", "aggregate", "SELECT a, min(b) AS low, max(c) AS high FROM r GROUP BY a"),
    Query("distinct values", "aggregate", "SELECT a, count(DISTINCT b) AS n FROM r GROUP BY a"),
    Query("join", "join", "SELECT s.x, sum(r.b) AS b, count(*) AS n FROM r JOIN s ON r.a = s.ttid GROUP BY s.x"),
    Query("semi join", "join", "SELECT s.ttid FROM s LEFT SEMI JOIN r ON r.a = s.ttid"),
    Query("median", "holistic", "SELECT a, median(b) AS b FROM r GROUP BY a"),
)


def facts(skewed: bool) -> Maker:  # noqa: FBT001
    def make(rng: np.random.Generator, first: int, count: int) -> pa.Table:
        a = rng.integers(0, GROUPS, count, dtype=np.int32)
        if skewed:
            a[rng.random(count) < 0.5] = 0
        b, c = (rng.integers(0, 1_000, count, dtype=np.int32) for _ in range(2))
        return pa.table({"id": np.arange(first, first + count), "a": a, "b": b, "c": c})

    return make


def measure(query: Query, scale: Scale) -> list[Figure]:
    partners = pa.table({"ttid": np.arange(GROUPS, dtype=np.int32), "x": np.arange(GROUPS, dtype=np.int32) % 100})
    tables = {name: Changing.of(facts(name == "skewed"), scale.rows) for name in ("uniform", "skewed")}
    times: dict[str, dict[int, float]] = {}
    deltas = [size for size in DELTAS if size <= scale.rows // 10]
    with connected() as session:
        for name, table in tables.items():
            load(session, "r", table.base, "id")
            load(session, "s", partners, "ttid")
            note(f"creating the view, {name}")
            session.create_view("v", query.text)
            note(f"commits, {name}")
            commits(session, "r", table, deltas[0], 3)
            # What looks at half of the table takes seconds.
            repeats = 3 if query.kind == "holistic" else scale.repeats(max(deltas))
            times[name] = {size: median(commits(session, "r", table, size, repeats)) for size in deltas}
            require_spark_agrees(session, {"r": table.rows(), "s": partners}, {"v": query.text})
            session.drop_view("v")
            session.drop_table("r")
            session.drop_table("s")
    return [
        Figure(
            query.name,
            query.kind,
            "skewed to uniform",
            times["skewed"][size] / times["uniform"][size],
            "×",
            size,
            {"refresh_s": times["skewed"][size], "uniform_s": times["uniform"][size]},
        )
        for size in deltas
    ]


WORKLOADS = tuple(Workload(query.name, partial(measure, query)) for query in QUERIES)
