"""Power sums of groups as big integers, for the statistics that combine them without rounding.

Σx, Σx², Σxy, … are kept in limbs like any sum of doubles; only here, once per touched group, are their buckets put together,
so that n·Σx² − (Σx)² is computed without the cancellation that ruins it in floating point.

A number is a sign, 1 or −1, and the limbs of its magnitude.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import is_used
from headwater.operators.accumulators.doubles import Windows
from headwater.operators.accumulators.limbs import BITS, MASK, absolute, carry, leading, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Number = tuple[int, Int64s]
    Spans = tuple[int, int, int, int]

# Products multiply the width of a window, so it is one limb here; magnitudes from 2⁻⁸ to 2²⁴ share one.
WINDOWS = Windows(bits=32, offset=10)
# The limbs of a value, and of the product of two.
VALUE_LIMBS = 3
_VALUE_BITS = 53 + 31
# So many limbs below the point make the quotient of two numbers long enough to be rounded.
_FRACTION = 3


@compiled
def power_limbs(power: int) -> int:
    """How many limbs the product of so many values takes."""
    return -(-_VALUE_BITS * power // BITS)


@compiled
def multiply(a: Int64s, b: Int64s, product: Int64s) -> None:
    """The product of two magnitudes, as far as its limbs go."""
    product[:] = 0
    for i in range(len(a)):
        for j in range(len(b)):
            term = np.uint64(a[i]) * np.uint64(b[j])
            if i + j < len(product):
                product[i + j] += np.int64(term & np.uint64(MASK))
            if i + j + 1 < len(product):
                product[i + j + 1] += np.int64(term >> np.uint64(BITS))
    carry(product, len(product))


@compiled
def spans(version: Int64s, chain: tuple[int, int, int, int], buckets: Int64s, following: Int64s) -> Spans:
    """The lowest and highest windows of x, and of y, in the cells of a group; `chain` is (group, first, width, side)."""
    group, first, width, side = chain
    low_x = low_y = 1 << 30
    high_x = high_y = 0
    cell = group
    while cell >= 0:
        if is_used(version[cell], first, width):
            x, y = buckets[cell] // side, buckets[cell] % side
            high_x, high_y = max(high_x, x), max(high_y, y)
            low_x, low_y = min(low_x, x) if x else low_x, min(low_y, y) if y else low_y
        cell = following[cell]
    return min(low_x, max(high_x, 1)), high_x, min(low_y, max(high_y, 1)), high_y


@compiled
def power_sum(
    version: Int64s, group: int, at: int, term: tuple[int, int, int], span: Spans, buckets: Int64s, following: Int64s
) -> Number:
    """Σ xⁱyʲ of a group from the slots from `at` on, in units of the lowest windows; `term` is (i, j, side)."""
    i, j, side = term
    low_x, high_x, low_y, high_y = span
    limbs = power_limbs(i + j)
    long = np.zeros(limbs + i * max(high_x - low_x, 0) + j * max(high_y - low_y, 0) + 2, np.int64)
    cell = group
    while cell >= 0:
        if is_used(version[cell], at, limbs):
            shift = i * max(buckets[cell] // side - low_x, 0) + j * max(buckets[cell] % side - low_y, 0)
            for k in range(limbs):
                long[shift + k] += version[cell, at + k]
        cell = following[cell]
    return signed(long)


@compiled
def signed(long: Int64s) -> Number:
    """An integer in limbs of any size and sign, with a last limb for the carry, as a number; the limbs are used up."""
    carry(long, len(long))
    sign = -1 if absolute(long, len(long)) else 1
    used = len(long)
    while used > 1 and long[used - 1] == 0:
        used -= 1
    return sign, long[:used]


@compiled
def whole(value: int) -> Number:
    """A number of less than 2⁶³, and not less than 0."""
    long = np.empty(2, np.int64)
    long[0], long[1] = value & MASK, value >> BITS
    return 1, long


@compiled
def times(a: Number, b: Number) -> Number:
    product = np.empty(len(a[1]) + len(b[1]) + 1, np.int64)
    multiply(a[1], b[1], product)
    return a[0] * b[0], product


@compiled
def combined(p: int, a: Number, q: int, b: Number) -> Number:
    """p·a + q·b for small p and q."""
    long = np.zeros(max(len(a[1]), len(b[1])) + 2, np.int64)
    for k in range(len(a[1])):
        long[k] += p * a[0] * a[1][k]
    for k in range(len(b[1])):
        long[k] += q * b[0] * b[1][k]
    return signed(long)


@compiled
def quotient(numerator: Number, n: int, divisions: int, exponent: int) -> float:
    """The double nearest to numerator / n^divisions · 2^exponent, ±∞ beyond the range; 0 < n < 2³²."""
    pad = divisions + _FRACTION
    long = np.zeros(len(numerator[1]) + pad, np.int64)
    long[pad:] = numerator[1]
    rest = np.uint64(0)
    for _ in range(divisions):
        remainder = np.uint64(0)
        for k in range(len(long) - 1, -1, -1):
            dividend = (remainder << np.uint64(BITS)) | np.uint64(long[k])
            long[k] = np.int64(dividend // np.uint64(n))
            remainder = dividend % np.uint64(n)
        rest |= remainder
    used = False
    for k in range(len(long)):
        used |= long[k] != 0
    if not used:
        return 0.0
    bits, power = leading(long, len(long))
    if rest != 0:
        bits |= np.uint64(1)
    return numerator[0] * nearest(bits, exponent + power - BITS * pad)
