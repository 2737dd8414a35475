"""What changed in views: kept as far back as it says, in bounded memory, and told whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.operators.operator import schema_of
from headwater.runtime import history
from headwater.runtime.history import Changed, History

if TYPE_CHECKING:
    import pytest

SCHEMA = schema_of([pa.int64()])


def delta(*numbers: int, weight: int = 1) -> Delta:
    rows = pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], schema=SCHEMA)
    return Delta(rows, np.full(len(numbers), weight, np.int64))


def test_epochs_and_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "EPOCHS", 5)
    monkeypatch.setattr(history, "ROWS", 20)
    kept = History()
    for epoch in range(1, 9):
        kept.add("v", Changed(2 * epoch, delta(epoch)))
    assert [changed.epoch for changed in kept.since("v", 6)] == [8, 10, 12, 14, 16]
    assert [changed.epoch for changed in kept.since("v", 13)] == [14, 16]
    assert kept.since("v", 5) is None
    assert kept.earliest("v") == 6
    kept.add("v", Changed(17, delta(*range(18))))
    assert [changed.epoch for changed in kept.since("v", 14)] == [16, 17], "three rows too many went with the oldest epochs"
    kept.add("v", Changed(18, delta(*range(100))))
    assert [(changed.epoch, changed.size) for changed in kept.since("v", 17)] == [(18, 100)], "the last one is always there"
    assert kept.since("v", 16) is None
    kept.forget(["v"])
    assert kept.since("v", 0) == []


def test_a_large_change_of_a_table_is_not_worth_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ROWS", 3)
    kept = History()
    kept.begin(["t"], 1)
    kept.add_if_few("t", 2, delta(1, 2, 3))
    assert kept.since("t", 1) is not None
    kept.add_if_few("t", 3, delta(1, 2, 3, 4))
    assert (kept.since("t", 2), kept.since("t", 3), kept.began("t")) == (None, [], 1)


def test_nothing_is_known_of_epochs_before_the_start() -> None:
    kept = History(start=7)
    assert (kept.since("v", 6), kept.since("v", 7)) == (None, [])


def test_a_slice_does_not_hold_what_it_was_cut_from() -> None:
    kept = History()
    large = delta(*range(500_000))
    kept.add("v", Changed(1, Delta(large.rows.slice(10, 2), large.weights[10:12])))
    change = kept.since("v", 0)[0].delta
    assert change.rows.get_total_buffer_size() < 1000
    assert change.rows.column(0).to_pylist() == [10, 11]
