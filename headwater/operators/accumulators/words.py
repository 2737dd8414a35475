"""Arrow columns of numbers as NumPy arrays, and back; how many limbs a number takes.

Columns are read as they lie in their buffers, without a copy. A trap: what lies under a NULL is arbitrary; its weight is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.operators.accumulators.limbs import BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

# A decimal of so many digits fits in 64 bits.
LONG_DIGITS = 18


def is_exact(type_: pa.DataType) -> bool:
    """Whether values of this type are integers, or integers times a fixed power of ten."""
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_decimal128(type_) or type_ == pa.duration("us"))


def limb_count(type_: pa.DataType) -> int:
    """How many limbs a value of this type takes."""
    if pa.types.is_decimal(type_):
        return 2 if type_.precision <= LONG_DIGITS else 4
    return 1 if type_.bit_width <= BITS else 2


def integers_of(array: pa.Array) -> NDArray[Any]:
    """Integers, dates, times and intervals in the width they have; decimals, without their point, as [n, 2] halves."""
    dtype = _INTEGERS.get(array.type.id)
    return _buffer(array, _HALF, 2).reshape(-1, 2) if dtype is None else _buffer(array, dtype, 1)


_HALF = np.dtype(np.int64)
_INTEGERS = {
    kind.id: np.dtype(f"i{kind.bit_width // 8}")
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.date64()),
        *(pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
    )
}


def is_integer(type_: pa.DataType) -> bool:
    """Whether the values are kept as integers that compare as they do."""
    return type_.id in _INTEGERS


def doubles_of(array: pa.Array) -> NDArray[np.float64]:
    """Floats or doubles, as doubles."""
    if array.type.bit_width == 64:
        return _buffer(array, _DOUBLE, 1)
    # A signalling NaN would warn, and even one that lies under a NULL.
    with np.errstate(invalid="ignore"):
        return _buffer(array, _FLOAT, 1).astype(np.float64)


_DOUBLE, _FLOAT = np.dtype(np.float64), np.dtype(np.float32)


def _buffer(array: pa.Array, dtype: np.dtype[Any], each: int) -> NDArray[Any]:
    count, data = len(array) * each, array.buffers()[1]
    if count == 0 or data is None:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count, array.offset * each * dtype.itemsize)


def written(values: NDArray[Any], type_: pa.DataType, null: Bools) -> pa.Array:
    """Numbers as they lie in a column of the type; decimals, without their point, as [n, 2] low and high halves."""
    valid = pa.array(~null).buffers()[1] if np.count_nonzero(null) else None
    return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(values)])
