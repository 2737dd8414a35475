"""Many views over one table: what a commit costs with 1, 10 and 100 of them, and while one more is created beside them.

Views with a common sub-plan differ only above it: all filter the groups of one aggregate over one join. The others differ
below, in the rows they read, so that nothing can be shared but the table.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import commit, commits, connected, load, note, require_spark_agrees
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    import headwater as hw

GROUPS = 5_000
QUERIES = {
    "common sub-plan": (
        "SELECT a, sb FROM (SELECT a, sum(b) AS sb, max(x) AS x FROM r JOIN s ON a = ttid GROUP BY a) WHERE sb % 100 = {n}"
    ),
    "nothing in common": "SELECT a, sum(b) AS sb, max(x) AS x FROM r JOIN s ON a = ttid WHERE c % 100 = {n} GROUP BY a",
}


def prepared(session: hw.Session, rows: int) -> Changing:
    groups = min(GROUPS, rows)
    table = Changing.of(facts(groups), rows)
    load(session, "r", table.base, "id")
    load(session, "s", partners(groups, groups, 1), "hid")
    return table


def compare(session: hw.Session, table: Changing, queries: dict[str, str]) -> None:
    groups = min(GROUPS, len(table.base))
    require_spark_agrees(session, {"r": table.rows(), "s": partners(groups, groups, 1)}, queries)


def measure(name: str, scale: Scale) -> list[Figure]:
    """A tenth of the rows: what grows here is the number of views."""
    size = min(1_000, scale.rows // 1_000)
    times: dict[int, float] = {}
    with connected() as session:
        table = prepared(session, scale.rows // 10)
        for count in scale.views:
            note(f"creating views up to {count}")
            for n in range(len(session.views()), count):
                session.create_view(f"v{n}", QUERIES[name].format(n=n))
            note(f"commits to {count} views")
            commits(session, "r", table, size, 2)
            times[count] = median(commits(session, "r", table, size, scale.repeats(size)))
        compare(session, table, {f"v{n}": QUERIES[name].format(n=n) for n in (0, len(session.views()) - 1)})
    first, last = scale.views[0], scale.views[-1]
    figures = [
        Figure(name, "commit", f"{n} views", times[n], "s", size, {"refresh_s": times[n], "views": n}) for n in scale.views
    ]
    figures.append(Figure(name, "commit", "all views to one", times[last] / times[first], "×", size))
    if name == "common sub-plan":
        further = (times[last] - times[first]) / (last - first)
        figures.append(Figure(name, "commit", "next view to first", further / times[first], "×", size))
    return figures


def creation(scale: Scale) -> list[Figure]:
    """The longest commit while the 101st view is created in another thread."""
    with connected() as session:
        table = prepared(session, scale.rows)
        for n in range(scale.views[-1]):
            note(f"creating view {n + 1}")
            session.create_view(f"v{n}", QUERIES["common sub-plan"].format(n=n))
        commits(session, "r", table, 10, 3)
        before = median(commits(session, "r", table, 10, 20))
        changes = [table.change(10) for _ in range(min(2_000, scale.rows // 100))]
        note("creating the 101st view beside commits")
        creator = Thread(target=session.create_view, args=("one_more", QUERIES["nothing in common"].format(n=0)))
        started = perf_counter()
        creator.start()
        during = []
        while creator.is_alive() and changes:
            during.append(commit(session, "r", *changes.pop()))
        creator.join()
        created = perf_counter() - started
        for change in changes:
            commit(session, "r", *change)
        compare(session, table, {"one_more": QUERIES["nothing in common"].format(n=0)})
    details = {"refresh_s": median(during), "before_s": before, "create_s": created, "commits": len(during)}
    return [Figure("creating the 101st view", "creation", "longest commit", max(during) * 1000, "ms", 10, details)]


WORKLOADS = (
    *(Workload(name, partial(measure, name)) for name in QUERIES),
    Workload("creating the 101st view", creation),
)
