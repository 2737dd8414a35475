"""A long run: thousands of epochs of a hundred rows each, one like the other, from the first to the last."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import Recompute, commit, commits, connected, load, note, require_equal, resident
from benchmarks.workload import Figure, Scale, Workload

GROUPS = 5_000
SIZE = 100
HUNDRED = 100
# Changes made ahead of the commits that are timed.
AHEAD = 500

QUERIES = {
    "aggregate": "SELECT a, avg(b) AS ab FROM r GROUP BY a HAVING avg(c) < 1000",
    "join and aggregate": "SELECT x, sum(b) AS sb, count(*) AS n FROM r JOIN s ON a = ttid WHERE b < 4500 GROUP BY x",
    "top-k": "SELECT a, sum(b) AS sb FROM r GROUP BY a ORDER BY sb DESC, a LIMIT 10",
}


def measure(name: str, scale: Scale) -> list[Figure]:
    query = QUERIES[name]
    groups = min(GROUPS, scale.rows)
    table = Changing.of(facts(groups), scale.rows)
    others = {"s": partners(groups, groups, 1)}
    with connected() as session:
        load(session, "r", table.base, "id")
        load(session, "s", others["s"], "hid")
        note("creating the view")
        session.create_view("v", query)
        commits(session, "r", table, SIZE, 5)
        memory = [resident()]
        times: list[float] = []
        while len(times) < scale.epochs:
            note(f"epoch {len(times):,} of {scale.epochs:,}")
            changes = [table.change(SIZE) for _ in range(min(AHEAD, scale.epochs - len(times)))]
            times += [commit(session, "r", *change) for change in changes]
            memory.append(resident())
        spark = Recompute(session.spark)
        spark.cache({"r": table.rows(), **others}, query)
        require_equal(session.view("v").arrow(), spark.answer(query))
    return _figures(name, np.array(times), memory)


def _figures(name: str, times: np.ndarray, memory: list[int]) -> list[Figure]:
    first, last = np.median(times[:HUNDRED]), np.median(times[-HUNDRED:])
    middle, high = np.percentile(times, [50, 99])
    hundreds = [times[start : start + HUNDRED] for start in range(0, len(times), HUNDRED)]
    details = {
        "refresh_s": float(middle),
        "p99_s": float(high),
        "longest_s": float(times.max()),
        "first_s": float(first),
        "last_s": float(last),
        "medians": [float(np.median(each)) for each in hundreds],
        "p99s": [float(np.percentile(each, 99)) for each in hundreds],
        "memory": memory,
        "epochs": len(times),
    }
    growth = (memory[-1] - memory[0]) / len(times)
    return [
        Figure(name, "epochs", "last to first", float(last / first), "×", SIZE, details),
        Figure(name, "epochs", "p99 to median", float(high / middle), "×", SIZE),
        Figure(name, "epochs", "longest to median", float(times.max() / middle), "×", SIZE),
        Figure(name, "epochs", "memory an epoch", growth / 1024, "KB", SIZE),
    ]


WORKLOADS = tuple(Workload(name, partial(measure, name)) for name in QUERIES)
