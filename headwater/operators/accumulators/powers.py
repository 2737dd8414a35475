"""Power sums of groups as Python integers, for the statistics that combine them without rounding.

Σx, Σx², Σxy, … are kept in limbs like any sum of doubles; only here, once per touched group, do they become big integers,
so that n·Σx² − (Σx)² is computed without the cancellation that ruins it in floating point.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headwater.operators.accumulators.doubles import Windows
from headwater.operators.accumulators.limbs import BITS, carry, integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

# Products multiply the width of a window, so it is one limb here; magnitudes from 2⁻⁸ to 2²⁴ share one.
WINDOWS = Windows(bits=32, offset=10)
_VALUE_BITS = 53 + 31
# Rows are worked on in pieces that stay in the cache.
PIECE = 1 << 13


def power_limbs(power: int) -> int:
    """How many limbs the product of so many values takes."""
    return -(-_VALUE_BITS * power // BITS)


def power_sums(size: int, groups: Int64s, shifts: Int64s, slots: Int64s) -> list[int]:
    """For each group Σ slots · 2³²ˢʰⁱᶠᵗ over its rows, where the slots of a row are the limbs of an integer."""
    limbs = np.zeros((slots.shape[1] + 1, len(slots)), np.int64)
    limbs[:-1] = slots.T
    sums = [0] * size
    for group, shift, value in zip(groups.tolist(), shifts.tolist(), integers(carry(limbs)), strict=True):
        sums[group] += value << (BITS * shift)
    return sums


def lowest(buckets: Int64s) -> int:
    """The lowest bucket that holds numbers: powers of two are counted from there."""
    used = buckets[buckets > 0]
    return int(used.min()) if len(used) else 1


def quotient(numerator: int, denominator: int, exponent: int) -> float:
    """The double nearest to numerator / denominator · 2^exponent, ±∞ beyond the range."""
    if exponent >= 0:
        numerator <<= exponent
    else:
        denominator <<= -exponent
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
