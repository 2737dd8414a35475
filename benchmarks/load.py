"""Bulk loads: rows a second from Arrow in memory to an answer that can be read, the memory it takes, and what size costs later.

What must be kept are the rows of the tables, since rows may be deleted, and the answer. The peak is what the process took
beyond the rows it was given, which the caller owns.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.data import Changing, ddl
from benchmarks.measuring import commits, connected, forget_peak, load, note, require_spark_agrees, resident
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    import headwater as hw

GROUPS = 5_000
DELTAS = (10, 1_000)
QUERIES = {
    "aggregate": "SELECT a, avg(b) AS ab FROM r GROUP BY a HAVING avg(c) < 1000",
    "join": "SELECT x, sum(b) AS b, count(*) AS n FROM r JOIN s ON r.id = s.rid GROUP BY x",
    "top-k": "SELECT a, sum(b) AS sb FROM r GROUP BY a ORDER BY sb DESC, a LIMIT 10",
}
READS_BOTH = ("join",)


def facts(rng: np.random.Generator, first: int, count: int) -> pa.Table:
    a, b, c = (rng.integers(0, limit, count, dtype=np.int32) for limit in (GROUPS, 1_000, 2_000))
    return pa.table({"id": np.arange(first, first + count), "a": a, "b": b, "c": c})


def partners(rows: int) -> pa.Table:
    """A row for each row of the first load, in another order."""
    places = np.random.default_rng(2).permutation(rows)
    return pa.table({"rid": places, "x": (places % GROUPS).astype(np.int32)})


def bulk(name: str, first: str, scale: Scale) -> list[Figure]:
    """Loads with the view already there, or before it is created."""
    tables = {"r": facts(np.random.default_rng(1), 0, scale.rows)}
    if name in READS_BOTH:
        tables["s"] = partners(scale.rows)
    workload = f"{name}, {first} first"
    with connected() as session:
        # The first use compiles and connects; a bulk load is not the time to measure that.
        _warm(session, name, tables)
        note(f"loading, {first} first")
        before = resident()
        forget_peak()
        started = perf_counter()
        _load(session, name, tables, first, "")
        took = perf_counter() - started
        peak = resident("VmHWM") - before
        kept = sum(rows.nbytes for rows in tables.values()) + session.view("v").arrow().nbytes
        require_spark_agrees(session, tables, {"v": QUERIES[name]})
        details = {"seconds": took, "peak": peak, "kept": kept, "state": session.view("v").stats()["state_bytes"]}
    return [
        Figure(workload, name, "rows per second", scale.rows / took, "rows/s", scale.rows, details),
        Figure(workload, name, "peak to kept", peak / kept, "×", scale.rows),
    ]


def _warm(session: hw.Session, name: str, tables: dict[str, pa.Table]) -> None:
    _load(session, name, {table: rows.slice(0, 10_000) for table, rows in tables.items()}, "view", "warm_")


def _load(session: hw.Session, name: str, tables: dict[str, pa.Table], first: str, prefix: str) -> None:
    query = QUERIES[name].replace("FROM r", f"FROM {prefix}r r").replace("JOIN s", f"JOIN {prefix}s s")
    for table, rows in tables.items():
        session.create_table(prefix + table, ddl(rows.schema), key=rows.column_names[0])
    if first == "view":
        session.create_view(f"{prefix}v", query)
    with session.transaction() as transaction:
        for table, rows in tables.items():
            transaction.insert(prefix + table, rows)
    if first == "table":
        session.create_view(f"{prefix}v", query)


def growth(name: str, scale: Scale) -> list[Figure]:
    """The same deltas on a tenth of the rows and on all of them."""
    times: dict[int, dict[int, float]] = {}
    sizes = [size for size in DELTAS if size <= scale.rows // 100]
    with connected() as session:
        for rows in (scale.rows // 10, scale.rows):
            table = Changing.of(facts, rows)
            load(session, "r", table.base, "id")
            load(session, "s", partners(rows), "rid")
            note(f"creating the view over {rows:,} rows")
            session.create_view("v", QUERIES[name])
            note(f"commits to {rows:,} rows")
            commits(session, "r", table, sizes[0], 3)
            times[rows] = {size: median(commits(session, "r", table, size, scale.repeats(size))) for size in sizes}
            session.drop_view("v")
            session.drop_table("r")
            session.drop_table("s")
    small, large = times.values()
    return [
        Figure(
            f"growth, {name}",
            name,
            "growth",
            large[size] / small[size],
            "×",
            size,
            {"refresh_s": large[size], "tenth_s": small[size]},
        )
        for size in sizes
    ]


WORKLOADS = (
    *(
        Workload(f"{name}, {first} first", partial(bulk, name, first))
        for name in ("aggregate", "join")
        for first in ("table", "view")
    ),
    *(Workload(f"growth, {name}", partial(growth, name)) for name in QUERIES),
)
