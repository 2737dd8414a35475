"""The scenario: ten million rows in 5000 groups, a table to join with, and changes of which half go and half come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import Changing

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = 5_000
VIEWS = {
    "having": "SELECT a, avg(b) AS v FROM r GROUP BY a HAVING avg(c) < 1000",
    "join": "SELECT a, avg(b) AS v FROM (SELECT a, b, c FROM r WHERE b < 900) t JOIN s ON a = ttid GROUP BY a "
    "HAVING avg(c) < 1000",
    "top-k": "SELECT a, sum(b) AS v FROM r GROUP BY a ORDER BY v DESC, a LIMIT 10",
}
# Rows changed, and how many changes of that size there are; the first few warm up.
CHANGES = {10: 25, 1_000: 15, 10_000: 9}
WARM_UPS = 3


def facts(rng: np.random.Generator, first: int, count: int) -> pa.Table:
    a, b, c = (rng.integers(0, limit, count, dtype=np.int32) for limit in (GROUPS, 1_000, 2_000))
    return pa.table({"id": np.arange(first, first + count), "a": a, "b": b, "c": c})


def write(directory: Path, rows: int) -> None:
    """The files that every peer reads."""
    table = Changing.of(facts, rows)
    pq.write_table(table.base, directory / "r.parquet")
    pq.write_table(pa.table({"ttid": np.arange(GROUPS, dtype=np.int32)}), directory / "s.parquet")
    number = 0
    for size, count in CHANGES.items():
        for _ in range(count):
            going, coming = table.change(min(size, rows // 50))
            for name, part in (("going", going), ("coming", coming)):
                pq.write_table(part, directory / f"change-{number:03}-{size}-{name}.parquet")
            number += 1
