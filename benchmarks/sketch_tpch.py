"""Sketches of TPC-H's queries: maintained beside captured anew, for orders and items that come, and for such that go.

To capture a sketch anew takes Spark more than to answer the query, which is what is measured here, over tables in its cache.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from benchmarks.measuring import Recompute, connected, load, note, require_equal, seconds
from benchmarks.tpch import KEYS, QUERIES, Refresh, generated, read, refresh_seconds, split, tables_of
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from benchmarks.tpch import Tables

# What each query is sketched by; those of the document whose answer needs a part of the orders or items.
SKETCHED = {
    "q03": {"lineitem": "l_orderkey", "orders": "o_orderkey"},
    "q06": {"lineitem": "l_shipdate"},
    "q10": {"orders": "o_custkey", "customer": "c_custkey"},
    "q12": {"orders": "o_orderkey", "lineitem": "l_orderkey"},
    "q14": {"lineitem": "l_shipdate"},
}
_ALONE = ("q06",)
_FRAGMENTS = 1_000
# Of an order there are about four items.
_ROWS_AN_ORDER = 5
_TIMES = 5


def orders_of(rows: Tables, count: int) -> Tables:
    """So many of the orders, with their items."""
    key = "o_orderkey" if "orders" in rows else "l_orderkey"
    some = pc.unique(rows["orders" if "orders" in rows else "lineitem"][key]).slice(0, count)
    columns = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
    return {name: each.filter(pc.is_in(each[columns[name]], value_set=some)).combine_chunks() for name, each in rows.items()}


def maintained(query: str, name: str, scale: Scale) -> list[Figure]:
    """Commits of orders that come and of orders that go, beside the query on Spark."""
    text = QUERIES[query]
    sizes = [size for size in (10, 100, 1_000) if size <= scale.rows // 10]
    times = 2 if scale.quick else _TIMES
    tables = read(generated(scale), tables_of(text))
    most = max(2, sizes[-1] // _ROWS_AN_ORDER)
    loaded, refreshes = split(tables, times * len(sizes) + 1, 2 * most)
    with connected() as session:
        spark = Recompute(session.spark)
        spark.cache(loaded, text)
        anew = spark.seconds(text, min(3, scale.recomputes))
        for table, rows in loaded.items():
            load(session, table, rows, KEYS[table])
        note("capturing the sketch")
        created = seconds(partial(session.create_sketch, "k", text, on=SKETCHED[query], fragments=_FRAGMENTS))
        session.skipping = "always"
        require_equal(session.sql(text).arrow(), spark.answer(text))
        spark.drop()
        refresh_seconds(session, refreshes.pop())
        figures = []
        for size in sizes:
            note(f"commits of {size:,} rows")
            taken: dict[str, list[float]] = {"come": [], "go": []}
            for _ in range(times):
                part = refreshes.pop()
                coming, going = (orders_of(rows, max(1, size // _ROWS_AN_ORDER)) for rows in (part.coming, part.going))
                taken["come"].append(refresh_seconds(session, Refresh({}, coming)))
                taken["go"].append(refresh_seconds(session, Refresh(going, {})))
            for direction, each in taken.items():
                details = {"recapture_s": anew, "refresh_s": median(each), "capture_s": created, "rows": direction}
                kind = "aggregate" if query in _ALONE else "join"
                figures.append(Figure(name, kind, "maintenance", anew / median(each), "×", size, details))
        note("comparing with Spark")
        spark.cache({table: session.table(table).arrow() for table in tables}, text)
        require_equal(session.sql(text).arrow(), spark.answer(text))
    return figures


WORKLOADS = tuple(
    Workload(f"maintenance, TPC-H {query}", partial(maintained, query, f"maintenance, TPC-H {query}")) for query in SKETCHED
)
