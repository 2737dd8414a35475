"""Ranges passed on through joins, and the columns that are read: with the rest of a table gone, the answer is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_plans import Naive, aggregate, bag, col, join, limit, lit, project, scan
from test_safety import cases, fragment, numbered

from headwater.compiler.pruning import columns_read
from headwater.sketches.transfer import transfers

if TYPE_CHECKING:
    from headwater.algebra import plan
    from headwater.sketches.facts import Facts

R, S = scan("r", 4), scan("s", 2)


def test_both_ways_or_one() -> None:
    assert transfers(join("inner", R, S, [(0, 1)])) == [((0, 0), (1, 1)), ((1, 1), (0, 0))]
    assert transfers(join("semi", R, S, [(0, 1)])) == [((0, 0), (1, 1)), ((1, 1), (0, 0))]
    assert transfers(join("left", R, S, [(0, 1)])) == [((0, 0), (1, 1))]
    assert transfers(join("anti", R, S, [(0, 1)])) == [((0, 0), (1, 1))]


def test_through_keys_of_groups_but_not_through_limits() -> None:
    groups = aggregate(S, [1], ("count", lit(1)))
    assert transfers(join("inner", R, groups, [(2, 0)])) == [((0, 2), (1, 1)), ((1, 1), (0, 2))]
    assert transfers(join("inner", R, limit(S, [(0, "asc")], 3), [(2, 0)])) == []
    assert transfers(join("inner", R, project(S, col(1)), [(2, 0)])) == [((0, 2), (1, 1)), ((1, 1), (0, 2))]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases(), cut=st.integers(-1, 3), chosen=st.sets(st.integers(0, 2)))
def test_answers_are_the_same(
    case: tuple[plan.Node, dict[str, list[Any]], list[tuple[int, int]], Facts], cut: int, chosen: set[int]
) -> None:
    root, rows, _, _ = case
    for (number, column), (other, key) in transfers(root):
        part = numbered(root, rows)
        part[number] = [(i, row) for i, row in part[number] if fragment(row[column], cut) in chosen]
        both = dict(part)
        both[other] = [(i, row) for i, row in both[other] if fragment(row[key], cut) in chosen - {2}]
        assert bag(Naive(both).rows(root)) == bag(Naive(part).rows(root))


def test_columns_that_a_query_reads() -> None:
    counts = aggregate(R, [0], ("count", lit(1)))
    assert columns_read(counts) == [{0}]
    assert columns_read(join("semi", R, S, [(0, 1)])) == [{0, 1, 2, 3}, {1}]
    assert columns_read(project(join("inner", R, S, [(0, 1)]), col(2))) == [{0, 2}, {1}]
    assert columns_read(limit(R, [(0, "asc")], 3)) == [{0, 1, 2, 3}]


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases())
def test_columns_that_are_not_read_may_be_anything(
    case: tuple[plan.Node, dict[str, list[Any]], list[tuple[int, int]], Facts],
) -> None:
    root, rows, _, _ = case
    whole = numbered(root, rows)
    part = {
        number: [(i, tuple(value if column in read else None for column, value in enumerate(row))) for i, row in whole[number]]
        for number, read in enumerate(columns_read(root))
    }
    assert bag(Naive(part).rows(root)) == bag(Naive(whole).rows(root))
