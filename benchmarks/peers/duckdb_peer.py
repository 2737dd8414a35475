"""DuckDB: the change is applied to its table, and the query is run again."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import duckdb
from outcome import changes, done, peak, rows_of


def main(directory: Path, query: str) -> None:
    base, partners = rows_of(directory / "r.parquet"), rows_of(directory / "s.parquet")  # noqa: F841  (read by name)
    connection = duckdb.connect()
    started = perf_counter()
    connection.execute("CREATE TABLE r AS FROM base")
    connection.execute("CREATE TABLE s AS FROM partners")
    connection.sql(query).fetchall()
    load = perf_counter() - started
    times: dict[int, list[float]] = {}
    applied: dict[int, list[float]] = {}
    answer = []
    for size, going, coming in changes(directory):  # noqa: B007  (read by name)
        started = perf_counter()
        connection.execute("BEGIN")
        connection.execute("DELETE FROM r USING going WHERE r.id = going.id")
        connection.execute("INSERT INTO r FROM coming")
        connection.execute("COMMIT")
        middle = perf_counter()
        answer = connection.sql(query).fetchall()
        times.setdefault(size, []).append(perf_counter() - middle)
        applied.setdefault(size, []).append(middle - started)
    done(f"DuckDB {duckdb.__version__}", load, times, [row[0] for row in answer], memory=peak(), applied=applied)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3])
