"""Arrow columns seen as NumPy arrays, without a copy where Arrow allows it.

Two values of a fixed-width type are the same value iff their `words` are: every NaN is one NaN, and −0.0 is 0.0. Hashing and
equality both read columns through this module, so they cannot disagree about what a value is.

A trap: what lies in the buffers under a NULL is arbitrary. Callers must ask `validity` and overrule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import lib

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Lines = NDArray[np.int64] | NDArray[np.int32]

_INTEGERS: dict[int, np.dtype[Any]] = {
    lib.Type_INT8: np.dtype(np.int8),
    lib.Type_INT16: np.dtype(np.int16),
    lib.Type_INT32: np.dtype(np.int32),
    lib.Type_INT64: np.dtype(np.int64),
    lib.Type_UINT8: np.dtype(np.uint8),
    lib.Type_UINT16: np.dtype(np.uint16),
    lib.Type_UINT32: np.dtype(np.uint32),
    lib.Type_UINT64: np.dtype(np.uint64),
    lib.Type_DATE32: np.dtype(np.int32),
    lib.Type_DATE64: np.dtype(np.int64),
    lib.Type_TIME32: np.dtype(np.int32),
    lib.Type_TIME64: np.dtype(np.int64),
    lib.Type_TIMESTAMP: np.dtype(np.int64),
    lib.Type_DURATION: np.dtype(np.int64),
}
_FLOATS: dict[int, np.dtype[Any]] = {lib.Type_FLOAT: np.dtype(np.float32), lib.Type_DOUBLE: np.dtype(np.float64)}
_WORD = np.dtype(np.int64)
_TWO_WORDS = frozenset({lib.Type_DECIMAL128, lib.Type_INTERVAL_MONTH_DAY_NANO})
_OFFSETS: dict[int, type[np.generic]] = {
    lib.Type_STRING: np.int32,
    lib.Type_BINARY: np.int32,
    lib.Type_LIST: np.int32,
    lib.Type_MAP: np.int32,
    lib.Type_LARGE_STRING: np.int64,
    lib.Type_LARGE_BINARY: np.int64,
    lib.Type_LARGE_LIST: np.int64,
}
_VIEWS = {lib.Type_STRING_VIEW: pa.large_string(), lib.Type_BINARY_VIEW: pa.large_binary()}

FIXED = frozenset({*_INTEGERS, *_FLOATS, *_TWO_WORDS, lib.Type_BOOL})
BYTES = frozenset({lib.Type_STRING, lib.Type_BINARY, lib.Type_LARGE_STRING, lib.Type_LARGE_BINARY})
LISTS = frozenset({lib.Type_LIST, lib.Type_LARGE_LIST, lib.Type_MAP})
STRUCT = lib.Type_STRUCT
NULL = lib.Type_NA


class Kind:
    """Columns of a fixed width, written into the lines of a block, and read from there.

    Lines are seen as signed words of 64 bits, or as halves of words where a value takes no more than that.
    """

    halves = 2
    floating = False

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def write(self, array: pa.Array, lines: Lines, at: int) -> None:
        lines[:, at] = _values(array, self._dtype, 1)

    def empty(self, count: int) -> NDArray[Any]:
        """Room for the values of so many lines."""
        return np.empty(count, self._dtype)

    def read(self, lines: Lines, at: int, into: NDArray[Any]) -> None:
        into[:] = lines[:, at]

    def column(self, kind: pa.DataType, values: NDArray[Any], missing: NDArray[np.bool_] | None) -> pa.Array:
        """The values read as a column of their type."""
        valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
        return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])


class _Half(Kind):
    halves = 1


class _Floating(Kind):
    floating = True

    def write(self, array: pa.Array, lines: Lines, at: int) -> None:
        # Widening a signalling NaN warns.
        with np.errstate(invalid="ignore"):
            values = _values(array, self._dtype, 1).astype(np.float64, copy=False)
        lines[:, at] = values.view(np.int64)
        strange = np.isnan(values)
        if np.count_nonzero(strange):
            lines[strange, at] = _NAN

    def read(self, lines: Lines, at: int, into: NDArray[Any]) -> None:
        into[:] = lines.view(np.float64)[:, at]


class _TwoWords(Kind):
    halves = 4

    def write(self, array: pa.Array, lines: Lines, at: int) -> None:
        lines[:, at : at + 2] = _values(array, _WORD, 2).reshape(-1, 2)

    def empty(self, count: int) -> NDArray[Any]:
        return np.empty((count, 2), np.int64)

    def read(self, lines: Lines, at: int, into: NDArray[Any]) -> None:
        into[:] = lines[:, at : at + 2]


class _Boolean(_Half):
    def write(self, array: pa.Array, lines: Lines, at: int) -> None:
        known = array.fill_null(False) if array.null_count else array  # noqa: FBT003
        lines[:, at] = known.to_numpy(zero_copy_only=False)

    def column(self, kind: pa.DataType, values: NDArray[Any], missing: NDArray[np.bool_] | None) -> pa.Array:
        return pa.array(values, kind, mask=missing)


_NAN = np.array(np.nan).view(np.int64)
_KINDS: dict[int, Kind] = {
    **{number: (_Half if np.can_cast(dtype, np.int32) else Kind)(dtype) for number, dtype in _INTEGERS.items()},
    **{number: _Floating(dtype) for number, dtype in _FLOATS.items()},
    **dict.fromkeys(_TWO_WORDS, _TwoWords(_WORD)),
    lib.Type_BOOL: _Boolean(np.dtype(np.bool_)),
}


def kind_of(given: pa.DataType) -> Kind | None:
    """How values of the type become words; None if they are of no fixed width."""
    return _KINDS.get(given.id)


def plain(array: pa.Array) -> pa.Array:
    """The array itself, or one with offsets instead of views."""
    target = _VIEWS.get(array.type.id)
    return array if target is None else array.cast(target)


def validity(array: pa.Array) -> NDArray[np.bool_] | None:
    """Which values are not NULL; None if all are."""
    if array.null_count == 0:
        return None
    valid: NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def words(array: pa.Array) -> list[Words]:
    """The values of a fixed-width column as one or two 64-bit words each, canonical: same value, same words."""
    kind = array.type.id
    if kind in _INTEGERS:
        return [_values(array, _INTEGERS[kind], 1).astype(np.int64, copy=False).view(np.uint64)]
    if kind in _FLOATS:
        # Adding zero turns −0.0 into 0.0, and makes the copy which the NaNs are then written to; signalling NaNs would warn.
        with np.errstate(invalid="ignore"):
            floats = _values(array, _FLOATS[kind], 1).astype(np.float64, copy=False) + 0.0
        floats[np.isnan(floats)] = np.nan
        return [floats.view(np.uint64)]
    if kind in _TWO_WORDS:
        pairs = _values(array, _WORD, 2).view(np.uint64)
        return [pairs[0::2], pairs[1::2]]
    if kind == lib.Type_BOOL:
        booleans = array.fill_null(False) if array.null_count else array  # noqa: FBT003
        return [booleans.to_numpy(zero_copy_only=False).astype(np.uint64)]
    raise unsupported(array.type)


def negative_zeros(array: pa.Array) -> NDArray[np.bool_] | None:
    """Where a column of floating-point numbers is −0.0; None if it is no such column."""
    if array.type.id not in _FLOATS:
        return None
    floats = _values(array, _FLOATS[array.type.id], 1)
    zeros: NDArray[np.bool_] = (floats == 0) & np.signbit(floats)
    return zeros


def offsets(array: pa.Array) -> NDArray[np.int64]:
    """Where each value of a string, binary, list or map column begins in its data or its child, and where the last one ends."""
    if len(array) == 0:
        return np.zeros(1, np.int64)
    return narrow_offsets(array).astype(np.int64, copy=False)


def narrow_offsets(array: pa.Array) -> NDArray[np.int32] | NDArray[np.int64]:
    """The same in the width in which the column has them: nothing is copied."""
    dtype = np.dtype(_OFFSETS[array.type.id])
    return np.frombuffer(array.buffers()[1], dtype, len(array) + 1, array.offset * dtype.itemsize)


def data(array: pa.Array) -> NDArray[np.uint8]:
    """The bytes that the offsets of a string or binary column count."""
    buffer = array.buffers()[2]
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def fields(array: pa.Array) -> list[pa.Array]:
    """The columns of a struct column."""
    return [array.field(i) for i in range(array.type.num_fields)]


def positions(lengths: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For pieces of the given lengths laid end to end: each element's number within its piece, and that plus the piece's start.

    >>> positions(np.array([2, 0, 3]), np.array([10, 20, 30]))
    (array([0, 1, 0, 1, 2]), array([10, 11, 30, 31, 32]))
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    flat = np.arange(total)
    within = flat - np.repeat(ends - lengths, lengths)
    return within, within + np.repeat(starts, lengths)


def unsupported(kind: pa.DataType) -> TypeError:
    return TypeError(f"Rows with a column of the Arrow type {kind} cannot be kept as state: no Spark type arrives as it.")


def _values(array: pa.Array, dtype: np.dtype[Any], each: int) -> NDArray[Any]:
    count, data = len(array) * each, array.buffers()[1]
    if count == 0 or data is None:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count, array.offset * each * dtype.itemsize)
