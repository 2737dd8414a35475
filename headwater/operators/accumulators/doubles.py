"""Exact sums of doubles: fixed point where it is needed and nowhere else.

A finite double is ±m · 2^(p−1074) with m < 2⁵³ and a position p in 0 … 2045. Positions are cut into windows; inside
one, m · 2^(p − start of the window) is an integer of a few limbs, and bucket b ≥ 1 holds the sum of those of the b-th window.
Zeros have no mantissa and NaN and ±∞ no position: bucket 0 only counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.operators.accumulators.contribution import Contribution, in_groups, occupied, present
from headwater.operators.accumulators.limbs import BITS, MASK, carry, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Floats = NDArray[np.float64]

MANTISSA_BITS = 53
LOWEST_EXPONENT = -1074
# The exponent field of NaN and ±∞.
_NOT_FINITE = 0x7FF


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `bits` positions each, laid so that everyday numbers share one."""

    bits: int
    offset: int

    @property
    def limbs(self) -> int:
        """How many limbs a mantissa takes, wherever it is in its window."""
        return -(-(MANTISSA_BITS + self.bits - 1) // BITS)

    def exponent(self, bucket: int) -> int:
        """The integers of a bucket count multiples of 2 to this power."""
        return LOWEST_EXPONENT - self.offset + self.bits * (bucket - 1)

    def split(self, values: Floats) -> tuple[Int64s, Int64s]:
        """The bucket of each double, and the limbs of its magnitude as [limbs, n]; NaN and ±∞ are taken as 0."""
        word = values.view(np.int64)
        field = (word >> (MANTISSA_BITS - 1)) & _NOT_FINITE
        mantissa = word & ((1 << (MANTISSA_BITS - 1)) - 1)
        mantissa |= (field != 0).astype(np.int64) << (MANTISSA_BITS - 1)
        mantissa[field == _NOT_FINITE] = 0
        position = np.maximum(field, 1) + (self.offset - 1)
        buckets = position // self.bits + 1
        within = position % self.bits
        buckets[mantissa == 0] = 0
        shift = within & (BITS - 1)
        # Two halves, each shifted by less than a limb: neither leaves 64 bits, and their overlap in the middle limb is bitwise.
        low = (mantissa & MASK) << shift
        high = (mantissa >> BITS) << shift
        limbs = np.zeros((self.limbs, len(values)), np.int64)
        limbs[0], limbs[1], limbs[2] = low & MASK, (low >> BITS) | (high & MASK), high >> BITS
        if self.bits > BITS:
            upper = within >= BITS
            limbs[1:, upper] = limbs[:-1, upper]
            limbs[0, upper] = 0
        return buckets, limbs


# Magnitudes from 2⁻¹⁸ to 2⁴⁶ (4 millionths to 70 million millions) are one window.
SUM_WINDOWS = Windows(bits=64, offset=20)

# Slots of a sum: the number of values, then four limbs; in bucket 0, how many are NaN, +∞ and −∞ instead.
WIDTH = 5
_NAN, _PLUS, _MINUS = 1, 2, 3
# Rows and groups are worked on in pieces that stay in the cache.
_PIECE = 1 << 14


def contribute_doubles(inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
    """What floats or doubles add to a sum."""
    rows, (array,), kept = present(inputs, weights)
    doubles: Floats = array.to_numpy().astype(np.float64, copy=False)
    buckets = np.empty(len(rows), np.int64)
    values = np.empty((len(rows), WIDTH), np.int64)
    for start in range(0, len(rows), _PIECE):
        piece = slice(start, start + _PIECE)
        buckets[piece] = _contribute(doubles[piece], kept[piece], values[piece])
    return Contribution(rows, buckets, values)


def _contribute(doubles: Floats, weights: Int64s, into: Int64s) -> Int64s:
    buckets, limbs = SUM_WINDOWS.split(doubles)
    signed = np.where(np.signbit(doubles), -weights, weights)
    into[:, 0] = weights
    np.multiply(limbs.T, signed[:, None], out=into[:, 1:])
    strange = np.flatnonzero(~np.isfinite(doubles))
    if len(strange):
        kind = np.where(np.isnan(doubles[strange]), _NAN, np.where(doubles[strange] > 0, _PLUS, _MINUS))
        into[strange, kind] = weights[strange]
    return buckets


def finish_doubles(size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> tuple[Floats, Int64s]:
    """The sum of each group, correctly rounded, and how many values it has."""
    groups, buckets, sums = occupied(groups, buckets, sums)
    counts = in_groups(size, groups, sums[:, 0])
    finite = buckets > 0
    result = _round_groups(size, groups[finite], buckets[finite], sums[finite, 1:])
    strange = np.flatnonzero((buckets == 0) & sums[:, 1:].any(axis=1))
    if len(strange):
        plus = in_groups(size, groups[strange], sums[strange, _PLUS]) != 0
        minus = in_groups(size, groups[strange], sums[strange, _MINUS]) != 0
        nan = in_groups(size, groups[strange], sums[strange, _NAN]) != 0
        result[plus] = np.inf
        result[minus] = -np.inf
        result[nan | (plus & minus)] = np.nan
    return result, counts


def _round_groups(size: int, groups: Int64s, buckets: Int64s, limbs: Int64s) -> Floats:
    result = np.zeros(size)
    if not len(groups):
        return result
    if size <= _PIECE:
        return _round_piece(size, groups, buckets, limbs)
    for start in range(0, size, _PIECE):
        mine = np.flatnonzero((groups >= start) & (groups < start + _PIECE))
        if len(mine):
            count = min(_PIECE, size - start)
            result[start : start + count] = _round_piece(count, groups[mine] - start, buckets[mine], limbs[mine])
    return result


def _round_piece(size: int, groups: Int64s, buckets: Int64s, limbs: Int64s) -> Floats:
    """All buckets of a group in one long integer: as long as the buckets of these groups reach, and not all 66 limbs."""
    lowest = int(buckets.min())
    step = SUM_WINDOWS.bits // BITS
    # One limb more than the windows reach takes the carry.
    long = np.zeros((step * (int(buckets.max()) - lowest) + limbs.shape[1] + 1, size), np.int64)
    first = step * (buckets - lowest) * size + groups
    for k in range(limbs.shape[1]):
        np.add.at(long.reshape(-1), first + k * size, limbs[:, k])
    return rounded(carry(long), SUM_WINDOWS.exponent(lowest))
