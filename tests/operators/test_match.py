"""Match: semi, anti and existence joins against nested loops; a left row must not care by how many partners it is matched."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, KEYS, Driven, Edit, Row, bag, cell, key, rows_of, run, scripted, scripts
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.operators.join import JoinKey
from headwater.operators.match import Match

pytestmark = pytest.mark.usefixtures("slices")

LEFT = (pa.float64(), pa.int32(), pa.int64())
RIGHT = (pa.float64(), pa.int32(), pa.int64())
LEFT_ROWS = st.tuples(FLOATS, KEYS, INTEGERS)
RIGHT_ROWS = st.tuples(FLOATS, KEYS, INTEGERS)
KINDS = st.sampled_from(["semi", "anti", "existence"])
KEYED = st.sampled_from(
    [
        JoinKey((0,), (0,), (False,)),
        JoinKey((0,), (0,), (True,)),
        JoinKey((1, 0), (1, 0), (False, True)),
        JoinKey((), (), ()),
    ]
)


def less(left: Row, right: Row) -> bool:
    return left[2] is not None and right[2] is not None and left[2] < right[2]


def nested_loops(inputs: list[list[Row]], kind: str, on: JoinKey, *, conditional: bool) -> list[Row]:
    found = []
    for left in inputs[0]:
        matched = any(
            all(
                key(left[a]) == key(right[b]) and (left[a] is not None or safe)
                for a, b, safe in zip(on.left, on.right, on.null_safe, strict=True)
            )
            and (not conditional or less(left, right))
            for right in inputs[1]
        )
        if kind == "existence":
            found.append((*left, matched))
        elif matched == (kind == "semi"):
            found.append(left)
    return found


@dataclass
class Less:
    """The condition beyond the key; it remembers what it was asked."""

    asked: list[Row] = field(default_factory=list)
    forbidden: int | None = None

    def __call__(self, pairs: pa.RecordBatch) -> np.ndarray:
        rows = rows_of(pairs)
        self.asked += rows
        if self.forbidden is not None and any(row[2] == self.forbidden for row in rows):
            raise EvaluationFailed("this value is not for comparing")
        return np.array([less(row[:3], row[3:]) for row in rows], bool)


def match(kind: str, on: JoinKey, condition: Less | None) -> Match:
    types = (*LEFT, pa.bool_()) if kind == "existence" else LEFT
    return Match(types, kind, on, 3, condition, 3)


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS), KINDS, KEYED)
def test_by_key_alone(script: list, kind: str, on: JoinKey) -> None:
    run(match(kind, on, None), [LEFT, RIGHT], script, lambda inputs: nested_loops(inputs, kind, on, conditional=False))


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS), KINDS, KEYED)
def test_with_a_condition_beyond_the_key(script: list, kind: str, on: JoinKey) -> None:
    run(match(kind, on, Less()), [LEFT, RIGHT], script, lambda inputs: nested_loops(inputs, kind, on, conditional=True))


@scripted
@given(scripts(LEFT_ROWS, st.tuples(FLOATS, KEYS), passing=False), KINDS)
def test_columns_that_only_serve_as_key_are_left_out(script: list, kind: str) -> None:
    on = JoinKey((1, 2), (1, 0), (True, False))
    left = (pa.int64(), pa.int32(), pa.float64())
    types = (left[0], pa.bool_()) if kind == "existence" else left[:1]
    swapped = [(Edit(*([[row[::-1] for row in e.inserted], e.deleted, e.cleared, []])), right) for e, right in script]

    def twin(inputs: list[list[Row]]) -> list[Row]:
        full = nested_loops(inputs, kind, on, conditional=False)
        return [(row[0], *row[3:]) for row in full]

    run(Match(types, kind, on, 1, None, 0), [left, RIGHT[:2]], swapped, twin)


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS, passing=False), KINDS, KEYED)
def test_no_pair_is_compared_that_is_neither_there_before_nor_after(script: list, kind: str, on: JoinKey) -> None:
    """A condition may fail on such a pair, and then a good transaction would be refused."""
    condition = Less()
    driven = Driven(match(kind, on, condition), [LEFT, RIGHT])

    def pairs() -> set[Row]:
        return {tuple(map(cell, left + right)) for left in driven.present[0] for right in driven.present[1]}

    for edit in script:
        old = pairs()
        old_answer = bag(nested_loops(driven.present, kind, on, conditional=True))
        change = driven.apply(edit)
        new_answer = bag(nested_loops(driven.present, kind, on, conditional=True))
        assert {tuple(map(cell, row)) for row in condition.asked} <= old | pairs()
        assert {tuple(map(cell, row)) for row in rows_of(change.rows)} <= set(old_answer) | set(new_answer)
        condition.asked.clear()


@scripted
@given(scripts(LEFT_ROWS, RIGHT_ROWS, passing=False), KEYED, st.booleans())
def test_more_than_one_partner_is_an_error_that_changes_nothing(script: list, on: JoinKey, conditional: bool) -> None:  # noqa: FBT001
    condition = Less() if conditional else None
    driven = Driven(Match(LEFT + RIGHT, "check", on, 3, condition, 3), [LEFT, RIGHT])
    for edit in script:
        present = [list(rows) for rows in driven.present]
        for part, rows in zip(edit, present, strict=True):
            part.changes(rows)
        pairs = Counter(
            place
            for place, left in enumerate(present[0])
            for right in present[1]
            if nested_loops([[left], [right]], "semi", on, conditional=conditional)
        )
        if max(pairs.values(), default=0) > 1:
            with pytest.raises(EvaluationFailed, match="TOO_MANY_ROWS"):
                driven.apply(edit)
        else:
            driven.apply(edit)
    assert not driven.output


def test_the_second_partner_and_the_last_but_one_change_nothing() -> None:
    on = JoinKey((1,), (1,), (False,))
    driven = Driven(match("semi", on, None), [LEFT, RIGHT])
    nothing = Edit()
    driven.apply((Edit([(0.0, 1, 5), (0.0, 1, 5)]), nothing))
    assert not driven.output
    driven.apply((nothing, Edit([(0.0, 1, 0)])))
    assert driven.output == bag([(0.0, 1, 5)] * 2)
    assert not len(driven.apply((nothing, Edit([(0.0, 1, 1), (0.0, 1, 0)]))))
    assert not len(driven.apply((nothing, Edit(deleted=[0, 0]))))
    driven.apply((nothing, Edit(deleted=[0])))
    assert not driven.output


def test_a_condition_that_raises_changes_nothing() -> None:
    on = JoinKey((1,), (1,), (False,))
    nothing = Edit()
    driven = Driven(match("anti", on, Less(forbidden=3)), [LEFT, RIGHT])
    driven.apply((Edit([(0.0, 1, 1)]), Edit([(0.0, 1, 2)])))
    with pytest.raises(EvaluationFailed, match="not for comparing"):
        driven.apply((Edit([(0.0, 1, 3), (0.0, 1, 2)]), nothing))
    assert not driven.output
    driven.apply((Edit([(0.0, 1, 2)]), nothing))
    assert driven.output == bag([(0.0, 1, 2)])
