"""Accumulators of exact numbers and of doubles: insert many, delete some, and have exactly what the rest gives from scratch."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import xor

import numpy as np
import pyarrow as pa
import pytest
from accumulating import State, cells_of, results, state_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.operators.accumulators import Accumulator, accumulator

# The first call imports and the machine may be busy: time is for the benchmarks.
unhurried = settings(deadline=None)

doubles = st.floats() | st.sampled_from([0.0, -0.0, 1e16, -1e16, 5e-324, -5e-324, 1.7976931348623157e308, 0.1, 2.0**53 + 2])
long = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)])


def made(function: str, *inputs: pa.DataType, **options: str) -> Accumulator:
    found = accumulator(function, inputs, options)
    assert found is not None
    return found


def finish(acc: Accumulator, size: int, state: State) -> list:
    return results(acc, size, state).to_pylist()


def one(acc: Accumulator, *columns: list, weights: list[int] | None = None, types: list[pa.DataType] | None = None) -> object:
    """The result of a single group."""
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types or [None] * len(columns), strict=True)]
    count = len(columns[0])
    return finish(acc, 1, state_of(acc, [0] * count, arrays, weights or [1] * count))[0]


def same(actual: object, expected: object) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        return (math.isnan(actual) and math.isnan(expected)) or (actual == expected and type(actual) is type(expected))
    return actual == expected


def float_sum(values: list[float]) -> float | None:
    """The oracle: exact in fractions, rounded once."""
    if not values:
        return None
    strange = [value for value in values if not math.isfinite(value)]
    if strange:
        return sum(strange)
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@st.composite
def edits(draw: st.DrawFn, values: st.SearchStrategy) -> tuple[list[tuple[int, object]], list[tuple[int, object]]]:
    """Rows (group, value or NULL) that are inserted, and those among them that stay."""
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.none() | values), max_size=30))
    kept = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    return rows, [row for row, keep in zip(rows, kept, strict=True) if keep]


def after_edits(acc: Accumulator, script: tuple, type_: pa.DataType) -> list:
    """Insert all rows, delete those that do not stay; the state must be that of the rest alone."""
    rows, kept = script
    gone = list(rows)
    for row in kept:
        gone.pop(next(i for i, other in enumerate(gone) if other is row))
    everything = rows + gone
    weights = [1] * len(rows) + [-1] * len(gone)
    state = state_of(acc, [group for group, _ in everything], [pa.array([value for _, value in everything], type_)], weights)
    fresh = state_of(acc, [group for group, _ in kept], [pa.array([value for _, value in kept], type_)], [1] * len(kept))
    assert state.keys() == fresh.keys()
    assert all((state[key] == fresh[key]).all() for key in state)
    return finish(acc, 3, state)


def of_group(script: tuple, group: int) -> list:
    return [value for at, value in script[1] if at == group and value is not None]


@unhurried
@given(edits(doubles))
def test_sum_of_doubles(script: tuple) -> None:
    found = after_edits(made("Sum", pa.float64()), script, pa.float64())
    assert all(same(found[group], float_sum(of_group(script, group))) for group in range(3))


@unhurried
@given(edits(doubles))
def test_average_of_doubles(script: tuple) -> None:
    found = after_edits(made("Average", pa.float64()), script, pa.float64())
    for group in range(3):
        values = of_group(script, group)
        assert same(found[group], float_sum(values) / len(values) if values else None)


@unhurried
@given(edits(st.floats(width=32)))
def test_sum_of_floats_is_a_double(script: tuple) -> None:
    found = after_edits(made("Sum", pa.float32()), script, pa.float32())
    assert all(same(found[group], float_sum(of_group(script, group))) for group in range(3))


@unhurried
@given(edits(long))
def test_sum_of_integers(script: tuple) -> None:
    expected = [sum(of_group(script, group)) if of_group(script, group) else None for group in range(3)]
    acc = made("Sum", pa.int64())
    if any(value is not None and not -(2**63) <= value < 2**63 for value in expected):
        with pytest.raises(EvaluationFailed, match="ARITHMETIC_OVERFLOW"):
            after_edits(acc, script, pa.int64())
    else:
        assert after_edits(acc, script, pa.int64()) == expected
    wrapped = [None if value is None else (value + 2**63) % 2**64 - 2**63 for value in expected]
    assert after_edits(made("Sum", pa.int64(), evalMode='"LEGACY"'), script, pa.int64()) == wrapped
    tried = [value if wrap == value else None for value, wrap in zip(expected, wrapped, strict=True)]
    assert after_edits(made("Sum", pa.int64(), evalMode='"TRY"'), script, pa.int64()) == tried


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32()])
def test_sum_of_narrow_integers_is_long(type_: pa.DataType) -> None:
    top = 2 ** (type_.bit_width - 1) - 1
    acc = made("Sum", type_)
    assert acc.type == pa.int64()
    assert one(acc, [top, top, None, -top - 1], types=[type_]) == top - 1
    assert one(acc, [-top - 1], types=[type_], weights=[2**31]) == (-top - 1) * 2**31


@unhurried
@given(edits(long))
def test_average_of_integers_adds_doubles(script: tuple) -> None:
    found = after_edits(made("Average", pa.int64()), script, pa.int64())
    for group in range(3):
        values = [float(value) for value in of_group(script, group)]
        assert same(found[group], float_sum(values) / len(values) if values else None)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    whole = st.integers(-top, top) | st.sampled_from([0, 1, -1, top, -top])
    return whole.map(lambda value: Decimal(f"{value}e-{scale}"))


@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (18, 0), (19, 4), (28, 10), (38, 38), (38, 0)])
def test_sum_and_average_of_decimals(precision: int, scale: int) -> None:
    type_ = pa.decimal128(precision, scale)
    total, mean = made("Sum", type_, evalMode='"TRY"'), made("Average", type_, evalMode='"TRY"')
    assert total.type == pa.decimal128(min(38, precision + 10), scale)
    assert mean.type == pa.decimal128(min(38, precision + 4), min(38, scale + 4))

    @unhurried
    @given(edits(decimals(precision, scale)))
    def check(script: tuple) -> None:
        sums, means = after_edits(total, script, type_), after_edits(mean, script, type_)
        for group in range(3):
            values = of_group(script, group)
            whole = sum(int(Fraction(value) * 10**scale) for value in values)
            known = bool(values) and abs(whole) < 10**total.type.precision
            assert (None if sums[group] is None else Fraction(sums[group])) == (Fraction(whole, 10**scale) if known else None)
            divided = half_up(Fraction(whole, len(values)) * 10 ** (mean.type.scale - scale)) if known else None
            fits = divided is not None and abs(divided) < 10**mean.type.precision
            expected = Fraction(divided, 10**mean.type.scale) if fits else None
            assert (None if means[group] is None else Fraction(means[group])) == expected

    check()


def half_up(value: Fraction) -> int:
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


@unhurried
@example(([(0, -(2**62)), (0, -(2**62))], [(0, -(2**62)), (0, -(2**62))]))
@given(edits(st.integers(-(2**62), 2**62)))
def test_sum_and_average_of_intervals(script: tuple) -> None:
    type_ = pa.duration("us")
    if not all(-(2**63) <= sum(of_group(script, group)) < 2**63 for group in range(3)):
        with pytest.raises(EvaluationFailed, match="INTERVAL_ARITHMETIC_OVERFLOW"):
            after_edits(made("Sum", type_), script, type_)
        with pytest.raises(EvaluationFailed, match="INTERVAL_ARITHMETIC_OVERFLOW"):
            after_edits(made("Average", type_), script, type_)
        return
    for function in ("Sum", "Average"):
        acc = made(function, type_)
        groups = [group for group, _ in script[1]]
        state = state_of(acc, groups, [pa.array([value for _, value in script[1]], type_)], [1] * len(groups))
        found = results(acc, 3, state).cast(pa.int64()).to_pylist()
        for group in range(3):
            values = of_group(script, group)
            expected = None if not values else sum(values) if function == "Sum" else half_up(Fraction(sum(values), len(values)))
            assert found[group] == expected


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_bit_xor(type_: pa.DataType) -> None:
    half = 2 ** (type_.bit_width - 1)

    @unhurried
    @given(edits(st.integers(-half, half - 1)))
    def check(script: tuple) -> None:
        expected = [reduce(xor, of_group(script, group)) if of_group(script, group) else None for group in range(3)]
        assert after_edits(made("BitXorAgg", type_), script, type_) == expected

    check()


def test_count() -> None:
    x, y = pa.array([1, None, 3, None]), pa.array(["a", "b", None, None])
    weights = [2, 3, 5, 7]
    for inputs, expected in [([], 17), ([x], 7), ([y], 5), ([x, y], 2)]:
        acc = made("Count", *(array.type for array in inputs))
        assert finish(acc, 2, state_of(acc, [0] * 4, inputs, weights)) == [expected, 0]


@pytest.mark.parametrize("value", [1e16, math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324])
def test_nothing_is_left_of_what_is_deleted(value: float) -> None:
    acc = made("Sum", pa.float64())
    assert one(acc, [0.1, 0.2, 0.3, value, value], weights=[1, 1, 1, 1, -1]) == math.fsum([0.1, 0.2, 0.3])
    assert state_of(acc, [0] * 4, [pa.array([value, 0.0, 0.0, value])], [1, 1, -1, -1]) == {}


def test_a_slot_takes_so_many_rows() -> None:
    """The widest mantissa in every place of its window, 2³¹−1 times."""
    acc = made("Sum", pa.float64())
    many = 2**31 - 1
    for position in range(-80, 80):
        value = (2.0**53 - 1) * 2.0**position
        assert one(acc, [value], weights=[many]) == float(Fraction(value) * many)
        assert one(acc, [-value, value / 3], weights=[many, 1]) == float(-Fraction(value) * many + Fraction(value / 3))
    assert one(made("Sum", pa.decimal128(28, 0)), [10**28 - 1], weights=[many], types=[pa.decimal128(28, 0)]) == Decimal(
        (10**28 - 1) * many
    )


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**32, -1])
@pytest.mark.parametrize("weight", [1, 3, 2**31 - 1])
def test_sums_beyond_64_bits(value: int, weight: int) -> None:
    exact = value * weight
    tried = one(made("Sum", pa.int64(), evalMode='"TRY"'), [value], weights=[weight])
    assert tried == (exact if -(2**63) <= exact < 2**63 else None)
    assert one(made("Average", pa.int64()), [value], weights=[weight]) == float(int(float(value)) * weight) / weight
    # One more than the edge of 64 bits, and back.
    assert one(made("Sum", pa.int64()), [value, value, value], weights=[weight, 1, -weight]) == value
    wide = pa.decimal128(38, 0)
    assert one(made("Sum", wide), [Decimal(value)], weights=[weight], types=[wide]) == Decimal(exact)
    assert one(made("Average", wide, evalMode='"TRY"'), [Decimal(value)], weights=[weight], types=[wide]) == Decimal(value)


def test_many_groups() -> None:
    """More groups than one piece of work, some without any row."""
    random = np.random.default_rng(7)
    values = np.exp(random.uniform(-700, 700, 60_000))
    values[random.integers(0, len(values), 100)] = np.nan
    groups = random.integers(0, 40_000, len(values))
    acc = made("Sum", pa.float64())
    cells = cells_of(acc, 40_000, groups.tolist(), [pa.array(values)], [1] * len(values))
    found = acc.finish(cells.alone(), 2).to_pylist()
    by_group: dict[int, list[float]] = {}
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        by_group.setdefault(group, []).append(value)
    assert all(same(found[group], float_sum(by_group.get(group, []))) for group in range(40_000))


def test_slices_and_empty_inputs() -> None:
    for type_ in (pa.int32(), pa.int64(), pa.float64(), pa.decimal128(12, 2), pa.decimal128(30, 2)):
        array = pa.array([100, None, 1, 2, None, 7], pa.int32()).cast(type_)
        acc = made("Sum", type_)
        for start, length, expected in [(1, 4, 3), (2, 2, 3), (5, 1, 7), (3, 0, None), (4, 1, None)]:
            piece = array.slice(start, length)
            result = finish(acc, 1, state_of(acc, [0] * length, [piece], [1] * length))
            assert result == [expected]


def test_errors_are_those_of_spark() -> None:
    with pytest.raises(EvaluationFailed, match=r"\[ARITHMETIC_OVERFLOW\] overflow\. Use 'try_add' to tolerate overflow"):
        one(made("Sum", pa.int64()), [2**63 - 1, 1])
    wide = pa.decimal128(38, 0)
    most = Decimal(10**38 - 1)
    with pytest.raises(EvaluationFailed, match=r"Overflow in sum of decimals\. Use 'try_sum'"):
        one(made("Sum", wide), [most, Decimal(1)], types=[wide])
    with pytest.raises(EvaluationFailed, match=r"Overflow in sum of decimals\. Use 'try_avg'"):
        one(made("Average", wide), [most, most], types=[wide])
    with pytest.raises(EvaluationFailed, match=r"9{38}\.0{39} cannot be represented as Decimal\(38, 4\)"):
        one(made("Average", wide), [most], types=[wide])
    assert one(made("Average", wide, evalMode='"LEGACY"'), [most], types=[wide]) is None
    assert one(made("Sum", wide, evalMode='"LEGACY"'), [most, most], types=[wide]) is None


def test_an_overflow_on_the_way_is_none() -> None:
    assert one(made("Sum", pa.int64()), [2**63 - 1, 2**63 - 1, -(2**63), -(2**63)]) == -2
    assert one(made("Sum", pa.float64()), [1e308, 1e308, -1e308]) == 1e308
    assert one(made("Sum", pa.float64()), [1e308, 1e308]) == math.inf
    assert one(made("Sum", pa.float64()), [-1.7976931348623157e308, -1e292]) == -math.inf


@pytest.mark.parametrize(
    ("function", "inputs"),
    [("Min", [pa.int64()]), ("Sum", [pa.string()]), ("Average", [pa.bool_()]), ("CollectList", [pa.int64()]), ("Sum", [])],
)
def test_what_has_no_inverse(function: str, inputs: list[pa.DataType]) -> None:
    assert accumulator(function, inputs) is None


def test_negative_zero_is_zero() -> None:
    total = one(made("Sum", pa.float64()), [-0.0, -0.0])
    assert isinstance(total, float)
    assert math.copysign(1.0, total) == 1.0
