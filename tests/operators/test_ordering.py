"""Ordering: Spark's order of rows against Python's `sorted` with keys that say the same in words."""

from __future__ import annotations

import datetime as dt
import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from edit_scripts import Row, delta_of, scripted
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.ordering import Order, column_ranks, is_ordered, places, sorted_rows

COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.sampled_from([-128, 127, 0, 5]),
    pa.int64(): st.sampled_from([-(2**63), 2**63 - 1, 0, -1, 2**62]),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]),
    pa.float64(): st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.5, -1.5, math.nan, math.inf, -math.inf]),
    pa.decimal128(20, 2): st.sampled_from(
        [Decimal("0.00"), Decimal("-0.01"), Decimal("123456789012345678.90"), Decimal("9.10")]
    ),
    pa.string(): st.sampled_from(["", "a", "A", "ab", "ä", "\uffff", "𝄞", "a\0"]),
    pa.binary(): st.sampled_from([b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"]),
    pa.date32(): st.sampled_from([dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    pa.timestamp("us"): st.sampled_from([dt.datetime(1, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 2, 29)]),
    pa.duration("us"): st.sampled_from([dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(days=400)]),
}


@dataclass(frozen=True)
class Descending:
    """Turns the order around, also of values that have no minus."""

    value: Any

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)


def rank(value: Any) -> Any:
    """NaN is above all numbers, zeros are equal, and text goes by its bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def placed(value: Any, *, descending: bool, nulls_first: bool) -> tuple[int, Any]:
    if value is None:
        return (-1 if nulls_first else 1, 0)
    return (0, Descending(rank(value)) if descending else rank(value))


def row_key(row: Row, order: list[Order]) -> list[Any]:
    """The stated columns, then the others, ascending, NULL first; then the signs of zeros."""
    stated = [placed(row[o.column], descending=o.descending, nulls_first=o.nulls_first) for o in order]
    rest = [i for i in range(len(row)) if i not in {o.column for o in order}]
    others = [placed(row[i], descending=False, nulls_first=True) for i in rest]
    return [*stated, *others, *(math.copysign(1, value) for value in row if isinstance(value, float) and value == 0)]


orders = st.builds(Order, st.just(0), st.booleans(), st.booleans())


@pytest.mark.parametrize("kind", COLUMNS, ids=str)
@scripted
@given(data=st.data(), order=orders)
def test_each_type_has_the_order_of_its_values(kind: pa.DataType, data: st.DataObject, order: Order) -> None:
    values = data.draw(st.lists(st.none() | COLUMNS[kind], max_size=12))
    assert is_ordered(kind)
    ranks = column_ranks(pa.array(values, kind), descending=order.descending, nulls_first=order.nulls_first).tolist()
    keys = [placed(value, descending=order.descending, nulls_first=order.nulls_first) for value in values]
    for i, a in enumerate(keys):
        for j, b in enumerate(keys):
            assert (ranks[i] < ranks[j]) == (a < b)
            assert (ranks[i] == ranks[j]) == (a == b)


KINDS = (pa.float64(), pa.string(), pa.int64())
ROWS = st.tuples(*(st.none() | COLUMNS[kind] for kind in KINDS))
ORDER = st.lists(st.builds(Order, st.integers(0, 2), st.booleans(), st.booleans()), max_size=3, unique_by=lambda o: o.column)


@scripted
@given(st.lists(ROWS, max_size=15), ORDER)
def test_rows_in_an_order_that_is_total(rows: list[Row], order: list[Order]) -> None:
    batch = delta_of([(row, 1) for row in rows], KINDS).rows
    found = [row_key(rows[i], order) for i in sorted_rows(batch, order)]
    assert found == sorted(row_key(row, order) for row in rows)
    place = places(batch, order).tolist()
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert (place[i] < place[j]) == (row_key(a, order) < row_key(b, order))


@scripted
@given(st.permutations([(0.0, 1), (-0.0, 1), (0.0, 1), (None, 1), (math.nan, 1)]))
def test_rows_that_differ_in_the_sign_of_a_zero_have_an_order_too(rows: list[Row]) -> None:
    """Else a top-k could show the one, and later take back the other."""
    batch = delta_of([(row, 1) for row in rows], (pa.float64(), pa.int64())).rows
    shown = [math.copysign(1, rows[i][0]) for i in sorted_rows(batch, [Order(0)]) if rows[i][0] == 0]
    assert shown == sorted(shown)


def test_what_lies_under_a_null_has_no_order() -> None:
    hidden = pa.Array.from_buffers(pa.float64(), 2, [pa.py_buffer(b"\0"), pa.py_buffer(struct.pack("<2d", -0.0, 0.0))])
    values = pa.concat_arrays([hidden, pa.array([-0.0])])
    assert values.to_pylist() == [None, None, 0.0]
    assert places(pa.RecordBatch.from_arrays([values], ["c0"]), [Order(0)]).tolist() == [0, 0, 1]


def test_rows_without_columns_are_all_alike() -> None:
    batch = delta_of([((), 1)] * 3, ()).rows
    assert sorted_rows(batch, []).tolist() == [0, 1, 2]
    assert places(batch, []).tolist() == [0, 0, 0]


def test_nested_values_are_not_ordered_here() -> None:
    assert not is_ordered(pa.list_(pa.int64()))
    assert not is_ordered(pa.struct([("x", pa.int64())]))
    assert not is_ordered(pa.month_day_nano_interval())
