"""Headwater: tables and a view, loaded by one transaction and changed by others."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from outcome import changes, done, peak, rows_of

import headwater as hw
from benchmarks.measuring import commit, connected


def main(directory: Path, query: str) -> None:
    base, partners = rows_of(directory / "r.parquet"), rows_of(directory / "s.parquet")
    with connected() as session:
        session.create_table("r", "id BIGINT, a INT, b INT, c INT", key="id")
        session.create_table("s", "ttid INT", key="ttid")
        started = perf_counter()
        session.insert("s", partners)
        session.insert("r", base)
        view = session.create_view("v", query)
        load = perf_counter() - started
        times: dict[int, list[float]] = {}
        for size, going, coming in changes(directory):
            times.setdefault(size, []).append(commit(session, "r", going, coming))
        groups = view.arrow()["a"].to_pylist()
    done(f"Headwater {hw.__version__}", load, times, groups, memory=peak())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3])
