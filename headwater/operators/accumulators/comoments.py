"""Covariance, correlation and linear regression of two columns from exact sums of products.

    C = Σ(x−x̄)(y−ȳ) = (n·Σxy − Σx·Σy) / n          X = Σ(x−x̄)² = (n·Σx² − (Σx)²) / n          Y likewise

A row's bucket is the pair of its values' windows. C, X and Y are rounded once; the rest is Spark's formula on doubles.
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

# Slots: the number of rows, in how many x or y is NaN or infinite, then the limbs of the sums of the terms below.
_COUNT, _STRANGE_X, _STRANGE_Y, _FIRST = 0, 1, 2, 3
# Each term by the powers of x and y in it; a covariance needs only the first three.
_TERMS = ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2))
# More than a column has windows.
_SIDE = 128


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """The count, means and central (co)moments of each group; NaN where a value that matters is NaN or infinite."""

    n: Floats
    mean_x: Floats
    mean_y: Floats
    c: Floats
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class CoMoments:
    """A function of the co-moments of two columns of doubles, x and y in the order of the inputs."""

    function: str
    undefined_is_nan: bool = False
    type: ClassVar[pa.DataType] = pa.float64()

    @property
    def monoid(self) -> str:
        squares = ", x², y²" if len(self._terms) == len(_TERMS) else ""
        return f"exact sums of x, y, xy{squares} (+ of limbs in buckets of exponents)"

    @property
    def _terms(self) -> tuple[tuple[int, int], ...]:
        return _TERMS if FORMULAS[self.function][0] else _TERMS[:3]

    @property
    def width(self) -> int:
        return _FIRST + sum(power_limbs(i + j) for i, j in self._terms)

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        rows, arrays, kept = present(inputs, weights)
        x, y = (array.to_numpy() for array in arrays)
        buckets = np.empty(len(rows), np.int64)
        values = np.empty((len(rows), self.width), np.int64)
        for start in range(0, len(rows), PIECE):
            piece = slice(start, start + PIECE)
            buckets[piece] = self._contribute((x[piece], y[piece]), kept[piece], values[piece])
        return Contribution(rows, buckets, values)

    def _contribute(self, columns: tuple[Floats, Floats], weights: Int64s, into: Int64s) -> Int64s:
        buckets, limbs = zip(*(WINDOWS.split(column) for column in columns), strict=True)
        negative = [np.signbit(column) for column in columns]
        into[:, _COUNT] = weights
        into[:, _STRANGE_X] = np.where(np.isfinite(columns[0]), 0, weights)
        into[:, _STRANGE_Y] = np.where(np.isfinite(columns[1]), 0, weights)
        at = _FIRST
        for term in self._terms:
            sides = [side for side, power in enumerate(term) for _ in range(power)]
            value, minus = limbs[sides[0]], negative[sides[0]]
            if len(sides) > 1:
                value = product(value, limbs[sides[1]], power_limbs(2))
                minus = minus ^ negative[sides[1]]
            into[:, at : at + len(value)] = (value * np.where(minus, -weights, weights)).T
            at += len(value)
        pair: Int64s = buckets[0] * _SIDE + buckets[1]
        return pair

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:
        joint = self._joint(size, *occupied(groups, buckets, sums))
        with np.errstate(all="ignore"):
            values, null, undefined = FORMULAS[self.function][1](joint)
        if self.undefined_is_nan:
            values = np.where(undefined, np.nan, values)
        else:
            null = null | undefined
        return pa.array(values, mask=null | (joint.n == 0), from_pandas=False)

    def _joint(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> Joint:
        counts = in_groups(size, groups, sums[:, _COUNT])
        sides = [buckets // _SIDE, buckets % _SIDE]
        base = [lowest(side) for side in sides]
        shifts = [np.maximum(side - low, 0) for side, low in zip(sides, base, strict=True)]
        unit = [WINDOWS.exponent(low) for low in base]
        total: dict[tuple[int, int], list[int]] = {}
        at = _FIRST
        for i, j in self._terms:
            slots = sums[:, at : at + power_limbs(i + j)]
            total[i, j] = power_sums(size, groups, i * shifts[0] + j * shifts[1], slots)
            at += slots.shape[1]
        n = counts.tolist()
        live = np.flatnonzero(counts).tolist()
        strange_x = in_groups(size, groups, sums[:, _STRANGE_X]) != 0
        strange_y = in_groups(size, groups, sums[:, _STRANGE_Y]) != 0

        def mean(a: tuple[int, int], strange: Bools, exponent: int) -> Floats:
            values = np.zeros(size)
            values[live] = [quotient(total[a][g], n[g], exponent) for g in live]
            return np.where(strange, np.nan, values)

        def central(a: tuple[int, int], b: tuple[int, int], strange: Bools, exponent: int) -> Floats:
            values = np.zeros(size)
            ab = total.get((a[0] + b[0], a[1] + b[1]))
            if ab is not None:
                values[live] = [quotient(n[g] * ab[g] - total[a][g] * total[b][g], n[g], exponent) for g in live]
            return np.where(strange, np.nan, values)

        return Joint(
            n=counts.astype(np.float64),
            mean_x=mean((1, 0), strange_x, unit[0]),
            mean_y=mean((0, 1), strange_y, unit[1]),
            c=central((1, 0), (0, 1), strange_x | strange_y, unit[0] + unit[1]),
            x=central((1, 0), (1, 0), strange_x, 2 * unit[0]),
            y=central((0, 1), (0, 1), strange_y, 2 * unit[1]),
        )


def _population(j: Joint) -> tuple[Floats, Bools, Bools]:
    return j.c / j.n, j.n == 0, _never(j)


def _sample(j: Joint) -> tuple[Floats, Bools, Bools]:
    return j.c / (j.n - 1), j.n == 0, j.n == 1


def _products(j: Joint) -> tuple[Floats, Bools, Bools]:
    return j.c, j.n == 0, _never(j)


def _correlation(j: Joint) -> tuple[Floats, Bools, Bools]:
    flat = (j.x == 0) | (j.y == 0)
    return _pearson(j, flat), flat & (j.n > 1), j.n == 1


def _determination(j: Joint) -> tuple[Floats, Bools, Bools]:
    """The inputs are (dependent, independent), as for all of regression: x is what is explained, y what explains it."""
    flat = (j.x == 0) | (j.y == 0)
    pearson = _pearson(j, flat)
    return np.where(j.x == 0, 1.0, pearson * pearson), j.y == 0, _never(j)


def _slope(j: Joint) -> tuple[Floats, Bools, Bools]:
    return j.c / j.y, j.y == 0, _never(j)


def _intercept(j: Joint) -> tuple[Floats, Bools, Bools]:
    return j.mean_x - j.c / j.y * j.mean_y, j.y == 0, _never(j)


def _pearson(j: Joint, flat: Bools) -> Floats:
    """C / √(X·Y); variances too small for their product to be a double are Spark's error."""
    root = np.sqrt(j.x * j.y)
    if ((root == 0) & ~flat).any():
        raise division_by_zero()
    result: Floats = j.c / root
    return result


def _never(j: Joint) -> Bools:
    return np.zeros(len(j.n), np.bool_)


if TYPE_CHECKING:
    # From the co-moments to the values, which groups are NULL, and which have too few rows for a value.
    Formula = Callable[[Joint], tuple[Floats, Bools, Bools]]

# For each Catalyst class whether it needs the squares, and its formula.
FORMULAS: dict[str, tuple[bool, Formula]] = {
    "CovPopulation": (False, _population),
    "CovSample": (False, _sample),
    "RegrSXY": (False, _products),
    "Corr": (True, _correlation),
    "RegrR2": (True, _determination),
    "RegrSlope": (True, _slope),
    "RegrIntercept": (True, _intercept),
}
