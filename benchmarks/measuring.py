"""Clocks and scales: the time of a commit, of a recompute by Spark, and the memory of this process."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from benchmarks.data import ddl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.data import Changing

WARM_UPS = 3


def note(stage: str) -> None:
    """Tells whoever watches what is being done now."""
    print(f"stage: {stage}", flush=True)


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


@contextmanager
def connected() -> Iterator[hw.Session]:
    """A session on local Spark with as many partitions as cores; Spark ends with the process."""
    from pyspark.sql import SparkSession

    note("starting Spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.getActiveSession() or (
        SparkSession.builder.master("local[*]")
        .appName("headwater benchmarks")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # Large results are fetched from this address.
        .config("spark.driver.host", "127.0.0.1")
        # A machine that is busy takes its time to start a worker.
        .config("spark.python.authenticate.socketTimeout", "5m")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with hw.connect(spark=spark) as session:
        yield session


def load(session: hw.Session, name: str, rows: pa.Table, key: str | list[str] | None) -> float:
    """Creates a table and fills it; the seconds that filling takes."""
    note(f"loading {rows.num_rows:,} rows into {name}")
    session.create_table(name, ddl(rows.schema), key=key)
    return seconds(lambda: session.insert(name, rows))


def commit(session: hw.Session, name: str, going: pa.Table, coming: pa.Table) -> float:
    """The seconds of one transaction, as a user writes it; when it ends, views have the new answer."""
    return sum(parts_of_commit(session, name, going, coming))


def parts_of_commit(session: hw.Session, name: str, going: pa.Table, coming: pa.Table) -> tuple[float, float]:
    """The same in two parts: until the rows are known to be there, and to be new; and the epoch."""
    started = perf_counter()
    with session.transaction() as transaction:
        transaction.delete(name, going)
        transaction.insert(name, coming)
        checked = perf_counter()
    return checked - started, perf_counter() - checked


def commits(session: hw.Session, name: str, table: Changing, size: int, count: int) -> list[float]:
    """The seconds of so many commits that change so many rows each; the changes are made beforehand."""
    changes = [table.change(size) for _ in range(count)]
    return [commit(session, name, going, coming) for going, coming in changes]


class Recompute:
    """Spark, which recomputes a query over tables that it holds in its cache."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark.newSession()
        self._frames: dict[str, DataFrame] = {}

    def cache(self, tables: Mapping[str, pa.Table], query: str) -> None:
        """Puts the columns that the query reads into the cache; the others would change nothing but the time of this."""
        words = set(re.findall(r"\w+", query.lower()))
        for name, rows in tables.items():
            note(f"caching {name} in Spark")
            columns = [column for column in rows.column_names if column in words] or rows.column_names[:1]
            self._frames[name] = self._cached(rows.select(columns))
            self._frames[name].createOrReplaceTempView(name)

    def _cached(self, rows: pa.Table) -> DataFrame:
        with tempfile.TemporaryDirectory() as directory:
            _write(rows, Path(directory))
            frame = self._spark.read.parquet(directory).cache()
            frame.count()
        return frame

    def drop(self) -> None:
        self._spark.catalog.clearCache()

    def answer(self, query: str) -> pa.Table:
        return self._spark.sql(query).toArrow()

    def seconds(self, query: str, repeats: int) -> float:
        """The median time until the answer is in hand, after Spark has warmed up."""
        note("recomputing by Spark")
        for _ in range(min(WARM_UPS, repeats)):
            self.answer(query)
        return median(seconds(lambda: self.answer(query)) for _ in range(repeats))

    def seconds_with_change(self, name: str, key: str, change: tuple[pa.Table, pa.Table], query: str) -> float:
        """The time to bring a table in the cache up to date, given the rows that go and come in the cache, and to answer."""
        note("changing the cache and recomputing by Spark")
        frame = self._frames[name]
        going, coming = self._cached(change[0].select([key])), self._cached(change[1].select(frame.columns))
        started = perf_counter()
        changed = frame.join(going, key, "left_anti").unionByName(coming).cache()
        changed.count()
        changed.createOrReplaceTempView(name)
        self.answer(query)
        took = perf_counter() - started
        frame.createOrReplaceTempView(name)
        for used in (changed, going, coming):
            used.unpersist()
        return took


def require_spark_agrees(session: hw.Session, tables: Mapping[str, pa.Table], queries: Mapping[str, str]) -> None:
    """The views, by name, hold what Spark answers to their queries over the tables."""
    note("comparing with Spark")
    spark = Recompute(session.spark)
    spark.cache(tables, " ".join(queries.values()))
    for name, query in queries.items():
        require_equal(session.view(name).arrow(), spark.answer(query))
    spark.drop()


def _write(rows: pa.Table, directory: Path) -> None:
    """As several files, so that all cores read."""
    parts = 2 * (os.cpu_count() or 1)
    size = -(-rows.num_rows // parts) or 1
    for part in range(parts):
        piece = rows.slice(part * size, size)
        pq.write_table(piece, directory / f"{part}.parquet", compression="none", use_dictionary=False)


def require_equal(answer: pa.Table, expected: pa.Table) -> None:
    """The same rows as Spark's, whatever their order; doubles may differ in their last digits, as sums in Spark do."""
    assert answer.num_rows == expected.num_rows, f"{answer.num_rows} rows, and Spark has {expected.num_rows}"
    expected = expected.rename_columns(answer.column_names)
    inexact = [column.name for column in answer.schema if pa.types.is_floating(column.type)]
    keys = [(name, "ascending") for name in sorted(answer.column_names, key=lambda name: name in inexact)]
    ours, theirs = (table.sort_by(keys).combine_chunks() for table in (answer, expected))
    for name in answer.column_names:
        if name in inexact:
            same = np.allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=1e-9, atol=0, equal_nan=True)
        else:
            same = ours[name].to_pylist() == theirs[name].to_pylist()
        assert same, f"column {name} differs from Spark's"


def resident(kind: str = "VmRSS") -> int:
    """Bytes of memory that this process has now; `VmHWM` for the most since the last `forget_peak`."""
    found = re.search(rf"{kind}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def forget_peak() -> None:
    """Lets the peak of memory begin anew."""
    Path("/proc/self/clear_refs").write_text("5")
