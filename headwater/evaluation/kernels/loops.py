"""What takes NumPy many passes, in one: the words of decimals, and arithmetic that must not overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# A double nearer to 2⁶³ than this may stand for a product beyond it.
LARGEST = 9.2e18


@compiled
def narrowed(words: Integers) -> tuple[Integers, bool]:
    """The lower words of numbers of 128 bits, and whether the upper ones say nothing but the sign."""
    values = np.empty(len(words) // 2, np.int64)
    rest = 0
    for i in range(len(values)):
        low = words[2 * i]
        values[i] = low
        rest |= (low >> 63) ^ words[2 * i + 1]
    return values, rest == 0


@compiled
def widened(values: Integers) -> Integers:
    """Numbers of 64 bits as numbers of 128."""
    words = np.empty(2 * len(values), np.int64)
    for i in range(len(values)):
        words[2 * i] = values[i]
        words[2 * i + 1] = values[i] >> 63
    return words


@compiled
def total(a: Integers, b: Integers) -> tuple[Integers, bool]:
    """The sums, and whether none overflows: the sign of one that does is that of neither part. An array of one repeats it."""
    found = np.empty(max(len(a), len(b)), np.int64)
    each, other = int(len(a) > 1), int(len(b) > 1)
    signs = 0
    for i in range(len(found)):
        x, y = a[i * each], b[i * other]
        found[i] = x + y
        signs |= (x ^ found[i]) & (y ^ found[i])
    return found, signs >= 0


@compiled
def difference(a: Integers, b: Integers) -> tuple[Integers, bool]:
    """The differences, likewise."""
    found = np.empty(max(len(a), len(b)), np.int64)
    each, other = int(len(a) > 1), int(len(b) > 1)
    signs = 0
    for i in range(len(found)):
        x, y = a[i * each], b[i * other]
        found[i] = x - y
        signs |= (x ^ y) & (x ^ found[i])
    return found, signs >= 0


@compiled
def product(a: Integers, b: Integers) -> tuple[Integers, bool]:
    """The products, likewise, and whether all are far enough from an overflow."""
    found = np.empty(max(len(a), len(b)), np.int64)
    each, other = int(len(a) > 1), int(len(b) > 1)
    fits = True
    for i in range(len(found)):
        x, y = a[i * each], b[i * other]
        found[i] = x * y
        fits &= abs(float(x) * float(y)) <= LARGEST
    return found, fits
