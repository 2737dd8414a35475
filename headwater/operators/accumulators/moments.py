"""Variance, standard deviation, skewness and kurtosis from exact power sums.

    m₂ = Σ(x−μ)² = (n·S₂ − S₁²) / n
    m₃ = Σ(x−μ)³ = (n²·S₃ − 3n·S₁S₂ + 2S₁³) / n²
    m₄ = Σ(x−μ)⁴ = (n³·S₄ − 4n²·S₁S₃ + 6n·S₁²S₂ − 3S₁⁴) / n³          Sₖ = Σxᵏ, exact

The central moments are rounded once; what follows is Spark's own formula on doubles, and overflows and underflows as that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.operators.accumulators.contribution import Contribution, in_groups, occupied, present
from headwater.operators.accumulators.limbs import product
from headwater.operators.accumulators.overflow import division_by_zero
from headwater.operators.accumulators.powers import PIECE, WINDOWS, lowest, power_limbs, power_sums, quotient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

# Slots: the number of values, how many of them are NaN or infinite, then the limbs of each power sum.
_COUNT, _STRANGE, _FIRST = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Central:
    """The count and the central moments Σ(x−μ)ᵏ of each group, k = 2, 3, …; NaN where a value is NaN or infinite."""

    n: Floats
    moments: tuple[Floats, ...]


@dataclass(frozen=True, slots=True)
class Moments:
    """A function of the central moments of one column of doubles."""

    function: str
    undefined_is_nan: bool = False
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

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        rows, (array,), kept = present(inputs, weights)
        doubles = array.to_numpy()
        buckets = np.empty(len(rows), np.int64)
        values = np.empty((len(rows), self.width), np.int64)
        for start in range(0, len(rows), PIECE):
            piece = slice(start, start + PIECE)
            buckets[piece] = self._contribute(doubles[piece], kept[piece], values[piece])
        return Contribution(rows, buckets, values)

    def _contribute(self, doubles: Floats, weights: Int64s, into: Int64s) -> Int64s:
        buckets, limbs = WINDOWS.split(doubles)
        signed = np.where(np.signbit(doubles), -weights, weights)
        into[:, _COUNT] = weights
        into[:, _STRANGE] = np.where(np.isfinite(doubles), 0, weights)
        at = _FIRST
        power = limbs
        for exponent in range(1, self.order + 1):
            if exponent > 1:
                power = product(power, limbs, power_limbs(exponent))
            into[:, at : at + len(power)] = (power * (signed if exponent % 2 else weights)).T
            at += len(power)
        return buckets

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:
        central = self._central(size, *occupied(groups, buckets, sums))
        with np.errstate(all="ignore"):
            values, undefined = FORMULAS[self.function][1](central)
        null = central.n == 0
        if self.undefined_is_nan:
            values[undefined] = np.nan
        else:
            null |= undefined
        return pa.array(values, mask=null, from_pandas=False)

    def _central(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> Central:
        counts = in_groups(size, groups, sums[:, _COUNT])
        strange = in_groups(size, groups, sums[:, _STRANGE]) != 0
        base = lowest(buckets)
        shifts = np.maximum(buckets - base, 0)
        at, powers = _FIRST, []
        for power in range(1, self.order + 1):
            powers.append(power_sums(size, groups, power * shifts, sums[:, at : at + power_limbs(power)]))
            at += power_limbs(power)
        n = counts.tolist()
        unit = WINDOWS.exponent(base)
        rest = np.flatnonzero((counts != 0) & ~strange).tolist()
        moments = []
        for order in range(2, self.order + 1):
            moment = np.where(strange, np.nan, 0.0)
            moment[rest] = [_central_moment(order, n[g], [power[g] for power in powers], unit) for g in rest]
            moments.append(moment)
        return Central(counts.astype(np.float64), tuple(moments))


def _central_moment(order: int, n: int, power: list[int], unit: int) -> float:
    if order == 2:
        s1, s2 = power[:2]
        top = n * s2 - s1 * s1
    elif order == 3:
        s1, s2, s3 = power[:3]
        top = n * (n * s3 - 3 * s1 * s2) + 2 * s1**3
    else:
        s1, s2, s3, s4 = power
        top = n * (n * (n * s4 - 4 * s1 * s3) + 6 * s1 * s1 * s2) - 3 * s1**4
    return quotient(top, n ** (order - 1), order * unit)


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
