"""Recursion: edges come and go under recursive views, beside DuckDB's recursive query and a loop of Spark jobs from scratch.

Reachability and shortest paths are from several sources. DuckDB gets `USING KEY` where a value is minimised: its plain
recursive query would list every value on the way. Every answer is compared with DuckDB's at the end. The loop of Spark jobs
keeps what it has in files between rounds, as plans would grow with every round, and is stopped when it took long enough to know
the ratio: what is said is then the least that it is.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.graphs import SHAPES
from benchmarks.measuring import connected, load, note, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    import headwater as hw

DELTAS = (1, 100)
# Rows of large tables to one edge, so that the full scale has 100K edges, and a large graph a million.
SHARE, LARGE_SHARE = 100, 10
# Where there are ten times the edges, answers of as many rows as with a tenth of them.
SOURCES, LARGE_SOURCES = 100, 10
# Seconds after which no more is repeated, and after which Spark's loop is stopped.
LONG_ENOUGH, LOOP_LIMIT = 12.0, 25.0
LEAST = 5


@dataclass(frozen=True)
class Query:
    """A recursive view, the same for DuckDB, and what a loop joins: start rows (key, value) and a step of values."""

    name: str
    view: str
    duckdb: str
    start: str
    step: str
    links: str = "SELECT src, dst, cost FROM edge"


_BOTH = "SELECT src, dst FROM edge UNION ALL SELECT dst, src FROM edge"
QUERIES = (
    Query(
        "reachability",
        "WITH RECURSIVE r(s, n) AS (SELECT id, id FROM source UNION SELECT r.s, e.dst FROM r JOIN edge e ON e.src = r.n) "
        "SELECT s, n, 0 AS v FROM r",
        "WITH RECURSIVE r(s, n) AS (SELECT id, id FROM source UNION SELECT r.s, e.dst FROM r JOIN edge e ON e.src = r.n) "
        "SELECT s, n, 0 FROM r",
        "SELECT id AS s, id AS n, 0 AS v FROM source",
        "0",
    ),
    Query(
        "components",
        f"WITH RECURSIVE link(src, dst) AS ({_BOTH}), c(n, v) AS (SELECT src, src FROM link UNION "
        "SELECT l.dst, MIN(c.v) FROM c JOIN link l ON l.src = c.n GROUP BY l.dst) "
        "SELECT 0 AS s, n, MIN(v) AS v FROM c GROUP BY n",
        f"WITH RECURSIVE c(n, v) USING KEY (n) AS (SELECT DISTINCT src, src FROM ({_BOTH}) UNION "
        f"SELECT l.dst, MIN(c.v) FROM c JOIN ({_BOTH}) l ON l.src = c.n JOIN recurring.c o ON o.n = l.dst WHERE c.v < o.v "
        "GROUP BY l.dst) SELECT 0, n, v FROM c",
        f"SELECT DISTINCT 0 AS s, src AS n, src AS v FROM ({_BOTH})",
        "v",
        f"SELECT src, dst, 0 AS cost FROM ({_BOTH})",
    ),
    Query(
        "shortest paths",
        "WITH RECURSIVE p(s, n, v) AS (SELECT id, id, CAST(0 AS BIGINT) FROM source UNION "
        "SELECT p.s, e.dst, MIN(p.v + e.cost) FROM p JOIN edge e ON e.src = p.n GROUP BY p.s, e.dst) "
        "SELECT s, n, MIN(v) AS v FROM p GROUP BY s, n",
        "WITH RECURSIVE p(s, n, v) USING KEY (s, n) AS (SELECT id, id, 0::BIGINT FROM source UNION "
        "SELECT p.s, e.dst, MIN(p.v + e.cost) FROM p JOIN edge e ON e.src = p.n "
        "LEFT JOIN recurring.p o ON o.s = p.s AND o.n = e.dst WHERE o.v IS NULL OR p.v + e.cost < o.v GROUP BY p.s, e.dst) "
        "SELECT s, n, v FROM p",
        "SELECT id AS s, id AS n, CAST(0 AS BIGINT) AS v FROM source",
        "v + cost",
    ),
)


class Graph:
    """Edges that change, at random: some go, as many others come; of a grid, between neighbours, so that it stays one."""

    def __init__(self, table: pa.Table, *, neighbours: bool = False) -> None:
        self._rng = np.random.default_rng(7)
        self._neighbours = neighbours
        self.rows = [tuple(row.values()) for row in table.to_pylist()]
        self.nodes = 1 + max(max(src, dst) for src, dst, _ in self.rows)

    def gone(self, count: int) -> list[tuple[int, ...]]:
        places = sorted(self._rng.choice(len(self.rows), count, replace=False).tolist(), reverse=True)
        return [self.rows.pop(place) for place in places]

    def come(self, count: int) -> list[tuple[int, ...]]:
        if self._neighbours:
            ends = [self.rows[place][:2] for place in self._rng.choice(len(self.rows), count, replace=False).tolist()]
        else:
            ends = self._rng.integers(0, self.nodes, (count, 2)).tolist()
        found = [(src, dst, int(cost)) for (src, dst), cost in zip(ends, self._rng.integers(1, 100, count), strict=True)]
        self.rows += found
        return found

    def table(self) -> pa.Table:
        columns = [np.array(column, np.int64) for column in zip(*self.rows, strict=True)]
        return pa.table(dict(zip(("src", "dst", "cost"), columns, strict=True)))


@dataclass
class Times:
    """Seconds of changes of one size, and how many rows of the answer each changed."""

    deleting: list[float] = field(default_factory=list)
    inserting: list[float] = field(default_factory=list)
    points: list[tuple[int, float]] = field(default_factory=list)


def measure(shape: str, query: Query, large: bool, scale: Scale) -> list[Figure]:  # noqa: FBT001
    table = SHAPES[shape](max(40, scale.rows // (LARGE_SHARE if large else SHARE)))
    graph = Graph(table, neighbours=shape == "grid")
    wanted = LARGE_SOURCES if large else SOURCES
    sources = np.random.default_rng(3).choice(graph.nodes, min(wanted, graph.nodes // 4), replace=False).astype(np.int64)
    with connected() as session:
        load(session, "edge", graph.table(), None)
        load(session, "source", pa.table({"id": sources}), None)
        note("creating the view")
        built = seconds(lambda: session.create_view("v", query.view))
        times = {size: refreshes(session, graph, size, scale) for size in DELTAS}
        note("DuckDB from scratch")
        connection = duckdb.connect()
        connection.register("edges", graph.table())
        connection.register("sources", pa.table({"id": sources}))
        connection.execute("CREATE TABLE edge AS FROM edges")
        connection.execute("CREATE TABLE source AS FROM sources")
        scratch = median(repeated(lambda: connection.sql(query.duckdb).to_arrow_table(), scale.recomputes))
        require_same(session.view("v").arrow(), connection.sql(query.duckdb).to_arrow_table())
        note("Spark from scratch")
        with tempfile.TemporaryDirectory() as directory:
            loop, ended = spark_loop(session, query, Path(directory), 5.0 if scale.quick else LOOP_LIMIT)
        known = {"build_s": built, "state": int(session.view("v").stats()["state_bytes"]), "duckdb_s": scratch}
    known |= {"edges": len(graph.rows), "sources": len(sources), "spark_s": loop, "spark_ended": ended}
    return figures_of(name_of(query, shape, large=large), "large" if large else query.name, times, known)


def figures_of(name: str, kind: str, times: dict[int, Times], known: dict[str, Any]) -> list[Figure]:
    figures = []
    for size, mine in times.items():
        deleting, inserting = median(mine.deleting), median(mine.inserting)
        worse = max(deleting, inserting)
        details = {"refresh_s": worse, "delete_s": deleting, "insert_s": inserting, "points": mine.points, **known}
        figures += [
            Figure(name, kind, "speedup over DuckDB", known["duckdb_s"] / worse, "×", size, details),
            Figure(name, kind, "speedup over a Spark loop", known["spark_s"] / worse, "×", size, details),
        ]
    return figures


def repeated(work: Callable[[], object], count: int) -> list[float]:
    """The seconds of so many repeats, or of fewer that took long enough."""
    found: list[float] = []
    while len(found) < count and (not found or sum(found) < LONG_ENOUGH):
        found.append(seconds(work))
    return found


def refreshes(session: hw.Session, graph: Graph, size: int, scale: Scale) -> Times:
    """Transactions that delete so many edges, and as many that insert others; how many rows changed is asked after each."""
    size = min(size, len(graph.rows) // 10)
    note(f"changes of {size}")
    times, warm = Times(), 3
    begun = perf_counter()
    for number in range(warm + scale.repeats(size)):
        for rows, change, mine in (
            (graph.gone(size), session.delete, times.deleting),
            (graph.come(size), session.insert, times.inserting),
        ):
            epoch = session.epoch
            took = seconds(partial(change, "edge", rows))
            if number >= warm:
                mine.append(took)
                changed = sum(table.num_rows for _, table in session.view("v").changes(since=epoch))
                times.points.append((changed, took))
        if len(times.deleting) >= LEAST and perf_counter() - begun > LONG_ENOUGH:
            break
    return times


def require_same(found: pa.Table, wanted: pa.Table) -> None:
    def ordered(table: pa.Table) -> pa.Table:
        whole = pa.table([column.cast(pa.int64()) for column in table.columns], names=["s", "n", "v"])
        return whole.sort_by([(name, "ascending") for name in whole.column_names]).combine_chunks()

    if not ordered(found).equals(ordered(wanted)):
        raise AssertionError("the view differs from DuckDB's answer")


def spark_loop(session: hw.Session, query: Query, directory: Path, limit: float) -> tuple[float, bool]:
    """The answer of a query by a loop of Spark jobs, each over what the one before has made better.

    The seconds that it took, and whether it came to its end within the limit.
    """
    spark = session.spark
    made = 0

    def kept(frame: DataFrame) -> DataFrame:
        nonlocal made
        made += 1
        frame.write.parquet(str(directory / str(made)), compression="none")
        return spark.read.schema(frame.schema).parquet(str(directory / str(made)))

    for name in ("edge", "source"):
        kept(session.dataframe(name)).createOrReplaceTempView(name)
    started = perf_counter()
    ended = False
    try:
        kept(spark.sql(query.links)).createOrReplaceTempView("links")
        best = changed = kept(spark.sql(query.start))
        while not ended and perf_counter() - started < limit:
            best.createOrReplaceTempView("best")
            changed.createOrReplaceTempView("changed")
            changed = kept(
                spark.sql(
                    f"SELECT f.* FROM (SELECT c.s, l.dst AS n, min({query.step}) AS v FROM changed c JOIN links l "
                    "ON l.src = c.n GROUP BY c.s, l.dst) f "
                    "LEFT JOIN best b ON b.s = f.s AND b.n = f.n WHERE b.v IS NULL OR f.v < b.v"
                )
            )
            ended = not changed.take(1)
            if not ended:
                changed.createOrReplaceTempView("changed")
                best = kept(spark.sql("SELECT s, n, min(v) AS v FROM (FROM best UNION ALL FROM changed) GROUP BY s, n"))
        return perf_counter() - started, ended
    finally:
        for name in ("edge", "source", "links", "best", "changed"):
            spark.catalog.dropTempView(name)


def name_of(query: Query, shape: str, *, large: bool = False) -> str:
    return f"{query.name}, {shape}{', large' if large else ''}"


WORKLOADS = (
    *(
        Workload(name_of(query, shape), partial(measure, shape, query, False))  # noqa: FBT003
        for query in QUERIES
        for shape in SHAPES
    ),
    Workload(name_of(QUERIES[0], "random", large=True), partial(measure, "random", QUERIES[0], True)),  # noqa: FBT003
)
