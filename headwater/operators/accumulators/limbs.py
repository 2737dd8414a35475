"""Arithmetic on big integers in limbs of 32 bits.

An array of int64 is one integer, the lowest limb first: Σ limb[k] · 2³²ᵏ. Limbs may be of any size and sign until `carry`
normalises them; it needs a last limb with room for the carry, and leaves the sign there.

Integers of up to 128 bits are two halves, (low, high), of 64 bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

BITS = 32
MASK = (1 << BITS) - 1
_HALF = 1 << (BITS - 1)
# Of a double: how many bits it has, and the power of two below which there is none.
MANTISSA_BITS = 53
LOWEST_EXPONENT = -1074


@compiled
def carry(limbs: Int64s, count: int) -> None:
    """The same integer, in `count` limbs, with every limb but the last in 0 … 2³²−1."""
    for k in range(count - 1):
        limbs[k + 1] += limbs[k] >> BITS
        limbs[k] &= MASK


@compiled
def leading(limbs: Int64s, count: int) -> tuple[np.uint64, int]:
    """The 64 leading bits of a normalised integer > 0, and the power of two they count; the last bit tells if any follow."""
    top = count - 1
    while limbs[top] == 0:
        top -= 1
    second = limbs[top - 1] if top >= 1 else 0
    third = limbs[top - 2] if top >= 2 else 0
    shift = BITS - math.frexp(float(limbs[top]))[1]
    bits = (np.uint64(limbs[top]) << np.uint64(BITS) | np.uint64(second)) << np.uint64(shift)
    bits |= np.uint64(third >> (BITS - shift))
    rest = (third << shift) & MASK
    for k in range(top - 2):
        rest |= limbs[k]
    if rest != 0:
        bits |= np.uint64(1)
    return bits, BITS * (top - 1) - shift


@compiled
def nearest(bits: np.uint64, power: int) -> float:
    """The double nearest to bits · 2^power, where bits ≥ 2⁶³ (ties to even, ±∞ beyond the range)."""
    drop = LOWEST_EXPONENT - power
    if drop <= 64 - MANTISSA_BITS:
        return math.ldexp(float(bits), power)
    # A subnormal number has fewer bits, and must be rounded to these at once.
    if drop > 64:
        return 0.0
    whole = bits >> np.uint64(drop) if drop < 64 else np.uint64(0)
    rest = bits - (whole << np.uint64(drop)) if drop < 64 else bits
    half = np.uint64(1) << np.uint64(drop - 1)
    if rest > half or (rest == half and whole & np.uint64(1)):
        whole += np.uint64(1)
    return math.ldexp(float(whole), LOWEST_EXPONENT)


@compiled
def rounded(limbs: Int64s, count: int, exponent: int) -> float:
    """The double nearest to an integer times 2^exponent; the limbs are normalised and are used up."""
    negative = absolute(limbs, count)
    used = False
    for k in range(count):
        used |= limbs[k] != 0
    if not used:
        return 0.0
    bits, power = leading(limbs, count)
    magnitude = nearest(bits, exponent + power)
    return -magnitude if negative else magnitude


@compiled
def absolute(limbs: Int64s, count: int) -> bool:
    """Makes a normalised integer its absolute value, and tells whether it was negative."""
    negative = limbs[count - 1] < 0
    if negative:
        for k in range(count):
            limbs[k] = -limbs[k]
        carry(limbs, count)
    return negative


@compiled
def halves(slots: Int64s, first: int, count: int) -> tuple[int, int, bool]:
    """The integer in 1, 2 or 4 slots from `first` on, as low and high half, and whether these hold it all."""
    if count == 1:
        return slots[first], slots[first] >> 63, True
    if count == 2:
        top = slots[first + 1] + (slots[first] >> BITS)
        return (top << BITS) | (slots[first] & MASK), top >> BITS, True
    second = slots[first + 1] + (slots[first] >> BITS)
    third = slots[first + 2] + (second >> BITS)
    top = slots[first + 3] + (third >> BITS)
    low = ((second & MASK) << BITS) | (slots[first] & MASK)
    return low, (top << BITS) | (third & MASK), -_HALF <= top < _HALF


@compiled
def magnitude(low: int, high: int) -> tuple[np.uint64, np.uint64]:
    """The halves of the absolute value."""
    if high >= 0:
        return np.uint64(low), np.uint64(high)
    return np.uint64(-low), np.uint64(~high) + np.uint64(1 if low == 0 else 0)


@compiled
def below(low: np.uint64, high: np.uint64, limit_low: np.uint64, limit_high: np.uint64) -> bool:
    """Whether an integer ≥ 0 is less than the limit."""
    return bool(high < limit_high or (high == limit_high and low < limit_low))


def limit(value: int) -> tuple[np.uint64, np.uint64]:
    """A Python integer ≥ 0 of at most 128 bits as its halves."""
    return np.uint64(value & ((1 << 64) - 1)), np.uint64(value >> 64)
