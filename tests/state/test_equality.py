from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_samples import SAMPLES, TYPES, batches, meanings

from headwater.state.equality import equal_rows


def equal(left: pa.Array, right: pa.Array) -> list[bool]:
    return equal_rows(pa.record_batch([left], ["a"]), [0], pa.record_batch([right], ["b"]), [0]).tolist()


@pytest.mark.parametrize("kind", SAMPLES, ids=str)
def test_every_value_against_every_other(kind: pa.DataType) -> None:
    values = pa.array(SAMPLES[kind], kind)
    left, right = (places.ravel() for places in np.indices((len(values), len(values))))
    known = [row for (row,) in meanings(pa.record_batch([values], ["c0"]))]
    expected = [known[i] == known[j] for i, j in zip(left, right, strict=True)]
    assert (
        equal(pa.array([values[i].as_py() for i in left], kind), pa.array([values[j].as_py() for j in right], kind)) == expected
    )


@given(st.data())
def test_rows_of_any_shape(data: st.DataObject) -> None:
    types = data.draw(st.lists(TYPES, max_size=3))
    left, right = data.draw(batches(types)), data.draw(batches(types))
    count = min(left.num_rows, right.num_rows)
    left, right = left.slice(0, count), right.slice(right.num_rows - count)
    expected = [a == b for a, b in zip(meanings(left), meanings(right), strict=True)]
    every = range(len(types))
    assert equal_rows(left, every, right, every).tolist() == expected


def test_columns_are_compared_in_pairs() -> None:
    left = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    right = pa.record_batch({"p": ["x", "z"], "q": [0, 0], "r": [1, 2]})
    assert equal_rows(left, [0, 1], right, [2, 0]).tolist() == [True, False]
    assert equal_rows(left, [], right, []).tolist() == [True, True]


def test_layouts_of_one_value_are_equal() -> None:
    text = ["", None, "a text of more than twelve bytes"]
    kinds = (pa.string(), pa.large_string(), pa.string_view())
    assert all(all(equal(pa.array(text, a), pa.array(text, b))) for a in kinds for b in kinds)
    lists = [[], ["a"], None]
    assert all(equal(pa.array(lists, pa.list_(pa.string())), pa.array(lists, pa.large_list(pa.large_string()))))


def test_what_lies_under_a_null_does_not_matter() -> None:
    struct = pa.StructArray.from_arrays([pa.array([1, 99])], ["x"], mask=pa.array([False, True]))
    assert equal(struct, pa.array([{"x": 1}, None])) == [True, True]
    offsets = pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes())
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 2, [pa.py_buffer(b"\x01"), offsets], children=[pa.array([1, 8, 9])])
    assert equal(lists, pa.array([[1], None])) == [True, True]
    assert equal(lists, pa.array([[1], [8, 9]])) == [True, False]


def test_other_types_are_refused() -> None:
    array = pa.array(["a"]).dictionary_encode()
    with pytest.raises(TypeError, match="dictionary"):
        equal(array, array)
