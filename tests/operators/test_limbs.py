"""Big integers in limbs: against Python's own, and rounded as Python rounds a fraction."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.operators.accumulators import limbs, powers

unhurried = settings(deadline=None)
wide = st.integers(-(2**200), 2**200) | st.sampled_from([0, 1, -1, 2**53 + 1, 2**64 - 1, -(2**64), 2**127, 2**128 - 1])


def as_limbs(value: int, room: int = 1) -> np.ndarray:
    """As a sum might leave them: not normalised, with room for a carry."""
    sign, rest, found = (-1 if value < 0 else 1), abs(value), []
    while rest:
        found.append(sign * (rest & limbs.MASK))
        rest >>= limbs.BITS
    return np.array([*found, *([0] * room)], np.int64)


def number(value: int) -> tuple[int, np.ndarray]:
    return powers.signed(as_limbs(value))


def integer(value: tuple[int, np.ndarray]) -> int:
    return value[0] * sum(int(limb) << (limbs.BITS * k) for k, limb in enumerate(value[1]))


def nearest(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@unhurried
@given(wide, st.integers(-1400, 1100))
@example(3, -1075)
@example(1, -1075)
@example(5, -1076)
@example(2**64 - 1, -1138)
@example(2**63, -1138)
@example(2**63 + 1, -1138)
@example(2**54 - 1, 970)
@example(2**53 - 1, 971)
def test_rounded_once(value: int, exponent: int) -> None:
    long = as_limbs(value)
    limbs.carry(long, len(long))
    assert limbs.rounded(long, len(long), exponent) == nearest(Fraction(value) * Fraction(2) ** exponent)


@unhurried
@given(wide, st.integers(1, 2**32 - 1), st.integers(1, 3), st.integers(-1400, 900))
@example(1, 3, 1, -1074)
@example(3, 2, 1, -1074)
@example(2**200, 2**31, 3, -1300)
def test_quotients(value: int, n: int, divisions: int, exponent: int) -> None:
    exact = Fraction(value, n**divisions) * Fraction(2) ** exponent
    assert powers.quotient(number(value), n, divisions, exponent) == nearest(exact)


@unhurried
@given(wide, wide, st.integers(-6, 6), st.integers(-6, 6))
def test_products_and_combinations(a: int, b: int, p: int, q: int) -> None:
    assert integer(number(a)) == a
    assert integer(powers.times(number(a), number(b))) == a * b
    assert integer(powers.combined(p, number(a), q, number(b))) == p * a + q * b


@unhurried
@given(st.lists(st.integers(-(2**62), 2**62), min_size=4, max_size=4), st.sampled_from([1, 2, 4]))
@example([0, 0, 0, 2**31], 4)
@example([0, 0, 0, -(2**31)], 4)
@example([-1, 0, 0, -(2**31)], 4)
@example([2**62, 2**62, 0, 0], 2)
def test_halves(slots: list[int], count: int) -> None:
    value = sum(slot << (limbs.BITS * k) for k, slot in enumerate(slots[:count]))
    low, high, whole = limbs.halves(np.array(slots, np.int64), 0, count)
    assert whole == (-(2**127) <= value < 2**127)
    if whole:
        assert (high << 64) + low % 2**64 == value
        size_low, size_high = limbs.magnitude(low, high)
        assert (int(size_high) << 64) + int(size_low) == abs(value)
