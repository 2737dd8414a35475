"""Statistics from exact power sums: against fractions, under deletion, at the edges of the doubles."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest
from accumulating import results, state_of
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.operators.accumulators import accumulator

MOMENTS = ["VariancePop", "VarianceSamp", "StddevPop", "StddevSamp", "RegrReplacement", "Skewness", "Kurtosis"]
COMOMENTS = ["CovPopulation", "CovSample", "RegrSXY", "Corr", "RegrR2", "RegrSlope", "RegrIntercept"]

# Wide enough for many buckets, and not so wide that Spark's formulas overflow.
numbers = st.floats(-1e60, 1e60) | st.integers(-5, 5).map(float) | st.sampled_from([1e16, 0.1, 1e-30, -0.0])


def result(function: str, rows: list[tuple], gone: list[tuple] | None = None, **options: str) -> float | None:
    """The value for one group with these rows after others came and went."""
    columns = len((rows or gone or [(0.0,)])[0])
    acc = accumulator(function, [pa.float64()] * columns, options)
    assert acc is not None
    everything = [*rows, *(gone or []), *(gone or [])]
    weights = [1] * len(rows) + [1] * len(gone or []) + [-1] * len(gone or [])
    arrays = [pa.array([row[i] for row in everything], pa.float64()) for i in range(columns)]
    found = results(acc, 2, state_of(acc, [0] * len(everything), arrays, weights))
    assert found.type == pa.float64()
    assert found[1].as_py() is None
    return found[0].as_py()


def central(a: list[Fraction], b: list[Fraction]) -> Fraction:
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    return sum(((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)), Fraction(0))


def nearly(actual: float | None, exact: Fraction) -> bool:
    return actual is not None and abs(Fraction(actual) - exact) <= abs(exact) * Fraction(1, 10**12) + Fraction(1, 10**300)


@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12), st.lists(st.floats(), max_size=5))
def test_moments(values: list[float], gone: list[float]) -> None:
    rows, others = [(value,) for value in values], [(value,) for value in gone]
    x = [Fraction(value) for value in values]
    n = len(x)
    mean = sum(x) / n
    m2, m3, m4 = (sum(((value - mean) ** k for value in x), Fraction(0)) for k in (2, 3, 4))
    assert nearly(result("RegrReplacement", rows, others), m2)
    assert nearly(result("VariancePop", rows, others), m2 / n)
    sample = result("VarianceSamp", rows, others)
    assert sample is None if n == 1 else nearly(sample, m2 / (n - 1))
    deviation = result("StddevPop", rows, others)
    assert nearly(deviation**2, m2 / n)
    if m2 == 0:
        assert result("Skewness", rows, others) is None
        assert result("Kurtosis", rows, others) is None
    elif m2 > Fraction(1, 10**60):
        skewness, kurtosis = result("Skewness", rows, others), result("Kurtosis", rows, others)
        assert math.isclose(skewness, skewness_of(n, m2, m3), rel_tol=1e-12, abs_tol=1e-100) or float(m2) > 1e100
        assert math.isclose(kurtosis, float(n * m4 / m2**2) - 3, rel_tol=1e-12, abs_tol=1e-12) or float(m2) > 1e150


def skewness_of(n: int, m2: Fraction, m3: Fraction) -> float:
    squared = n * m3**2 / m2**3
    return math.copysign(math.sqrt(squared), m3)


@settings(deadline=None)
@given(
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), st.lists(st.tuples(st.floats(), st.floats()), max_size=4)
)
def test_comoments(rows: list[tuple], gone: list[tuple]) -> None:
    x, y = ([Fraction(row[i]) for row in rows] for i in (0, 1))
    n, c, xx, yy = len(rows), central(x, y), central(x, x), central(y, y)
    assert nearly(result("RegrSXY", rows, gone), c)
    assert nearly(result("CovPopulation", rows, gone), c / n)
    sample = result("CovSample", rows, gone)
    assert sample is None if n == 1 else nearly(sample, c / (n - 1))
    if yy == 0:
        assert result("RegrSlope", rows, gone) is None
        assert result("RegrIntercept", rows, gone) is None
    elif yy > Fraction(1, 10**60):
        assert nearly(result("RegrSlope", rows, gone), c / yy)
    if xx == 0 or yy == 0:
        assert result("Corr", rows, gone) is None
        assert result("RegrR2", rows, gone) == (None if yy == 0 else 1.0)
    elif min(xx, yy) > Fraction(1, 10**60):
        assert nearly(result("Corr", rows, gone) ** 2, c**2 / (xx * yy))
        assert nearly(result("RegrR2", rows, gone), c**2 / (xx * yy))


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite(strange: float) -> None:
    for function in MOMENTS:
        assert math.isnan(result(function, [(strange,), (1.0,), (2.0,)]))
        assert result(function, [(1.0,), (2.0,), (4.0,)], [(strange,)]) == result(function, [(1.0,), (2.0,), (4.0,)])
    for function in COMOMENTS:
        assert math.isnan(result(function, [(strange, 1.0), (1.0, 2.0), (2.0, 4.0)]))
        assert math.isnan(result(function, [(1.0, strange), (2.0, 1.0), (3.0, 4.0)]))
        plain = [(1.0, 2.0), (2.0, 3.0), (3.0, 5.0)]
        assert result(function, plain, [(strange, 1.0), (7.0, strange)]) == result(function, plain)


def test_too_few_rows_are_null_or_nan() -> None:
    for function in ("VarianceSamp", "StddevSamp", "Skewness", "Kurtosis"):
        assert result(function, [(1.0,)]) is None
        assert math.isnan(result(function, [(1.0,)], nullOnDivideByZero="false"))
    for function in ("Corr", "CovSample"):
        assert result(function, [(1.0, 2.0)]) is None
        assert math.isnan(result(function, [(1.0, 2.0)], nullOnDivideByZero="false"))
    for function in MOMENTS:
        assert result(function, [], [(1.0,)]) is None
        assert result(function, [], [(1.0,)], nullOnDivideByZero="false") is None
    for function in COMOMENTS:
        assert result(function, [], [(1.0, 2.0)]) is None


def test_null_in_either_column() -> None:
    pairs = [(1.0, 2.0), (2.0, 3.0), (4.0, 3.0)]
    for function in COMOMENTS:
        assert result(function, [*pairs, (None, 1.0), (1.0, None)]) == result(function, pairs)


def test_the_trap() -> None:
    """Where a variance from rounded sums, or one that was updated in place, is lost."""
    assert result("VariancePop", [(1e16,), (1e16 + 2,)]) == 1.0
    assert result("VarianceSamp", [(1.0,), (2.0,), (3.0,)], [(1e200,), (math.inf,)]) == 1.0
    assert result("VariancePop", [(0.1,)] * 3) == 0.0


def test_beyond_the_doubles() -> None:
    assert result("VariancePop", [(1e200,), (2e200,)]) == math.inf
    assert math.isnan(result("Skewness", [(1e200,), (2e200,)]))
    assert math.isnan(result("Kurtosis", [(1e80,), (2e80,)]))
    assert result("VariancePop", [(1e-200,), (2e-200,)]) == 0.0
    assert result("Skewness", [(1e-200,), (2e-200,)]) is None
    for function, rows in [("Skewness", [(1e-120,), (2e-120,), (5e-120,)]), ("Corr", [(1e-120, 1e-120), (2e-120, 3e-120)])]:
        with pytest.raises(EvaluationFailed, match="DIVIDE_BY_ZERO"):
            result(function, rows)


def test_only_doubles() -> None:
    assert accumulator("VariancePop", [pa.int64()]) is None
    assert accumulator("Corr", [pa.float64()]) is None
