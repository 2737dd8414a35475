"""Fragments: every value is in exactly one, and a set of them is the condition that its intervals say."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.annotations.fragments import Partition, equi_depth, is_partitionable

INSTANT = pa.timestamp("us", "UTC")
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-5, 5),
    pa.int64(): st.one_of(st.integers(-5, 5), st.integers(2**53 - 2, 2**53 + 2)),
    pa.float64(): st.one_of(st.sampled_from([-0.0, 0.0, 1.5, math.inf, -math.inf, math.nan]), st.floats()),
    pa.date32(): st.dates(date(2020, 1, 1), date(2020, 1, 9)),
    INSTANT: st.datetimes(datetime(2020, 1, 1), datetime(2020, 1, 2), timezones=st.just(UTC)),
    pa.decimal128(30, 2): st.decimals(-3, 3, places=2),
    pa.string(): st.one_of(st.sampled_from(["", "a", "ab", "é", "\U0001f600", "z"]), st.text(max_size=3)),
}


def rank(value: Any) -> Any:
    """Values as Spark orders them."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def partition(kind: pa.DataType, bounds: list[Any]) -> Partition:
    return Partition("t", "a", 1, pa.RecordBatch.from_arrays([pa.array(bounds, kind)], names=["c0"]), (1,) * (len(bounds) + 2))


@st.composite
def cut_values(draw: st.DrawFn) -> tuple[Partition, pa.Array, list[Any]]:
    kind = draw(st.sampled_from(list(KINDS)))
    drawn = draw(st.lists(KINDS[kind], max_size=6))
    bounds: dict[Any, Any] = {rank(value): value for value in drawn if value == value}  # noqa: PLR0124  (not NaN)
    values = draw(st.lists(st.one_of(st.none(), KINDS[kind], st.sampled_from(drawn) if drawn else st.none()), max_size=12))
    return partition(kind, [bounds[key] for key in sorted(bounds)]), pa.array(values, kind), values


@given(case=cut_values())
def test_fragment_is_the_number_of_bounds_not_above(case: tuple[Partition, pa.Array, list[Any]]) -> None:
    cut, values, plain = case
    bounds = cut.bounds.column(0).to_pylist()
    expected = [cut.null if v is None else sum(rank(b) <= rank(v) for b in bounds) for v in plain]
    assert cut.fragments(values).tolist() == expected


@given(case=cut_values(), data=st.data())
def test_intervals_say_what_the_set_says(case: tuple[Partition, pa.Array, list[Any]], data: st.DataObject) -> None:
    cut, values, plain = case
    chosen = data.draw(st.sets(st.integers(0, cut.null)))
    intervals = cut.intervals(chosen)
    assert {f for first, last in intervals for f in range(first, last + 1)} == chosen - {cut.null}
    for value, fragment in zip(plain, cut.fragments(values), strict=True):
        ends = [tuple(None if e is None else rank(e.as_py()) for e in cut.ends(interval)) for interval in intervals]
        inside = value is not None and any(
            (lo is None or lo <= rank(value)) and (hi is None or rank(value) < hi) for lo, hi in ends
        )
        assert (inside or (value is None and cut.null in chosen)) == (fragment in chosen)


@given(chosen=st.sets(st.integers(0, 20)), most=st.integers(1, 6))
def test_coarser_is_more_and_has_few_intervals(chosen: set[int], most: int) -> None:
    cut = partition(pa.int32(), list(range(20)))
    coarse = cut.coarsened(chosen, most)
    assert chosen <= coarse
    assert len(cut.intervals(coarse)) <= most
    assert cut.coarsened(chosen, 100) == chosen
    assert (cut.null in coarse) == (cut.null in chosen)


@pytest.mark.parametrize("count", [1, 7, 10])
def test_ranges_have_about_one_depth(count: int) -> None:
    values = pa.array(np.random.default_rng(1).permutation(10_000))
    cut = partition(pa.int64(), equi_depth(values, count).to_pylist())
    depths = np.bincount(cut.fragments(values), minlength=cut.count)[:-1]
    assert len(depths) == count
    assert depths.max() <= 10_000 / count + 1


def test_heavy_values_have_a_range_of_their_own() -> None:
    values = pa.array([5] * 600 + list(range(400)) + [None])
    bounds = equi_depth(values, 10).to_pylist()
    assert bounds[:2] == [5, 6]


def test_few_values_have_a_range_each() -> None:
    assert equi_depth(pa.array(["b", "a", "c", "a", None]), 10).to_pylist() == ["b", "c"]


def test_nothing_and_nan_make_no_bounds() -> None:
    assert equi_depth(pa.array([], pa.int32()), 10).to_pylist() == []
    assert equi_depth(pa.array([math.nan, -0.0, 0.0, 1.0]), 10).to_pylist() == [1.0]
    assert equi_depth(pa.array([Decimal("1.10"), Decimal("2.20")]), 1).to_pylist() == []


def test_what_can_be_cut() -> None:
    assert all(map(is_partitionable, KINDS))
    assert not any(map(is_partitionable, [pa.bool_(), pa.binary(), pa.list_(pa.int32()), pa.null()]))
