"""Rows come to a task in slices: all of them, in order, none of many rows or of many bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.cluster import tasks
from headwater.delta import Delta

ROWS = pa.RecordBatch.from_pydict({"a": list(range(1000)), "b": ["x" * 100] * 1000})


@pytest.mark.parametrize(("rows", "size", "count"), [(100, 1 << 30, 10), (1 << 20, 10_000, 10), (1 << 20, 1 << 30, 1)])
def test_slices(monkeypatch: pytest.MonkeyPatch, rows: int, size: int, count: int) -> None:
    monkeypatch.setattr(tasks, "_ROWS", rows)
    monkeypatch.setattr(tasks, "_BYTES", size)
    slices = [delta.rows for delta in tasks._in_slices(Delta.inserting(ROWS))]
    gathered = list(tasks.gathered(iter([ROWS.slice(start, 10) for start in range(0, 1000, 10)])))
    for found in (slices, gathered):
        assert pa.Table.from_batches(found).equals(pa.Table.from_batches([ROWS]))
        assert count <= len(found) <= 2 * count
        assert max(map(len, found)) <= max(rows, 10)
    assert list(tasks.gathered(iter([]))) == []
