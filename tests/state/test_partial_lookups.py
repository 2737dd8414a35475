"""Parts of an arrangement: lookups that read some columns, samples, and counts of different values."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.delta import Delta
from headwater.state import runs
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

TYPES = (pa.int64(), pa.string(), pa.decimal128(12, 2), pa.string(), pa.float64(), pa.list_(pa.int32()))
SCHEMA = pa.schema([(f"c{i}", kind) for i, kind in enumerate(TYPES)])
ROWS = st.tuples(
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, "", "a", "longer than eight"]),
    st.sampled_from([None, 1, -2]),
    st.sampled_from([None, "b"]),
    st.sampled_from([None, 0.0, 1.5]),
    st.sampled_from([None, [], [1, None]]),
)


def delta_of(rows: list, weights: list[int]) -> Delta:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(TYPES)]
    return Delta(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), np.array(weights, np.int64))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(st.tuples(ROWS, st.sampled_from([1, 2, -1])), min_size=1, max_size=5), min_size=1, max_size=4),
    st.sampled_from([(0,), (1,), (1, 0), ()]),
    st.lists(st.integers(0, len(TYPES) - 1), unique=True).map(tuple),
)
def test_some_columns_of_what_a_lookup_finds(edits: list, key: tuple, wanted: tuple) -> None:
    arrangement = Arrangement.empty(SCHEMA, key)
    with mock.patch.object(runs, "FEW", 4):
        for edit in edits:
            arrangement = arrangement.insert(delta_of([row for row, _ in edit], [weight for _, weight in edit]))
    probe = delta_of([row for row, _ in edits[0]], [1] * len(edits[0])).rows
    whole, part = arrangement.lookup(probe, key), arrangement.lookup(probe, key, wanted)

    def summed(probes: np.ndarray, rows: pa.RecordBatch, weights: np.ndarray) -> object:
        columns = [pa.array(probes), *rows.columns]
        delta = Delta(pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))]), weights)
        merged = consolidate(delta)
        rows_of = zip(*(column.to_pylist() for column in merged.rows.columns), strict=True)
        return sorted(zip(map(repr, rows_of), merged.weights.tolist(), strict=True))

    chosen = Delta(whole.rows, whole.weights).select(wanted).rows
    assert part.rows.schema.types == [TYPES[i] for i in wanted]
    assert part.rows.schema.names == [f"c{i}" for i in range(len(wanted))]
    assert summed(part.probe, part.rows, part.weights) == summed(whole.probe, chosen, whole.weights)
    consolidated = part.consolidated()
    assert summed(part.probe, part.rows, part.weights) == summed(consolidated.probe, consolidated.rows, consolidated.weights)


def test_samples_and_counts_of_different_values() -> None:
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", pa.string())])
    empty = Arrangement.empty(schema, (0,))
    assert (empty.sample(3).num_rows, empty.distinct((1,))) == (0, 0)
    numbers = np.arange(400_000)
    few = pa.array([str(i) for i in range(7)]).take(pa.array(numbers % 7))
    rows = pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(numbers // 4), few], schema=schema)
    for size in (50_000, 400_000):
        kept = empty.insert(Delta.inserting(rows.slice(0, size)))
        kept = kept.insert(Delta.inserting(rows.slice(0, 100)))
        assert abs(kept.distinct((0,)) - size) < size / 10
        assert abs(kept.distinct((1,)) - size / 4) < size / 40
        assert kept.distinct((2,)) == 7
        sample = kept.sample(1000)
        assert sample.num_rows == 1000
        assert len(set(sample.column(2).to_pylist())) == 7
        assert abs(np.mean(sample.column(0).to_numpy()) - size / 2) < size / 10
    small = empty.insert(Delta.inserting(rows.slice(0, 50_000)))
    assert small.distinct((2,)) == 7
    assert abs(small.distinct((1, 2)) - 50_000) < 5_000
