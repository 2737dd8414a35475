"""Columns of every type that Spark hands over, rows made of them, and what they mean as plain Python values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from headwater.state import hashing

MONTHS = pa.MonthDayNano([1, -2, 3])
STAMP = dt.datetime(2024, 2, 29, 12, 30, 0, 1)

SAMPLES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False, None],
    pa.int8(): [0, -128, 127, None],
    pa.int16(): [0, -300, None],
    pa.int32(): [0, -1, 70_000, None],
    pa.int64(): [0, -1, 2**62, None],
    pa.float32(): [0.0, -0.0, 1.5, math.nan, -math.inf, None],
    pa.float64(): [0.0, -0.0, 1e300, math.nan, math.inf, None],
    pa.decimal128(38, 2): [Decimal("0.00"), Decimal("-0.01"), Decimal("12345678901234567890123456789012345.67"), None],
    pa.string(): ["", "a", "a\0", "12345678", "a longer text, über 16 bytes", None],
    pa.large_string(): ["", "a", "a longer text, über 16 bytes", None],
    pa.string_view(): ["", "a", "a longer text, über 16 bytes", None],
    pa.binary(): [b"", b"\0", b"\0\0", b"\xff" * 17, None],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2024, 2, 29), None],
    pa.timestamp("us"): [dt.datetime(1970, 1, 1), STAMP, None],
    pa.timestamp("us", "UTC"): [STAMP.replace(tzinfo=dt.UTC), None],
    pa.duration("us"): [dt.timedelta(0), dt.timedelta(days=-1, microseconds=1), None],
    pa.time64("us"): [dt.time(0), dt.time(23, 59, 59, 999_999), None],
    pa.month_day_nano_interval(): [pa.MonthDayNano([0, 0, 0]), MONTHS, None],
    pa.null(): [None],
    pa.list_(pa.int32()): [[], [None], [0], [0, 1], [1, 0], None],
    pa.list_(pa.list_(pa.string())): [[], [[]], [None], [["a"], []], [[], ["a"]], None],
    pa.struct([("x", pa.float64()), ("y", pa.string())]): [
        {"x": 0.0, "y": "a"},
        {"x": -0.0, "y": "a"},
        {"x": math.nan, "y": None},
        {"x": None, "y": None},
        None,
    ],
    pa.struct([]): [{}, None],
    pa.map_(pa.string(), pa.int64()): [[], [("a", 1)], [("a", 1), ("b", None)], [("b", None), ("a", 1)], None],
    pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.float64())))])): [
        [{"m": [(1, [0.0])]}],
        [{"m": [(1, [-0.0])]}, None],
        [{"m": None}],
        [],
        None,
    ],
}

TYPES = st.sampled_from(list(SAMPLES))
# Arrow cannot take rows of views, so they are made strings on their way into an arrangement.
KEPT_TYPES = st.sampled_from([kind for kind in SAMPLES if kind != pa.string_view()])


def meaning(value: Any) -> Any:
    """A hashable stand-in: two values are the same to Headwater iff theirs are equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, pa.MonthDayNano):
        return tuple(value)
    if isinstance(value, dict):
        return tuple((name, meaning(field)) for name, field in value.items())
    if isinstance(value, (list, tuple)):
        return ("list", *map(meaning, value))
    return value


def meanings(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    columns = [list(map(meaning, column.to_pylist())) for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


NEGATIVE_ZERO = "-0.0"


def identity(value: Any) -> Any:
    """As `meaning`, but for rows instead of keys: −0.0 is not 0.0."""
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return NEGATIVE_ZERO
    if isinstance(value, dict):
        return tuple((name, identity(field)) for name, field in value.items())
    if isinstance(value, (list, tuple)) and not isinstance(value, pa.MonthDayNano):
        return ("list", *map(identity, value))
    return meaning(value)


def identities(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    columns = [list(map(identity, column.to_pylist())) for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def as_key(value: Any) -> Any:
    """The meaning of what has this identity."""
    if isinstance(value, tuple):
        return tuple(map(as_key, value))
    return 0.0 if value == NEGATIVE_ZERO else value


def batch(types: list[pa.DataType], rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    if not types:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    arrays = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(types))])


@st.composite
def batches(draw: st.DrawFn, types: list[pa.DataType], max_size: int = 12) -> pa.RecordBatch:
    """Rows of few different values, as a slice of something larger, so that buffers do not begin at their beginning."""
    rows = st.tuples(*[st.sampled_from(SAMPLES[kind]) for kind in types])
    whole = batch(types, draw(st.lists(rows, max_size=max_size)))
    start = draw(st.integers(0, min(3, whole.num_rows)))
    return whole.slice(start, draw(st.integers(0, whole.num_rows - start)))


def poor_hash(bits: int) -> Any:
    """A context in which row hashes have so few bits that different rows collide all the time."""
    good = hashing.hash_block

    def hash_block(made: Any, block: Any, columns: Any) -> Any:
        return good(made, block, columns) & np.uint64((1 << bits) - 1)

    return mock.patch.object(hashing, "hash_block", hash_block)
