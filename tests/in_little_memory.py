"""A program that keeps views over joins with far more pairs than rows, and says how much memory it took for each.

python in_little_memory.py ROWS OTHERS [NAME …]

It prints a line of JSON for each view: its name, the number of rows of its answer after it was built and after an epoch,
whether these were expected, and by how many bytes the most memory that the process has had grew meanwhile. Should it need a
gigabyte more than it has at the beginning, it gets a MemoryError, and nobody else suffers.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import headwater as hw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

KEYS = 10
RANGE = 1 << 30
WIDTH = 1 << 14
ROOM = 1 << 30

ON = "e.k = q.id % 10 AND e.x BETWEEN q.lo AND q.hi"
EXISTS = f"EXISTS (SELECT 1 FROM e WHERE {ON})"
INNER = f"SELECT q.id, e.x FROM q JOIN e ON {ON}"
PAIRS = "SELECT q.id, q.lo, q.hi, e.x FROM q JOIN e ON e.k = q.id % 10"
STEP = "SELECT r.id, e.x FROM r JOIN e ON e.k = r.id % 10 AND e.x > r.x AND e.x <= r.x + 16384"
# Each with how many rows it has: of pairs that meet the condition, of rows of q that have one, and of rows of q.
VIEWS = {
    "inner join": (INNER, "pairs"),
    "left join": (f"SELECT q.id, e.x FROM q LEFT JOIN e ON {ON}", "pairs + rows - matched"),
    "semi join": (f"SELECT q.id FROM q WHERE {EXISTS}", "matched"),
    "anti join": (f"SELECT q.id FROM q WHERE NOT {EXISTS}", "rows - matched"),
    "anti join that knows of NULL": (
        "SELECT q.id FROM q WHERE q.lo NOT IN (SELECT e.x FROM e WHERE e.k = q.id % 10 AND e.x <> q.lo)",
        "rows",
    ),
    "join without a key": (
        "SELECT q.id, e.x FROM q JOIN e ON e.k >= q.id % 10 AND e.k <= q.id % 10 AND e.x BETWEEN q.lo AND q.hi",
        "pairs",
    ),
    "join of three": (f"{INNER} JOIN f ON f.k = e.k", "pairs"),
    "sum": (f"SELECT k, count(*), sum(e.x) FROM q JOIN e ON {ON} GROUP BY k", "10"),
    "sum of all pairs": ("SELECT count(*), sum(e.x + q.lo) FROM q JOIN e ON e.k = q.id % 10", "1"),
    "sum over a left join": ("SELECT e.k, count(*) FROM q LEFT JOIN e ON e.k = q.id % 10 GROUP BY e.k", "10"),
    "count of distinct values": ("SELECT count(DISTINCT e.x % 7, q.lo % 7) FROM q JOIN e ON e.k = q.id % 10", "1"),
    "distinct": ("SELECT DISTINCT e.x % 7, q.lo % 7 FROM q JOIN e ON e.k = q.id % 10", "49"),
    "two readers": (
        f"SELECT id FROM ({PAIRS}) WHERE x BETWEEN lo AND hi UNION ALL SELECT id FROM ({PAIRS}) WHERE x <= hi AND x >= lo",
        "2 * pairs",
    ),
    "top-k": (f"{INNER} ORDER BY e.x LIMIT 5", "5"),
    "window": (f"SELECT *, row_number() OVER (PARTITION BY id ORDER BY x) FROM ({INNER})", "pairs"),
    "scalar subquery": (f"SELECT id FROM q WHERE lo <= (SELECT min(e.x) FROM q JOIN e ON {ON}) AND id < 0", "0"),
    "recursion": (
        f"WITH RECURSIVE r AS (SELECT id, lo AS x FROM q UNION {STEP}) SELECT id, x FROM r",
        "reached",
    ),
}


def memory(what: str) -> int:
    """A figure of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith(what)))


class Tables:
    """Rows, and what is expected of the views over them."""

    def __init__(self, rows: int, others: int) -> None:
        random = np.random.default_rng(7)
        self.rows = rows
        self.lo = random.integers(0, RANGE, rows)
        self.k = np.arange(2 * others) % KEYS
        self.x = random.permutation(np.unique(random.integers(0, RANGE, 3 * others)))[: 2 * others]

    def q(self) -> pa.Table:
        return pa.table({"id": np.arange(self.rows), "lo": self.lo, "hi": self.lo + WIDTH})

    def e(self, half: int) -> pa.Table:
        size = len(self.x) // 2
        part = slice(half * size, (half + 1) * size)
        return pa.table({"k": self.k[part], "x": self.x[part]})

    def expected(self, what: str, halves: int) -> int:
        """How many rows an answer has, with a half of the rows of e or with both."""
        size = halves * len(self.x) // 2
        values = [np.sort(self.x[:size][self.k[:size] == k]) for k in range(KEYS)]
        pairs = matched = reached = 0
        for k in range(KEYS):
            lo = self.lo[np.arange(self.rows) % KEYS == k]
            first, last = np.searchsorted(values[k], lo), np.searchsorted(values[k], lo + WIDTH, "right")
            pairs += int((last - first).sum())
            matched += int((last > first).sum())
            reached += sum(_reached(values[k], int(start)) for start in lo) if what == "reached" else 0
        known = {"pairs": pairs, "matched": matched, "rows": self.rows, "reached": reached}
        return int(eval(what, known))  # noqa: S307  (a formula of this file)


def _reached(values: Ints, start: int) -> int:
    """How many values a recursion reaches from one, itself among them."""
    at = int(np.searchsorted(values, start, "right"))
    count, last = 1, start
    while at < len(values) and values[at] <= last + WIDTH:
        last = int(values[at])
        count, at = count + 1, at + 1
    return count


def main(rows: int, others: int, names: list[str]) -> None:
    tables = Tables(rows, others)
    session = hw.connect(placement="driver")
    session.create_table("q", "id BIGINT, lo BIGINT, hi BIGINT", key="id")
    session.create_table("e", "k BIGINT, x BIGINT")
    session.create_table("f", "k BIGINT", key="k")
    session.insert("f", pa.table({"k": np.arange(KEYS)}))
    # Loops are compiled, and engines started, before it counts.
    for name in names:
        session.create_view("v", VIEWS[name][0])
        session.insert("q", [(0, 5, 9)])
        session.insert("e", [(0, 7)])
        session.delete("q", [(0, 5, 9)])
        session.delete("e", [(0, 7)])
        session.view("v").drop()
    session.insert("q", tables.q())
    session.insert("e", tables.e(0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory("VmData") + ROOM,) * 2)
    for name in names:
        query, expected = VIEWS[name]
        before = memory("VmHWM")
        view = session.create_view("v", query)
        built = view.arrow().num_rows
        session.insert("e", tables.e(1))
        then = view.arrow().num_rows
        view.drop()
        session.delete("e", tables.e(1))
        right = built == tables.expected(expected, 1) and then == tables.expected(expected, 2)
        print(json.dumps([name, built, then, right, memory("VmHWM") - before]), flush=True)  # noqa: T201
    session.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(VIEWS))
