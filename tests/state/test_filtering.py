"""Filters of keys: whatever a filtered lookup leaves out is not there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.delta import Delta
from headwater.state import filtering
from headwater.state.arrangement import Arrangement, Matches

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])


def rows(keys: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys % 7).cast(pa.string())], schema=SCHEMA)


def pairs(found: Matches) -> list[tuple[int, ...]]:
    return sorted(zip(found.probe.tolist(), found.rows.column(0).to_pylist(), found.weights.tolist(), strict=True))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_a_filtered_lookup_finds_what_any_lookup_finds(share: float) -> None:
    rng = np.random.default_rng(1)
    kept = Arrangement.empty(SCHEMA, (0,))
    for start, size in ((0, 300_000), (300_000, 40_000), (400_000, 300)):
        kept = kept.insert(Delta.inserting(rows(np.arange(start, start + size))))
    kept = kept.insert(-Delta.inserting(rows(np.arange(100))))
    for size in (1, 100, 30_000):
        keys = rng.integers(0, 300_000, size)
        keys[rng.random(size) >= share] += 10**12
        probe = pa.RecordBatch.from_arrays([pa.array(keys)], names=["c0"])
        assert pairs(kept.lookup(probe, (0,), filtered=True)) == pairs(kept.lookup(probe, (0,)))


def test_what_is_there_passes_and_most_of_what_is_not_does_not() -> None:
    rng = np.random.default_rng(2)
    there = np.sort(rng.integers(0, 1 << 64, 50_000, dtype=np.uint64))
    others = rng.integers(0, 1 << 64, 50_000, dtype=np.uint64)
    made = filtering.KeyFilter()
    assert made.nbytes == 0
    few = made.passing(there, others)
    assert few is not None
    assert len(few) < 0.15 * len(others)
    assert 1 <= 8 * made.nbytes / len(there) / 8 <= 2
    asked = np.concatenate([there[:1_000], others])
    found = made.passing(there, asked)
    assert found is not None
    assert set(range(1_000)) <= set(found.tolist())
    # Where most are there, it is of no use; of a small run, and before it is worth its bits, there is none.
    assert made.passing(there, there) is None
    assert filtering.KeyFilter().passing(there[:100], others) is None
    assert filtering.KeyFilter().passing(there, others[:10]) is None
