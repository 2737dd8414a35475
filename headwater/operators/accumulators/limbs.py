"""Arithmetic on many big integers at once, in limbs of 32 bits.

A column of an array `[limbs, n]` of int64 is one integer, the lowest limb first: Σ limb[k] · 2³²ᵏ. Limbs may be of any size and
sign until `carry` normalises them; it needs a last limb that is empty, and leaves the sign there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

BITS = 32
MASK = np.int64((1 << BITS) - 1)


def carry(limbs: Int64s) -> Int64s:
    """The same integers (in place) with every limb but the last in 0 … 2³²−1."""
    for k in range(len(limbs) - 1):
        limbs[k + 1] += limbs[k] >> BITS
        limbs[k] &= MASK
    return limbs


def limbs_of(value: int, count: int) -> Int64s:
    """One integer as a column of limbs, normalised."""
    low = [(value >> (BITS * k)) & int(MASK) for k in range(count - 1)]
    return np.array([*low, value >> (BITS * (count - 1))], np.int64)[:, None]


def within(limbs: Int64s, low: int, high: int) -> NDArray[np.bool_]:
    """Which of the integers are in low … high−1."""
    from_low = carry(limbs - limbs_of(low, len(limbs)))[-1]
    from_high = carry(limbs - limbs_of(high, len(limbs)))[-1]
    result: NDArray[np.bool_] = (from_low >= 0) & (from_high < 0)
    return result


def lowest_64_bits(limbs: Int64s, at: int = 0) -> Int64s:
    """The 64 bits from limb `at` on of normalised integers, as int64 (modulo 2⁶⁴)."""
    return limbs[at] | (limbs[at + 1] << BITS)


def product(a: Int64s, b: Int64s, count: int) -> Int64s:
    """The products, in `count` limbs, of normalised integers that are not negative."""
    left, right = a.view(np.uint64), b.view(np.uint64)
    columns = np.zeros((len(a) + len(b) + 1, a.shape[1]), np.uint64)
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            term = x * y
            columns[i + j] += term & np.uint64(MASK)
            columns[i + j + 1] += term >> np.uint64(BITS)
    return carry(columns.view(np.int64))[:count]


def integers(limbs: Int64s) -> list[int]:
    """Normalised integers as Python's own."""
    size = 4 * len(limbs)
    raw = limbs.T.astype(np.uint32).tobytes()
    return [int.from_bytes(raw[at : at + size], "little", signed=True) for at in range(0, len(raw), size)]


def rounded(limbs: Int64s, exponent: int) -> NDArray[np.float64]:
    """The double nearest to each integer times 2^exponent (ties to even, ±∞ beyond the range).

    The limbs are normalised and are used up. An integer times 2^exponent must be a multiple of 2⁻¹⁰⁷⁴, as sums of doubles are:
    then a subnormal result is exact and is not rounded a second time.
    """
    negative = limbs[-1] < 0
    if negative.any():
        np.negative(limbs, out=limbs, where=negative)
        carry(limbs)
    # Two empty limbs below, so that there always are three to look at.
    padded = np.concatenate([np.zeros((2, limbs.shape[1]), np.int64), limbs])
    used = padded[2:] != 0
    top = np.where(used.any(axis=0), len(padded) - 1 - np.argmax(used[::-1], axis=0), 2)
    bottom = np.argmax(used, axis=0) + 2
    column = np.arange(limbs.shape[1])
    first, second, third = (padded[top - k, column] for k in range(3))
    shift = BITS - np.frexp(first.astype(np.float64))[1].astype(np.int64)
    leading = ((first << BITS) | second).view(np.uint64) << shift.view(np.uint64)
    leading |= (third >> (BITS - shift)).view(np.uint64)
    # 64 leading bits; whether anything follows is told by the last of them, far below where a double rounds.
    leading |= (((third << shift) & MASK) != 0) | (bottom < top - 2)
    with np.errstate(over="ignore"):
        magnitude = np.ldexp(leading.astype(np.float64), (exponent + BITS * (top - 3) - shift).astype(np.intc))
    return np.where(negative, -magnitude, magnitude)
