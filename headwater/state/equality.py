"""When two keys are the same: NULL equals NULL, NaN equals NaN, −0.0 equals 0.0 — as Spark groups, not as SQL's ``=``.

Two *rows* are the same one under the same rules but for zeros: −0.0 and 0.0 are printed differently, so they are not merged.

    a, b     both NULL, or neither is and their values are the same
    lists    of one length, and the same elements one by one
    maps     as lists of entries: their order matters
    structs  the same fields

Hashing and equality agree by construction: both see values as `layout` shows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def equal_rows(
    left: pa.RecordBatch,
    left_columns: Sequence[int],
    right: pa.RecordBatch,
    right_columns: Sequence[int],
    *,
    signed_zeros: bool = False,
) -> Mask:
    """Whether row i of `left` is the same as row i of `right`, for every i, over the columns given pair by pair."""
    same = np.ones(left.num_rows, np.bool_)
    for i, j in zip(left_columns, right_columns, strict=True):
        same &= _equal(left.column(i), right.column(j), signed_zeros=signed_zeros)
    return same


def _equal(left: pa.Array, right: pa.Array, *, signed_zeros: bool) -> Mask:
    if layout.NULL in {left.type.id, right.type.id}:
        return _nulls(left) & _nulls(right)
    left_valid, right_valid = layout.validity(left), layout.validity(right)
    same = _equal_values(layout.plain(left), layout.plain(right), signed_zeros=signed_zeros)
    if left_valid is None:
        return same if right_valid is None else same & right_valid
    if right_valid is None:
        return same & left_valid
    return np.where(left_valid, same & right_valid, ~right_valid)


def _nulls(array: pa.Array) -> Mask:
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def _equal_values(left: pa.Array, right: pa.Array, *, signed_zeros: bool) -> Mask:
    """As if nothing were NULL; what it says about a NULL is overruled by the caller."""
    kind = left.type.id
    if kind in layout.FIXED:
        same = [np.asarray(a == b) for a, b in zip(layout.words(left), layout.words(right), strict=True)]
        negative = layout.negative_zeros(left) if signed_zeros else None
        if negative is not None:
            same.append(negative == layout.negative_zeros(right))
        return same[0] if len(same) == 1 else same[0] & same[1]
    if kind in layout.BYTES:
        equal = pc.equal(left, right)
        return np.asarray((equal.fill_null(False) if equal.null_count else equal).to_numpy(zero_copy_only=False))  # noqa: FBT003
    if kind in layout.LISTS:
        return _equal_lists(left, right, signed_zeros=signed_zeros)
    if kind == layout.STRUCT:
        same_struct = np.ones(len(left), np.bool_)
        for a, b in zip(layout.fields(left), layout.fields(right), strict=True):
            same_struct &= _equal(a, b, signed_zeros=signed_zeros)
        return same_struct
    raise layout.unsupported(left.type)


def _equal_lists(left: pa.Array, right: pa.Array, *, signed_zeros: bool) -> Mask:
    left_offsets, right_offsets = layout.offsets(left), layout.offsets(right)
    lengths = np.diff(left_offsets)
    same: Mask = lengths == np.diff(right_offsets)
    compared = np.where(same, lengths, 0)
    _, left_elements = layout.positions(compared, left_offsets[:-1])
    _, right_elements = layout.positions(compared, right_offsets[:-1])
    different = np.zeros(len(left_elements) + 1, np.int64)
    left_values, right_values = left.values.take(pa.array(left_elements)), right.values.take(pa.array(right_elements))
    elements = _equal(left_values, right_values, signed_zeros=signed_zeros)
    np.cumsum(~elements, out=different[1:])
    ends = np.cumsum(compared)
    same &= different[ends] == different[ends - compared]
    return same
