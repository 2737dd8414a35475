"""Rows as kernels see them: columns of fixed width as NumPy arrays, without a copy where Arrow allows it; strings as in Arrow.

A vector is its values and which of them are there; None is: all. What lies under a NULL is arbitrary, and stays so.
Dates are days, times microseconds, and a decimal is the integer of its digits: 12.34 is 1234, if that fits 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.rule import DURATION, INSTANT, LOCAL, Untranslatable
from headwater.evaluation.kernels.loops import narrowed, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


Validity: TypeAlias = "NDArray[np.bool_] | None"
Vector: TypeAlias = "tuple[NDArray[Any], Validity]"
Loader: TypeAlias = "Callable[[pa.Array], Vector]"
Storer: TypeAlias = "Callable[[Vector, int], pa.Array]"

_DTYPES: dict[pa.DataType, type[np.generic]] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
    pa.date32(): np.int32,
    INSTANT: np.int64,
    LOCAL: np.int64,
    DURATION: np.int64,
}
_PLACES = pa.int64()
_BITS = 8
_SIGN = 63


class Unusual(Exception):
    """Values for which a kernel has no answer; another engine has it, or the right error."""


class Frame:
    """One or more rows. A column is loaded once, however often it is read."""

    __slots__ = ("_arrays", "_indices", "_parent", "_vectors", "count", "rows")

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self.count: int = rows.num_rows
        self._parent: Frame | None = None
        self._indices: NDArray[np.int64] | None = None
        self._vectors: dict[int, Vector] = {}
        self._arrays: dict[int, pa.Array] = {}

    def take(self, indices: NDArray[np.int64]) -> Frame:
        """The rows at the indices; their columns are taken when they are read."""
        part = Frame.__new__(Frame)
        part.rows, part.count, part._parent, part._indices = self.rows, len(indices), self, indices  # noqa: SLF001
        part._vectors, part._arrays = {}, {}  # noqa: SLF001
        return part

    def vector(self, index: int, load: Loader) -> Vector:
        """A column of fixed width."""
        found = self._vectors.get(index)
        if found is None:
            if self._parent is None:
                found = load(self.array(index))
            else:
                values, valid = self._parent.vector(index, load)
                found = values[self._indices], None if valid is None else valid[self._indices]
            self._vectors[index] = found
        return found

    def array(self, index: int) -> pa.Array:
        """A column as it is in Arrow."""
        found = self._arrays.get(index)
        if found is None:
            found = self.rows.column(index) if self._parent is None else self._parent.array(index).take(self._places)
            self._arrays[index] = found
        return found

    def there(self, index: int) -> Validity:
        """Where a column is not NULL; None if everywhere."""
        return validity(self.array(index))

    def batch(self) -> pa.RecordBatch:
        """All columns, as they are in Arrow."""
        return self.rows if self._indices is None else self.rows.take(self._places)

    def select(self, columns: Sequence[int]) -> pa.RecordBatch:
        """Some of the columns, as they are in Arrow."""
        chosen = self.rows.select(columns)
        return chosen if self._indices is None else chosen.take(self._places)

    @property
    def _places(self) -> pa.Array:
        assert self._indices is not None
        return pa.Array.from_buffers(_PLACES, self.count, [None, pa.py_buffer(self._indices)])


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The type of a vector's values."""
    if kind == pa.bool_():
        return np.dtype(np.bool_)
    if pa.types.is_decimal128(kind):
        return np.dtype(np.int64)
    if kind not in _DTYPES:
        raise Untranslatable(f"no kernels for {kind}")
    return np.dtype(_DTYPES[kind])


def is_fixed(kind: pa.DataType) -> bool:
    """Whether columns of the type are vectors."""
    return kind in _DTYPES or kind == pa.bool_() or pa.types.is_decimal128(kind)


def loader(kind: pa.DataType) -> Loader:
    """What makes a vector of a column of the type."""
    if kind == pa.bool_():
        return _booleans
    if pa.types.is_decimal128(kind):
        return _decimals
    dtype = dtype_of(kind)
    width = dtype.itemsize

    def load(array: pa.Array) -> Vector:
        values = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * width)
        return values, validity(array)

    return load


def validity(array: pa.Array) -> Validity:
    """Which values are not NULL; None if all are."""
    if not array.null_count:
        return None
    return _bits(array.buffers()[0], array.offset, len(array))


def storer(kind: pa.DataType) -> Storer:
    """What makes a column of the type of a vector; a vector of one value repeats it."""
    pack: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    if pa.types.is_decimal128(kind):
        pack = widened
    elif kind == pa.bool_():
        pack = _packed

    def store(vector: Vector, count: int) -> pa.Array:
        values, valid = vector
        if values.ndim == 0:
            values = np.full(count, values)
        there = None if valid is None else pa.py_buffer(_packed(np.broadcast_to(valid, count)))
        data = np.ascontiguousarray(values) if pack is None else pack(values)
        return pa.Array.from_buffers(kind, count, [there, pa.py_buffer(data)])

    return store


def both(left: Validity, right: Validity) -> Validity:
    """Where two vectors are both there."""
    if left is None:
        return right
    return left if right is None else left & right


def refuse(bad: NDArray[np.bool_], valid: Validity) -> None:
    """Raises if something is bad that is there at all."""
    if np.count_nonzero(bad) and (valid is None or np.count_nonzero(bad & valid)):
        raise Unusual


def _bits(buffer: pa.Buffer, offset: int, count: int) -> NDArray[np.bool_]:
    first, skipped = divmod(offset, _BITS)
    held = np.frombuffer(buffer, np.uint8, (skipped + count + _BITS - 1) // _BITS, first)
    return np.unpackbits(held, count=skipped + count, bitorder="little")[skipped:].view(np.bool_)


def _booleans(array: pa.Array) -> Vector:
    return _bits(array.buffers()[1], array.offset, len(array)), validity(array)


def _decimals(array: pa.Array) -> Vector:
    count, valid = len(array), validity(array)
    words = np.frombuffer(array.buffers()[1], np.int64, 2 * count, 16 * array.offset)
    values, fits = narrowed(words)
    if not fits:
        refuse(values >> _SIGN != words[1::2], valid)
    return values, valid


def _packed(values: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")
