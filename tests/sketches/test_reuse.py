"""Which other queries a sketch serves: by example, by counterexample, and for random plans with other constants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_plans import Naive, aggregate, bag, col, compute, join, limit, lit, project, scan, where
from test_safety import GUARDED, cases, fragment, numbered, widened

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Expression, Literal, rewrite
from headwater.annotations.fragments import Partition
from headwater.frontend.catalyst import Query
from headwater.sketches import reuse
from headwater.sketches.captured import Captured, Covered
from headwater.sketches.comparing import Value
from headwater.sketches.facts import Facts, Guard, Unsafe
from headwater.sketches.reuse import serves
from headwater.sketches.safety import barriers

if TYPE_CHECKING:
    Access = tuple[int, int]

R = scan("r", 4)
G, H, A, X = range(4)
CUT = Partition("r", "x", 1, pa.RecordBatch.from_arrays([pa.array([2])], names=["c0"]), (1, 1, 1))


def captured(root: plan.Node, accesses: list[Access], facts: Facts) -> Captured:
    query: Any = Query(None, None, frozenset(), root)  # type: ignore[arg-type]
    covered = tuple(Covered(number, column, CUT) for number, column in accesses)
    return Captured(query, covered, barriers(root, accesses, facts), tuple(facts.guards))


def reusable(owner: plan.Node, other: plan.Node, accesses: list[Access], facts: Facts | None = None) -> bool:
    known = Facts() if facts is None else facts
    return serves(captured(owner, accesses, known), other, known)


def counted(h: int, n: int) -> plan.Node:
    return where(aggregate(where(R, ">", col(H), lit(h)), [G], ("count", lit(1))), ">", col(1), lit(n))


@pytest.mark.parametrize(("other", "expected"), [((100, 15), True), ((200, 10), True), ((50, 10), False), ((100, 5), False)])
def test_counts_of_the_report(other: tuple[int, int], expected: bool) -> None:  # noqa: FBT001
    assert reusable(counted(100, 10), counted(*other), [(0, X)]) is expected


def test_interval_of_groups_may_shrink() -> None:
    def between(low: int, high: int, ward: int = 5) -> plan.Node:
        rows = where(R, "<", col(G), lit(ward))
        return where(where(aggregate(rows, [G], ("count", lit(1))), ">=", col(1), lit(low)), "<=", col(1), lit(high))

    assert reusable(between(3, 9), between(4, 8), [(0, G)])
    assert reusable(between(3, 9), between(4, 8, 3), [(0, G)])
    assert not reusable(between(3, 9), between(4, 10), [(0, G)])
    assert not reusable(between(3, 9), between(4, 8, 6), [(0, G)])


def test_an_upper_bound_does_not_bear_a_tighter_filter_below() -> None:
    """CE18."""

    def below(h: int) -> plan.Node:
        return where(aggregate(where(R, ">", col(H), lit(h)), [G], ("count", lit(1))), "<=", col(1), lit(3))

    assert not reusable(below(1), below(2), [(0, G)])


def test_limits_shrink_at_the_top_only() -> None:
    def top(k: int, h: int = 0) -> plan.Node:
        return limit(aggregate(where(R, ">", col(H), lit(h)), [G], ("count", lit(1))), [(1, "desc")], k)

    assert reusable(top(3), top(2), [(0, X)])
    assert not reusable(top(3), top(4), [(0, X)])
    # CE15: other rows are the first ones then.
    assert not reusable(top(1, 0), top(1, 3), [(0, X)])
    assert not reusable(where(top(3), ">", col(0), lit(1)), where(top(2), ">", col(0), lit(1)), [(0, X)])
    assert reusable(where(top(3), ">", col(0), lit(1)), where(top(3), ">", col(0), lit(2)), [(0, X)])


def test_safety_is_asked_again() -> None:
    def summed(a: int) -> plan.Node:
        return where(aggregate(where(R, ">", col(A), lit(a)), [G], ("sum", col(A))), ">", col(1), lit(3))

    assert reusable(summed(0), summed(2), [(0, X)])
    assert not reusable(summed(0), summed(-5), [(0, X)])


def test_other_shapes_are_other_queries() -> None:
    assert not reusable(counted(1, 1), project(counted(1, 1), col(0)), [(0, X)])
    assert not reusable(where(R, ">", col(A), lit(1)), where(R, ">", col(H), lit(1)), [(0, X)])
    one = where(join("inner", R, scan("s", 2), [(G, 0)]), ">", col(A), lit(1))
    other = where(join("inner", R, scan("s", 2), [(G, 0)]), ">", col(A), lit(2))
    assert reusable(one, other, [(0, X), (1, 1)])
    assert not reusable(other, one, [(0, X), (1, 1)])
    product = where(project(R, compute("*", col(A), col(H)), col(G)), ">", col(0), lit(3))
    assert reusable(product, where(product.child, ">=", col(0), lit(3)), [(0, X)]) is False


def test_witnesses_serve_no_tighter_filter_below() -> None:
    """CE14: of a sketch with nothing but a row that has the greatest value, a tighter filter below would find another one."""

    def greatest(h: int) -> plan.Node:
        return where(aggregate(where(R, "<", col(H), lit(h)), [G], ("max", col(A))), ">", col(1), lit(20))

    owner, other = greatest(10), greatest(5)
    rows = [(1, 7, 100, 1), (1, 3, 50, 2)]
    assert reusable(owner, other, [(0, X)])
    sketch = replace(captured(owner, [(0, X)], Facts()), witnesses=True)
    assert not serves(sketch, other, Facts())
    assert serves(sketch, where(owner.children[0], ">", col(1), lit(30)), Facts())
    whole = numbered(owner, {"r": rows})
    assert bag(Naive(whole).rows(other)) == {(1, 50): 1}
    witness = {0: [pair for pair in whole[0] if pair[1][X] == 1]}
    assert bag(Naive(witness).rows(owner)) == bag(Naive(whole).rows(owner))
    assert not bag(Naive(witness).rows(other))
    needed = {pair for _, lineage in Naive(whole).rows(owner) for pair in lineage}
    assert needed == {(0, 0), (0, 1)}


def top_by_count(h: int) -> plan.Node:
    return limit(aggregate(where(R, ">", col(H), lit(h)), [G], ("count", lit(1))), [(1, "desc")], 1)


def few(h: int) -> plan.Node:
    return where(aggregate(where(R, ">", col(H), lit(h)), [G], ("count", lit(1))), "<=", col(1), lit(3))


def positive(a: int) -> plan.Node:
    return where(aggregate(where(R, ">", col(A), lit(a)), [G], ("sum", col(A))), ">", col(1), lit(3))


def without_partner(x: int) -> plan.Node:
    return join("anti", R, where(scan("s", 2), ">", col(1), lit(x)), [(G, 0)])


def by_counts(h: int) -> plan.Node:
    counts = aggregate(where(R, ">", col(H), lit(h)), [G], ("count", lit(1)))
    return aggregate(counts, [1], ("count", lit(1)))


def _limit_of_anything(one: plan.Limit, _other: plan.Limit, child: Any, *, top: bool) -> Any:
    assert one is not None
    assert top in (True, False)
    return child


def _same_values(call: Any, child: Any, **_named: bool) -> Any:
    assert call is not None
    assert child is not None
    return Value()


def _bearing_all(monkeypatch: pytest.MonkeyPatch, *rules: str) -> None:
    """Leaves rules out, so that they refuse nothing."""
    nothing = {"_implies": lambda *_: True, "barriers": lambda *_: frozenset(), "_require": lambda _: None}
    for rule in rules:
        monkeypatch.setattr(reuse, rule, {**nothing, "_limit": _limit_of_anything, "of_group": _same_values}[rule])


# The rules that are left out, the column of the sketch, and two queries: the sketch of the first does not serve the other.
MUTANTS: dict[str, tuple[tuple[str, ...], int, plan.Node, plan.Node]] = {
    "anything may change below a limit": (("_limit",), X, top_by_count(0), top_by_count(3)),
    "every condition is tight": (("_implies",), X, counted(100, 10), counted(100, 5)),
    "parts of groups have the values of groups": (("of_group",), G, few(1), few(2)),
    "what was safe is safe": (("barriers", "_implies"), X, positive(0), positive(-5)),
    "sides of an anti join may shrink": (("_require",), X, without_partner(1), without_partner(2)),
    "groups go by values that may differ": (("_require",), G, by_counts(1), by_counts(2)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_rule_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rules, a query would be answered from a sketch that does not serve it."""
    rules, column, owner, other = MUTANTS[name]
    sketch = captured(owner, [(0, column)], Facts())
    assert not serves(sketch, other, Facts())
    _bearing_all(monkeypatch, *rules)
    assert serves(sketch, other, Facts())


def changed(node: plan.Node, by: list[int]) -> plan.Node:
    """The plan with other constants in its conditions, and other limits."""
    node = plan.with_children(node, [changed(child, by) for child in node.children])

    def other(part: Expression) -> Expression | None:
        if isinstance(part, Literal) and part.value is not None:
            return lit(int(part.value) + by.pop()) if by else part
        return None

    if isinstance(node, plan.Filter) and isinstance(node.condition, Call):
        return replace(node, condition=rewrite(node.condition, other))
    if isinstance(node, plan.Limit) and node.count is not None and by:
        return replace(node, count=max(0, node.count + by.pop()))
    return node


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases(), by=st.lists(st.integers(-1, 2), max_size=4), cut=st.integers(-1, 3), witnesses=st.booleans())
def test_answers_are_the_same_over_the_sketch_of_another_query(
    case: tuple[plan.Node, dict[str, list[Any]], list[Access], Facts], by: list[int], cut: int, *, witnesses: bool
) -> None:
    owner, rows, accesses, facts = case
    other = changed(owner, list(by))
    try:
        sketch = replace(captured(owner, accesses, facts), witnesses=witnesses)
    except Unsafe:
        return
    if not serves(sketch, other, facts):
        return
    whole = numbered(owner, rows)
    naive = Naive(whole, witnesses=witnesses)
    needed = {pair for _, lineage in naive.rows(widened(owner)) for pair in lineage}
    needed |= {pair for wall in sketch.barriers for _, lineage in naive.seen[wall] for pair in lineage}
    part = dict(whole)
    for number, column in accesses:
        kept = {fragment(row[column], cut) for i, row in whole[number] if (number, i) in needed}
        part[number] = [(i, row) for i, row in part[number] if fragment(row[column], cut) in kept]
    assert bag(Naive(part).rows(other)) == bag(Naive(whole).rows(other))


def test_facts_are_those_of_the_sketch() -> None:
    total = aggregate(R, [G], ("sum", col(A)))
    one, other = where(total, ">", col(1), lit(3)), where(total, ">", col(1), lit(4))
    assert reusable(one, other, [(0, X)], Facts(guards=frozenset({Guard("r", A, "≥ 0")})))
    assert reusable(one, other, [(0, X)], GUARDED)
