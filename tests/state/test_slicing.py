"""Slices of a lookup: together what the lookup finds, none too large, and what is of one stored row in one of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.delta import Delta
from headwater.state import slicing
from headwater.state.arrangement import Arrangement
from headwater.state.slicing import bounds_of_slices, collected, counts_of, lookup_slices

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string()), ("c2", pa.int64())])
ROWS = st.tuples(st.none() | st.integers(0, 2), st.sampled_from([None, "", "a", "ä"]), st.integers(0, 4))
# Runs of an arrangement: rows that come, and how many of those that are there go again.
RUNS = st.lists(st.tuples(st.lists(ROWS, max_size=20), st.integers(0, 10)), min_size=1, max_size=4)


def batch(rows: list) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([row[i] for row in rows], f.type) for i, f in enumerate(SCHEMA)], schema=SCHEMA)


def arranged(runs: list, key: tuple[int, ...]) -> tuple[Arrangement, list]:
    """The rows in as many runs, which are not merged, and what is there in the end."""
    present: list = []
    kept = Arrangement.empty(SCHEMA, key)
    for coming, going in runs:
        gone, present = present[:going], present[going:] + coming
        weights = np.array([-1] * len(gone) + [1] * len(coming), np.int64)
        part = Arrangement.empty(SCHEMA, key).insert(Delta(batch(gone + coming), weights))
        kept = Arrangement(SCHEMA, key, None, (*kept.runs, *part.runs))
    return kept, present


def values(rows: pa.RecordBatch) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True)) if rows.num_columns else [()] * len(rows)


@pytest.mark.parametrize("wanted", [None, (), (2,), (1, 0)])
@pytest.mark.parametrize("key", [(0,), (1,), (0, 1), ()])
@settings(max_examples=25)
@given(RUNS, st.lists(ROWS, max_size=12), st.sampled_from([1, 3, 1 << 18]), st.sampled_from([1, 4, 1 << 12]))
def test_slices_are_what_is_there(  # noqa: PLR0917  (key, columns, rows, and how they are cut)
    key: tuple[int, ...], wanted: tuple[int, ...] | None, runs: list, probe: list, pairs: int, first: int
) -> None:
    kept, present = arranged(runs, key)
    columns = range(3) if wanted is None else wanted
    twin = Counter(
        (i, tuple(row[c] for c in columns))
        for i, asked in enumerate(probe)
        for row in present
        if all(row[c] == asked[c] for c in key)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slicing, "PAIRS", pairs)
        patch.setattr(slicing, "_FIRST", first)
        patch.setattr(slicing, "_FEW", 0)
        found = list(lookup_slices(kept, batch(probe), key, wanted))
    total: Counter = Counter()
    of_rows: Counter = Counter()
    for part in found:
        assert 0 < len(part) <= pairs
        assert (part.weights > 0).all()
        met = list(zip(part.probe.tolist(), values(part.rows), strict=True))
        for pair, weight in zip(met, part.weights.tolist(), strict=True):
            total[pair] += weight
        of_rows.update(set(met))
    assert total == twin
    if wanted is None:
        assert all(count == 1 for count in of_rows.values())


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12))
def test_bounds(counts: list[int], most: int) -> None:
    bounds = bounds_of_slices(np.array(counts, np.int64), most)
    assert bounds[0] == 0
    assert bounds[-1] == len(counts)
    for start, stop in pairwise(bounds):
        assert start < stop
        assert sum(counts[start:stop]) <= most or stop == start + 1


@given(RUNS, st.lists(ROWS, max_size=12))
def test_counts_are_those_of_stored_rows(runs: list, probe: list) -> None:
    kept, _ = arranged(runs, (0, 1))
    counts = counts_of(kept, batch(probe), (0, 1))
    found = kept.lookup(batch(probe), (0, 1))
    assert counts.tolist() == np.bincount(found.probe, minlength=len(probe)).tolist()


def test_long_rows_make_smaller_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bounded are rows and bytes."""
    monkeypatch.setattr(slicing, "_BYTES", 1 << 20)
    monkeypatch.setattr(slicing, "_FEW", 0)
    kept = Arrangement.empty(SCHEMA, (0,)).insert(Delta.inserting(batch([(1, f"{i:010000}", i) for i in range(500)])))
    found = list(lookup_slices(kept, batch([(1, "", 0)] * 3), (0,)))
    assert sum(map(len, found)) == 1500
    assert max(part.rows.nbytes for part in found) < 2 << 20


def test_equal_rows_of_many_parts_are_merged_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "PAIRS", 10)
    rows = batch([(i % 3, "a", 0) for i in range(10)])
    found = collected(Delta.inserting(rows) for _ in range(50))
    assert found is not None
    assert len(found) < 60
    assert found.weights.sum() == 500
    assert collected([]) is None
