"""Top-k: against `sorted` and a slice, with a reserve so small that deletions use it up all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, TEXTS, Driven, Edit, Row, bag, cell, delta_of, run, scripted, scripts
from hypothesis import given
from hypothesis import strategies as st
from test_ordering import row_key

from headwater.operators.ordering import Order
from headwater.operators.topk import TopK

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("slices")

TYPES = (pa.float64(), pa.int64(), pa.string())
ROWS = st.tuples(FLOATS, INTEGERS, TEXTS)
ORDER = st.lists(st.builds(Order, st.integers(0, 2), st.booleans(), st.booleans()), max_size=2, unique_by=lambda o: o.column)
COUNTS = st.sampled_from([0, 1, 2, 5, None])
OFFSETS = st.sampled_from([0, 0, 1, 3])


class Scarce(TopK):
    """A top-k with hardly any reserve."""

    @property
    def _reserve(self) -> int:
        return (self._wanted or 0) + 1


def cut(order: list[Order], count: int | None, offset: int) -> Callable[[list[list[Row]]], list[Row]]:
    def twin(inputs: list[list[Row]]) -> list[Row]:
        rows = sorted(inputs[0], key=lambda row: row_key(row, order))
        return rows[offset:] if count is None else rows[offset : offset + count]

    return twin


@scripted
@given(scripts(ROWS), ORDER, COUNTS, OFFSETS)
def test_sorted_and_cut(script: list, order: list[Order], count: int | None, offset: int) -> None:
    run(TopK(TYPES, tuple(order), count, offset), [TYPES], script, cut(order, count, offset))


@scripted
@given(scripts(ROWS), ORDER, COUNTS, OFFSETS)
def test_the_reserve_is_filled_again(script: list, order: list[Order], count: int | None, offset: int) -> None:
    run(Scarce(TYPES, tuple(order), count, offset), [TYPES], script, cut(order, count, offset))


@scripted
@given(scripts(ROWS), ORDER, COUNTS, OFFSETS, st.sampled_from([1, 3]))
def test_the_best_rows_are_kept_and_asked_for_again(
    script: list, order: list[Order], count: int | None, offset: int, best: int
) -> None:
    operator = TopK(TYPES, tuple(order), count, offset, best)
    assert operator.arranged_by() == (None,)
    run(operator, [TYPES], script, cut(order, count, offset))


@scripted
@given(scripts(st.tuples(st.sampled_from([0.0, -0.0]), st.sampled_from([[0.0], [-0.0], [], None]))), st.integers(0, 3))
def test_what_is_shown_is_what_is_taken_back(script: list, count: int) -> None:
    """Rows that the order cannot tell apart: whichever is shown, nothing may be left of it when it goes."""
    types = (pa.float64(), pa.list_(pa.float64()))
    driven = Driven(Scarce(types, (Order(0),), count, 0), [types])
    for edit in script:
        driven.apply(edit)
        assert sum(driven.output.values()) == min(count, len(driven.present[0]))
        assert driven.output <= bag(driven.present[0])
    driven.repeat()


def test_a_large_input_from_which_the_first_rows_leave_one_after_another() -> None:
    rows: list[Row] = [(float(i), i, "x") for i in range(2_000)]
    driven = Driven(TopK(TYPES, (Order(1),), 3, 1), [TYPES])
    driven.apply((Edit(rows),))
    for step in range(12):
        driven.apply((Edit(deleted=[0] * 100),))
        first = 100 * (step + 1) + 1
        assert driven.output == bag([(float(i), i, "x") for i in range(first, first + 3)])
    assert len(driven.state[0].contents()) < 1_000, "the reserve is not the whole input"
    driven.apply((Edit(rows[:2]),))
    assert driven.output == {tuple(map(cell, (float(i), i, "x"))): 1 for i in (1, 1200, 1201)}


@scripted
@given(st.lists(st.tuples(ROWS, st.integers(1, 3)), min_size=1, max_size=30), ORDER, COUNTS, OFFSETS)
def test_a_load_is_cut_at_once(load: list[tuple[Row, int]], order: list[Order], count: int | None, offset: int) -> None:
    """Rows that are there several times, ties and all: what is cut away before it is sorted was not wanted."""
    driven = Driven(Scarce(TYPES, tuple(order), count, offset), [TYPES])
    driven.step([delta_of(load, TYPES)])
    present = [row for row, weight in load for _ in range(weight)]
    assert driven.output == bag(cut(order, count, offset)([present]))
    driven.step([delta_of([(row, -1) for row, _ in load], TYPES)])
    assert driven.output == bag(cut(order, count, offset)([[row for row, weight in load for _ in range(weight - 1)]]))
    driven.repeat()


def test_what_does_not_reach_the_reserve_changes_nothing() -> None:
    rows: list[Row] = [(float(i), i, "x") for i in range(2_000)]
    driven = Driven(TopK(TYPES, (Order(1),), 3, 1), [TYPES])
    driven.apply((Edit(rows),))
    reserve = driven.state[0]
    assert not len(driven.apply((Edit([(0.5, 1_500, "y")], deleted=[1_900]),)))
    assert driven.state[0] is reserve
    driven.apply((Edit([(0.5, 0, "y")]),))
    assert driven.output == bag([(0.5, 0, "y"), (1.0, 1, "x"), (2.0, 2, "x")])
    driven.repeat()


def test_of_a_buffer_nothing_else_is_kept() -> None:
    rows: list[Row] = [(float(i), i, "x") for i in range(2_000)]
    driven = Driven(TopK(TYPES, (Order(1),), 3, 0, 10), [TYPES])
    driven.apply((Edit(rows),))
    assert sum(map(len, driven.state)) <= 21
    driven.apply((Edit(deleted=[0] * 7),))
    assert driven.refills == 0
    driven.apply((Edit(deleted=[0] * 7),))
    assert driven.refills == 1
    assert driven.output == bag(rows[14:17])
