"""Grouping and a join with grouping over growing tables: nine increments, each beside Spark processing all rows there are.

    groupBy       select x, avg(y) from s group by x                                          1M rows at first
    join-groupBy  select s1.a, avg(s2.d) from s1, s2 where s1.b = s2.c group by s1.a          100K rows a side at first

Values are random whole numbers below 10 000, increments 10K, 20K, 30K or 40K rows a table. Besides the speed, the time of an
increment must not grow with what is there already.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.measuring import Recompute, connected, load, note, require_equal, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    import headwater as hw

INCREMENTS = 9
SIZES = (10_000, 20_000, 30_000, 40_000)
# The scale at which the sizes are the ones above.
FULL = 10_000_000


@dataclass(frozen=True)
class Query:
    """A view over tables of pairs."""

    name: str
    kind: str
    text: str
    tables: dict[str, tuple[str, str]]
    rows: int


QUERIES = (
    Query("groupBy", "aggregate", "SELECT x, avg(y) AS y FROM s GROUP BY x", {"s": ("x", "y")}, 1_000_000),
    Query(
        "join-groupBy",
        "join",
        "SELECT s1.a, avg(s2.d) AS d FROM s1, s2 WHERE s1.b = s2.c GROUP BY s1.a",
        {"s1": ("a", "b"), "s2": ("c", "d")},
        100_000,
    ),
)


def pairs(rng: np.random.Generator, names: tuple[str, str], count: int) -> pa.Table:
    return pa.table({name: rng.integers(0, 10_000, count, dtype=np.int32) for name in names})


def measure(query: Query, increment: int, scale: Scale) -> list[Figure]:
    share = min(1.0, scale.rows / FULL)
    size = max(10, int(increment * share))
    rng = np.random.default_rng(1)
    rows = {name: pairs(rng, names, max(10, int(query.rows * share))) for name, names in query.tables.items()}
    name = f"{query.name}, {increment // 1000}K"
    with connected() as session:
        for table, first in rows.items():
            load(session, table, first, None)
        session.create_view("v", query.text)
        spark = Recompute(session.spark)
        refreshes, recomputes = [], []
        for number in range(INCREMENTS):
            note(f"increment {number + 1}")
            coming = {table: pairs(rng, names, size) for table, names in query.tables.items()}
            refreshes.append(seconds(partial(_insert, session, coming)))
            rows = {table: pa.concat_tables([rows[table], coming[table]]) for table in rows}
            if number in (0, INCREMENTS - 1):
                spark.drop()
                spark.cache(rows, query.text)
                recomputes.append(spark.seconds(query.text, scale.recomputes))
                require_equal(session.view("v").arrow(), spark.answer(query.text))
    details = {"refresh_s": median(refreshes), "recompute_s": median(recomputes), "refreshes": refreshes}
    growth = median(refreshes[-3:]) / median(refreshes[1:4])
    return [
        Figure(name, query.kind, "speedup", details["recompute_s"] / details["refresh_s"], "×", size, details),
        Figure(name, query.kind, "growth", growth, "×", size),
    ]


def _insert(session: hw.Session, coming: dict[str, pa.Table]) -> None:
    with session.transaction() as transaction:
        for table, rows in coming.items():
            transaction.insert(table, rows)


WORKLOADS = tuple(
    Workload(f"{query.name}, {size // 1000}K", partial(measure, query, size)) for query in QUERIES for size in SIZES
)
