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
    """Integers, or intervals, in the width they have; decimals, without their point, as [n, 2] low and high halves."""
    if pa.types.is_decimal(array.type):
        return _buffer(array, np.dtype(np.int64), 2).reshape(-1, 2)
    return _buffer(array, np.dtype(f"i{array.type.bit_width // 8}"), 1)


def doubles_of(array: pa.Array) -> NDArray[np.float64]:
    """Floats or doubles, as doubles."""
    values = _buffer(array, np.dtype(f"f{array.type.bit_width // 8}"), 1)
    if values.dtype == np.float64:
        return values
    # A signalling NaN would warn, and even one that lies under a NULL.
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def _buffer(array: pa.Array, dtype: np.dtype[Any], each: int) -> NDArray[Any]:
    count, data = len(array) * each, array.buffers()[1]
    if count == 0 or data is None:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count, array.offset * each * dtype.itemsize)


def written(values: NDArray[Any], type_: pa.DataType, null: Bools) -> pa.Array:
    """Numbers as they lie in a column of the type; decimals, without their point, as [n, 2] low and high halves."""
    valid = pa.array(~null).buffers()[1] if null.any() else None
    return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(values)])
