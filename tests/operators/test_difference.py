"""Difference of aligned rows: the same as consolidating the old rows taken away and the new ones added."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from edit_scripts import FLOATS, INTEGERS, TEXTS, weighed
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.delta import Delta, beside
from headwater.operators.difference import appearance, difference
from headwater.operators.operator import schema_of
from headwater.picking import picked
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float64(): FLOATS,
    pa.int64(): INTEGERS,
    pa.int32(): INTEGERS,
    pa.float32(): st.sampled_from([None, math.nan, 0.0, -0.0]),
    pa.string(): TEXTS,
    pa.decimal128(20, 2): st.none() | st.sampled_from([Decimal("0.00"), Decimal("1.10"), Decimal(10**17)]),
    pa.duration("us"): st.none() | st.integers(0, 2),
    pa.list_(pa.float64()): st.sampled_from([None, [], [0.0], [-0.0], [math.nan]]),
}


@st.composite
def versions(draw: st.DrawFn) -> tuple[pa.Array, list[pa.Array], np.ndarray, np.ndarray]:
    size = draw(st.integers(1, 5))
    keys = pa.array([f"k{i}" for i in range(size)])
    values = []
    for kind in draw(st.lists(st.sampled_from(list(KINDS)), max_size=3)):
        column = st.lists(KINDS[kind], min_size=2 * size + 1, max_size=2 * size + 1)
        # A slice: the values do not begin where their buffers do.
        values.append(pa.array(draw(column), kind).slice(1))
    old, new = (np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))) for _ in range(2))
    return keys, values, old, new


@settings(deadline=None)
@given(versions())
def test_rows_that_stay_are_left_out(given_versions: tuple) -> None:
    keys, values, old, new = given_versions
    schema, size = schema_of([keys.type, *(array.type for array in values)]), len(keys)

    def rows(at: int, there: np.ndarray, weight: int) -> Delta:
        columns = [keys, *(array.slice(at, size) for array in values)]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=schema), np.full(size, weight)).where(there)

    found = difference(schema, [keys], values, old, new)
    naive = consolidate(Delta.concat([rows(0, old, -1), rows(size, new, 1)]))
    assert found.schema.equals(schema)
    assert weighed(found) == weighed(naive)
    assert len(found) == len(naive), "nothing is left to merge"
    alone = appearance(schema, [keys], [array.slice(size, size) for array in values], new)
    assert weighed(alone) == weighed(rows(size, new, 1))


def test_rows_without_columns() -> None:
    yes, no = np.array([True]), np.array([False])
    assert difference(schema_of(()), [], [], no, yes).weights.tolist() == [1]
    assert difference(schema_of(()), [], [], yes, no).weights.tolist() == [-1]
    assert not len(difference(schema_of(()), [], [], yes, yes))
    assert len(appearance(schema_of(()), [], [], yes)) == 1


@settings(deadline=None)
@given(st.data())
def test_picked_is_what_arrow_takes(data: st.DataObject) -> None:
    kinds: Sequence[pa.DataType] = data.draw(st.lists(st.sampled_from(list(KINDS)), max_size=3))
    size, start = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 2))
    columns = [
        pa.array(data.draw(st.lists(KINDS[kind], min_size=size + start, max_size=size + start)), kind).slice(start)
        for kind in kinds
    ]
    places = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=6)) if size else [], np.int64)
    found = picked(columns, places)
    assert [array.type for array in found] == list(kinds)
    assert repr([array.to_pylist() for array in found]) == repr([c.take(pa.array(places)).to_pylist() for c in columns])
    assert beside(found, len(places)).num_rows == len(places)
