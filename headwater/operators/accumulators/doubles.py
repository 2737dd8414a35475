"""Exact sums of doubles: fixed point where it is needed and nowhere else.

A finite double is ±m · 2^(p−1074) with m < 2⁵³ and a position p in 0 … 2045. Positions are cut into windows; inside
one, m · 2^(p − start of the window) is an integer of a few limbs, and bucket b ≥ 1 holds the sum of those of the b-th window.
Zeros have no mantissa and NaN and ±∞ no position: bucket 0 only counts them.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import is_used, present
from headwater.operators.accumulators.limbs import BITS, LOWEST_EXPONENT, MANTISSA_BITS, MASK, carry, rounded
from headwater.operators.accumulators.words import doubles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.operators.accumulators.cells import Cells, States

    Int64s = NDArray[np.int64]
    Floats = NDArray[np.float64]

# The exponent field of NaN and ±∞.
_NOT_FINITE = 0x7FF
_FRACTION = (1 << (MANTISSA_BITS - 1)) - 1


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `bits` positions each, 32 or 64, laid so that everyday numbers share one."""

    bits: int
    offset: int

    @property
    def limbs(self) -> int:
        """How many limbs a mantissa takes, wherever it is in its window."""
        return -(-(MANTISSA_BITS + self.bits - 1) // BITS)

    def exponent(self, bucket: int) -> int:
        """The integers of a bucket count multiples of 2 to this power."""
        return LOWEST_EXPONENT - self.offset + self.bits * (bucket - 1)

    def buckets(self, words: Int64s, weights: Int64s) -> Int64s:
        """The bucket of each double, given as its word; 0 where the weight is."""
        return _buckets(words, weights, self.bits, self.offset)


@compiled
def _buckets(words: Int64s, weights: Int64s, bits: int, offset: int) -> Int64s:
    buckets = np.zeros(len(words), np.int64)
    for i in range(len(words)):
        field = (words[i] >> (MANTISSA_BITS - 1)) & _NOT_FINITE
        zero = field == 0 and words[i] & _FRACTION == 0
        if weights[i] != 0 and field != _NOT_FINITE and not zero:
            buckets[i] = (max(field, 1) + offset - 1) // bits + 1
    return buckets


@compiled
def split(word: int, bits: int, offset: int) -> tuple[int, int, int, int]:
    """Three limbs of the magnitude of a finite double, and how many limbs above the start of its window they begin."""
    field = (word >> (MANTISSA_BITS - 1)) & _NOT_FINITE
    mantissa = word & _FRACTION
    if field != 0:
        mantissa |= 1 << (MANTISSA_BITS - 1)
    within = (max(field, 1) + offset - 1) % bits
    shift = within & (BITS - 1)
    # Two halves, each shifted by less than a limb: neither leaves 64 bits, and their overlap in the middle limb is bitwise.
    low = (mantissa & MASK) << shift
    high = (mantissa >> BITS) << shift
    return low & MASK, (low >> BITS) | (high & MASK), high >> BITS, within >> 5


@compiled
def is_finite(word: int) -> bool:
    return (word >> (MANTISSA_BITS - 1)) & _NOT_FINITE != _NOT_FINITE


# Magnitudes from 2⁻¹⁸ to 2⁴⁶ (4 millionths to 70 million millions) are one window.
SUM_WINDOWS = Windows(bits=64, offset=20)
_SUM_BITS, _SUM_OFFSET = SUM_WINDOWS.bits, SUM_WINDOWS.offset
_SUM_EXPONENT = SUM_WINDOWS.exponent(0)

# Slots of a sum: the number of values, then four limbs; in bucket 0, how many are NaN, +∞ and −∞ instead.
WIDTH = 5
_NAN, _PLUS, _MINUS = 1, 2, 3
_STEP = _SUM_BITS // BITS
# The limbs from the lowest bucket to the highest, and one that takes the carry.
_LONGEST = _STEP * (2 * 1024 // _SUM_BITS + 2) + WIDTH


def add_doubles(inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
    """Adds what floats or doubles contribute to a sum."""
    words, kept = doubles_of(inputs[0]).view(np.int64), present(inputs, weights)
    places = cells.place(ids, SUM_WINDOWS.buckets(words, kept))
    _add(words, kept, places, cells.sums, first)


@compiled
def _add(words: Int64s, weights: Int64s, places: Int64s, sums: Int64s, first: int) -> None:
    for i in range(len(words)):
        if weights[i] == 0:
            continue
        cell = sums[places[i]]
        cell[first] += weights[i]
        if is_finite(words[i]):
            low, middle, high, above = split(words[i], _SUM_BITS, _SUM_OFFSET)
            signed = -weights[i] if words[i] < 0 else weights[i]
            cell[first + 1 + above] += low * signed
            cell[first + 2 + above] += middle * signed
            cell[first + 3 + above] += high * signed
        elif words[i] & _FRACTION != 0:
            cell[first + _NAN] += weights[i]
        else:
            cell[first + (_MINUS if words[i] < 0 else _PLUS)] += weights[i]


def finish_doubles(states: States, first: int) -> tuple[Floats, Int64s]:
    """The sum of each group in each version, correctly rounded, and how many values it has."""
    return _finish(states.values, states.size, states.buckets, states.following, first)


@compiled
def _finish(values: Int64s, size: int, buckets: Int64s, following: Int64s, first: int) -> tuple[Floats, Int64s]:
    sums, counts = np.zeros(values.shape[0] * size, np.float64), np.zeros(values.shape[0] * size, np.int64)
    long = np.zeros(_LONGEST, np.int64)
    i = 0
    for version in values:
        for group in range(size):
            head = version[group]
            count, cells, cell = head[first], 0, following[group]
            while cell >= 0:
                count += version[cell, first]
                cells += 1
                cell = following[cell]
            counts[i] = count
            plus, minus = head[first + _PLUS] != 0, head[first + _MINUS] != 0
            if head[first + _NAN] != 0 or (plus and minus):
                sums[i] = np.nan
            elif plus or minus:
                sums[i] = np.inf if plus else -np.inf
            elif cells == 1:
                sums[i] = _single(version[following[group]], buckets[following[group]], first, long)
            elif cells > 1:
                sums[i] = _total(version, following[group], buckets, following, first, long)
            i += 1
    return sums, counts


@compiled
def _single(cell: Int64s, bucket: int, first: int, long: Int64s) -> float:
    """The only bucket of a group, rounded."""
    for k in range(WIDTH - 1):
        long[k] = cell[first + 1 + k]
    long[WIDTH - 1] = 0
    carry(long, WIDTH)
    return rounded(long, WIDTH, _SUM_EXPONENT + _SUM_BITS * bucket)


@compiled
def _total(version: Int64s, start: int, buckets: Int64s, following: Int64s, first: int, long: Int64s) -> float:
    """All buckets of a group, of which `start` is the first, in one long integer, rounded."""
    lowest, highest = 1 << 30, 0
    cell = start
    while cell >= 0:
        if is_used(version[cell], first + 1, WIDTH - 1):
            lowest, highest = min(lowest, buckets[cell]), max(highest, buckets[cell])
        cell = following[cell]
    if highest == 0:
        return 0.0
    count = _STEP * (highest - lowest) + WIDTH
    long[:count] = 0
    cell = start
    while cell >= 0:
        if lowest <= buckets[cell] <= highest:
            at = _STEP * (buckets[cell] - lowest)
            for k in range(WIDTH - 1):
                long[at + k] += version[cell, first + 1 + k]
        cell = following[cell]
    carry(long, count)
    return rounded(long, count, _SUM_EXPONENT + _SUM_BITS * lowest)
