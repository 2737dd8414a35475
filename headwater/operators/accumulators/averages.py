"""Averages: an exact sum and a count, divided at the end as Spark divides: in doubles; half up for decimals and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.operators.accumulators.contribution import Accumulator, Contribution, in_groups, present
from headwater.operators.accumulators.doubles import WIDTH, contribute_doubles, finish_doubles
from headwater.operators.accumulators.limbs import BITS, integers, lowest_64_bits, rounded, within
from headwater.operators.accumulators.overflow import decimal_out_of_range, decimal_overflow, interval_overflow
from headwater.operators.accumulators.sums import MAX_DIGITS, contribute_limbs, fits, sum_type
from headwater.operators.accumulators.words import is_exact, limb_count, read_long, total_limbs, write_integers, write_long

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.operators.accumulators.overflow import Mode

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]


def average(of: pa.DataType, mode: Mode) -> Accumulator | None:
    """The average of values of a type; None for a type that has none."""
    if pa.types.is_floating(of):
        return FloatAverage()
    if pa.types.is_signed_integer(of):
        return IntegerAverage(of)
    return ExactAverage(of, mode) if is_exact(of) else None


@dataclass(frozen=True, slots=True)
class FloatAverage:
    """The average of floats or doubles; state as in `doubles`."""

    monoid: ClassVar[str] = "exact sum and count (+ of limbs in buckets of exponents)"
    width: ClassVar[int] = WIDTH
    type: ClassVar[pa.DataType] = pa.float64()

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        return contribute_doubles(inputs, weights)

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:
        values, counts = finish_doubles(size, groups, buckets, sums)
        return pa.array(values / np.maximum(counts, 1), mask=counts == 0, from_pandas=False)


@dataclass(frozen=True, slots=True)
class IntegerAverage:
    """The average of integers as a double. Spark turns each value into a double first, so 2⁵³+1 counts as 2⁵³ here as well."""

    of: pa.DataType
    type: ClassVar[pa.DataType] = pa.float64()

    @property
    def monoid(self) -> str:
        return f"exact sum and count (+ of {self.width - 1} limbs)"

    @property
    def width(self) -> int:
        return 1 + limb_count(self.of)

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        if self.of.bit_width <= BITS:
            return contribute_limbs(inputs, weights)
        rows, (array,), kept = present(inputs, weights)
        double = read_long(array).astype(np.float64)
        # The nearest double may be 2⁶³, which is no int64: halve it as a double, which is exact.
        high = np.floor(double * 2.0**-BITS)
        low = double - high * 2.0**BITS
        values = np.stack([kept, low.astype(np.int64) * kept, high.astype(np.int64) * kept], axis=1)
        return Contribution(rows, np.zeros(len(rows), np.int64), values)

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:  # noqa: ARG002
        counts = in_groups(size, groups, sums[:, 0])
        values = rounded(total_limbs(size, groups, sums[:, 1:]), 0)
        return pa.array(values / np.maximum(counts, 1), mask=counts == 0, from_pandas=False)


@dataclass(frozen=True, slots=True)
class ExactAverage:
    """The average of decimals, with four more digits where they fit, or of day-time intervals; halves go away from zero."""

    of: pa.DataType
    mode: Mode

    @property
    def monoid(self) -> str:
        return f"exact sum and count (+ of {self.width - 1} limbs)"

    @property
    def width(self) -> int:
        return 1 + limb_count(self.of)

    @property
    def type(self) -> pa.DataType:
        if pa.types.is_decimal(self.of):
            return pa.decimal128(min(MAX_DIGITS, self.of.precision + 4), min(MAX_DIGITS, self.of.scale + 4))
        return self.of

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        return contribute_limbs(inputs, weights)

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:  # noqa: ARG002
        counts = in_groups(size, groups, sums[:, 0])
        limbs = total_limbs(size, groups, sums[:, 1:])
        null = counts == 0
        null |= self._lost(~fits(limbs, sum_type(self.of)))
        scale = 10 ** (self.type.scale - self.of.scale) if pa.types.is_decimal(self.of) else 1
        # Twice the scaled sum, plus the count, must fit in 64 bits to be divided there.
        if within(limbs, -(1 << 61) // scale, (1 << 61) // scale).all():
            return write_long(_half_up(lowest_64_bits(limbs) * scale, np.maximum(counts, 1)), self.type, null)
        quotients = self._divide(integers(limbs), counts.tolist(), null, scale)
        return write_integers(quotients, self.type, null)

    def _lost(self, overflown: Bools) -> Bools:
        """Which groups become NULL because their sums do not fit."""
        if self.mode == "TRY" or not overflown.any():
            return overflown
        if pa.types.is_duration(self.of):
            raise interval_overflow()
        if self.mode == "ANSI":
            raise decimal_overflow("try_avg")
        return overflown

    def _divide(self, totals: list[int], counts: list[int], null: Bools, scale: int) -> list[int]:
        """The quotients; where one has too many digits, 0 and a NULL in `null`, or Spark's error."""
        limit = 10**self.type.precision if pa.types.is_decimal(self.of) else 1 << 63
        quotients = [0] * len(totals)
        for group in np.flatnonzero(~null).tolist():
            value, count = totals[group] * scale, counts[group]
            quotient = (2 * abs(value) + count) // (2 * count)
            if quotient < limit:
                quotients[group] = quotient if value >= 0 else -quotient
            elif self.mode == "ANSI":
                raise decimal_out_of_range(value, count * 10**self.type.scale, self.type)
            else:
                null[group] = True
        return quotients


def _half_up(values: Int64s, counts: Int64s) -> Int64s:
    quotients: Int64s = (2 * np.abs(values) + counts) // (2 * counts)
    return np.where(values < 0, -quotients, quotients)
