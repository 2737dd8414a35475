"""Spark's order of rows, as integers: every sort key becomes a column of ranks, and rows are sorted by these.

NULL stands where the key says; NaN is greater than all numbers, −0.0 equals 0.0, strings and binary go by their bytes. Rows
that are equal on all keys are ordered by the rest of the row, column by column, ascending, NULL first, so that an order is
always total up to equal rows. (Nested values have no order of their own here; among ties they go by their hash.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state import layout
from headwater.state.hashing import hash_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Order:
    """A column to order by."""

    column: int
    descending: bool = False
    nulls_first: bool = True


def is_ordered(kind: pa.DataType) -> bool:
    """Whether values of the type are compared here as Spark compares them."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind))


def column_ranks(array: pa.Array, *, descending: bool = False, nulls_first: bool = True) -> Ranks:
    """An integer for each value such that integers compare as the values do."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    ranks = _ranks(array)
    if descending:
        ranks = ~ranks
    if array.null_count:
        extreme = np.iinfo(np.int64)
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        ranks = np.where(nulls, extreme.min if nulls_first else extreme.max, ranks)
    return ranks


def _ranks(array: pa.Array) -> Ranks:
    kind = array.type
    if pa.types.is_floating(kind):
        values = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) + 0.0
        values = np.where(np.isnan(values), np.nan, values)
        bits = values.view(np.int64)
        return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        # One below the least: NULL has that rank, and a value may have it, too; then dense ranks tell them apart.
        integers = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        if len(integers) and np.iinfo(np.int64).min < integers.min() and integers.max() < np.iinfo(np.int64).max:
            return integers
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return hash_rows(pa.RecordBatch.from_arrays([array], names=["c0"]), (0,)).view(np.int64)
    return pc.rank(array, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)


def sorted_rows(rows: pa.RecordBatch, order: Sequence[Order]) -> NDArray[np.int64]:
    """The indices of the rows in order."""
    return np.lexsort(_keys(rows, order)[::-1]) if rows.num_columns else np.arange(rows.num_rows)


def places(rows: pa.RecordBatch, order: Sequence[Order]) -> Ranks:
    """For each row its place in the order; equal rows share a place."""
    if not rows.num_columns:
        return np.zeros(rows.num_rows, np.int64)
    keys = np.stack(_keys(rows, order))
    sequence = np.lexsort(keys[::-1])
    steps = np.zeros(rows.num_rows, np.int64)
    steps[1:] = (keys[:, sequence[1:]] != keys[:, sequence[:-1]]).any(axis=0)
    found = np.empty(rows.num_rows, np.int64)
    found[sequence] = np.cumsum(steps)
    return found


def _keys(rows: pa.RecordBatch, order: Sequence[Order]) -> list[Ranks]:
    stated = [column_ranks(rows.column(o.column), descending=o.descending, nulls_first=o.nulls_first) for o in order]
    rest = [i for i in range(rows.num_columns) if i not in {o.column for o in order}]
    zeros = [_negative_zeros(column) for column in rows.columns]
    # −0.0 equals 0.0, and yet such rows must not change places from one epoch to the next.
    signs = [(~negative).astype(np.int64) for negative in zeros if negative is not None and negative.any()]
    return [*stated, *(column_ranks(rows.column(i)) for i in rest), *signs]


def _negative_zeros(column: pa.Array) -> NDArray[np.bool_] | None:
    zeros, valid = layout.negative_zeros(column), layout.validity(column)
    return zeros if zeros is None or valid is None else zeros & valid
