"""Lines found one hash after the other, as compiled loops do it, against NumPy's search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from headwater.compiled import compiled
from headwater.delta import Delta
from headwater.state.arrangement import Arrangement
from headwater.state.stored import lines_with, near, stored

if TYPE_CHECKING:
    from numpy.typing import NDArray


@compiled
def found(runs: NDArray[np.int64], wanted: np.uint64) -> tuple[int, int]:
    start, end = near(runs, 0, wanted)
    return lines_with(runs, 0, wanted, start, end)


@pytest.mark.parametrize("count", [1, 40, 3_000])
def test_lines_with_a_hash_are_found(count: int) -> None:
    rng = np.random.default_rng(count)
    # A few keys have most of the lines.
    keys = np.concatenate([rng.integers(0, 3, count), rng.integers(0, count, count)])
    rows = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(np.arange(2 * count))], ["c0", "c1"])
    arrangement = Arrangement.empty(rows.schema, (0,)).insert(Delta.inserting(rows))
    table, held = stored([arrangement])
    hashes = held[0][0].hashes
    others = rng.integers(0, 1 << 64, 1_000, dtype=np.uint64)
    ends = np.array([0, (1 << 64) - 1], np.uint64)
    for wanted in np.concatenate([np.unique(hashes), others, ends, hashes[:1] - np.uint64(1), hashes[-1:] + np.uint64(1)]):
        start, end = found(table.runs, wanted)
        assert (start, end) == (np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, "right")) or (
            start == end and wanted not in hashes
        )


def test_signposts_count_as_state() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(np.arange(10_000))], ["c0"])
    arrangement = Arrangement.empty(rows.schema, (0,)).insert(Delta.inserting(rows))
    before = arrangement.nbytes
    stored([arrangement])
    assert 0 < arrangement.nbytes - before < before // 10
