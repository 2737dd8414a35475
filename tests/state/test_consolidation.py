from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_samples import KEPT_TYPES, batch, batches, identities, meanings, poor_hash

from headwater.delta import Delta
from headwater.state.consolidation import consolidate, group_rows, sum_by


@pytest.mark.parametrize("bits", [64, 2, 0])
@given(data=st.data())
def test_groups_are_the_classes_of_equal_rows(bits: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(KEPT_TYPES, max_size=3).flatmap(batches))
    columns = data.draw(st.lists(st.integers(0, rows.num_columns - 1), unique=True)) if rows.num_columns else []
    with poor_hash(bits):
        groups = group_rows(rows, columns)
    known = [tuple(row[i] for i in columns) for row in meanings(rows)]
    assert groups.count == len(set(known))
    assert [known[groups.representatives[i]] for i in groups.ids] == known
    assert [known.index(known[i]) for i in groups.representatives] == groups.representatives.tolist()


@pytest.mark.parametrize("bits", [64, 2, 0])
@settings(max_examples=40)
@pytest.mark.parametrize("width", [None, 2])
@given(data=st.data())
def test_consolidation_is_the_counter(bits: int, width: int | None, data: st.DataObject) -> None:
    rows = data.draw(st.lists(KEPT_TYPES, max_size=2).flatmap(batches))
    places = 1 if width is None else width
    size = rows.num_rows * places
    weights = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size)), np.int64)
    if width is not None:
        weights = weights.reshape(rows.num_rows, width)
    with poor_hash(bits):
        result = consolidate(Delta(rows, weights))
    expected: Counter[object] = Counter()
    for meaning, weight in zip(identities(rows), weights.reshape(rows.num_rows, places).tolist(), strict=True):
        for place, number in enumerate(weight):
            expected[meaning, place] += number
    found = identities(result.rows)
    assert len(set(found)) == len(found)
    numbers = result.weights.reshape(len(found), places).tolist()
    assert all(any(weight) for weight in numbers)
    sums = {(row, place): n for row, weight in zip(found, numbers, strict=True) for place, n in enumerate(weight) if n}
    assert sums == {pair: n for pair, n in expected.items() if n}
    assert result.rows.schema == rows.schema


def test_rows_keep_the_order_of_their_first_appearance() -> None:
    rows = batch([pa.string()], [("c",), ("a",), ("c",), ("b",), ("a",), ("d",)])
    result = consolidate(Delta(rows, np.array([1, 1, 1, 1, -1, 5])))
    assert result.rows.to_pydict() == {"c0": ["c", "b", "d"]}
    assert result.weights.tolist() == [2, 1, 5]


def test_what_is_consolidated_comes_back_as_it_is() -> None:
    delta = Delta.inserting(batch([pa.int32()], [(i,) for i in range(10)]))
    assert consolidate(delta) is delta
    assert consolidate(consolidate(Delta.empty(delta.schema))).rows.num_rows == 0


def test_sums_are_exact_beyond_the_doubles() -> None:
    weights = np.array([2**62, 1, -(2**62), 5], np.int64)
    assert sum_by(np.array([0, 0, 0, 1]), 3, weights).tolist() == [1, 5, 0]
    assert sum_by(np.array([0, 0, 0, 1]), 2, np.stack([weights, -weights], axis=1)).tolist() == [[1, -1], [5, -5]]
