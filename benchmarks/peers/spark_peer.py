"""Spark: the query is run again over cached tables; that they must be changed and cached anew is not counted."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import pyspark
from outcome import changes, done, peak, rows_of

from benchmarks.measuring import Recompute, connected, seconds

RECOMPUTES = 10


def main(directory: Path, query: str) -> None:
    base, partners = rows_of(directory / "r.parquet"), rows_of(directory / "s.parquet")
    with connected() as session:
        spark = Recompute(session.spark)
        started = perf_counter()
        spark.cache({"r": base, "s": partners}, query)
        spark.answer(query)
        load = perf_counter() - started
        sizes = dict.fromkeys(size for size, _, _ in changes(directory))
        times = {size: [seconds(lambda: spark.answer(query)) for _ in range(RECOMPUTES)] for size in sizes}
    # The last answer is that of rows unchanged, so it is not compared.
    done(f"Spark {pyspark.__version__}", load, times, [], memory=peak())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3])
