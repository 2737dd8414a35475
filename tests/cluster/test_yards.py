"""Yards: what a job writes stays until its epoch is there, whoever else commits, builds or folds meanwhile."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from small_tables import KINDS, bag, batch

import headwater as hw
from headwater.cluster.yard import ScratchYards, StoreYards, Yards
from headwater.compiler.dataflow import Step
from headwater.delta import Delta
from headwater.operators.arrange import Arrange
from headwater.operators.operator import schema_of
from headwater.operators.values import Source
from headwater.runtime.catalog import Snapshot
from headwater.state.arrangement import Arrangement
from headwater.store import runfiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.cluster.yard import Yard
    from headwater.store.runfiles import StoredRun

STEP = Step(Arrange(KINDS, (0,)), (Step(Source(KINDS, "rows"), (), "rows"),), "kept")


def written(yard: Yard, number: int) -> StoredRun:
    """A run as a task leaves it: its name begins as the one that the yard gave."""
    made = Arrangement.empty(schema_of(KINDS), (0,)).insert(Delta.inserting(batch([(number, 0)], KINDS)))
    name = yard.new_name().removesuffix(".arrow")
    return runfiles.write(yard.disk, f"{name}-1-0-{number}.arrow", made.runs)[0]


def snapshot(*runs: StoredRun) -> Snapshot:
    return Snapshot(1, states={STEP: (Arrangement(schema_of(KINDS), (0,), None, runs),)})


def files(yard: Yard) -> set[str]:
    return set(yard.disk.files("runs"))


@pytest.fixture
def yards() -> Iterator[ScratchYards]:
    made = ScratchYards()
    yield made
    made.close()


def test_only_what_the_snapshot_has_stays(yards: ScratchYards) -> None:
    first = yards.open()
    kept, orphan = written(first, 1), written(first, 2)
    assert files(first) == {kept.file, orphan.file}
    yards.settled(first, lambda: snapshot(kept))
    assert files(first) == {kept.file}
    second = yards.open()
    newer = written(second, 3)
    yards.settled(second, lambda: snapshot(newer))
    assert files(second) == {newer.file}
    assert bag(Arrangement(schema_of(KINDS), (0,), None, (kept,)).contents()) == {(1, 0): 1}, "whoever has it goes on reading"


def test_a_job_beside_another_loses_nothing(yards: ScratchYards) -> None:
    building, epoch = yards.open(), yards.open()
    built, committed = written(building, 1), written(epoch, 2)
    yards.settled(epoch, lambda: snapshot(committed))
    assert files(building) == {built.file, committed.file}
    later = written(building, 3)
    yards.settled(building, lambda: snapshot(committed, built, later))
    assert files(building) == {built.file, committed.file, later.file}


def test_a_commit_just_before_is_seen(yards: ScratchYards) -> None:
    """Between the look at what is reserved and the look at what is needed, nothing may fall through."""
    building, epoch = yards.open(), yards.open()
    built, committed = written(building, 1), written(epoch, 2)
    yards.settled(epoch, lambda: snapshot(committed))
    yards.settled(building, lambda: snapshot(committed))
    assert files(building) == {committed.file}
    assert built.file is not None


def test_a_temporary_yard_goes_with_its_session() -> None:
    yards: Yards = ScratchYards()
    yard = yards.open()
    run = written(yard, 1)
    yards.settled(yard, lambda: snapshot(run))
    yards.close()
    assert not files(yard)


def test_a_fold_removes_nothing_of_a_job(spark: SparkSession, tmp_path: Path) -> None:
    with closing(hw.connect(tmp_path / "kept", spark=spark, placement="driver")) as session:
        session.create_table("t", "k BIGINT, x BIGINT")
        session.insert("t", [(1, 1)])
        store = session._store
        assert store is not None
        yards = StoreYards(store)
        building, epoch = yards.open(), yards.open()
        runs = {written(building, 1).file, written(epoch, 2).file}
        for number in range(2):
            session.insert("t", [(2, number)])
            store.fold()
            assert files(building) >= runs
        yards.settled(epoch, lambda: session.snapshot)
        session.insert("t", [(3, 3)])
        store.fold()
        assert not files(building) & {name for name in runs if name.startswith(epoch.names[0].removesuffix(".arrow"))}
        assert files(building) & runs, "the one beside it is still at work"
        yards.settled(building, lambda: session.snapshot)
        session.insert("t", [(4, 4)])
        store.fold()
        assert not files(building) & runs
        assert sorted(session.table("t").rows()) == [(1, 1), (2, 0), (2, 1), (3, 3), (4, 4)]


def test_names_are_given_once(spark: SparkSession, tmp_path: Path) -> None:
    with closing(hw.connect(tmp_path / "kept", spark=spark, placement="driver")) as session:
        assert session._store is not None
        yards = [StoreYards(session._store).open() for _ in range(3)]
        names = [yard.new_name() for _ in range(5) for yard in yards] + [session._store._new_file()]
        assert len(set(names)) == 16
