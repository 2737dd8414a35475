"""Variance, standard deviation, skewness and kurtosis from exact power sums.

    m₂ = Σ(x−μ)² = (n·S₂ − S₁²) / n
    m₃ = Σ(x−μ)³ = (n²·S₃ − 3n·S₁S₂ + 2S₁³) / n²
    m₄ = Σ(x−μ)⁴ = (n³·S₄ − 4n²·S₁S₃ + 6n·S₁²S₂ − 3S₁⁴) / n³          Sₖ = Σxᵏ, exact

The central moments are rounded once; what follows is Spark's own formula on doubles, and overflows and underflows as that does.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import present
from headwater.operators.accumulators.doubles import is_finite, split
from headwater.operators.accumulators.overflow import division_by_zero
from headwater.operators.accumulators.powers import (
    VALUE_LIMBS,
    WINDOWS,
    combined,
    multiply,
    power_limbs,
    power_sum,
    quotient,
    spans,
    times,
    whole,
)
from headwater.operators.accumulators.words import doubles_of, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headwater.operators.accumulators.cells import Cells, States

    Int64s = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

# Slots: the number of values, how many of them are NaN or infinite, then the limbs of each power sum.
_COUNT, _STRANGE, _FIRST = 0, 1, 2
_BITS, _OFFSET = WINDOWS.bits, WINDOWS.offset
_UNIT = WINDOWS.exponent(0)


@dataclass(frozen=True, slots=True, eq=False)
class Central:
    """The count and the central moments Σ(x−μ)ᵏ of each group, k = 2, 3, …; NaN where a value is NaN or infinite."""

    n: Floats
    moments: Floats


@dataclass(frozen=True, slots=True)
class Moments:
    """A function of the central moments of one column of doubles."""

    function: str
    undefined_is_nan: bool = False
    buckets: ClassVar[bool] = True
    type: ClassVar[pa.DataType] = pa.float64()

    @property
    def order(self) -> int:
        """The highest power that the function needs."""
        return FORMULAS[self.function][0]

    @property
    def monoid(self) -> str:
        return f"exact power sums up to x^{self.order} (+ of limbs in buckets of exponents)"

    @property
    def width(self) -> int:
        return _FIRST + sum(power_limbs(power) for power in range(1, self.order + 1))

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        words, kept = doubles_of(inputs[0]).view(np.int64), present(inputs, weights)
        places = cells.place(ids, WINDOWS.buckets(words, kept))
        _add(words, kept, places, cells.sums, first, self.order)

    def finish(self, states: States, first: int) -> pa.Array:
        central = Central(*_central(states.values, states.size, states.buckets, states.following, first, self.order))
        with np.errstate(all="ignore"):
            values, undefined = FORMULAS[self.function][1](central)
        null = central.n == 0
        if self.undefined_is_nan:
            values[undefined] = np.nan
        else:
            null |= undefined
        return written(values, self.type, null)


@compiled
def _add(words: Int64s, weights: Int64s, places: Int64s, sums: Int64s, first: int, order: int) -> None:
    value = np.empty(VALUE_LIMBS, np.int64)
    powers = np.empty((order + 1, power_limbs(order)), np.int64)
    for i in range(len(words)):
        if weights[i] == 0:
            continue
        cell = sums[places[i]]
        cell[first + _COUNT] += weights[i]
        if not is_finite(words[i]):
            cell[first + _STRANGE] += weights[i]
            continue
        value[0], value[1], value[2], _ = split(words[i], _BITS, _OFFSET)
        at = first + _FIRST
        for power in range(1, order + 1):
            limbs = powers[power, : power_limbs(power)]
            if power == 1:
                limbs[:] = value
            else:
                multiply(powers[power - 1, : power_limbs(power - 1)], value, limbs)
            signed = -weights[i] if power % 2 and words[i] < 0 else weights[i]
            for k in range(len(limbs)):
                cell[at + k] += limbs[k] * signed
            at += len(limbs)


@compiled
def _central(values: Int64s, size: int, buckets: Int64s, following: Int64s, first: int, order: int) -> tuple[Floats, Floats]:
    results = values.shape[0] * size
    counts, moments = np.zeros(results, np.float64), np.zeros((order - 1, results), np.float64)
    width = _FIRST
    for power in range(1, order + 1):
        width += power_limbs(power)
    for i in range(results):
        version, group = values[i // size], i % size
        n = strange = 0
        cell = group
        while cell >= 0:
            n += version[cell, first + _COUNT]
            strange += version[cell, first + _STRANGE]
            cell = following[cell]
        counts[i] = n
        if strange != 0:
            moments[:, i] = np.nan
        elif n > 0:
            _moments(version, (group, first, width, 1), n, buckets, following, moments[:, i])
    return counts, moments


@compiled
def _moments(
    version: Int64s, chain: tuple[int, int, int, int], n: int, buckets: Int64s, following: Int64s, moments: Floats
) -> None:
    group, first, _, _ = chain
    span = spans(version, chain, buckets, following)
    unit = _UNIT + _BITS * span[0]
    at = first + _FIRST
    s1 = power_sum(version, group, at, (1, 0, 1), span, buckets, following)
    at += power_limbs(1)
    s2 = power_sum(version, group, at, (2, 0, 1), span, buckets, following)
    at += power_limbs(2)
    many = whole(n)
    square = times(s1, s1)
    moments[0] = quotient(combined(1, times(many, s2), -1, square), n, 1, 2 * unit)
    if len(moments) == 1:
        return
    s3 = power_sum(version, group, at, (3, 0, 1), span, buckets, following)
    at += power_limbs(3)
    inner = combined(1, times(many, s3), -3, times(s1, s2))
    moments[1] = quotient(combined(1, times(many, inner), 2, times(square, s1)), n, 2, 3 * unit)
    if len(moments) == 2:
        return
    s4 = power_sum(version, group, at, (4, 0, 1), span, buckets, following)
    inner = combined(1, times(many, s4), -4, times(s1, s3))
    inner = combined(1, times(many, inner), 6, times(square, s2))
    moments[2] = quotient(combined(1, times(many, inner), -3, times(square, square)), n, 3, 4 * unit)


def _population(c: Central) -> tuple[Floats, Bools]:
    return c.moments[0] / c.n, c.n == 0


def _sample(c: Central) -> tuple[Floats, Bools]:
    return c.moments[0] / (c.n - 1), c.n == 1


def _sum_of_squares(c: Central) -> tuple[Floats, Bools]:
    return c.moments[0], c.n == 0


def _skewness(c: Central) -> tuple[Floats, Bools]:
    m2, m3 = c.moments
    # Where a cube of a deviation overflows, Spark's third moment is NaN even if the exact one is small.
    m3 = np.where(np.isinf(m2 * np.sqrt(m2)), np.nan, m3)
    return _divided(np.sqrt(c.n) * m3, np.sqrt(m2 * m2 * m2), m2)


def _kurtosis(c: Central) -> tuple[Floats, Bools]:
    m2, _, m4 = c.moments
    values, undefined = _divided(c.n * m4, m2 * m2, m2)
    return values - 3.0, undefined


def _divided(numerator: Floats, denominator: Floats, m2: Floats) -> tuple[Floats, Bools]:
    """A ratio that is undefined without variance; a variance too small for its power to be a double is Spark's error."""
    undefined = m2 == 0
    if ((denominator == 0) & ~undefined).any():
        raise division_by_zero()
    return numerator / denominator, undefined


def _root(formula: Formula) -> Formula:
    def root(c: Central) -> tuple[Floats, Bools]:
        values, undefined = formula(c)
        return np.sqrt(values), undefined

    return root


if TYPE_CHECKING:
    # From the central moments to the values, and which groups have none for want of rows or variance.
    Formula = Callable[[Central], tuple[Floats, Bools]]

# For each Catalyst class the highest moment it needs, and its formula. RegrReplacement is what regr_sxx and regr_syy become.
FORMULAS: dict[str, tuple[int, Formula]] = {
    "VariancePop": (2, _population),
    "VarianceSamp": (2, _sample),
    "StddevPop": (2, _root(_population)),
    "StddevSamp": (2, _root(_sample)),
    "RegrReplacement": (2, _sum_of_squares),
    "Skewness": (3, _skewness),
    "Kurtosis": (4, _kurtosis),
}
