"""Sketches that serve a query all together: which do, and that the answer over what they have is the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_plans import Naive, aggregate, bag, col, compare, limit, lit, project, scan, where
from test_reuse import CUT, captured
from test_safety import cases, fragment, numbered, widened

from headwater.algebra import plan
from headwater.algebra.expressions import Call
from headwater.annotations.fragments import Partition
from headwater.sketches.facts import Facts, Guard, Unsafe
from headwater.sketches.uniting import united

if TYPE_CHECKING:
    Access = tuple[int, int]

R = scan("r", 4)
G, H, A, X = range(4)
COUNTS = aggregate(R, [G], ("count", lit(1)))


def between(child: plan.Node, column: int, low: int, high: int) -> plan.Filter:
    condition = Call("And", (compare(">=", col(column), lit(low)), compare("<", col(column), lit(high))))
    return plan.Filter(types=child.types, child=child, condition=condition)


def names(wanted: plan.Node, *owners: plan.Node, on: int = G, facts: Facts | None = None) -> tuple[str, ...] | None:
    known = Facts() if facts is None else facts
    sketches = {f"k{i}": captured(owner, [(0, on)], known) for i, owner in enumerate(owners)}
    return united(sketches, wanted, lambda guards: Facts(guards=frozenset(guards)))


def test_ranges_cover_a_range() -> None:
    low, high, apart = (between(COUNTS, 1, *ends) for ends in ((0, 10), (10, 40), (41, 50)))
    assert names(between(COUNTS, 1, 5, 30), low, high) == ("k0", "k1")
    assert names(between(COUNTS, 1, 5, 8), low, high) == ("k0",)
    assert names(between(COUNTS, 1, 5, 45), low, high, apart) is None
    assert names(where(COUNTS, ">=", col(1), lit(5)), low, high) is None
    assert names(where(COUNTS, ">=", col(1), lit(5)), low, where(COUNTS, ">", col(1), lit(10))) is None
    assert names(where(COUNTS, ">=", col(1), lit(5)), low, where(COUNTS, ">=", col(1), lit(10))) == ("k0", "k1")
    assert names(where(COUNTS, "=", col(1), lit(10)), low, high) == ("k1",)
    assert names(project(between(COUNTS, 1, 5, 30), col(0)), low, high) is None


def test_nothing_that_looks_at_all_rows_may_follow() -> None:
    def top(low: int, high: int) -> plan.Node:
        return limit(between(COUNTS, 1, low, high), [(1, "desc")], 2)

    assert names(top(5, 30), top(0, 10), top(10, 40)) is None


def test_all_cut_the_table_in_the_same_way() -> None:
    one, other = (captured(between(COUNTS, 1, *ends), [(0, G)], Facts()) for ends in ((0, 10), (10, 40)))
    again = Partition("r", "x", 2, pa.RecordBatch.from_arrays([pa.array([3])], names=["c0"]), CUT.depths)
    other = replace(other, accesses=(replace(other.accesses[0], partition=again),))
    assert united({"one": one, "other": other}, between(COUNTS, 1, 5, 30), lambda _: Facts()) is None


def test_only_facts_of_those_that_are_used_count() -> None:
    guarded = Facts(guards=frozenset({Guard("r", A, "≥ 0")}))
    sums = aggregate(R, [G], ("sum", col(A)))
    owner = where(sums, ">", col(1), lit(3))
    sketch = captured(owner, [(0, X)], guarded)
    assert united({"k": sketch}, owner, lambda guards: Facts(guards=frozenset(guards))) == ("k",)
    assert united({"k": replace(sketch, guards=())}, owner, lambda guards: Facts(guards=frozenset(guards))) is None


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases(), column=st.integers(0, 3), cut=st.integers(-1, 3), middle=st.integers(0, 3))
def test_answers_are_the_same_over_both(
    case: tuple[plan.Node, dict[str, list[Any]], list[Access], Facts], column: int, cut: int, middle: int
) -> None:
    base, rows, accesses, facts = case
    column %= len(base.types)
    owners = [between(base, column, -1, middle), between(base, column, middle, 5)]
    wanted = between(base, column, 0, 4)
    try:
        sketches = {f"k{i}": captured(owner, accesses, facts) for i, owner in enumerate(owners)}
    except Unsafe:
        return
    chosen = united(sketches, wanted, lambda _: facts)
    if chosen is None:
        return
    whole = numbered(wanted, rows)
    part = dict(whole)
    kept: dict[Access, set[int]] = {access: set() for access in accesses}
    for name in chosen:
        owner = sketches[name].query.root
        assert owner is not None
        naive = Naive(whole)
        needed = {pair for _, lineage in naive.rows(widened(owner)) for pair in lineage}
        needed |= {pair for wall in sketches[name].barriers for _, lineage in naive.seen[wall] for pair in lineage}
        for number, attribute in accesses:
            kept[number, attribute] |= {fragment(row[attribute], cut) for i, row in whole[number] if (number, i) in needed}
    for (number, attribute), fragments in kept.items():
        part[number] = [(i, row) for i, row in part[number] if fragment(row[attribute], cut) in fragments]
    assert bag(Naive(part).rows(wanted)) == bag(Naive(whole).rows(wanted))
