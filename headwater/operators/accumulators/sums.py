"""Sums: of integers, day-time intervals and decimals, which are exact, and of doubles, which are rounded once at the end."""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import present
from headwater.operators.accumulators.doubles import WIDTH, add_doubles, finish_doubles
from headwater.operators.accumulators.limbs import BITS, MASK, below, halves, limit, magnitude
from headwater.operators.accumulators.overflow import decimal_overflow, integer_overflow, interval_overflow
from headwater.operators.accumulators.words import integers_of, is_exact, limb_count, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.operators.accumulators.cells import Accumulator, Cells, States
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


@dataclass(frozen=True, slots=True)
class ExactSum:
    """Slots: the number of values, then the limbs of their sum."""

    of: pa.DataType
    mode: Mode
    buckets: ClassVar[bool] = False

    @property
    def monoid(self) -> str:
        return f"exact sum (+ of {limb_count(self.of)} limbs)"

    @property
    def width(self) -> int:
        return 1 + limb_count(self.of)

    @property
    def type(self) -> pa.DataType:
        return sum_type(self.of)

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        add_integers(inputs, weights, ids, cells, first)

    def finish(self, states: States, first: int) -> pa.Array:
        kind = self.type
        if pa.types.is_decimal(kind):
            most = limit(10**kind.precision)
            values, null, lost = _decimal_sums(states.values, states.size, first, limb_count(self.of), *most)
        else:
            values, null, lost = _long_sums(states.values, states.size, first, limb_count(self.of))
        if np.count_nonzero(lost):
            null |= self._lost(lost)
        return written(values, kind, null)

    def _lost(self, overflown: Bools) -> Bools:
        """Which groups become NULL because their sums do not fit."""
        if self.mode == "TRY":
            return overflown
        if pa.types.is_duration(self.type):
            raise interval_overflow()
        if self.mode == "ANSI":
            raise decimal_overflow("try_sum") if pa.types.is_decimal(self.type) else integer_overflow()
        return overflown if pa.types.is_decimal(self.type) else np.zeros_like(overflown)


def add_integers(inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
    """Adds the count and the limbs of each value of the one input."""
    values, kept = integers_of(inputs[0]), present(inputs, weights)
    if values.ndim == 2:
        _add_halves(values, kept, ids, cells.sums, first, limb_count(inputs[0].type))
    elif limb_count(inputs[0].type) == 1:
        _add_short(values, kept, ids, cells.sums, first)
    else:
        _add_long(values, kept, ids, cells.sums, first)


@compiled
def _add_short(values: NDArray[Any], weights: Int64s, ids: Int64s, sums: Int64s, first: int) -> None:
    for i in range(len(values)):
        cell = sums[ids[i]]
        cell[first] += weights[i]
        cell[first + 1] += np.int64(values[i]) * weights[i]


@compiled
def _add_long(values: Int64s, weights: Int64s, ids: Int64s, sums: Int64s, first: int) -> None:
    for i in range(len(values)):
        cell = sums[ids[i]]
        cell[first] += weights[i]
        cell[first + 1] += (values[i] & MASK) * weights[i]
        cell[first + 2] += (values[i] >> BITS) * weights[i]


@compiled
def _add_halves(values: Int64s, weights: Int64s, ids: Int64s, sums: Int64s, first: int, limbs: int) -> None:
    for i in range(len(values)):
        cell = sums[ids[i]]
        low, high = values[i, 0], values[i, 1]
        cell[first] += weights[i]
        cell[first + 1] += (low & MASK) * weights[i]
        if limbs == 2:
            cell[first + 2] += (low >> BITS) * weights[i]
        else:
            cell[first + 2] += ((low >> BITS) & MASK) * weights[i]
            cell[first + 3] += (high & MASK) * weights[i]
            cell[first + 4] += (high >> BITS) * weights[i]


@compiled
def _long_sums(values: Int64s, size: int, first: int, limbs: int) -> tuple[Int64s, Bools, Bools]:
    """The lowest 64 bits of the sums, for which groups there is none, and which do not fit."""
    results = values.shape[0] * size
    sums, null, lost = np.empty(results, np.int64), np.empty(results, np.bool_), np.empty(results, np.bool_)
    for i in range(results):
        cell = values[i // size, i % size]
        low, high, _ = halves(cell, first + 1, limbs)
        sums[i] = low
        null[i] = cell[first] == 0
        lost[i] = high != low >> 63
    return sums, null, lost


@compiled
def _decimal_sums(
    values: Int64s, size: int, first: int, limbs: int, limit_low: np.uint64, limit_high: np.uint64
) -> tuple[Int64s, Bools, Bools]:
    """The halves of the sums, for which groups there is none, and which have too many digits."""
    results = values.shape[0] * size
    sums, null, lost = np.empty((results, 2), np.int64), np.empty(results, np.bool_), np.empty(results, np.bool_)
    for i in range(results):
        cell = values[i // size, i % size]
        low, high, whole = halves(cell, first + 1, limbs)
        sums[i, 0], sums[i, 1] = low, high
        size_low, size_high = magnitude(low, high)
        null[i] = cell[first] == 0
        lost[i] = not (whole and below(size_low, size_high, limit_low, limit_high))
    return sums, null, lost


@dataclass(frozen=True, slots=True)
class FloatSum:
    """The sum of floats or doubles, as a double; state as in `doubles`."""

    monoid: ClassVar[str] = "exact sum (+ of limbs in buckets of exponents)"
    width: ClassVar[int] = WIDTH
    buckets: ClassVar[bool] = True
    type: ClassVar[pa.DataType] = pa.float64()

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        add_doubles(inputs, weights, ids, cells, first)

    def finish(self, states: States, first: int) -> pa.Array:
        values, counts = finish_doubles(states, first)
        return written(values, self.type, counts == 0)
