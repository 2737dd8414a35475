"""`python -m benchmarks`: how long a small change takes to reach a view, and how long Spark needs to recompute it.

Every figure is a median; what counts is the ratio, since both sides run on the same machine in the same minute.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track
from rich.table import Table

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = 1_000_000
GROUPS = 5_000
DELTAS = (10, 1_000, 10_000)
REPEATS = 7
RESULTS = Path(__file__).parent / "results"

VIEWS = {
    "group by": "SELECT a, avg(b) AS b, count(*) AS n FROM facts GROUP BY a HAVING avg(c) < 1000",
    "join, group by": "SELECT d.name, sum(f.b) AS b FROM facts f JOIN dims d ON f.a = d.a WHERE f.b < 900 GROUP BY d.name",
    "top-k": "SELECT a, sum(b) AS b FROM facts GROUP BY a ORDER BY b DESC, a LIMIT 10",
    "anti join": "SELECT d.a, d.name FROM dims d LEFT ANTI JOIN facts f ON d.a = f.a",
}


def facts(rng: np.random.Generator, first: int, count: int) -> pa.Table:
    """Rows of the large table."""
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "a": rng.integers(0, GROUPS, count).astype(np.int32),
            "b": rng.integers(0, 1000, count).astype(np.int32),
            "c": rng.integers(0, 2000, count).astype(np.int32),
        }
    )


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def recompute_seconds(spark: SparkSession, session: hw.Session, query: str) -> float:
    """Spark's time for the query over cached tables."""
    for name, table in session.tables().items():
        frame = spark.createDataFrame(table.arrow()).cache()
        frame.count()
        frame.createOrReplaceTempView(name)
    return median(seconds(lambda: spark.sql(query).toArrow()) for _ in range(REPEATS))


def refresh_seconds(session: hw.Session, rng: np.random.Generator, size: int, first: int) -> float:
    """The time of a commit that deletes and inserts `size` rows in all."""
    times = []
    for i in range(REPEATS):
        old = session.table("facts").arrow().slice(i * size, size // 2)
        new = facts(rng, first + i * size, size // 2)
        started = perf_counter()
        with session.transaction() as transaction:
            transaction.delete("facts", old)
            transaction.insert("facts", new)
        times.append(perf_counter() - started)
    return median(times)


def measure(query: str) -> list[dict[str, float]]:
    rng = np.random.default_rng(1)
    with hw.connect() as session:
        spark = session.spark.newSession()
        session.create_table("facts", "id BIGINT, a INT, b INT, c INT", key="id")
        session.create_table("dims", "a INT, name STRING", key="a")
        session.insert("dims", [(i, f"name {i % 100}") for i in range(GROUPS)])
        session.insert("facts", facts(rng, 0, ROWS))
        load = seconds(lambda: session.create_view("v", query))
        spark_time = recompute_seconds(spark, session, query)
        found = []
        for step, size in enumerate(DELTAS):
            refresh = refresh_seconds(session, rng, size, ROWS * (step + 2))
            found.append(
                {"delta": size, "refresh_s": refresh, "recompute_s": spark_time, "ratio": spark_time / refresh, "load_s": load}
            )
        return found


def main() -> None:
    console = Console()
    shown = Table("view", "rows changed", "refresh", "Spark recompute", "ratio", title=f"{ROWS:,} rows, medians of {REPEATS}")
    results = {}
    for name, query in track(VIEWS.items(), description="Measuring", console=console):
        results[name] = measure(query)
        for row in results[name]:
            refresh, recompute = f"{row['refresh_s'] * 1000:.1f} ms", f"{row['recompute_s'] * 1000:.0f} ms"
            shown.add_row(name, f"{row['delta']:,}", refresh, recompute, f"{row['ratio']:.0f}×")
    console.print(shown)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "refresh.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
