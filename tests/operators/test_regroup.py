"""Regroup: touched groups are evaluated again and no others, and exactly what they gave last time is taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, TEXTS, Driven, Edit, Row, bag, delta_of, key, rows_of, run, scripted, scripts
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.operators.regroup import Regroup

pytestmark = pytest.mark.usefixtures("slices")

TYPES = (pa.float64(), pa.int64(), pa.string())
ROWS = st.tuples(FLOATS, INTEGERS, TEXTS)
OTHER = (pa.float64(), pa.int64())
LISTED = (pa.int64(), pa.float64(), pa.string())


def listed(groups: dict[object, tuple[float | None, list[Row]]]) -> list[Row]:
    """For each group its size, its key and its rows in order: nothing that a sum could maintain."""
    return [(len(rows), value, repr(sorted(map(repr, rows)))) for value, rows in groups.values()]


def grouped(inputs: list[list[Row]]) -> dict[object, tuple[float | None, list[Row]]]:
    groups: dict[object, tuple[float | None, list[Row]]] = {}
    for rows in inputs:
        for row in rows:
            shown = row[0] + 0.0 if isinstance(row[0], float) else row[0]
            groups.setdefault(key(row[0]), (shown, []))[1].append(row)
    return groups


@dataclass
class Listing:
    """The function as the operator gets it; it remembers the keys it saw, and fails when it sees a certain text."""

    seen: list[set[object]] = field(default_factory=list)
    forbidden: str | None = None

    def __call__(self, inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = [rows_of(batch) for batch in inputs]
        groups = grouped(rows)
        self.seen.append(set(groups))
        if self.forbidden is not None and any(self.forbidden in row for part in rows for row in part):
            raise EvaluationFailed("a function of the user raised")
        return delta_of([(row, 1) for row in listed(groups)], LISTED).rows


def regroup(function: Listing, *input_types: tuple[pa.DataType, ...]) -> Regroup:
    return Regroup(LISTED, input_types, (0,), (1,), function, "it is holistic", "python")


@scripted
@given(scripts(ROWS))
def test_one_input(script: list) -> None:
    run(regroup(Listing(), TYPES), [TYPES], script, lambda inputs: listed(grouped(inputs)))


@scripted
@given(scripts(ROWS))
def test_two_functions_of_the_rows_in_any_order(script: list) -> None:
    """Ties may be ordered as the function likes: here it gives each row a number in the order in which it gets them."""

    def numbered(inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
        numbers: dict[object, int] = {}
        found = []
        for row in rows_of(inputs[0]):
            numbers[key(row[0])] = numbers.get(key(row[0]), 0) + 1
            found.append(((*row, numbers[key(row[0])]), 1))
        return delta_of(found, (*TYPES, pa.int64())).rows

    driven = Driven(Regroup((*TYPES, pa.int64()), (TYPES,), (0,), (0,), numbered, "", "python"), [TYPES])
    for edit in script:
        driven.apply(edit)
        assert all(n > 0 for n in driven.output.values())
        shown = list(driven.output.elements())
        assert bag(driven.present[0]) == _untagged(shown)
        for group in {key(row[0]) for row in driven.present[0]}:
            size = sum(key(row[0]) == group for row in driven.present[0])
            assert sorted(row[-1] for row in shown if _zeroless(row[0]) == group) == list(range(1, size + 1))


def _zeroless(stand_in: object) -> object:
    return ("float", (0.0).hex()) if stand_in == ("float", (-0.0).hex()) else stand_in


def _untagged(shown: list[Row]) -> Counter[Row]:
    return Counter(row[:-1] for row in shown)


@scripted
@given(scripts(ROWS, st.tuples(FLOATS, INTEGERS)))
def test_two_inputs_grouped_alike(script: list) -> None:
    run(regroup(Listing(), TYPES, OTHER), [TYPES, OTHER], script, lambda inputs: listed(grouped(inputs)))


@scripted
@given(scripts(ROWS, passing=False))
def test_only_touched_groups_are_evaluated(script: list) -> None:
    function = Listing()
    driven = Driven(regroup(function, TYPES), [TYPES])
    for edit in script:
        before = [key(row[0]) for row in driven.present[0]]
        function.seen.clear()
        driven.apply(edit)
        changed = [key(row[0]) for row in edit[0].inserted]
        gone = set(before) if edit[0].cleared or edit[0].deleted else set()
        for seen in function.seen:
            assert seen <= gone | set(changed)


@scripted
@given(scripts(ROWS))
def test_the_whole_input_as_one_group(script: list) -> None:
    operator = Regroup(
        (pa.int64(),),
        (TYPES,),
        (),
        (),
        lambda inputs: pa.RecordBatch.from_pydict({"c0": [len(inputs[0])]}),
        "",
        "python",
        whole=True,
    )
    run(operator, [TYPES], script, lambda inputs: [(len(inputs[0]),)])


def test_a_function_that_raises_changes_nothing() -> None:
    driven = Driven(regroup(Listing(forbidden="b"), TYPES), [TYPES])
    driven.apply((Edit([(0.0, 1, "a"), (1.5, 1, "a")]),))
    before = driven.output
    with pytest.raises(EvaluationFailed, match="of the user raised"):
        driven.apply((Edit([(0.0, 2, "a"), (1.5, 1, "b")]),))
    assert driven.output == before
    driven.apply((Edit([(-0.0, 2, "a")], [1]),))
    assert driven.output == bag(listed(grouped([[(0.0, 1, "a"), (-0.0, 2, "a")]])))
