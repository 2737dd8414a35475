"""Folding: the same content in files, whatever the arrangement is about to do with its runs."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import pytest
from small_tables import KINDS, bag, batch

from headwater.delta import Delta
from headwater.operators.operator import schema_of
from headwater.state import arrangement as arrangements
from headwater.state import compaction, runs
from headwater.state.arrangement import Arrangement
from headwater.store import runfiles
from headwater.store.disk import LocalDisk
from headwater.store.folding import Fold
from headwater.store.runfiles import StoredRun

if TYPE_CHECKING:
    from pathlib import Path


def some(number: int) -> Delta:
    return Delta(batch([(number, 0), (number, 1)], KINDS), np.array([1, number + 1]))


def expected(numbers: int) -> Counter[tuple[int, int]]:
    return Counter({(number, x): [1, number + 1][x] for number in range(numbers) for x in (0, 1)})


@pytest.mark.parametrize("folded", range(1, 8))
def test_a_merge_that_begins_meanwhile_loses_nothing(folded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "LARGE", 4)
    monkeypatch.setattr(runs, "FEW", 0)
    monkeypatch.setattr(arrangements, "_WHOLE", 0)
    gate = Event()
    thread = ThreadPoolExecutor(1)
    monkeypatch.setattr(compaction, "_thread", lambda: thread)
    thread.submit(gate.wait)
    names = (f"runs/{number}" for number in count())
    disk = LocalDisk(tmp_path)
    arrangement = Arrangement.empty(schema_of(KINDS), (0,))
    fold = Fold(disk, lambda: next(names))
    for number in range(9):
        arrangement = arrangement.insert(some(number))
        if number + 1 == folded:
            fold.write([(arrangement,)])
        if number == 7:
            (arrangement,) = fold.exchanged((arrangement,))
            gate.set()
            thread.submit(bool).result()
    assert bag(arrangement.contents()) == expected(9)
    thread.shutdown()


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    arrangement = Arrangement.empty(schema_of(KINDS), (0,))
    for number in range(3):
        arrangement = arrangement.insert(some(number))
    fold = Fold(LocalDisk(tmp_path), lambda: "runs/1")
    fold.write([(arrangement,)])
    (kept,) = fold.kept((arrangement,))
    again = kept.arrangement(partial(StoredRun, LocalDisk(tmp_path)))
    assert bag(again.contents()) == expected(3)
    run: StoredRun = again.runs[0]  # type: ignore[assignment]
    assert (len(run), run.file, len(again)) == (6, "runs/1", 6)


def test_new_runs_may_stand_on_both_sides_of_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "FEW", 0)
    monkeypatch.setattr(arrangements, "_WHOLE", 0)
    names = (f"runs/{number}" for number in count())
    disk = LocalDisk(tmp_path)
    arrangement = Arrangement.empty(schema_of(KINDS), (0,))
    for number in range(3):
        arrangement = arrangement.insert(some(number))
    first, middle, last = arrangement.runs
    (stored,) = runfiles.write(disk, next(names), [middle])
    arrangement = Arrangement(arrangement.schema, arrangement.key, None, (first, stored, last))
    fold = Fold(disk, lambda: next(names))
    fold.write([(arrangement,)])
    (kept,) = fold.kept((arrangement,))
    assert len(kept.runs) == 3
    assert bag(kept.arrangement(partial(StoredRun, disk)).contents()) == expected(3)
    assert bag(fold.exchanged((arrangement,))[0].contents()) == expected(3)
