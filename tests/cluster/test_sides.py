"""Small sides: which arrangements may be there before a job."""

from __future__ import annotations

import pyarrow as pa
import pytest
from state_samples import batch

from headwater.cluster.cluster import Whole
from headwater.cluster.sides import small_sides
from headwater.compiler.dataflow import Step
from headwater.delta import Delta
from headwater.operators.arrange import Arrange
from headwater.operators.join import Join, JoinKey
from headwater.operators.multijoin import MultiJoin
from headwater.operators.operator import schema_of
from headwater.operators.values import Source, Values
from headwater.state.arrangement import Arrangement

PAIR = (pa.int64(), pa.int64())


def table(name: str) -> Step:
    return Step(Source(PAIR, name), (), name)


def kept(step: Step, *key: int) -> Step:
    return Step(Arrange(PAIR, key), (step,), "kept")


def joined(*inputs: Step, relations: tuple[int, ...] = (0, 1)) -> Step:
    return Step(MultiJoin(PAIR, relations, tuple((0,) for _ in inputs), ()), inputs, "joined")


def rows(count: int) -> list[Whole]:
    pairs = Delta.inserting(batch(PAIR, [(i, i) for i in range(count)]))
    return [Whole(Arrangement.empty(schema_of(PAIR), (0,)).insert(pairs))]


LARGE, SMALL, OTHER = map(table, ("large", "small", "other"))
CHANGES = {LARGE: rows(20), SMALL: rows(3), OTHER: rows(2)}
FACTS, SIDE, SECOND = kept(LARGE, 0), kept(SMALL, 0), kept(OTHER, 0)


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ([FACTS, SIDE, joined(FACTS, SIDE)], {SIDE}),
        ([FACTS, SIDE, SECOND, joined(FACTS, SIDE, SECOND, relations=(0, 1, 2))], {SIDE, SECOND}),
        # Of two small sides, one must change.
        ([SIDE, SECOND, joined(SIDE, SECOND)], set()),
        ([FACTS, SIDE, SECOND, joined(FACTS, SIDE), joined(SIDE, SECOND)], set()),
        # Somebody else needs it as a change.
        ([FACTS, SIDE, joined(FACTS, SIDE), kept(SIDE, 1)], set()),
        ([FACTS, SIDE, Step(Join(PAIR, JoinKey((0,), (0,), (False,)), 1, 1), (FACTS, SIDE), "join")], set()),
        # One arrangement of a relation is looked up, of which the other one is a change.
        ([FACTS, SIDE, other := kept(SMALL, 1), joined(FACTS, SIDE, other, relations=(0, 1, 1)), kept(other, 0)], set()),
        ([FACTS, SIDE, other, joined(FACTS, SIDE, other, relations=(0, 1, 1))], {SIDE, other}),
    ],
)
def test_sides(run: list[Step], found: set[Step]) -> None:
    assert small_sides(run, CHANGES, 10) == found


def test_constants_are_no_change() -> None:
    """If the only other side is there before, nothing would ever meet it."""
    constants = kept(Step(Values(PAIR, batch(PAIR, [(1, 1)])), (), "values"), 0)
    assert small_sides([constants, SIDE, joined(constants, SIDE)], CHANGES, 10) == set()
    run = [FACTS, constants, SIDE, joined(FACTS, constants, SIDE, relations=(0, 1, 2))]
    assert small_sides(run, CHANGES, 10) == {SIDE}


def test_what_is_arranged_already() -> None:
    join = joined(FACTS, SIDE)
    assert small_sides([FACTS, join], {LARGE: rows(20), SIDE: rows(3)}, 10) == {SIDE}
    assert small_sides([FACTS, join], {LARGE: rows(20), SIDE: rows(30)}, 10) == set()
