"""Queries over synthetic tables, one property varied at a time: groups, aggregates, multiplicity and selectivity of joins.

The attribute `a` has so many values, evenly spread; the other columns follow it, so that `b < groups / 5` keeps a fifth. A
join "m-n" meets each of its values m times in the table of partners and n times in the changing one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.data import Changing, facts, partners
from benchmarks.measuring import Recompute, commit, commits, connected, load, note, require_equal, resident, seconds
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    import headwater as hw

# Deltas beyond which recomputing must win in the end, in per cent of the table.
LARGE = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class Query:
    """A view to measure; the groups of `r` and the rows of `s` may follow from the number of rows."""

    name: str
    kind: str
    text: str
    groups: int | Callable[[int], int] = 5_000
    partners: Callable[[int, int], pa.Table] | None = None
    sweep: bool = False

    def groups_at(self, rows: int) -> int:
        wanted = self.groups if isinstance(self.groups, int) else self.groups(rows)
        return max(1, min(wanted, rows))

    def text_at(self, groups: int) -> str:
        """The query; `:n` stands for a threshold that a fifth of the values are below, as in the tables of the paper."""
        return self.text.replace(":n", str(max(1, groups // 5)))


def multiplicity(times: int) -> Callable[[int], int]:
    """As many groups as there are when each has so many rows."""
    return lambda rows: rows // times


def meeting(times: int) -> Callable[[int, int], pa.Table]:
    """As many rows as the other table, in which each group comes so often."""
    return lambda rows, groups: partners(rows, groups, times)


def selective(per_cent: int) -> Callable[[int, int], pa.Table]:
    """A row for each group, of which so many per cent meet one."""
    return lambda _rows, groups: partners(groups, max(1, groups * per_cent // 100), 1)


JOIN = """
SELECT a, avg(b) AS ab FROM (SELECT a, b, c FROM r WHERE b < :n) tt JOIN s ON (a = ttid) GROUP BY a HAVING avg(c) < :n
"""
HAVING = (
    "avg(c) < 1000",
    "avg(d) < 1200",
    *(f"avg({name}) > 0" for name in "efghij"),
    "avg(id) > 0",
)


def having(aggregates: int) -> str:
    condition = " AND ".join(HAVING[: aggregates - 1])
    return "SELECT a, avg(b) AS ab FROM r GROUP BY a" + (f" HAVING {condition}" if condition else "")


QUERIES = (
    *(
        Query(f"{name} groups", "aggregate", f"SELECT a, avg(b) AS ab FROM r GROUP BY a HAVING avg(c) < {limit}", groups)
        for name, groups, limit in (("50", 50, 3), ("1K", 1_000, 320), ("5K", 5_000, 1_600), ("500K", 500_000, 1_600))
    ),
    *(Query(f"{n} aggregate{'s' * (n > 1)}", "aggregate", having(n), sweep=n == 2) for n in (1, 2, 3, 10)),
    Query("join 1-20", "join", JOIN, multiplicity(20), meeting(1)),
    Query("join 1-2K", "join", JOIN, multiplicity(2_000), meeting(1), sweep=True),
    Query("join 1-200K", "join", JOIN, multiplicity(200_000), meeting(1)),
    Query("join 20-2K", "join", JOIN, multiplicity(2_000), meeting(20)),
    Query("join 50-2K", "join", JOIN, multiplicity(2_000), meeting(50)),
    *(Query(f"join of {n} %", "join", JOIN, multiplicity(2_000), selective(n)) for n in (1, 5, 10)),
    Query("top 10 groups", "top-k", "SELECT a, sum(b) AS sb FROM r GROUP BY a ORDER BY sb DESC, a LIMIT 10"),
    Query("top 10 rows", "top-k", "SELECT id, b FROM r ORDER BY b DESC, id LIMIT 10"),
)


def measure(query: Query, scale: Scale) -> list[Figure]:
    """Refreshes of every size beside Spark's recompute."""
    groups = query.groups_at(scale.rows)
    text = query.text_at(groups)
    note("making rows")
    table = Changing.of(facts(groups), scale.rows)
    others = {} if query.partners is None else {"s": query.partners(scale.rows, groups)}
    with connected() as session:
        spark = Recompute(session.spark)
        # The key is read only where the cached table is changed.
        spark.cache({"r": table.base, **others}, f"{text} id" if query.sweep else text)
        recompute = spark.seconds(text, scale.recomputes)
        loaded = load(session, "r", table.base, "id") + sum(load(session, n, rows, "hid") for n, rows in others.items())
        note("creating the view")
        created = seconds(lambda: session.create_view("v", text))
        view = session.view("v")
        require_equal(view.arrow(), spark.answer(text))
        known = {"recompute_s": recompute, "load_s": loaded, "create_s": created, "class": view.maintenance}
        figures = refreshes(query, session, table, scale, known)
        if query.sweep:
            figures += sweep(query, session, table, spark, known)
        note("comparing with Spark")
        spark.drop()
        spark.cache({"r": table.rows(), **others}, text)
        require_equal(view.arrow(), spark.answer(text))
    return figures


def refreshes(query: Query, session: hw.Session, table: Changing, scale: Scale, known: dict[str, float | str]) -> list[Figure]:
    commits(session, "r", table, scale.deltas[0], 3)
    figures = []
    for size in scale.deltas:
        note(f"commits of {size:,} rows")
        times = commits(session, "r", table, size, scale.repeats(size))
        refresh = median(times)
        details = {**known, "refresh_s": refresh, "longest_s": max(times), "memory": resident()}
        speedup = known["recompute_s"] / refresh
        figures.append(Figure(query.name, query.kind, "speedup", speedup, "×", size, details))
    details = {"read_s": median(seconds(session.view("v").arrow) for _ in range(3)), "rows": len(session.view("v"))}
    return [*figures, Figure(query.name, query.kind, "read", details["read_s"], "s", None, details)]


def sweep(query: Query, session: hw.Session, table: Changing, spark: Recompute, known: dict[str, float | str]) -> list[Figure]:
    """Where recomputing begins to win, and whether a refresh is ever slower than that.

    Spark recomputes over a table that stays as it was; beside that, what it takes Spark to bring the table up to date as well.
    """
    rows, text = table.base.num_rows, query.text_at(query.groups_at(table.base.num_rows))
    figures = []
    for per_cent in LARGE:
        size = rows * per_cent // 100
        note(f"commits of {per_cent} %")
        changes = [table.change(size) for _ in range(1 if per_cent > 10 else 2)]
        refresh = median(commit(session, "r", *change) for change in changes)
        changed = spark.seconds_with_change("r", "id", changes[-1], text)
        details = {**known, "refresh_s": refresh, "changed_s": changed, "per_cent": per_cent}
        share = refresh / known["recompute_s"]
        figures += [
            Figure(query.name, query.kind, "share of recompute", share, "×", size, details),
            Figure(query.name, query.kind, "share of change and recompute", refresh / changed, "×", size, details),
        ]
    for measure, name in (
        ("share of recompute", "break-even"),
        ("share of change and recompute", "break-even with the change"),
    ):
        quicker = [f.details["per_cent"] for f in figures if f.measure == measure and f.value <= 1]
        figures.append(Figure(query.name, query.kind, name, max(quicker, default=0), "%"))
    return figures


WORKLOADS = tuple(Workload(query.name, partial(measure, query)) for query in QUERIES)
