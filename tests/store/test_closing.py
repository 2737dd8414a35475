"""Closing: whatever was acknowledged is on disk when `close` returns, and when that cannot be, it says so."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest
from broken_disks import BreakingDisk, Fuse
from kept_tables import Directory, Work, bury, check
from test_full_disks import full

import headwater as hw
from headwater.errors import DirectoryInUse, SessionClosed, StorageFailed
from headwater.store import disk as disks
from headwater.store import lease, opening, store
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path


def edited(directory: Directory, work: Work, times: int) -> None:
    for _ in range(times):
        work.edit(directory)
        work.note(directory)


@pytest.mark.parametrize("durability", ["memory", "async"])
def test_a_disk_that_fails_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str) -> None:
    monkeypatch.setattr(store, "LAG", 1000)
    disk = BreakingDisk(tmp_path, Fuse(error=full))
    directory, work = Directory(disk, durability), Work(1)
    work.run(directory, 3)
    directory.store.fold()
    edited(directory, work, 3)
    epoch = directory.now.epoch
    disk.fuse.left = disk.fuse.passed
    for _ in range(2):
        with pytest.raises(StorageFailed, match=f"Only this process has the epochs {epoch - 2} to {epoch}, .* close it again"):
            directory.close()
    assert lease.current(disk) == directory.store._lease.holder
    disk.fuse.left, disk.fuse.burnt = None, False
    if durability == "memory":
        # There is room again, and it goes on.
        edited(directory, work, 1)
    directory.close()
    directory.close()
    again = Directory(LocalDisk(tmp_path))
    assert again.now.epoch == max(work.acknowledged)
    assert again.content() == work.acknowledged[again.now.epoch]
    again.close()


def test_what_the_log_has_is_not_lost_when_the_last_fold_fails(tmp_path: Path) -> None:
    disk = BreakingDisk(tmp_path, Fuse(error=full))
    directory, work = Directory(disk), Work(1)
    work.run(directory, 3)
    edited(directory, work, 2)
    disk.fuse.left = disk.fuse.passed
    directory.close()
    # The lease could not be written, either.
    bury(LocalDisk(tmp_path))
    again = Directory(LocalDisk(tmp_path))
    assert again.now.epoch == max(work.acknowledged)
    assert again.content() == work.acknowledged[again.now.epoch]
    again.close()


def test_who_has_lost_the_directory_is_told_what_is_lost(tmp_path: Path) -> None:
    directory, work = Directory(LocalDisk(tmp_path), "memory"), Work(1)
    work.run(directory, 3)
    directory.store.fold()
    with directory.store.defining():
        edited(directory, work, 1)
        os.utime(tmp_path / lease.FILE, (0, 0))
        successor = Directory(LocalDisk(tmp_path))
        with pytest.raises(DirectoryInUse, match=f"and epoch {directory.now.epoch} with it"):
            directory.close()
    assert directory.store.is_closed
    successor.close()


@pytest.mark.parametrize("durability", store.DURABILITY)
def test_a_commit_beside_close_is_kept_or_refused(tmp_path: Path, durability: str) -> None:
    directory, work = Directory(LocalDisk(tmp_path), durability), Work(1)
    work.run(directory, 3)
    begun, wrong = threading.Event(), list[BaseException]()

    def commit() -> None:
        try:
            while True:
                edited(directory, work, 1)
                begun.set()
        except SessionClosed:
            pass
        except BaseException as error:  # noqa: BLE001  (what a thread raises would be lost)
            wrong.append(error)
        finally:
            begun.set()

    thread = threading.Thread(target=commit)
    thread.start()
    begun.wait()
    directory.close()
    thread.join()
    assert not wrong
    again = Directory(LocalDisk(tmp_path))
    assert again.now.epoch == max(work.acknowledged)
    assert again.content() == work.acknowledged[again.now.epoch]
    check(again)
    again.close()


def test_a_session_stays_open_when_it_cannot_be_closed(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = shutil.copytree(template, tmp_path / "shop")
    disk = BreakingDisk(place, Fuse(error=full))
    monkeypatch.setattr(opening, "disk_at", lambda _: disk)
    session = hw.connect(place, durability="memory")
    epoch = session.insert("brands", [("acme", "z")])
    disk.fuse.left = disk.fuse.passed
    with pytest.raises(StorageFailed, match=os.strerror(errno.ENOSPC)):
        session.close()
    disk.fuse.left, disk.fuse.burnt = None, False
    assert session.insert("brands", [("acme", "zz")]) == epoch + 1
    session.close()
    with pytest.raises(SessionClosed):
        session.insert("brands", [("acme", "zzz")])
    monkeypatch.undo()
    with hw.connect(place) as session:
        assert session.epoch == epoch + 1


def test_all_that_a_new_directory_is_in_is_certain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    sync = disks._sync
    monkeypatch.setattr(disks, "_sync", lambda path: (synced.append(path), sync(path)))
    root = tmp_path / "a" / "b" / "c"
    with hw.connect(root):
        before = synced.index(root)
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= set(synced[:before])
    # Also if it was made by someone who was killed right then.
    (tmp_path / "x" / "y").mkdir(parents=True)
    synced.clear()
    with hw.connect(tmp_path / "x" / "y"):
        assert {tmp_path, tmp_path / "x"} <= set(synced)
