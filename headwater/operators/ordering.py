"""Spark's order of rows, as integers: every sort key becomes a column of ranks, and rows are sorted by these.

NULL stands where the key says; NaN is greater than all numbers, −0.0 equals 0.0, strings and binary go by their bytes. Rows
that are equal on all keys are ordered by the rest of the row, column by column, ascending, NULL first, so that an order is
always total up to equal rows. Structs are compared field by field, arrays element by element and then by their lengths, NULL
within them first; among ties, nested values go by their hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.compiled import compiled
from headwater.operators.accumulators.words import doubles_of, integers_of, is_integer
from headwater.state import layout
from headwater.state.hashing import hash_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ranks = NDArray[np.int64]


_GREATEST = (1 << 63) - 1


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
    return _placed(array, ~ranks if descending else ranks, nulls_first=nulls_first)


def _placed(array: pa.Array, ranks: Ranks, *, nulls_first: bool) -> Ranks:
    """The ranks with NULL before or after all others."""
    if array.null_count:
        extreme = np.iinfo(np.int64)
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        ranks = np.where(nulls, extreme.min if nulls_first else extreme.max, ranks)
    return ranks


def _ranks(array: pa.Array) -> Ranks:
    kind = array.type
    if pa.types.is_boolean(kind):
        return integers_of(array.cast(pa.int8())).astype(np.int64)
    if pa.types.is_floating(kind):
        return _ranks_of_doubles(doubles_of(array))
    if is_integer(kind):
        # One below the least: NULL has that rank, and a value may have it, too; then dense ranks tell them apart.
        integers = integers_of(array).astype(np.int64, copy=False)
        if not array.null_count or _has_room(integers):
            return integers
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return hash_rows(pa.RecordBatch.from_arrays([array], names=["c0"]), (0,)).view(np.int64)
    return pc.rank(array, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)


def _ranks_by_value(array: pa.Array) -> Ranks:
    """For each value an integer such that integers compare as the values do, also where these are nested."""
    if pa.types.is_struct(array.type):
        return _ranks_of_tuples(list(zip(*(_with_nulls(field).tolist() for field in array.flatten()), strict=True)), len(array))
    if pa.types.is_list(array.type):
        stops = np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)).tolist()
        elements = _with_nulls(array.flatten()).tolist()
        return _ranks_of_tuples([tuple(elements[i:j]) for i, j in zip([0, *stops], stops, strict=False)], len(array))
    return column_ranks(array)


def _with_nulls(array: pa.Array) -> Ranks:
    return _placed(array, _ranks_by_value(array), nulls_first=True)


def _ranks_of_tuples(tuples: list[tuple[int, ...]], count: int) -> Ranks:
    """Of structs without fields, nobody can tell how many there are; they are all equal."""
    known = {each: rank for rank, each in enumerate(sorted(set(tuples)))}
    return np.array([known[each] for each in tuples] or [0] * count, np.int64)


@compiled
def _ranks_of_doubles(doubles: NDArray[np.float64]) -> Ranks:
    ranks = np.empty(len(doubles), np.int64)
    for i in range(len(doubles)):
        # Adding 0.0 makes −0.0 a zero like the other.
        ranks.view(np.float64)[i] = np.nan if np.isnan(doubles[i]) else doubles[i] + 0.0
        if ranks[i] < 0:
            ranks[i] ^= _GREATEST
    return ranks


@compiled
def _has_room(integers: Ranks) -> bool:
    """Whether the least and the greatest of all integers are not among these."""
    room = True
    for i in range(len(integers)):
        room &= -_GREATEST <= integers[i] < _GREATEST
    return room


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


def up_to_first(rows: pa.RecordBatch, order: Sequence[Order]) -> NDArray[np.bool_]:
    """Which rows do not come after row 0."""
    return _up_to_first(np.stack(_keys(rows, order))) if rows.num_columns else np.ones(rows.num_rows, np.bool_)


@compiled
def _up_to_first(keys: Ranks) -> NDArray[np.bool_]:
    found = np.ones(keys.shape[1], np.bool_)
    for i in range(keys.shape[1]):
        for k in range(keys.shape[0]):
            if keys[k, i] != keys[k, 0]:
                found[i] = keys[k, i] < keys[k, 0]
                break
    return found


def merged_rows(
    rows: pa.RecordBatch, weights: NDArray[np.int64], order: Sequence[Order]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows in order, equal ones merged and zeros gone: which rows, the first one of equals, and their weights."""
    keys = np.stack(_keys(rows, order))
    return _merged(keys, np.lexsort(keys[::-1]), weights)


@compiled
def _merged(
    keys: Ranks, sequence: NDArray[np.int64], weights: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    chosen, sums = np.empty(len(sequence), np.int64), np.empty(len(sequence), np.int64)
    count, i = 0, 0
    while i < len(sequence):
        first = sequence[i]
        total = 0
        alike = True
        while alike:
            total += weights[sequence[i]]
            i += 1
            if i == len(sequence):
                break
            for k in range(keys.shape[0]):
                alike &= keys[k, sequence[i]] == keys[k, first]
        if total != 0:
            chosen[count], sums[count] = first, total
            count += 1
    return chosen[:count], sums[:count]


def _keys(rows: pa.RecordBatch, order: Sequence[Order]) -> list[Ranks]:
    stated = [_stated_ranks(rows.column(o.column), o) for o in order]
    rest = [i for i in range(rows.num_columns) if i not in {o.column for o in order}]
    zeros = [_negative_zeros(column) for column in rows.columns]
    # −0.0 equals 0.0, and yet such rows must not change places from one epoch to the next.
    signs = [(~negative).astype(np.int64) for negative in zeros if negative is not None and negative.any()]
    signs += [column_ranks(rows.column(o.column)) for o in order if pa.types.is_nested(rows.column(o.column).type)]
    return [*stated, *(column_ranks(rows.column(i)) for i in rest), *signs]


def _stated_ranks(array: pa.Array, order: Order) -> Ranks:
    if not pa.types.is_nested(array.type):
        return column_ranks(array, descending=order.descending, nulls_first=order.nulls_first)
    ranks = _ranks_by_value(array)
    return _placed(array, ~ranks if order.descending else ranks, nulls_first=order.nulls_first)


def _negative_zeros(column: pa.Array) -> NDArray[np.bool_] | None:
    zeros, valid = layout.negative_zeros(column), layout.validity(column)
    return zeros if zeros is None or valid is None else zeros & valid
