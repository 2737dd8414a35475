"""Arrow columns of exact numbers (integers, day-time intervals, decimals) to limbs and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.operators.accumulators.limbs import BITS, MASK, carry, lowest_64_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def read_long(array: pa.Array) -> Int64s:
    """The values, none of them NULL and none wider than 64 bits, as int64 (a decimal without its point)."""
    if pa.types.is_decimal(array.type):
        return _halves(array)[:, 0]
    if pa.types.is_duration(array.type):
        array = array.view(pa.int64())
    values: Int64s = array.to_numpy().astype(np.int64, copy=False)
    return values


def read_limbs(array: pa.Array) -> list[Int64s]:
    """The limbs, lowest first, of values none of which is NULL; the last one has the sign."""
    count = limb_count(array.type)
    if count == 1:
        return [read_long(array)]
    if count == 2:
        long = read_long(array)
        return [long & MASK, long >> BITS]
    low, high = _halves(array).T
    return [low & MASK, (low >> BITS) & MASK, high & MASK, high >> BITS]


def total_limbs(size: int, groups: Int64s, slots: Int64s) -> Int64s:
    """The sum of each group over its rows `slots` of limbs, normalised, with room for 128 bits and more."""
    limbs = np.zeros((max(slots.shape[1], 4) + 2, size), np.int64)
    for k in range(slots.shape[1]):
        np.add.at(limbs[k], groups, slots[:, k])
    return carry(limbs)


def write_limbs(limbs: Int64s, type_: pa.DataType, null: Bools) -> pa.Array:
    """Normalised integers that fit, as a column of the type."""
    low = lowest_64_bits(limbs)
    if pa.types.is_decimal(type_):
        return write_halves(np.stack([low, lowest_64_bits(limbs, 2)], axis=1), type_, null)
    return write_long(low, type_, null)


def write_long(values: Int64s, type_: pa.DataType, null: Bools) -> pa.Array:
    """64-bit integers as a column of the type (a decimal without its point)."""
    if pa.types.is_decimal(type_):
        return write_halves(np.stack([values, values >> 63], axis=1), type_, null)
    array = pa.array(values, pa.int64(), mask=null)
    return array if type_ == pa.int64() else array.view(type_)


def write_halves(halves: Int64s, type_: pa.DataType, null: Bools) -> pa.Array:
    """128-bit integers, as their low and high halves, as a column of decimals."""
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(type_, len(halves), [valid, pa.py_buffer(np.ascontiguousarray(halves))])


def write_integers(values: Sequence[int], type_: pa.DataType, null: Bools) -> pa.Array:
    """Python integers that fit as a column of the type (a decimal without its point)."""
    raw = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    halves = np.frombuffer(raw, np.int64).reshape(-1, 2)
    return write_halves(halves, type_, null) if pa.types.is_decimal(type_) else write_long(halves[:, 0], type_, null)


def _halves(array: pa.Array) -> Int64s:
    if not len(array):
        return np.empty((0, 2), np.int64)
    return np.frombuffer(array.buffers()[1], np.int64, 2 * (array.offset + len(array))).reshape(-1, 2)[array.offset :]
