"""Recursion: edges come and go under recursive views, beside DuckDB's recursive query and a loop of Spark jobs from scratch.

Reachability and shortest paths are from several sources. DuckDB gets `USING KEY` where a value is minimised: its plain
recursive query would list every value on the way. Every answer is compared with DuckDB's at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.graphs import SHAPES
from benchmarks.measuring import connected, load, note, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import headwater as hw

DELTAS = (1, 100)
# Rows of large tables to one edge, so that the full scale has 100K edges.
SHARE = 100
SOURCES = 100


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
    """Edges that change, at random: some go, as many others come."""

    def __init__(self, table: pa.Table) -> None:
        self._rng = np.random.default_rng(7)
        self.rows = [tuple(row.values()) for row in table.to_pylist()]
        self.nodes = 1 + max(max(src, dst) for src, dst, _ in self.rows)

    def gone(self, count: int) -> list[tuple[int, ...]]:
        places = sorted(self._rng.choice(len(self.rows), count, replace=False).tolist(), reverse=True)
        return [self.rows.pop(place) for place in places]

    def come(self, count: int) -> list[tuple[int, ...]]:
        ends = self._rng.integers(0, self.nodes, (count, 2)).tolist()
        found = [(src, dst, int(cost)) for (src, dst), cost in zip(ends, self._rng.integers(1, 100, count), strict=True)]
        self.rows += found
        return found

    def table(self) -> pa.Table:
        columns = [np.array(column, np.int64) for column in zip(*self.rows, strict=True)]
        return pa.table(dict(zip(("src", "dst", "cost"), columns, strict=True)))


def measure(shape: str, query: Query, scale: Scale) -> list[Figure]:
    graph = Graph(SHAPES[shape](max(40, scale.rows // SHARE)))
    sources = np.random.default_rng(3).choice(graph.nodes, min(SOURCES, graph.nodes // 4), replace=False).astype(np.int64)
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
        scratch = median(seconds(lambda: connection.sql(query.duckdb).to_arrow_table()) for _ in range(scale.recomputes))
        require_same(session.view("v").arrow(), connection.sql(query.duckdb).to_arrow_table())
        note("Spark from scratch")
        loop = seconds(lambda: spark_loop(session, query))
        state = int(session.view("v").stats()["state_bytes"])
    name = f"{query.name}, {shape}"
    figures = []
    for size, (deleting, inserting) in times.items():
        worse = max(deleting, inserting)
        details = {"refresh_s": worse, "delete_s": deleting, "insert_s": inserting, "build_s": built, "state": state}
        figures += [
            Figure(name, query.name, "speedup over DuckDB", scratch / worse, "×", size, {**details, "duckdb_s": scratch}),
            Figure(name, query.name, "speedup over a Spark loop", loop / worse, "×", size, {**details, "spark_s": loop}),
        ]
    return figures


def refreshes(session: hw.Session, graph: Graph, size: int, scale: Scale) -> tuple[float, float]:
    """The medians of transactions that delete so many edges, and of those that insert as many others."""
    size = min(size, len(graph.rows) // 10)
    note(f"changes of {size}")
    deleting, inserting = [], []
    for _ in range(5 + scale.repeats(size)):
        for rows, change, times in (
            (graph.gone(size), session.delete, deleting),
            (graph.come(size), session.insert, inserting),
        ):
            started = perf_counter()
            change("edge", rows)
            times.append(perf_counter() - started)
    return median(deleting[5:]), median(inserting[5:])


def require_same(found: pa.Table, wanted: pa.Table) -> None:
    def ordered(table: pa.Table) -> pa.Table:
        whole = pa.table([column.cast(pa.int64()) for column in table.columns], names=["s", "n", "v"])
        return whole.sort_by([(name, "ascending") for name in whole.column_names]).combine_chunks()

    if not ordered(found).equals(ordered(wanted)):
        raise AssertionError("the view differs from DuckDB's answer")


def spark_loop(session: hw.Session, query: Query) -> int:
    """The answer of a query by a loop of Spark jobs, each over what the one before has made better; how many rows it has."""
    spark = session.spark
    for name in ("edge", "source"):
        session.dataframe(name).createOrReplaceTempView(name)
    spark.sql(query.links).localCheckpoint().createOrReplaceTempView("links")
    best = spark.sql(query.start).localCheckpoint()
    changed: DataFrame = best
    try:
        while changed.take(1):
            best.createOrReplaceTempView("best")
            changed.createOrReplaceTempView("changed")
            changed = spark.sql(
                f"SELECT f.* FROM (SELECT c.s, l.dst AS n, min({query.step}) AS v FROM changed c JOIN links l ON l.src = c.n "
                "GROUP BY c.s, l.dst) f LEFT JOIN best b ON b.s = f.s AND b.n = f.n WHERE b.v IS NULL OR f.v < b.v"
            ).localCheckpoint()
            changed.createOrReplaceTempView("changed")
            best = spark.sql(
                "SELECT s, n, min(v) AS v FROM (SELECT * FROM best UNION ALL SELECT * FROM changed) GROUP BY s, n"
            ).localCheckpoint()
        return best.count()
    finally:
        for name in ("edge", "source", "links", "best", "changed"):
            spark.catalog.dropTempView(name)


WORKLOADS = tuple(Workload(f"{query.name}, {shape}", partial(measure, shape, query)) for query in QUERIES for shape in SHAPES)
