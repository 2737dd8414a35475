"""The levels of durability: what each of them may lose, and that what is left is a whole prefix."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest
import shop
from broken_disks import BreakingDisk, ForgetfulDisk, Fuse, TornDisk
from kept_tables import Directory, Work, bury, check
from patience import wait_until
from test_full_disks import full

import headwater as hw
from headwater.errors import HistoryGone, StorageFailed
from headwater.store import store
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

    from processes import Processes


@pytest.fixture
def directory(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path / "shop")


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_nothing_is_lost_with_the_process(directory: Path, processes: Processes, durability: str) -> None:
    writer = processes.start("load", directory, seed=3, durability=durability)
    writer.wait_for("epoch", 30)
    writer.kill()
    last = [said["epoch"] for said in writer.said() if "epoch" in said][-1]
    with hw.connect(directory, durability=durability) as session:
        assert session.epoch in (last, last + 1)


def test_in_memory_the_last_fold_is_there(directory: Path, processes: Processes) -> None:
    with hw.connect(directory) as session:
        before = session.epoch
        session.insert("brands", [("acme", "logged")])
    for _ in range(2):
        writer = processes.start("load", directory, seed=3, durability="memory", seconds=0.05)
        writer.wait_for("epoch", 60)
        writer.kill()
        last = [said["epoch"] for said in writer.said() if "epoch" in said][-1]
        with hw.connect(directory) as session:
            assert before < session.epoch <= last + 1
            whole = shop.content(session)
            reached = session.insert("brands", [("acme", "more")])
            with pytest.raises(HistoryGone):
                list(session.view("strong").changes(since=before))
            assert session.at(reached - 1).table("brands").arrow().num_rows == sum(whole["brands"].values())
        before = reached
    with hw.connect(directory, durability="memory") as session:
        epoch, whole = session.insert("brands", [("acme", "most")]), shop.content(session)
    with hw.connect(directory) as session:
        assert session.epoch == epoch
        assert shop.content(session) == whole
        with pytest.raises(HistoryGone):
            session.table("brands").at(epoch - 1)


@pytest.mark.parametrize("durability", store.DURABILITY)
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))])
def test_what_is_left_when_the_power_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str, seed: int) -> None:
    """Under load, with folds and removals of files all the time."""
    monkeypatch.setattr(store, "_BYTES", 3_000)
    monkeypatch.setattr(store, "_SECONDS", 0.01)
    disk = ForgetfulDisk(tmp_path / "disk", tmp_path / "certain")
    disk.root.mkdir()
    work = Work(seed)
    directory = Directory(disk, durability, store.Retention(5))
    for _ in range(seed % 5 + 2):
        work.run(directory)
    known = directory.store._log._certain
    disk.power_off()
    certain = LocalDisk(disk.certain)
    bury(certain)
    again = Directory(certain, durability)
    check(again)
    last = again.now.epoch
    if last in work.acknowledged:
        assert again.content() == work.acknowledged[last]
    if durability == "sync":
        assert last >= max(work.acknowledged)
    if durability == "async":
        assert last >= known
    Work(seed).run(again, 3)
    check(again)
    again.close()
    directory.close()


def test_async_is_certain_soon(tmp_path: Path) -> None:
    disk = ForgetfulDisk(tmp_path / "disk", tmp_path / "certain")
    disk.root.mkdir()
    directory = Directory(disk, "async")
    work = Work(1)
    work.run(directory, 8)
    wait_until(lambda: directory.store._log._certain == directory.now.epoch)
    disk.power_off()
    certain = LocalDisk(disk.certain)
    bury(certain)
    again = Directory(certain)
    assert again.now.epoch == directory.now.epoch
    assert again.content() == directory.content()
    again.close()
    directory.close()


@pytest.mark.parametrize("hole", [1, 2, 3])
def test_later_records_without_the_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hole: int) -> None:
    """What was not synced may be on disk in parts: records after a hole were never certain, and do not count."""
    monkeypatch.setattr(store, "LAG", 1000)
    disk = TornDisk(tmp_path)
    directory = Directory(disk, "async")
    work = Work(1)
    work.run(directory, 3)
    # All of it stays in one segment of the log: nothing is folded meanwhile.
    with directory.store.defining():
        directory.store._log.sync()
        certain = directory.now.epoch
        for _ in range(4):
            work.edit(directory)
            work.note(directory)
        disk.tear(hole)
        bury(disk)
        again = Directory(LocalDisk(tmp_path))
        assert again.now.epoch == certain + hole - 1
        assert again.content() == work.acknowledged[again.now.epoch]
        again.close()
        directory.store._log.close()
    directory.close()


def test_async_says_when_it_could_not_write(tmp_path: Path) -> None:
    disk = BreakingDisk(tmp_path, Fuse(error=full))
    directory = Directory(disk, "async")
    work = Work(1)
    work.run(directory, 6)
    # The last edit is not yet certain when the disk breaks: nothing is folded or synced before.
    with directory.store.defining(), directory.store._log._syncing:
        work.edit(directory)
        disk.fuse.left = disk.fuse.passed
    wait_until(lambda: directory.store._log.failed is not None)
    disk.fuse.burnt = False
    disk.fuse.left = None
    with pytest.raises(StorageFailed, match=f"some time ago .*{errno.ENOSPC}.* may be lost; connect again"):
        work.edit(directory)
    directory.close()
