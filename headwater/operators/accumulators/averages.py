"""Averages: an exact sum and a count, divided at the end as Spark divides: in doubles; half up for decimals and intervals."""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import present
from headwater.operators.accumulators.doubles import WIDTH, add_doubles, finish_doubles
from headwater.operators.accumulators.limbs import BITS, MASK, below, carry, halves, limit, magnitude, rounded
from headwater.operators.accumulators.overflow import decimal_out_of_range, decimal_overflow, interval_overflow
from headwater.operators.accumulators.sums import MAX_DIGITS, add_integers, sum_type
from headwater.operators.accumulators.words import integers_of, is_exact, limb_count, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.operators.accumulators.cells import Accumulator, Cells, States
    from headwater.operators.accumulators.overflow import Mode

    Int64s = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Words = NDArray[np.uint64]

# Every integer up to here is a double.
_DOUBLE = 1 << 53
# Limbs up to so much make a sum of 64 bits.
_LOW, _HIGH = 1 << 62, 1 << 30


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
    buckets: ClassVar[bool] = True
    type: ClassVar[pa.DataType] = pa.float64()

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        add_doubles(inputs, weights, ids, cells, first)

    def finish(self, states: States, first: int) -> pa.Array:
        values, counts = finish_doubles(states, first)
        return written(values / np.maximum(counts, 1), self.type, counts == 0)


@dataclass(frozen=True, slots=True)
class IntegerAverage:
    """The average of integers as a double. Spark turns each value into a double first, so 2⁵³+1 counts as 2⁵³ here as well."""

    of: pa.DataType
    type: ClassVar[pa.DataType] = pa.float64()
    buckets: ClassVar[bool] = False

    @property
    def monoid(self) -> str:
        return f"exact sum and count (+ of {self.width - 1} limbs)"

    @property
    def width(self) -> int:
        return 1 + limb_count(self.of)

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        if self.of.bit_width <= BITS:
            add_integers(inputs, weights, ids, cells, first)
        else:
            _add_as_doubles(integers_of(inputs[0]), present(inputs, weights), ids, cells.sums, first)

    def finish(self, states: States, first: int) -> pa.Array:
        values, null = _averages(states.values, states.size, first, self.width - 1)
        return written(values, self.type, null)


@compiled
def _add_as_doubles(values: Int64s, weights: Int64s, ids: Int64s, sums: Int64s, first: int) -> None:
    for i in range(len(values)):
        low, high = values[i] & MASK, values[i] >> BITS
        if not -_DOUBLE <= values[i] <= _DOUBLE:
            # The nearest double may be 2⁶³, which is no int64: halve it as a double, which is exact.
            double = float(values[i])
            upper = np.floor(double * 2.0**-BITS)
            low, high = np.int64(double - upper * 2.0**BITS), np.int64(upper)
        cell = sums[ids[i]]
        cell[first] += weights[i]
        cell[first + 1] += low * weights[i]
        cell[first + 2] += high * weights[i]


@compiled
def _averages(values: Int64s, size: int, first: int, limbs: int) -> tuple[Floats, Bools]:
    results = values.shape[0] * size
    averages, null = np.empty(results, np.float64), np.empty(results, np.bool_)
    long = np.empty(4, np.int64)
    for i in range(results):
        cell = values[i // size, i % size]
        count, low = cell[first], cell[first + 1]
        high = cell[first + 2] if limbs == 2 else 0
        if limbs == 1 or (-_LOW <= low < _LOW and -_HIGH <= high < _HIGH):
            total = float(low + (high << BITS))
        else:
            long[0], long[1], long[2], long[3] = low, high, 0, 0
            carry(long, 4)
            total = rounded(long, 4, 0)
        averages[i] = total / max(count, 1)
        null[i] = count == 0
    return averages, null


# What became of the average of a group.
_FOUND, _NONE, _SUM_LOST, _QUOTIENT_LOST = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class ExactAverage:
    """The average of decimals, with four more digits where they fit, or of day-time intervals; halves go away from zero."""

    of: pa.DataType
    mode: Mode
    buckets: ClassVar[bool] = False

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

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        add_integers(inputs, weights, ids, cells, first)

    def finish(self, states: States, first: int) -> pa.Array:
        decimal = pa.types.is_decimal(self.of)
        digits = (sum_type(self.of).precision, self.type.precision) if decimal else ()
        limits = np.array([limit(10**count) for count in digits], np.uint64).reshape(-1, 2)
        averages, fate = _half_up(states.values, states.size, first, self.width - 1, self._scale, limits)
        if np.count_nonzero(fate > _NONE):
            self._complain(states, first, fate)
        return written(averages if decimal else averages[:, 0].copy(), self.type, fate != _FOUND)

    @property
    def _scale(self) -> int:
        """By how much the sum is multiplied before it is divided."""
        return int(10 ** (self.type.scale - self.of.scale)) if pa.types.is_decimal(self.of) else 1

    def _complain(self, states: States, first: int, fate: NDArray[np.uint8]) -> None:
        """Raises Spark's error for a sum or a quotient that does not fit, unless that is NULL."""
        if self.mode != "TRY" and (fate == _SUM_LOST).any():
            if pa.types.is_duration(self.of):
                raise interval_overflow()
            if self.mode == "ANSI":
                raise decimal_overflow("try_avg")
        for at in np.flatnonzero(fate == _QUOTIENT_LOST)[:1].tolist():
            if self.mode == "ANSI":
                count, *limbs = states.values[at // states.size, at % states.size, first : first + self.width].tolist()
                total = sum(limb << (BITS * k) for k, limb in enumerate(limbs))
                raise decimal_out_of_range(total * self._scale, count * 10**self.type.scale, self.type)


@compiled
def _half_up(values: Int64s, size: int, first: int, limbs: int, scale: int, limits: Words) -> tuple[Int64s, NDArray[np.uint8]]:
    """The halves of the averages, and what became of each; the limits are those of sums and averages, none for 64 bits."""
    results = values.shape[0] * size
    averages, fate = np.zeros((results, 2), np.int64), np.zeros(results, np.uint8)
    digits = np.zeros(5, np.uint64)
    for i in range(results):
        cell = values[i // size, i % size]
        if cell[first] == 0:
            fate[i] = _NONE
            continue
        low, high, whole = halves(cell, first + 1, limbs)
        size_low, size_high = magnitude(low, high)
        fits = below(size_low, size_high, limits[0, 0], limits[0, 1]) if len(limits) else high == low >> 63
        if not (whole and fits):
            fate[i] = _SUM_LOST
            continue
        _divide(size_low, size_high, np.uint64(scale), np.uint64(max(cell[first], 1)), digits)
        size_low, size_high = digits[0] | (digits[1] << np.uint64(BITS)), digits[2] | (digits[3] << np.uint64(BITS))
        if digits[4] != 0 or (len(limits) and not below(size_low, size_high, limits[1, 0], limits[1, 1])):
            fate[i] = _QUOTIENT_LOST
            continue
        if high < 0:
            averages[i, 0] = -np.int64(size_low)
            averages[i, 1] = ~np.int64(size_high) + (1 if size_low == 0 else 0)
        else:
            averages[i, 0], averages[i, 1] = np.int64(size_low), np.int64(size_high)
    return averages, fate


@compiled
def _divide(low: np.uint64, high: np.uint64, scale: np.uint64, count: np.uint64, digits: Words) -> None:
    """The integer times `scale`, divided by `count`, halves up, in five limbs; both are of less than 32 bits."""
    bits, mask = np.uint64(BITS), np.uint64(MASK)
    digits[0], digits[1], digits[2], digits[3] = low & mask, low >> bits, high & mask, high >> bits
    digits[4] = np.uint64(0)
    over = np.uint64(0)
    for k in range(5):
        product = digits[k] * scale + over
        digits[k], over = product & mask, product >> bits
    rest = np.uint64(0)
    for k in range(4, -1, -1):
        dividend = (rest << bits) | digits[k]
        digits[k], rest = dividend // count, dividend % count
    if rest + rest >= count:
        digits[0] += np.uint64(1)
        for k in range(4):
            digits[k + 1] += digits[k] >> bits
            digits[k] &= mask
