"""Where a sketch may be used: the counterexamples one by one, and random plans over random data by brute force.

The properties that sketches are held to, and where they are tested:

| | property | test |
|---|---|---|
| T1 | the sketch is the fragments of the lineage | `test_capture`: follow every change |
| T2 | any superset of a safe sketch gives the answer | here: over any sketch that is safe |
| T3 | what is refused may be safe; how often that is so | here: the same, as events that hypothesis counts |
| T4 | a sketch of another query that serves gives the answer | `test_reuse`: over the sketch of another query; `test_uniting` |
| T5 | read off the answer, or by pairs of groups, it is the same sketch | `test_capture`: both are compared with the lineage |
| T6 | the condition is true of a value if its fragment is chosen | `test_conditions`; `tests/annotations/test_fragments` |
| T7 | every value is in exactly one fragment | `tests/annotations/test_fragments`: the number of bounds not above |
| T8 | intervals say what the set says, coarser ones more | `tests/annotations/test_fragments` |
| T9 | ranges passed on through joins change nothing | `test_transfer`; `test_sketches`: to the right column |
| T10 | nothing, everything, one range, too large a limit, equal bounds | `test_sketches`, `test_conditions`, `test_fragments` |
| T11 | monotone queries are safe by any column | here: nothing is needed for monotone queries |
| T12 | a sketch is of its epoch, and the one that would be captured then | `test_capture`, `test_lazily`, `test_sketches` |
| T13 | a violated guard sets a sketch aside | `test_sketches`: violated guard; `test_lazily` |
| T14 | every rule is needed | here and `test_reuse`: every rule is needed |
| T15 | files, row groups and rows are skipped, never more are read | `test_sketches`: files and row groups; `test_files` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from small_plans import (
    Naive,
    aggregate,
    bag,
    beside,
    case,
    col,
    compare,
    compute,
    distinct,
    join,
    limit,
    lit,
    project,
    scan,
    union,
    where,
)

from headwater.algebra import plan
from headwater.sketches import safety
from headwater.sketches.facts import Facts, Guard, Unsafe
from headwater.sketches.safety import barriers

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[Any, ...]
    Access = tuple[int, int]

WIDTHS = {"r": 4, "s": 2}
# g, h, a, x
R = scan("r", 4)
G, H, A, X = range(4)


def scans(root: plan.Node) -> list[str]:
    return [node.source for node in plan.walk(root) if isinstance(node, plan.Scan)]


def numbered(root: plan.Node, tables: dict[str, list[Row]]) -> dict[int, list[tuple[int, Row]]]:
    return {i: list(enumerate(tables[name])) for i, name in enumerate(scans(root))}


def fragment(value: int | None, cut: int) -> int:
    return 2 if value is None else int(value >= cut)


def is_safe(root: plan.Node, accesses: Sequence[Access], facts: Facts | None = None) -> bool:
    try:
        barriers(root, accesses, Facts() if facts is None else facts)
    except Unsafe:
        return False
    return True


def over_sketch(
    root: plan.Node, tables: dict[str, list[Row]], cuts: dict[Access, int], walls: frozenset[int] = frozenset()
) -> Any:
    """The answer over all rows, the answer over the accurate sketch, and whether rows were skipped."""
    whole = numbered(root, tables)
    naive = Naive(whole)
    answer = naive.rows(root)
    needed = {pair for _, lineage in answer for pair in lineage}
    needed |= {pair for wall in walls for _, lineage in naive.seen[wall] for pair in lineage}
    part = dict(whole)
    for (number, column), cut in cuts.items():
        kept = {fragment(row[column], cut) for i, row in whole[number] if (number, i) in needed}
        part[number] = [(i, row) for i, row in part[number] if fragment(row[column], cut) in kept]
    skipped = sum(map(len, whole.values())) - sum(map(len, part.values()))
    return bag(answer), bag(Naive(part).rows(root)), skipped


HAVING = aggregate(R, [G], ("count", lit(1)), ("sum", col(A)), ("avg", col(A)), ("min", col(A)), ("max", col(A)))
AT_LEAST = Facts(guards=frozenset({Guard("r", A, "≥ 0")}))

COUNTEREXAMPLES: dict[str, tuple[plan.Node, dict[str, list[Row]], dict[Access, int]]] = {
    "avg of a group, top 1": (
        limit(aggregate(R, [G], ("avg", col(A))), [(1, "desc")], 1),
        {"r": [(0, 0, 6, 2), (1, 0, 7, 2), (1, 0, 2, 1)]},
        {(0, X): 2},
    ),
    "count at most": (
        where(aggregate(R, [G], ("count", lit(1))), "<=", col(1), lit(1)),
        {"r": [(0, 0, 0, 1), (1, 0, 0, 1), (1, 0, 0, 2)]},
        {(0, X): 2},
    ),
    "sum of mixed signs": (
        where(aggregate(R, [G], ("sum", col(A))), ">", col(1), lit(3)),
        {"r": [(0, 0, 5, 1), (1, 0, 5, 1), (1, 0, -5, 2)]},
        {(0, X): 2},
    ),
    "CE2: a case over a count": (
        where(
            aggregate(
                aggregate(R, [G, H], ("count", lit(1))), [0], ("sum", case(compare("<", col(2), lit(2)), lit(1), lit(0)))
            ),
            ">",
            col(1),
            lit(0),
        ),
        {"r": [(0, 0, 0, 1), (1, 0, 0, 1), (1, 0, 0, 2)]},
        {(0, X): 2},
    ),
    "CE3: a tie broken by an average": (
        project(
            limit(project(aggregate(R, [G], ("max", col(A)), ("avg", col(H))), col(1), col(2), col(0)), [(0, "desc")], 1),
            col(2),
        ),
        {"r": [(0, 5, 9, 1), (1, 4, 9, 1), (1, 8, 3, 2)]},
        {(0, X): 2},
    ),
    "CE4: least first, NULL first": (
        limit(aggregate(R, [G], ("min", col(A))), [(1, "asc")], 1),
        {"r": [(0, 0, 3, 1), (1, 0, 5, 2), (1, 0, None, 1)]},
        {(0, X): 2},
    ),
    "CE5: groups by a count": (
        where(aggregate(aggregate(R, [G], ("count", lit(1))), [1], ("count", lit(1))), ">=", col(1), lit(2)),
        {"r": [(0, 0, 0, 1), (1, 0, 0, 1), (2, 0, 0, 1), (2, 0, 0, 2)]},
        {(0, X): 2},
    ),
    "CE8: anti join with the right side sketched": (
        join("anti", scan("s", 2), R, [(0, G)]),
        {"s": [(0, 1), (1, 1)], "r": [(1, 0, 0, 1)]},
        {(1, X): 2},
    ),
    "CE9: a group over two branches": (
        where(aggregate(union(project(R, col(G), col(A)), scan("s", 2)), [0], ("sum", col(1))), "<", col(1), lit(5)),
        {"r": [(0, 0, 1, 0), (1, 0, 3, 0)], "s": [(1, 10)]},
        {(0, G): 5, (1, 0): 1},
    ),
    "CE10: distinct counts": (
        where(aggregate(aggregate(R, [G, H], ("count", lit(1))), [0], ("count distinct", col(2))), ">=", col(1), lit(2)),
        {"r": [(0, 0, 0, 1), (0, 1, 0, 1), (0, 1, 0, 1), (1, 0, 0, 1), (1, 0, 0, 2), (1, 1, 0, 1), (1, 1, 0, 1)]},
        {(0, X): 2},
    ),
    "CE11: one row over no rows": (
        where(aggregate(R, [], ("count", lit(1))), "<", col(0), lit(1)),
        {"r": [(0, 0, 0, 1)]},
        {(0, X): 2},
    ),
    "CE16: a sum below the smaller side": (
        where(join("inner", scan("s", 2), aggregate(R, [G], ("sum", col(A))), [(0, 0)]), ">", col(1), col(3)),
        {"s": [(0, 9), (1, 6)], "r": [(0, 0, 5, 1), (1, 0, 5, 1), (1, 0, 5, 2)]},
        {(1, X): 2},
    ),
    "a join by a count": (
        join("inner", scan("s", 2), aggregate(R, [G], ("count", lit(1))), [(1, 1)]),
        {"s": [(0, 1)], "r": [(0, 0, 0, 1), (1, 0, 0, 1), (1, 0, 0, 2)]},
        {(1, X): 2},
    ),
    "a scalar subquery over rows that are sketched": (
        where(beside(R, aggregate(R, [], ("avg", col(A)))), ">", col(A), col(4)),
        {"r": [(0, 0, 9, 1), (0, 0, 6, 1), (0, 0, 3, 2)]},
        {(0, X): 2, (1, X): 2},
    ),
    "a scalar subquery without its rows": (
        where(beside(aggregate(R, [G], ("sum", col(A))), aggregate(R, [], ("max", col(H)))), ">", col(1), col(2)),
        {"r": [(0, 1, 5, 1), (1, 6, 9, 2)]},
        {(1, X): 2},
    ),
    "CE17: outer join with the right side sketched": (
        limit(join("left", scan("s", 2), R, [(0, G)]), [(5, "asc")], 1),
        {"s": [(0, 1), (1, 1)], "r": [(0, 0, 0, 1), (1, 0, 0, 2)]},
        {(1, X): 2},
    ),
}


CE1: tuple[plan.Node, dict[str, list[Row]], dict[Access, int]] = (
    where(limit(R, [(A, "asc")], 2), "=", col(G), lit(1)),
    {"r": [(0, 0, 1, 0), (1, 0, 2, 0), (1, 0, 3, 0)]},
    {(0, A): 2},
)


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_counterexamples_are_refused(name: str) -> None:
    root, _, cuts = COUNTEREXAMPLES[name]
    assert not is_safe(root, list(cuts), AT_LEAST if "CE16" in name else None)


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_counterexamples_give_another_answer(name: str) -> None:
    """What the rules refuse is not refused for nothing."""
    answer, skipping, skipped = over_sketch(*COUNTEREXAMPLES[name])
    assert skipped
    assert answer != skipping


def test_limit_below_a_filter_needs_a_barrier() -> None:
    """CE1: rows that a limit left out would take the places of others."""
    root, tables, _ = CE1
    walls = barriers(root, [(0, A)], Facts())
    assert walls == {1}
    answer, skipping, skipped = over_sketch(root, tables, {(0, A): 2})
    assert skipped
    assert answer != skipping
    answer, skipping, _ = over_sketch(root, tables, {(0, A): 2}, walls)
    assert answer == skipping


SAFE: dict[str, tuple[plan.Node, list[Access], Facts]] = {
    "count above": (where(HAVING, ">", col(1), lit(2)), [(0, X)], Facts()),
    "sum of positives above": (where(HAVING, ">", col(2), lit(2)), [(0, X)], AT_LEAST),
    "sum after a filter": (
        where(aggregate(where(R, ">", col(A), lit(0)), [G], ("sum", col(A))), ">", col(1), lit(2)),
        [(0, X)],
        Facts(),
    ),
    "least below": (where(HAVING, "<", col(4), lit(2)), [(0, X)], Facts()),
    "greatest above": (where(HAVING, ">=", col(5), lit(2)), [(0, X)], Facts()),
    "any condition by the key": (where(HAVING, "=", col(3), lit(2)), [(0, G)], Facts()),
    "top by count": (limit(aggregate(R, [G], ("count", lit(1))), [(1, "desc")], 3), [(0, X)], Facts()),
    "limit of rows": (limit(R, [(A, "desc")], 3), [(0, X), (0, G)], Facts()),
    "joins": (join("inner", R, scan("s", 2), [(G, 0)]), [(0, X), (1, 1)], Facts()),
    "semi join": (join("semi", R, scan("s", 2), [(G, 0)]), [(0, X), (1, 1)], Facts()),
    "distinct": (distinct(project(R, col(G), col(H))), [(0, X)], Facts()),
    "above a scalar subquery": (
        where(beside(aggregate(R, [G], ("sum", col(A))), aggregate(R, [], ("avg", col(A)))), ">", col(1), col(2)),
        [(0, X)],
        AT_LEAST,
    ),
    "top of what is above a scalar subquery": (
        limit(where(beside(HAVING, aggregate(R, [], ("max", col(A)))), ">", col(1), col(6)), [(1, "desc"), (0, "asc")], 2),
        [(0, X)],
        Facts(keys={"r": frozenset({G})}),
    ),
    "left of an anti join": (join("anti", R, scan("s", 2), [(G, 0)]), [(0, X)], Facts()),
}


@pytest.mark.parametrize("name", SAFE)
def test_what_is_safe_is_accepted(name: str) -> None:
    root, accesses, facts = SAFE[name]
    assert is_safe(root, accesses, facts)


def test_guards_make_the_difference() -> None:
    assert not is_safe(where(HAVING, ">", col(2), lit(2)), [(0, X)])
    rising = limit(aggregate(R, [G], ("min", col(A))), [(1, "asc")], 1)
    assert not is_safe(rising, [(0, X)])
    assert is_safe(rising, [(0, X)], Facts(guards=frozenset({Guard("r", A, "not null")})))


def test_refusals_name_the_operator() -> None:
    with pytest.raises(Unsafe, match="Filter: #3 = 2 may be true of a group of which rows are missing"):
        barriers(where(HAVING, "=", col(3), lit(2)), [(0, X)], Facts())


MUTANTS: dict[str, tuple[str, Any, str]] = {
    "limits may be filtered": ("_require_not_cut", lambda *_: None, "CE1"),
    "filters may be anything": ("_require_steady", lambda *_: None, "count at most"),
    "keys of joins may be anything": ("_require_keys", lambda *_: None, "a join by a count"),
    "ties do not matter": ("_is_last", lambda *_args, **_named: True, "CE4: least first, NULL first"),
    "scalar subqueries may be sketched": (
        "_scalar",
        lambda node, _children: safety.State((safety.ANYTHING,) * len(node.types), key=frozenset()),
        "a scalar subquery over rows that are sketched",
    ),
    "unions keep sights": ("_union", lambda _node, children: children[0], "CE9: a group over two branches"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_rule_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule, a counterexample would be accepted; so the test of counterexamples would fail."""
    rule, instead, killer = MUTANTS[name]
    root, _, cuts = CE1 if killer == "CE1" else COUNTEREXAMPLES[killer]
    assert not _is_accepted(root, cuts)
    for kind, known in safety._RULES.items():
        if getattr(known, "__name__", "") == rule:
            monkeypatch.setitem(safety._RULES, kind, instead)  # type: ignore[arg-type]
    monkeypatch.setattr(safety, rule, instead)
    assert _is_accepted(root, cuts)


def _is_accepted(root: plan.Node, cuts: dict[Access, int]) -> bool:
    try:
        return not barriers(root, list(cuts), AT_LEAST)
    except Unsafe:
        return False


# -- random plans

values = st.one_of(st.none(), st.integers(-2, 4))


@st.composite
def plans(draw: st.DrawFn, depth: int = 4) -> plan.Node:
    table = draw(st.sampled_from(["r", "r", "s"]))
    node: plan.Node = scan(table, WIDTHS[table])
    for _ in range(draw(st.integers(1, depth))):
        node = draw(_above(node, depth))
    return node


@st.composite
def _above(draw: st.DrawFn, node: plan.Node, depth: int) -> plan.Node:  # noqa: C901, PLR0911  (one case a kind)
    width = len(node.types)
    column = st.integers(0, width - 1)
    kind = draw(st.sampled_from(["where", "project", "aggregate", "aggregate", "distinct", "limit", "join", "union", "scalar"]))
    match kind:
        case "where":
            operator = draw(st.sampled_from([">", ">=", "<", "<=", "=", "<>"]))
            right = lit(draw(st.integers(-2, 5))) if draw(st.booleans()) else col(draw(column))
            return where(node, operator, col(draw(column)), right)
        case "project":
            columns = [col(i) for i in draw(st.lists(column, min_size=1, max_size=4))]
            extra = draw(st.sampled_from(["none", "+", "-", "*", "neg"]))
            if extra == "neg":
                columns.append(compute("neg", col(draw(column))))  # type: ignore[arg-type]
            elif extra != "none":
                columns.append(compute(extra, col(draw(column)), col(draw(column))))  # type: ignore[arg-type]
            return project(node, *columns)
        case "aggregate":
            keys = draw(st.lists(column, max_size=2, unique=True))
            functions = st.sampled_from(["count", "sum", "min", "max", "count distinct"])
            calls = draw(st.lists(st.tuples(functions, column), min_size=0 if keys else 1, max_size=2))
            return aggregate(node, keys, *((function, col(i)) for function, i in calls))
        case "distinct":
            return distinct(node)
        case "limit":
            order = draw(
                st.lists(st.tuples(column, st.sampled_from(["asc", "desc"])), max_size=2, unique_by=lambda pair: pair[0])
            )
            return limit(node, order, draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 0, 1])))
        case "scalar":
            value = draw(plans(1)) if depth > 1 else scan("s", 2)
            function = draw(st.sampled_from(["count", "sum", "min", "max"]))
            argument = col(draw(st.integers(0, len(value.types) - 1)))
            one = aggregate(value, [], (function, argument))
            if draw(st.booleans()):
                one = limit(project(value, argument), [(0, draw(st.sampled_from(["asc", "desc"])))], 1)  # type: ignore[assignment]
            operator = draw(st.sampled_from([">", ">=", "<", "<=", "=", "<>"]))
            return where(beside(node, one), operator, col(draw(column)), col(width))
        case "join":
            other = draw(plans(1)) if depth > 1 else scan("s", 2)
            pairs = [(draw(column), draw(st.integers(0, len(other.types) - 1)))]
            return join(draw(st.sampled_from(["inner", "inner", "semi", "anti", "left"])), node, other, pairs)
    other = draw(plans(1))
    if len(other.types) < width:
        return node
    return union(node, project(other, *(col(i) for i in range(width))))


tables = st.fixed_dictionaries(
    {
        "r": st.lists(st.tuples(values, values, values, values), max_size=7),
        "s": st.lists(st.tuples(values, values), max_size=5),
    }
)
GUARDED = Facts(guards=frozenset(Guard(name, i, "≥ 0") for name, width in WIDTHS.items() for i in range(width)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[plan.Node, dict[str, list[Row]], list[Access], Facts]:
    root = draw(plans())
    names = scans(root)
    every = [(number, column) for number, name in enumerate(names) for column in range(WIDTHS[name])]
    accesses = draw(st.lists(st.sampled_from(every), min_size=1, max_size=2, unique=True))
    rows, facts = draw(tables), Facts()
    if draw(st.booleans()):
        facts = GUARDED
        rows = {name: [tuple(v if v is None else abs(v) for v in row) for row in each] for name, each in rows.items()}
    return root, rows, accesses, facts


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases(), cut=st.integers(-1, 3), more=st.sets(st.integers(0, 2), max_size=1), witnesses=st.booleans())
def test_answers_are_the_same_over_any_sketch_that_is_safe(
    case: tuple[plan.Node, dict[str, list[Row]], list[Access], Facts], cut: int, more: set[int], *, witnesses: bool
) -> None:
    root, rows, accesses, facts = case
    try:
        walls = barriers(root, accesses, facts)
    except Unsafe:
        same = over_sketch(root, rows, dict.fromkeys(accesses, cut))
        event("refused, though the answer is the same" if same[0] == same[1] else "refused")
        return
    event("accepted")
    whole = numbered(root, rows)
    naive = Naive(whole, witnesses=witnesses)
    answer = naive.rows(widened(root))
    needed = {pair for _, lineage in answer for pair in lineage}
    needed |= {pair for wall in walls for _, lineage in naive.seen[wall] for pair in lineage}
    part = dict(whole)
    for number, column in accesses:
        kept = {fragment(row[column], cut) for i, row in whole[number] if (number, i) in needed} | more
        part[number] = [(i, row) for i, row in part[number] if fragment(row[column], cut) in kept]
    assert bag(Naive(part).rows(root)) == bag(Naive(whole).rows(root))


MONOTONE = (plan.Scan, plan.Project, plan.Filter, plan.Union)


def is_monotone(root: plan.Node) -> bool:
    """Whether more rows never make a row of the answer go."""
    return all(
        isinstance(node, MONOTONE)
        or (isinstance(node, plan.Join) and node.kind in ("inner", "semi"))
        or (isinstance(node, plan.Aggregate) and node.outputs == node.keys and bool(node.keys))
        for node in plan.walk(root)
    )


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases())
def test_monotone_queries_are_safe_by_any_column(
    case: tuple[plan.Node, dict[str, list[Row]], list[Access], Facts],
) -> None:
    root, _, accesses, _ = case
    if is_monotone(root):
        event("monotone")
        assert barriers(root, accesses, Facts()) == frozenset()


def widened(node: plan.Node) -> plan.Node:
    """The plan whose rows a sketch is made of: limits without their offset."""
    node = plan.with_children(node, [widened(child) for child in node.children])
    if isinstance(node, plan.Limit) and node.count is not None:
        return plan.Limit(types=node.types, child=node.child, order=node.order, count=node.count + node.offset, offset=0)
    return node
