"""Readers in other processes see whole epochs, whatever the writer does meanwhile: folds, ends, is killed, is succeeded."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
import shop
from broken_disks import BreakingDisk, Fuse
from kept_tables import Directory, Work, made
from patience import wait_until
from small_tables import bag
from test_full_disks import full

import headwater as hw
from headwater.errors import StorageFailed
from headwater.runtime.catalog import Snapshot
from headwater.store.disk import LocalDisk
from headwater.store.reading import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from processes import Process, Processes


@pytest.fixture
def directory(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path / "shop")


def check_seen(reader: Process) -> int:
    """Every epoch that it saw was whole, and none came twice or before another one; gives how many there were."""
    epochs = []
    for said in reader.said():
        assert len(set(said["more"])) == 1, said
        epochs.append(said["epoch"])
    changed = [epoch for number, epoch in enumerate(epochs) if not number or epochs[number - 1] != epoch]
    assert changed == sorted(set(changed))
    return len(changed)


def seen(reader: Process) -> int:
    return len({said["epoch"] for said in reader.said()})


def follow(directory: Path, processes: Processes, rounds: int, epochs: int) -> int:
    """Every other writer is killed when all readers have seen so many more epochs of its."""
    readers = [processes.start("read", directory) for _ in range(2)]
    for reader in readers:
        reader.wait_for("epoch")
    last = 0
    for number in range(rounds):
        writer = processes.start("pairs", directory, seed=number, fold=1500, steps=None if number % 2 else 30)
        writer.wait_for("epoch")
        if number % 2:
            for reader in readers:
                wanted = seen(reader) + epochs
                wait_until(lambda reader=reader, wanted=wanted: seen(reader) >= wanted)
            writer.kill()
        else:
            writer.wait_for("closed")
        last = max(said["epoch"] for said in writer.said() if "epoch" in said)
    for reader in readers:
        wait_until(lambda reader=reader: reader.said()[-1]["epoch"] >= last)
        reader.kill()
    return min(map(check_seen, readers))


def test_readers_see_whole_epochs(directory: Path, processes: Processes) -> None:
    assert follow(directory, processes, rounds=4, epochs=5) >= 10


@pytest.mark.slow
def test_readers_see_whole_epochs_for_long(directory: Path, processes: Processes) -> None:
    assert follow(directory, processes, rounds=40, epochs=10) >= 200


@pytest.mark.parametrize("meanwhile", [1, 2])
def test_a_reader_goes_back_when_a_commit_has_failed(tmp_path: Path, meanwhile: int) -> None:
    """It saw a record that the writer could not make certain."""
    disk = BreakingDisk(tmp_path, Fuse(error=full, once=True))
    directory = Directory(disk)
    work = Work(1)
    work.run(directory, 6)
    reader = Reader(LocalDisk(tmp_path), made)
    now = reader.newest(Snapshot())
    seen: list[Snapshot] = []
    sync = directory.store._log.sync

    def fail() -> None:
        seen.append(reader.newest(seen[-1] if seen else now))
        sync()

    # No fold may sync, or meet the fault, in place of the commit.
    with directory.store.defining():
        directory.store._log.sync = fail  # type: ignore[method-assign]
        disk.fuse.left = disk.fuse.passed + 1
        with pytest.raises(StorageFailed):
            work.edit(directory)
        directory.store._log.sync = sync  # type: ignore[method-assign]
    assert seen[0].epoch == directory.now.epoch + 1
    for _ in range(3):
        for _ in range(meanwhile):
            work.edit(directory)
        then = reader.newest(seen[-1])
        seen.append(then)
        assert then.epoch == directory.now.epoch
        for name, entry in directory.now.entries.items():
            assert bag(then.contents(then.entries[name])) == bag(directory.now.contents(entry))
    directory.close()


def test_a_reader_has_the_past(directory: Path) -> None:
    with hw.connect(directory) as session, hw.connect(directory, mode="r") as reader:
        before = reader.epoch
        rows, view = shop.content(reader), reader.view("unsold").rows()
        session.insert("items", [(900, "acme", 1, 1.0), (901, "acme", 1, 1.0)])
        session.delete("items", [(901, "acme", 1, 1.0)])
        assert reader.view("unsold").rows() == view
        assert reader.refresh() == before + 2
        assert len(reader.view("unsold")) == len(view) + 1
        assert sorted(reader.view("unsold").at(before).rows()) == sorted(view)
        assert len(reader.view("unsold").at(before + 1).rows()) == len(view) + 2
        assert {name: reader.at(before).table(name).rows() for name in shop.TABLES}.keys() == rows.keys()
        changes = [(epoch, table.num_rows) for epoch, table in reader.view("unsold").changes(since=before)]
        assert changes == [(before + 1, 2), (before + 2, 1)]
        # The log may be ahead of what a reader has come to.
        session.insert("items", [(902, "acme", 1, 1.0)])
        assert [epoch for epoch, _ in reader.view("unsold").changes(since=before)] == [before + 1, before + 2]
