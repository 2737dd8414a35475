"""TPC-H ten times as large as in its own family, from Parquet files that are attached: nothing of them is copied."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import tpch
from benchmarks.measuring import connected, forget_peak, note, require_equal, resident, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NAME = "TPC-H, attached"
ORDERS = 1_000
QUERIES = ("q01", "q06", "q03")


def measure(scale: Scale) -> list[Figure]:
    """Views are built over the files on executors, and then refreshed."""
    directory = tpch.generated(scale, 10)
    figures = []
    with connected() as session:
        spark = session.spark
        names = ("customer", "orders", "lineitem")
        frames = {name: spark.read.parquet(str(directory / f"{name}.parquet")) for name in names}
        for name in names:
            session.create_table(name, source=directory / f"{name}.parquet")
        rows = frames["lineitem"].count()
        refresh = _orders_again(directory)
        forget_peak()
        before = resident()
        for query in QUERIES:
            note(f"building {query} over {rows:,} items")
            built = seconds(partial(session.create_view, query, tpch.QUERIES[query]))
            figures.append(Figure(NAME, query, "build", rows / built, "rows/s", rows, {"s": built}))
        peak = resident("VmHWM") - before
        note("refreshes")
        times = [tpch.refresh_seconds(session, change) for change in refresh]
        answers = _changed_tables(session.spark, frames, refresh)
        for query in QUERIES:
            note(f"recomputing {query} by Spark")
            recompute = median(seconds(answers.sql(tpch.QUERIES[query]).toArrow) for _ in range(2))
            require_equal(session.view(query).arrow(), answers.sql(tpch.QUERIES[query]).toArrow())
            details = {"refresh_s": median(times), "recompute_s": recompute, "peak": peak}
            figures.append(Figure(NAME, query, "speedup", recompute / median(times), "×", ORDERS, details))
    return figures


def _orders_again(directory: Path) -> list[tpch.Refresh]:
    """Orders with their items that go, and come again under other numbers."""
    orders, items = (pq.ParquetFile(directory / f"{name}.parquet") for name in ("orders", "lineitem"))
    first = tpch.plain(pa.Table.from_batches([next(orders.iter_batches(20 * ORDERS))]))
    lines = tpch.plain(pa.Table.from_batches([next(items.iter_batches(20 * ORDERS))]))
    last = pc.max(lines["l_orderkey"])
    found = []
    for number in range(6):
        keys = first["o_orderkey"].slice(number * ORDERS // 2, ORDERS // 2)
        keys = keys.filter(pc.less(keys, last))
        going = {
            "orders": first.filter(pc.is_in(first["o_orderkey"], keys)),
            "lineitem": lines.filter(pc.is_in(lines["l_orderkey"], keys)),
        }
        coming = {name: _renumbered(rows) for name, rows in going.items()}
        found.append(tpch.Refresh(going, coming))
    return found


def _renumbered(rows: pa.Table) -> pa.Table:
    """The same orders under numbers that nobody has."""
    return rows.set_column(0, rows.schema.field(0), pc.add(rows.column(0), 10**12).cast(rows.schema.field(0).type))


def _changed_tables(spark: SparkSession, frames: dict[str, DataFrame], changes: list[tpch.Refresh]) -> SparkSession:
    """A session in which the tables are as they should be after the changes."""
    session = spark.newSession()
    for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        gone = session.createDataFrame(pa.concat_tables([change.going[name] for change in changes]).select([key])).distinct()
        come = session.createDataFrame(pa.concat_tables([change.coming[name] for change in changes]))
        path = frames[name].inputFiles()
        session.read.parquet(*path).join(gone, key, "left_anti").unionByName(come).createOrReplaceTempView(name)
    session.read.parquet(*frames["customer"].inputFiles()).createOrReplaceTempView("customer")
    return session


WORKLOADS = (Workload(NAME, measure),)
