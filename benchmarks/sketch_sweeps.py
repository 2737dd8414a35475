"""Sketches by what their cost may depend on: a commit with a sketch while one thing varies, and what each technique is worth.

All of it at a tenth of the rows: what counts is how figures follow what varies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import commits, connected, load, note, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import headwater as hw

_GROUPS = 5_000
_FRAGMENTS = 1_000
_HAVING = "SELECT a, avg(b) AS x FROM r{join} {where} GROUP BY a HAVING avg(c) < {limit}"


@dataclass(frozen=True)
class Point:
    """A query, which is measured with a table of partners or without, and options of its sketch."""

    value: int
    text: str
    partners: tuple[int, int, int] | None = None
    options: tuple[tuple[str, Any], ...] = ()
    groups: int = _GROUPS
    label: str = ""


def having(limit: int = _GROUPS // 50, where: str = "", join: str = "") -> str:
    return _HAVING.format(limit=limit, where=where, join=join)


def groups() -> Iterator[Point]:
    for count in (50, 1_000, 5_000, 500_000):
        yield Point(count, having(max(1, count // 50)), groups=count)


def aggregates() -> Iterator[Point]:
    for count in (1, 2, 3, 5, 10):
        wanted = [f"avg({column})" for column in "bcdefghij"[:count]]
        conditions = " AND ".join(f"{each} < {_GROUPS // 50}" for each in (wanted * 2)[:count])
        yield Point(count, f"SELECT a, {', '.join(wanted)} FROM r GROUP BY a HAVING {conditions}")


def selectivity() -> Iterator[Point]:
    for per_cent in (1, 2, 10, 50, 100):
        yield Point(per_cent, having(_GROUPS * per_cent // 100 + 1))


def joins() -> Iterator[Point]:
    for times in (1, 20, 200):
        yield Point(times, having(join=" JOIN s ON a = ttid"), partners=(_GROUPS * times, _GROUPS, times))


def fragments() -> Iterator[Point]:
    for count in (10, 100, 1_000, 5_000):
        yield Point(count, having(join=" JOIN s ON a = ttid"), (_GROUPS, _GROUPS, 1), (("fragments", count),))


def swept(points: Callable[[], Iterator[Point]], name: str, scale: Scale) -> list[Figure]:
    """A commit of 100 rows with a sketch, at each point."""
    rows = scale.rows // 10
    size = max(2, min(100, rows // 1_000))
    figures = []
    with connected() as session:
        table: Changing | None = None
        before = 0
        for point in points():
            if point.groups > rows:
                continue
            if table is None or before != point.groups:
                if table is not None:
                    session.drop_table("r")
                table, before = Changing.of(facts(point.groups), rows), point.groups
                load(session, "r", table.base, "id")
            with_partners(session, point)
            note(f"{name}: {point.value:,}")
            options = {"fragments": _FRAGMENTS, **dict(point.options)}
            captured = seconds(partial(session.create_sketch, "k", point.text, on={"r": "a"}, **options))
            commits(session, "r", table, size, 2)
            took = median(commits(session, "r", table, size, scale.repeats(size) // 2 + 1))
            details = {"fragments": len(session.sketch("k")), "capture_s": captured, "refresh_s": took}
            figures.append(Figure(name, "sweep", "refresh", 1000 * took, "ms", point.value, details))
            session.drop_sketch("k")
    return figures


def with_partners(session: hw.Session, point: Point) -> None:
    if "s" in session.tables():
        session.drop_table("s")
    if point.partners is not None:
        load(session, "s", partners(*point.partners), "hid")


def push_down(name: str, scale: Scale) -> list[Figure]:
    """A change of 2.5 % of the table, then the sketch that rests is brought up to date: selections first, and last.

    Of the columns that are selected by, so many per cent of the rows pass.
    """
    rows = scale.rows // 10
    size = max(2, rows // 40)
    figures = []
    with connected() as session:
        table = Changing.of(facts(_GROUPS), rows)
        load(session, "r", table.base, "id")
        for per_cent in (2, 25, 50, 100):
            text = having(where=f"WHERE g < {_GROUPS * per_cent // 100 + 1}")
            for label, early in (("first", True), ("last", False)):
                sketch = session.create_sketch(
                    label, text, on={"r": "a"}, fragments=_FRAGMENTS, maintain="lazy", push_down=early
                )
                assert len(sketch)
            times: dict[str, list[float]] = {"first": [], "last": []}
            for _ in range(1 if scale.quick else 3):
                note(f"{name}: {per_cent} %")
                commits(session, "r", table, size, 1)
                for label, taken in times.items():
                    taken.append(seconds(partial(len, session.sketch(label))))
            assert session.sketch("first").rows() == session.sketch("last").rows()
            first, last = (median(taken) for taken in times.values())
            details = {"refresh_s": first, "without_s": last, "rows": size}
            figures.append(Figure(name, "switch", "without to with", last / first, "×", per_cent, details))
            for label in times:
                session.drop_sketch(label)
    return figures


def key_filter(name: str, scale: Scale) -> list[Figure]:
    """Commits with a join of which few rows have partners, among many other keys: with the filter, and without."""
    rows = scale.rows // 10
    figures = []
    with connected() as session:
        table = Changing.of(facts(_GROUPS), rows)
        load(session, "r", table.base, "id")
        for per_cent in (1, 5, 10):
            with_partners(session, Point(per_cent, "", (rows, max(1, _GROUPS * per_cent // 100), 1)))
            text = having(join=" JOIN s ON a = ttid")
            for size in (max(2, rows // 1_000), max(2, rows * 15 // 1_000)):
                times = {}
                for filtered in (True, False):
                    note(f"{name}: {per_cent} %, {size:,} rows")
                    session.create_sketch("k", text, on={"r": "a"}, fragments=_FRAGMENTS, key_filter=filtered)
                    commits(session, "r", table, size, 2)
                    times[filtered] = median(commits(session, "r", table, size, 2 if scale.quick else 5))
                    session.drop_sketch("k")
                details = {"refresh_s": times[True], "without_s": times[False], "per_cent": per_cent}
                figures.append(
                    Figure(name, "switch", f"without to with, {per_cent} %", times[False] / times[True], "×", size, details)
                )
    return figures


BEST = {
    "greatest values": "SELECT a, max(b) AS m FROM r GROUP BY a HAVING max(b) > 4_900",
    "top 10 groups": "SELECT a, sum(b) AS sb FROM r GROUP BY a ORDER BY sb DESC, a LIMIT 10",
    "top 10 rows": "SELECT id, b FROM r ORDER BY b DESC, id LIMIT 10",
}


def best(query: str, name: str, scale: Scale) -> list[Figure]:
    """What the state of a sketch takes, and a commit, if the best m are kept; the last figures are those of all."""
    rows = scale.rows // 10
    size = max(2, min(100, rows // 1_000))
    figures = []
    with connected() as session:
        table = Changing.of(facts(_GROUPS), rows)
        load(session, "r", table.base, "id")
        before = session.snapshot.catalog
        for most in (10, 100, 1_000, None):
            note(f"{name}: the best {most}")
            session.create_sketch("k", BEST[query].replace("_", ""), on={"r": "a"}, fragments=_FRAGMENTS, best=most)
            commits(session, "r", table, size, 2)
            took = median(commits(session, "r", table, size, scale.repeats(size) // 2 + 1))
            now = session.snapshot
            own = [step for step in now.catalog.steps if step not in set(before.steps)]
            held = sum(each.nbytes for step in own for each in now.states[step])
            details = {"refresh_s": took, "best": most or "all", "rows": rows}
            figures += [
                Figure(name, "switch", "state", held / 2**20, "MB", most, details),
                Figure(name, "switch", "refresh with the best", 1000 * took, "ms", most, details),
            ]
            session.drop_sketch("k")
    return figures


SWEEPS = {
    "groups": groups,
    "aggregates": aggregates,
    "selectivity of groups, %": selectivity,
    "partners of a row": joins,
    "fragments": fragments,
}
WORKLOADS = (
    *(Workload(name, partial(swept, points, name)) for name, points in SWEEPS.items()),
    Workload("push-down, % selected", partial(push_down, "push-down, % selected")),
    Workload("key filter", partial(key_filter, "key filter")),
    *(Workload(f"best m, {query}", partial(best, query, f"best m, {query}")) for query in BEST),
)
