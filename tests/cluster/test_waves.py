"""Waves: which steps share one, what travels by which key, and whose new runs all must hear of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.cluster.waves import Route, Waves, waves
from headwater.compiler.dataflow import Step
from headwater.operators.accumulators import accumulator
from headwater.operators.aggregate import Aggregate, Extreme, Measure
from headwater.operators.arrange import Arrange
from headwater.operators.join import Join, JoinKey
from headwater.operators.linear import Union
from headwater.operators.match import Match
from headwater.operators.multijoin import MultiJoin
from headwater.operators.scalar import Scalar
from headwater.operators.topk import TopK
from headwater.operators.values import Source

if TYPE_CHECKING:
    from headwater.operators.operator import Operator

PAIR = (pa.int64(), pa.int64())
COUNT = accumulator("Count", [])
assert COUNT is not None
ON = JoinKey((0,), (0,), (False,))
JOIN = Join((*PAIR, *PAIR), ON, 2, 2)
COUNTED = Aggregate(PAIR, 1, (Measure(COUNT, ()),))
LEAST = Aggregate(PAIR, 1, (Extreme(1, greatest=False, type=pa.int64()),))
DISTINCT = Aggregate(PAIR, 1, (Measure(COUNT, (1,), None, distinct=True),))
CHAIN = MultiJoin(PAIR, (0, 1), ((0,), (0,)), ())


class Flow:
    """A dataflow that is written down step by step; steps are known by their numbers."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, operator: Operator, *inputs: int) -> int:
        self.steps.append(Step(operator, tuple(self.steps[i] for i in inputs), type(operator).__name__))
        return len(self.steps) - 1

    def table(self) -> int:
        return self.add(Source(PAIR, f"t{len(self.steps)}"))

    def kept(self, step: int, *key: int) -> int:
        return self.add(Arrange(self.steps[step].types, key), step)

    def planned(self, *entering: int, arranged: tuple[int, ...] = (), wanted: tuple[int, ...] = ()) -> Waves:
        return waves(self.steps, entering, arranged, wanted)


def test_what_need_not_meet_stays() -> None:
    flow = Flow()
    table = flow.table()
    doubled = flow.add(Union(PAIR, 2), table, table)
    flow.kept(doubled)
    planned = flow.planned(table)
    assert planned.of == (0, 0, 0)
    assert (planned.count, planned.routes, planned.told) == (1, (), {})


def test_an_aggregate_is_summed_up_before_it_travels() -> None:
    flow = Flow()
    table = flow.table()
    counted = flow.add(COUNTED, table)
    kept = flow.kept(counted)
    planned = flow.planned(table)
    assert planned.of == (0, 1, 1)
    assert planned.routes == (Route(table, 1, (0,), combined=True, feeds=((counted, 0),)),)
    assert planned.of[kept] == planned.of[counted], "a view is kept where its rows come to be"


@pytest.mark.parametrize("operator", [LEAST, DISTINCT])
def test_an_aggregate_that_needs_the_rows_gets_them(operator: Aggregate) -> None:
    flow = Flow()
    table = flow.table()
    given = flow.kept(table, 0) if operator is LEAST else table
    flow.add(operator, given)
    (route,) = flow.planned(table).routes
    assert (route.key, route.combined) == ((0,), False)


def test_two_aggregates_of_one_input_get_sums_of_their_own() -> None:
    flow = Flow()
    table = flow.table()
    flow.add(COUNTED, table)
    flow.add(Aggregate(PAIR, 2, ()), table)
    flow.add(DISTINCT, table)
    routes = flow.planned(table).routes
    assert [(r.key, r.combined, r.feeds) for r in routes] == [
        ((0,), True, ((1, 0),)),
        ((0, 1), True, ((2, 0),)),
        ((0,), False, ((3, 0),)),
    ]


def test_a_join_is_where_its_arrangements_are() -> None:
    flow = Flow()
    left, right = flow.table(), flow.table()
    kept = flow.kept(left, 0), flow.kept(right, 0)
    joined = flow.add(JOIN, *kept)
    flow.kept(joined)
    planned = flow.planned(left, right)
    assert planned.of == (0, 0, 1, 1, 1, 1)
    assert {(r.source, r.wave, r.key, r.feeds) for r in planned.routes} == {
        (left, 1, (0,), ((kept[0], 0),)),
        (right, 1, (0,), ((kept[1], 0),)),
    }
    assert not planned.told


def test_only_what_changes_is_run() -> None:
    flow = Flow()
    left, right = flow.table(), flow.table()
    joined = flow.add(JOIN, flow.kept(left, 0), flow.kept(right, 0))
    planned = flow.planned(left)
    assert planned.of == (0, -1, 1, -1, 1)
    assert joined == 4


def test_one_join_over_another() -> None:
    """The upper one meets by another column: its arrangement is a wave later, and the other side goes there at once."""
    flow = Flow()
    first, second, third = (flow.table() for _ in range(3))
    lower = flow.add(JOIN, flow.kept(first, 0), flow.kept(second, 0))
    above = flow.kept(lower, 1)
    beside = flow.kept(third, 0)
    upper = flow.add(Join(PAIR, JoinKey((1,), (0,), (False,)), 1, 1), above, beside)
    planned = flow.planned(first, second, third)
    assert [planned.of[step] for step in (lower, above, beside, upper)] == [1, 2, 1, 2]
    found = {(r.source, r.wave, r.key) for r in planned.routes}
    assert (lower, 2, (1,)) in found
    assert (third, 1, (0,)) in found
    assert (beside, 2, None) in found, "what was arranged a wave before stays in its shard"


def test_all_hear_of_what_a_chain_of_lookups_reads() -> None:
    flow = Flow()
    left, right = flow.table(), flow.table()
    kept = flow.kept(left, 0), flow.kept(right, 0)
    joined = flow.add(CHAIN, *kept)
    planned = flow.planned(left, right)
    assert planned.of == (0, 0, 0, 0, 1), "nobody need meet, but what changes of the right are to meet must be written"
    assert planned.told == {kept[0]: 1}
    assert {(r.source, r.wave, r.key, r.feeds) for r in planned.routes} == {
        (kept[0], 1, None, ((joined, 0),)),
        (kept[1], 1, None, ((joined, 1),)),
    }


@pytest.mark.parametrize("side", [0, 1])
def test_a_change_of_one_side_waits_for_nobody(side: int) -> None:
    """It meets the other side as it is, and nobody meets it."""
    flow = Flow()
    tables = flow.table(), flow.table()
    flow.add(CHAIN, *(flow.kept(table, 0) for table in tables))
    planned = flow.planned(tables[side])
    assert (planned.count, planned.routes, planned.told) == (1, (), {})


def test_an_arrangement_that_two_kinds_of_joins_read() -> None:
    """It is by its key, as one of them needs, and told, as the other does."""
    flow = Flow()
    left, right = flow.table(), flow.table()
    kept = flow.kept(left, 0), flow.kept(right, 0)
    matched = flow.add(Match(PAIR, "semi", ON, 2, None, 2), *kept)
    chain = flow.add(CHAIN, *kept)
    planned = flow.planned(left, right)
    assert [planned.of[step] for step in (*kept, matched, chain)] == [1, 1, 1, 2]
    assert planned.told == {kept[0]: 2}


@pytest.mark.parametrize("operator", [TopK(PAIR, (), 3, 0), Scalar(PAIR)])
def test_what_looks_at_all_rows_has_them_in_one_shard(operator: Operator) -> None:
    flow = Flow()
    table = flow.table()
    kept = flow.kept(table)
    flow.add(operator, kept)
    planned = flow.planned(table)
    assert planned.of == (0, 1, 1)
    assert [(r.source, r.key) for r in planned.routes] == [(table, ())]


def test_what_is_there_as_a_whole_is_exchanged_and_not_kept() -> None:
    flow = Flow()
    left, right = flow.table(), flow.table()
    kept = flow.kept(left, 0), flow.kept(right, 0)
    joined = flow.add(JOIN, *kept)
    planned = flow.planned(*kept, arranged=kept)
    assert planned.of == (-1, -1, 0, 0, 1)
    assert {(r.source, r.key, r.feeds) for r in planned.routes} == {
        (kept[0], (0,), ((joined, 0),)),
        (kept[1], (0,), ((joined, 1),)),
    }
    chain = Flow()
    left, right = chain.table(), chain.table()
    kept = chain.kept(left, 0), chain.kept(right, 0)
    chain.add(CHAIN, *kept)
    planned = chain.planned(*kept, arranged=kept)
    assert planned.of[-1] == 0, "what is arranged already can be looked up at once"
    assert not planned.told


def test_what_rests_is_only_read() -> None:
    """Though changes would reach it."""
    flow = Flow()
    left, right = flow.table(), flow.table()
    kept = flow.kept(left, 0), flow.kept(right, 0)
    flow.add(COUNTED, right)
    flow.add(CHAIN, *kept)
    planned = waves(flow.steps, [left, right], resting=[kept[1]])
    assert planned.of == (0, 0, 0, -1, 1, 0)
    assert [r.source for r in planned.routes] == [right]


def test_what_is_wanted_leaves_after_the_last_wave() -> None:
    flow = Flow()
    table, other = flow.table(), flow.table()
    counted = flow.add(COUNTED, table)
    planned = flow.planned(table, wanted=(table, counted, other))
    leaving = [r for r in planned.routes if r.wave == planned.count]
    assert [(r.source, r.key, r.feeds) for r in leaving] == [(table, None, ()), (counted, None, ())]


def test_every_step_comes_after_its_inputs() -> None:
    """Whatever the shape: never before an input, and later wherever something is exchanged."""
    flow = Flow()
    tables = [flow.table() for _ in range(3)]
    kept = [flow.kept(table, 0) for table in tables]
    joined = flow.add(JOIN, kept[0], kept[1])
    counted = flow.add(COUNTED, flow.add(Union(PAIR, 2), joined, tables[2]))
    matched = flow.add(Match(PAIR, "anti", ON, 2, None, 2), flow.kept(counted, 0), kept[2])
    flow.kept(flow.add(TopK(PAIR, (), 1, 0), flow.kept(matched)))
    planned = flow.planned(*tables)
    for number, step in enumerate(flow.steps):
        for child in step.inputs:
            assert planned.of[number] >= planned.of[flow.steps.index(child)]
    for route in planned.routes:
        assert route.wave > planned.of[route.source]
        assert all(planned.of[step] == route.wave for step, _ in route.feeds)
