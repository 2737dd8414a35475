"""Covariance, correlation and linear regression of two columns from exact sums of products.

    C = Σ(x−x̄)(y−ȳ) = (n·Σxy − Σx·Σy) / n          X = Σ(x−x̄)² = (n·Σx² − (Σx)²) / n          Y likewise

A row's bucket is the pair of its values' windows. C, X and Y are rounded once; the rest is Spark's formula on doubles.
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

# Slots: the number of rows, in how many x or y is NaN or infinite, then the limbs of the sums of the terms below.
_COUNT, _STRANGE_X, _STRANGE_Y, _FIRST = 0, 1, 2, 3
# Each term by the powers of x and y in it; a covariance needs only the first three.
_TERMS = ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2))
# More than a column has windows.
_SIDE = 128
_BITS, _OFFSET = WINDOWS.bits, WINDOWS.offset
_UNIT = WINDOWS.exponent(0)


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
    buckets: ClassVar[bool] = True
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

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        x, y = (doubles_of(array).view(np.int64) for array in inputs)
        kept = present(inputs, weights)
        places = cells.place(ids, WINDOWS.buckets(x, kept) * _SIDE + WINDOWS.buckets(y, kept))
        _add(x, y, kept, places, cells.sums, first, len(self._terms))

    def finish(self, states: States, first: int) -> pa.Array:
        joint = Joint(*_joint(states.values, states.size, states.buckets, states.following, first, len(self._terms)))
        with np.errstate(all="ignore"):
            values, null, undefined = FORMULAS[self.function][1](joint)
        if self.undefined_is_nan:
            values = np.where(undefined, np.nan, values)
        else:
            null = null | undefined
        return written(values, self.type, null | (joint.n == 0))


@compiled
def _add(x: Int64s, y: Int64s, weights: Int64s, places: Int64s, sums: Int64s, first: int, terms: int) -> None:
    values = np.empty((2, VALUE_LIMBS), np.int64)
    product = np.empty(power_limbs(2), np.int64)
    for i in range(len(x)):
        if weights[i] == 0:
            continue
        cell = sums[places[i]]
        finite = is_finite(x[i]), is_finite(y[i])
        cell[first + _COUNT] += weights[i]
        cell[first + _STRANGE_X] += 0 if finite[0] else weights[i]
        cell[first + _STRANGE_Y] += 0 if finite[1] else weights[i]
        values[:] = 0
        if finite[0]:
            values[0, 0], values[0, 1], values[0, 2], _ = split(x[i], _BITS, _OFFSET)
        if finite[1]:
            values[1, 0], values[1, 1], values[1, 2], _ = split(y[i], _BITS, _OFFSET)
        minus_x, minus_y = (-1 if x[i] < 0 else 1), (-1 if y[i] < 0 else 1)
        at = first + _FIRST
        at = _add_limbs(cell, at, values[0], minus_x * weights[i])
        at = _add_limbs(cell, at, values[1], minus_y * weights[i])
        multiply(values[0], values[1], product)
        at = _add_limbs(cell, at, product, minus_x * minus_y * weights[i])
        if terms > 3:
            multiply(values[0], values[0], product)
            at = _add_limbs(cell, at, product, weights[i])
            multiply(values[1], values[1], product)
            at = _add_limbs(cell, at, product, weights[i])


@compiled
def _add_limbs(cell: Int64s, at: int, limbs: Int64s, weight: int) -> int:
    for k in range(len(limbs)):
        cell[at + k] += limbs[k] * weight
    return at + len(limbs)


@compiled
def _joint(
    values: Int64s, size: int, buckets: Int64s, following: Int64s, first: int, terms: int
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """What `Joint` holds."""
    results = values.shape[0] * size
    found = np.zeros((6, results), np.float64)
    width = _FIRST + 2 * power_limbs(1) + (terms - 2) * power_limbs(2)
    for i in range(results):
        version, group = values[i // size], i % size
        n = strange_x = strange_y = 0
        cell = group
        while cell >= 0:
            n += version[cell, first + _COUNT]
            strange_x += version[cell, first + _STRANGE_X]
            strange_y += version[cell, first + _STRANGE_Y]
            cell = following[cell]
        found[0, i] = n
        if n > 0:
            _central(version, (group, first, width, _SIDE), n, buckets, following, found[1:, i])
        if strange_x != 0:
            found[1, i] = found[3, i] = found[4, i] = np.nan
        if strange_y != 0:
            found[2, i] = found[3, i] = found[5, i] = np.nan
    return found[0], found[1], found[2], found[3], found[4], found[5]


@compiled
def _central(
    version: Int64s, chain: tuple[int, int, int, int], n: int, buckets: Int64s, following: Int64s, found: Floats
) -> None:
    """The means of x and y, C, X and Y of a group."""
    group, first, width, side = chain
    span = spans(version, chain, buckets, following)
    unit_x, unit_y = _UNIT + _BITS * span[0], _UNIT + _BITS * span[2]
    many = whole(n)
    at = first + _FIRST
    x = power_sum(version, group, at, (1, 0, side), span, buckets, following)
    at += power_limbs(1)
    y = power_sum(version, group, at, (0, 1, side), span, buckets, following)
    at += power_limbs(1)
    xy = power_sum(version, group, at, (1, 1, side), span, buckets, following)
    at += power_limbs(2)
    found[0] = quotient(x, n, 1, unit_x)
    found[1] = quotient(y, n, 1, unit_y)
    found[2] = quotient(combined(1, times(many, xy), -1, times(x, y)), n, 1, unit_x + unit_y)
    if at < first + width:
        xx = power_sum(version, group, at, (2, 0, side), span, buckets, following)
        at += power_limbs(2)
        yy = power_sum(version, group, at, (0, 2, side), span, buckets, following)
        found[3] = quotient(combined(1, times(many, xx), -1, times(x, x)), n, 1, 2 * unit_x)
        found[4] = quotient(combined(1, times(many, yy), -1, times(y, y)), n, 1, 2 * unit_y)


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
