"""Recursive queries over one small graph, each beside a plain Python fixpoint, and in DuckDB's words where it has them.

Tables: edge (src, dst, cost), a bag; seed (id) and blocked (id), sets of nodes; parent (child, parent), a bag.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Row = tuple[Any, ...]
    Tables = dict[str, list[Row]]

TABLES = {
    "edge": "src BIGINT, dst BIGINT, cost BIGINT",
    "seed": "id BIGINT",
    "blocked": "id BIGINT",
    "parent": "child BIGINT, parent BIGINT",
}


@dataclass(frozen=True)
class Program:
    """A query, what it must give, and the same in DuckDB's dialect if that can say it (None: it cannot)."""

    name: str
    sql: str
    oracle: Callable[[Tables], Counter[Row]]
    duckdb: str | None = None


def least(step: Callable[[set[Row]], set[Row]]) -> set[Row]:
    """The rows that are there when nothing changes any more, from no rows on."""
    now: set[Row] = set()
    while (following := step(now)) != now:
        now = following
    return now


def _reach(t: Tables) -> set[Row]:
    return least(lambda r: {(i, i) for (i,) in t["seed"]} | {(s, d) for s, m in r for a, d, _ in t["edge"] if a == m})


def _closure(t: Tables) -> set[Row]:
    return least(lambda r: {(a, d) for a, d, _ in t["edge"]} | {(x, z) for x, y in r for a, z in r if y == a})


def _same_generation(t: Tables) -> set[Row]:
    up = t["parent"]
    return least(
        lambda r: (
            {(a, b) for a, p in up for b, q in up if p == q}
            | {(a, b) for a, p in up for x, y in r if x == p for b, q in up if q == y}
        )
    )


def _parity(t: Tables) -> set[Row]:
    def step(now: set[Row]) -> set[Row]:
        even = {("even", i) for (i,) in t["seed"]} | {
            ("even", d) for k, n in now if k == "odd" for a, d, _ in t["edge"] if a == n
        }
        return even | {("odd", d) for k, n in now if k == "even" for a, d, _ in t["edge"] if a == n}

    return least(step)


def _paths(t: Tables) -> set[Row]:
    return least(
        lambda r: (
            {(a, d, c, 1) for a, d, c in t["edge"]}
            | {(x, d, c + w, h + 1) for x, y, c, h in r if h < 4 for a, d, w in t["edge"] if a == y}
        )
    )


def _path_bag(t: Tables) -> Counter[Row]:
    total: Counter[Row] = Counter()
    now = Counter((i, 0) for (i,) in t["seed"])
    while now:
        total += now
        following: Counter[Row] = Counter()
        for (n, h), count in now.items():
            for a, d, _ in t["edge"]:
                if a == n and h < 4:
                    following[d, h + 1] += count
        now = following
    return total


def _best(rows: set[Row], better: Callable[..., Any] = min) -> set[Row]:
    keys = {row[0] for row in rows}
    return {(k, better(v for n, v in rows if n == k)) for k in keys}


def _components(t: Tables) -> set[Row]:
    both = [(a, d) for a, d, _ in t["edge"]] + [(d, a) for a, d, _ in t["edge"]]
    nodes = {a for pair in both for a in pair}
    found = least(lambda r: {(n, n) for n in nodes} | _best({(d, v) for n, v in r for a, d in both if a == n}))
    return _best(found)


def _shortest(t: Tables) -> set[Row]:
    found = least(
        lambda r: {(i, 0) for (i,) in t["seed"]} | _best({(d, c + w) for n, c in r for a, d, w in t["edge"] if a == n})
    )
    return _best(found)


def _widest(t: Tables) -> set[Row]:
    return least(
        lambda r: (
            {(i, 100) for (i,) in t["seed"]}
            | _best(
                {(d, min(c, w)) for n, c in r for a, d, w in t["edge"] if a == n and d not in {i for (i,) in t["seed"]}}, max
            )
        )
    )


def _cost_and_hops(t: Tables) -> set[Row]:
    def step(r: set[Row]) -> set[Row]:
        reached = [(d, c + w, h + 1) for n, c, h in r for a, d, w in t["edge"] if a == n]
        best = {(k, min(c for d, c, _ in reached if d == k), min(h for d, _, h in reached if d == k)) for k, _, _ in reached}
        return {(i, 0, 0) for (i,) in t["seed"]} | best

    return least(step)


def _open(t: Tables) -> set[Row]:
    closed = {i for (i,) in t["blocked"]}
    return least(
        lambda r: {(i,) for (i,) in t["seed"]} | {(d,) for (n,) in r for a, d, _ in t["edge"] if a == n and d not in closed}
    )


def _unreached(t: Tables) -> set[Row]:
    nodes = {a for a, _, _ in t["edge"]} | {d for _, d, _ in t["edge"]}
    return {(n,) for n in nodes - {d for _, d in _reach(t)}}


def _reach_counts(t: Tables) -> Counter[Row]:
    found = _reach(t)
    return Counter((s, sum(1 for x, _ in found if x == s)) for s in {s for s, _ in found})


def _largest(t: Tables) -> Counter[Row]:
    return Counter(sorted(_reach_counts(t), key=lambda row: (-row[1], row[0]))[:2])


def _fed(t: Tables) -> set[Row]:
    """Nodes all of whose supply is there: a source, or a target of a node that is, and that has an edge itself."""
    return least(
        lambda r: (
            {(i,) for (i,) in t["seed"]} | {(b,) for a, b, _ in t["edge"] if (a,) in r and any(x == b for x, _, _ in t["edge"])}
        )
    )


def _named(t: Tables) -> set[Row]:
    return least(
        lambda r: (
            {(f"n{i}", 0) for (i,) in t["seed"]}
            | {(f"n{d}", h + 1) for s, h in r if h < 3 for a, d, _ in t["edge"] if f"n{a}" == s}
        )
    )


def _once(found: Callable[[Tables], set[Row]]) -> Callable[[Tables], Counter[Row]]:
    return lambda tables: Counter(found(tables))


_LINEAR = "SELECT id, id FROM seed UNION SELECT r.s, e.dst FROM r JOIN edge e ON e.src = r.d"
_BOTH = "(SELECT src, dst FROM edge UNION ALL SELECT dst, src FROM edge)"
_PATHS = (
    "WITH RECURSIVE p(src, dst, cost, hops) AS (SELECT src, dst, cost, 1 FROM edge UNION "
    "SELECT p.src, e.dst, p.cost + e.cost, p.hops + 1 FROM p JOIN edge e ON e.src = p.dst WHERE p.hops < 4) SELECT * FROM p"
)
_BAG = (
    "WITH RECURSIVE p(n, hops) AS (SELECT id, 0 FROM seed UNION ALL "
    "SELECT e.dst, p.hops + 1 FROM p JOIN edge e ON e.src = p.n WHERE p.hops < 4) SELECT * FROM p"
)

PROGRAMS = (
    Program(
        "reach",
        f"WITH RECURSIVE r(s, d) AS ({_LINEAR}) SELECT * FROM r",
        _once(_reach),
        f"WITH RECURSIVE r(s, d) AS ({_LINEAR}) SELECT * FROM r",
    ),
    Program(
        "closure",
        "WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM edge UNION SELECT e.src, r.y FROM edge e JOIN r ON r.x = e.dst) "
        "SELECT * FROM r",
        _once(_closure),
        "WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM edge UNION SELECT e.src, r.y FROM edge e JOIN r ON r.x = e.dst) "
        "SELECT * FROM r",
    ),
    Program(
        "closure_by_halves",
        "WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM edge UNION SELECT a.x, b.y FROM r a JOIN r b ON a.y = b.x) "
        "SELECT * FROM r",
        _once(_closure),
    ),
    Program(
        "same_generation",
        "WITH RECURSIVE sg(x, y) AS (SELECT a.child, b.child FROM parent a JOIN parent b ON a.parent = b.parent UNION "
        "SELECT a.child, b.child FROM parent a JOIN sg ON sg.x = a.parent JOIN parent b ON b.parent = sg.y) SELECT * FROM sg",
        _once(_same_generation),
        "WITH RECURSIVE sg(x, y) AS (SELECT a.child, b.child FROM parent a JOIN parent b ON a.parent = b.parent UNION "
        "SELECT a.child, b.child FROM parent a JOIN sg ON sg.x = a.parent JOIN parent b ON b.parent = sg.y) SELECT * FROM sg",
    ),
    Program(
        "parity",
        "WITH RECURSIVE even(n) AS (SELECT id FROM seed UNION SELECT e.dst FROM odd JOIN edge e ON e.src = odd.n), "
        "odd(n) AS (SELECT e.dst FROM even JOIN edge e ON e.src = even.n) "
        "SELECT 'even' AS k, n FROM even UNION ALL SELECT 'odd', n FROM odd",
        _once(_parity),
    ),
    Program("paths", _PATHS, _once(_paths), _PATHS),
    Program("path_bag", _BAG, _path_bag, _BAG),
    Program(
        "components",
        f"WITH RECURSIVE link AS {_BOTH}, c(n, v) AS (SELECT src, src FROM link UNION "
        "SELECT l.dst, MIN(c.v) FROM c JOIN link l ON l.src = c.n GROUP BY l.dst) SELECT n, MIN(v) FROM c GROUP BY n",
        _once(_components),
        f"WITH RECURSIVE link AS {_BOTH}, c(n, v) AS (SELECT src, src FROM link UNION "
        "SELECT l.dst, c.v FROM c JOIN link l ON l.src = c.n) SELECT n, MIN(v) FROM c GROUP BY n",
    ),
    Program(
        "shortest",
        "WITH RECURSIVE p(n, c) AS (SELECT id, CAST(0 AS BIGINT) FROM seed UNION "
        "SELECT e.dst, MIN(p.c + e.cost) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst) SELECT n, MIN(c) FROM p GROUP BY n",
        _once(_shortest),
        "WITH RECURSIVE p(n, c) AS (SELECT id, 0 FROM seed UNION SELECT e.dst, p.c + e.cost FROM p JOIN edge e ON e.src = p.n "
        "WHERE p.c + e.cost < 200) SELECT n, MIN(c) FROM p GROUP BY n",
    ),
    Program(
        "widest",
        "WITH RECURSIVE p(n, w) AS (SELECT id, CAST(100 AS BIGINT) FROM seed UNION "
        "SELECT e.dst, MAX(least(p.w, e.cost)) FROM p JOIN edge e ON e.src = p.n "
        "WHERE e.dst NOT IN (SELECT id FROM seed) GROUP BY e.dst) SELECT * FROM p",
        _once(_widest),
    ),
    Program(
        "cost_and_hops",
        "WITH RECURSIVE p(n, c, h) AS (SELECT id, CAST(0 AS BIGINT), 0 FROM seed UNION "
        "SELECT e.dst, MIN(p.c + e.cost), MIN(p.h + 1) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst) SELECT * FROM p",
        _once(_cost_and_hops),
    ),
    Program(
        "open",
        "WITH RECURSIVE r(n) AS (SELECT id FROM seed UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.n "
        "WHERE NOT EXISTS (SELECT 1 FROM blocked b WHERE b.id = e.dst)) SELECT * FROM r",
        _once(_open),
        "WITH RECURSIVE r(n) AS (SELECT id FROM seed UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.n "
        "WHERE e.dst NOT IN (SELECT id FROM blocked)) SELECT * FROM r",
    ),
    Program(
        "unreached",
        f"WITH RECURSIVE r(s, d) AS ({_LINEAR}), node AS (SELECT src AS n FROM edge UNION SELECT dst FROM edge) "
        "SELECT n FROM node WHERE n NOT IN (SELECT d FROM r)",
        _once(_unreached),
        f"WITH RECURSIVE r(s, d) AS ({_LINEAR}), node AS (SELECT src AS n FROM edge UNION SELECT dst FROM edge) "
        "SELECT n FROM node WHERE n NOT IN (SELECT d FROM r)",
    ),
    Program("counts", f"WITH RECURSIVE r(s, d) AS ({_LINEAR}) SELECT s, count(*) FROM r GROUP BY s", _reach_counts),
    Program(
        "largest",
        f"WITH RECURSIVE r(s, d) AS ({_LINEAR}) SELECT s, count(*) AS n FROM r GROUP BY s ORDER BY n DESC, s LIMIT 2",
        _largest,
    ),
    Program(
        "fed",
        "WITH RECURSIVE r(n) AS (SELECT id FROM seed UNION SELECT e.dst FROM edge e "
        "WHERE e.src IN (SELECT n FROM r) AND EXISTS (SELECT 1 FROM edge f WHERE f.src = e.dst)) SELECT * FROM r",
        _once(_fed),
    ),
    Program(
        "named",
        "WITH RECURSIVE r(name, hops) AS (SELECT concat('n', id), 0 FROM seed UNION "
        "SELECT concat('n', e.dst), r.hops + 1 FROM r JOIN edge e ON concat('n', e.src) = r.name WHERE r.hops < 3) "
        "SELECT * FROM r",
        _once(_named),
    ),
)
