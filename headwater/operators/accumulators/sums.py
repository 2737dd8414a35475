"""Sums: of integers, day-time intervals and decimals, which are exact, and of doubles, which are rounded once at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.operators.accumulators.contribution import Accumulator, Contribution, in_groups, present
from headwater.operators.accumulators.doubles import WIDTH, contribute_doubles, finish_doubles
from headwater.operators.accumulators.limbs import BITS, within
from headwater.operators.accumulators.overflow import decimal_overflow, integer_overflow, interval_overflow
from headwater.operators.accumulators.words import is_exact, limb_count, read_limbs, total_limbs, write_limbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.operators.accumulators.overflow import Mode

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

MAX_DIGITS = 38


def total(of: pa.DataType, mode: Mode) -> Accumulator | None:
    """The sum of values of a type; None for a type that has none."""
    if pa.types.is_floating(of):
        return FloatSum()
    return ExactSum(of, mode) if is_exact(of) else None


def sum_type(of: pa.DataType) -> pa.DataType:
    """The type of a sum of exact numbers: ten more digits for a decimal, 64 bits for an integer."""
    if pa.types.is_decimal(of):
        return pa.decimal128(min(MAX_DIGITS, of.precision + 10), of.scale)
    return of if pa.types.is_duration(of) else pa.int64()


def fits(limbs: Int64s, type_: pa.DataType) -> Bools:
    """Which normalised integers a column of the type can hold."""
    if pa.types.is_decimal(type_):
        return within(limbs, 1 - 10**type_.precision, 10**type_.precision)
    return within(limbs, -(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class ExactSum:
    """Slots: the number of values, then the limbs of their sum."""

    of: pa.DataType
    mode: Mode

    @property
    def monoid(self) -> str:
        return f"exact sum (+ of {limb_count(self.of)} limbs)"

    @property
    def width(self) -> int:
        return 1 + limb_count(self.of)

    @property
    def type(self) -> pa.DataType:
        return sum_type(self.of)

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        return contribute_limbs(inputs, weights)

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:  # noqa: ARG002
        null = in_groups(size, groups, sums[:, 0]) == 0
        limbs = total_limbs(size, groups, sums[:, 1:])
        if self.of.bit_width > BITS:
            null |= self._lost(~fits(limbs, self.type))
        return write_limbs(limbs, self.type, null)

    def _lost(self, overflown: Bools) -> Bools:
        """Which groups become NULL because their sums do not fit."""
        if self.mode == "TRY" or not overflown.any():
            return overflown
        if pa.types.is_duration(self.type):
            raise interval_overflow()
        if self.mode == "ANSI":
            raise decimal_overflow("try_sum") if pa.types.is_decimal(self.type) else integer_overflow()
        return overflown if pa.types.is_decimal(self.type) else np.zeros_like(overflown)


def contribute_limbs(inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
    """The count and the limbs of each value of the one input."""
    rows, (array,), kept = present(inputs, weights)
    limbs = read_limbs(array)
    values = np.empty((len(rows), 1 + len(limbs)), np.int64)
    values[:, 0] = kept
    for k, limb in enumerate(limbs):
        np.multiply(limb, kept, out=values[:, 1 + k])
    return Contribution(rows, np.zeros(len(rows), np.int64), values)


@dataclass(frozen=True, slots=True)
class FloatSum:
    """The sum of floats or doubles, as a double; state as in `doubles`."""

    monoid: ClassVar[str] = "exact sum (+ of limbs in buckets of exponents)"
    width: ClassVar[int] = WIDTH
    type: ClassVar[pa.DataType] = pa.float64()

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        return contribute_doubles(inputs, weights)

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:
        values, counts = finish_doubles(size, groups, buckets, sums)
        return pa.array(values, mask=counts == 0, from_pandas=False)
