"""Disks that refuse: what fails changes nothing, and goes on when there is room again."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from broken_disks import BreakingDisk, Fuse
from kept_tables import Directory, Work, check, reopened

import headwater as hw
from headwater.errors import StorageFailed, UnknownFormat
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

SOME = (0, 1, 2, 3, 5, 8, 13, 21, 29)
POINTS = [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in range(60)]


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("after", POINTS)
def test_a_full_disk(tmp_path: Path, after: int, once: bool) -> None:  # noqa: FBT001
    disk = BreakingDisk(tmp_path, Fuse(error=full, once=once))
    directory = Directory(disk)
    work = Work(after)
    work.run(directory, 2)
    disk.fuse.left = disk.fuse.passed + after
    failures = try_all(directory, work)
    disk.fuse.left, disk.fuse.burnt = None, False
    if once:
        assert failures <= 1
        work.edit(directory)
        work.note(directory)
    check(directory)
    directory.close()
    reopened(LocalDisk(tmp_path), work)


def try_all(directory: Directory, work: Work) -> int:
    """Does a bit of everything; what fails leaves everything as it was."""
    failures = 0
    for step in range(12):
        before = directory.now.epoch, directory.content()
        try:
            if step == 2:
                directory.define("joined")
            elif step == 6:
                directory.define(*{*directory.now.views, "again"})
            elif step % 5 == 4:
                directory.store.fold()
            else:
                work.edit(directory)
        except StorageFailed as error:
            failures += os.strerror(errno.ENOSPC) in str(error)
            assert (directory.now.epoch, directory.content()) == before
        work.note(directory)
        check(directory)
    return failures


def test_a_record_that_was_not_acknowledged_is_not_there_later(tmp_path: Path) -> None:
    disk = BreakingDisk(tmp_path, Fuse(error=full, once=True))
    directory = Directory(disk)
    work = Work(1)
    work.run(directory, 3)
    epoch, content = directory.now.epoch, directory.content()
    # It is appended, and then it cannot be synced.
    with directory.store.defining():
        disk.fuse.left = disk.fuse.passed + 1
        with pytest.raises(StorageFailed):
            work.edit(directory)
    directory.close()
    directory = Directory(LocalDisk(tmp_path))
    assert (directory.now.epoch, directory.content()) == (epoch, content)
    directory.close()


def test_an_interrupted_commit_is_not_there_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Directory(LocalDisk(tmp_path))
    work = Work(1)
    work.run(directory, 3)
    before = directory.now.epoch

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # The record is certain, and then someone presses a key.
    with monkeypatch.context() as patch:
        patch.setattr(directory.epochs.history, "add_if_few", interrupt)
        with pytest.raises(KeyboardInterrupt):
            work.edit(directory)
    assert directory.now.epoch == before
    work.edit(directory)
    epoch, content = directory.now.epoch, directory.content()
    assert epoch == before + 1
    directory.store._lease.release()
    again = Directory(LocalDisk(tmp_path))
    assert (again.now.epoch, again.content()) == (epoch, content)
    again.close()


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for mode in ("w", "r"):
        with pytest.raises(StorageFailed, match="file"):
            hw.connect(file, mode=mode)
    with pytest.raises(StorageFailed, match="/proc/"):
        hw.connect("/proc/headwater")
    with pytest.raises(UnknownFormat, match="is not empty and not a Headwater directory"):
        hw.connect(tmp_path)
    with pytest.raises(UnknownFormat, match="no Headwater directory"):
        hw.connect(tmp_path, mode="r")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "mine"


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFailed, match="Permission denied"):
        hw.connect(tmp_path)


@pytest.mark.parametrize("left", ["headwater.json.part", "lease.lock"])
def test_who_was_killed_while_making_a_directory_is_not_in_the_way(tmp_path: Path, left: str) -> None:
    (tmp_path / left).write_bytes(b"")
    with hw.connect(tmp_path) as session:
        assert session.epoch == 0
    with hw.connect(tmp_path, mode="r") as session:
        assert session.epoch == 0
