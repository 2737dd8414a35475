"""Join: against nested loops, with keys that may be NULL, NaN or a zero of either sign, and both sides changing at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from edit_scripts import (
    FLOATS,
    INTEGERS,
    KEYS,
    Driven,
    Edit,
    Row,
    bag,
    cell,
    delta_of,
    key,
    rows_of,
    run,
    scripted,
    scripts,
    weighed,
)
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.operators.join import Join, JoinKey
from headwater.state import slicing

if TYPE_CHECKING:
    from headwater.delta import Delta

pytestmark = pytest.mark.usefixtures("slices")

LEFT = (pa.float64(), pa.int32(), pa.int64())
RIGHT = (pa.int64(), pa.float64(), pa.int32())
LEFT_ROWS = st.tuples(FLOATS, KEYS, INTEGERS)
RIGHT_ROWS = st.tuples(INTEGERS, FLOATS, KEYS)


def matches(left: Row, right: Row, on: JoinKey) -> bool:
    """Equal keys; NULL matches NULL only where the key is null-safe."""
    for a, b, safe in zip(on.left, on.right, on.null_safe, strict=True):
        if key(left[a]) != key(right[b]) or (left[a] is None and not safe):
            return False
    return True


def nested_loops(inputs: list[list[Row]], on: JoinKey) -> list[tuple[Row, Row]]:
    return [(left, right) for left in inputs[0] for right in inputs[1] if matches(left, right, on)]


KEYED = [
    JoinKey((0,), (1,), (False,)),
    JoinKey((0,), (1,), (True,)),
    JoinKey((1, 0), (2, 1), (True, False)),
    JoinKey((0, 1), (1, 2), (True, True)),
    JoinKey((), (), ()),
]


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS), st.sampled_from(KEYED))
def test_nested_loops(script: list, on: JoinKey) -> None:
    run(
        Join(LEFT + RIGHT, on, 3, 3),
        [LEFT, RIGHT],
        script,
        lambda inputs: [left + right for left, right in nested_loops(inputs, on)],
    )


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS))
def test_columns_that_only_serve_as_key_are_left_out(script: list) -> None:
    on = JoinKey((1,), (2,), (False,))
    run(
        Join(LEFT[:1] + RIGHT[:2], on, 1, 2),
        [LEFT, RIGHT],
        script,
        lambda inputs: [left[:1] + right[:2] for left, right in nested_loops(inputs, on)],
    )


@dataclass
class Less:
    """A condition that remembers the pairs it was asked about: left's third column is less than right's first."""

    engine = "python"
    asked: list[Row] = field(default_factory=list)
    forbidden: int | None = None

    def run(self, delta: Delta) -> Delta:
        pairs = rows_of(delta.rows)
        self.asked += pairs
        if self.forbidden is not None and any(row[2] == self.forbidden for row in pairs):
            raise EvaluationFailed("this value is not for comparing")
        return delta.where(np.array([less(row) for row in pairs], bool))


def less(pair: Row) -> bool:
    return pair[2] is not None and pair[3] is not None and pair[2] < pair[3]


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS), st.sampled_from([1, 3, 1 << 18]))
def test_every_row_with_every_row_a_few_at_a_time(script: list, pairs: int) -> None:
    everything = JoinKey((), (), ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slicing, "PAIRS", pairs)
        run(
            Join(LEFT + RIGHT, everything, 3, 3, Less()),
            [LEFT, RIGHT],
            script,
            lambda inputs: [a + b for a, b in nested_loops(inputs, everything) if less(a + b)],
        )


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS, passing=False), st.sampled_from(KEYED))
def test_no_pair_is_made_that_is_neither_in_the_old_answer_nor_in_the_new_one(script: list, on: JoinKey) -> None:
    """What is above the join may fail on such a pair, and then a good transaction would be refused."""
    condition = None if on.left else Less()
    driven = Driven(Join(LEFT + RIGHT, on, 3, 3, condition), [LEFT, RIGHT])
    for edit in script:
        old = set(bag([a + b for a, b in nested_loops(driven.present, on)]))
        change = driven.apply(edit)
        new = set(bag([a + b for a, b in nested_loops(driven.present, on)]))
        made = rows_of(change.rows) if condition is None else condition.asked
        assert {tuple(map(cell, row)) for row in made} <= old | new
        if condition is not None:
            condition.asked.clear()


def test_both_sides_at_once_are_counted_once() -> None:
    """The rule's trap: ΔL ⋈ ΔR is neither forgotten nor doubled."""
    driven = Driven(Join(LEFT + RIGHT, JoinKey((1,), (2,), (False,)), 3, 3), [LEFT, RIGHT])
    left, right = (0.0, 1, 7), (7, 0.0, 1)
    assert weighed(driven.step([delta_of([(left, 2)], LEFT), delta_of([(right, 3)], RIGHT)])) == {
        tuple(map(cell, left + right)): 6
    }
    change = driven.step([delta_of([(left, -2)], LEFT), delta_of([(right, -3)], RIGHT)])
    assert weighed(change) == {tuple(map(cell, left + right)): -6}


def test_a_condition_that_raises_changes_nothing() -> None:
    driven = Driven(Join(LEFT + RIGHT, JoinKey((), (), ()), 3, 3, Less(forbidden=3)), [LEFT, RIGHT])
    load = (Edit([(0.0, 0, 1)]), Edit([(2, 0.0, 0)]))
    driven.apply(load)
    before = driven.output
    with pytest.raises(EvaluationFailed, match="not for comparing"):
        driven.apply((Edit([(0.0, 0, 0), (0.0, 0, 3)]), Edit()))
    assert driven.output == before
    driven.apply((Edit([(0.0, 0, 0)]), Edit([(2, 0.0, 0)], [0])))
    assert driven.output == bag([(0.0, 0, n, 2, 0.0, 0) for n in (0, 1)])
