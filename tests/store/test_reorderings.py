"""The power goes at any moment, and of what was not synced anything may be left: epochs that were acknowledged are there."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from kept_tables import Directory, Work, bury, check
from reordering import Crashes, RecordingDisk, Writing

from headwater.errors import InvalidTarget, UnknownFormat
from headwater.store import backup as backups
from headwater.store import disk as disks
from headwater.store import store
from headwater.store.disk import LocalDisk
from headwater.store.store import Retention

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reordering import Outcome

SIZES = [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.slow)]


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is only looked at need not outlive the test."""
    monkeypatch.setattr(disks, "_sync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


class Recorded(Work):
    """Work that notes, at its disk, which epochs are safe."""

    def __init__(self, seed: int, disk: RecordingDisk) -> None:
        super().__init__(seed)
        self.disk = disk

    def note(self, directory: Directory) -> None:
        super().note(directory)
        kept = directory.store
        certain = {"sync": directory.now.epoch, "async": kept._log._certain, "memory": 0}[kept._durability]
        self.disk.promise(max(certain, kept._manifest.epoch))


def chosen(disk: RecordingDisk, *, large: bool) -> list[Outcome]:
    """The outcomes to look at: all, or about a hundred from the beginning to the end."""
    found = Crashes(disk, most=256 if large else 16).outcomes()
    return found if large else found[:: max(1, len(found) // 100)]


def reopened(outcomes: list[Outcome], work: Work, place: Path, *, large: bool) -> None:
    """Each of them opens at an epoch that was promised, or a later one, whole, and goes on."""
    for number, outcome in enumerate(outcomes):
        disk = outcome.put(place)
        bury(disk)
        directory = Directory(disk)
        try:
            epoch = directory.now.epoch
            assert epoch >= outcome.promised
            if epoch:
                assert directory.content() == work.acknowledged[epoch]
            check(directory)
            if large or number % 10 == 0:
                again = Work(number)
                again.run(directory, 2)
                check(directory)
                directory.close()
                directory = Directory(disk)
                assert directory.content() == again.acknowledged[directory.now.epoch]
        finally:
            directory.close()


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("large", SIZES)
@pytest.mark.parametrize("durability", store.DURABILITY)
def test_commits_definitions_and_folds(tmp_path: Path, durability: str, *, large: bool) -> None:
    disk = RecordingDisk(tmp_path / "disk")
    disk.root.mkdir()
    work = Recorded(1, disk)
    directory = Directory(disk, durability, Retention(3))
    work.run(directory, 12)
    for _ in range(2 if large else 1):
        work.run(directory, 2)
        directory.store.fold()
        work.note(directory)
    directory.close()
    disk.promise(directory.now.epoch)
    assert any(isinstance(each, Writing) for each in disk.operations)
    reopened(chosen(disk, large=large), work, tmp_path / "left", large=large)


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("large", SIZES)
def test_opening_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool) -> None:
    """Records are run again, and what an older holder wrote becomes void."""
    monkeypatch.setattr(store, "_BYTES", 1 << 30)
    before = Directory(LocalDisk(tmp_path / "before"))
    first = Work(1)
    first.run(before, 5)
    with before.store.defining():
        for _ in range(3):
            first.edit(before)
            first.note(before)
        shutil.copytree(tmp_path / "before", tmp_path / "disk")
    before.close()
    disk = RecordingDisk(tmp_path / "disk")
    bury(LocalDisk(disk.root))
    disk = RecordingDisk(disk.root)
    disk.promise(max(first.acknowledged))
    work = Recorded(2, disk)
    work.acknowledged = dict(first.acknowledged)
    directory = Directory(disk)
    work.note(directory)
    for _ in range(2):
        work.edit(directory)
        work.note(directory)
    directory.close()
    reopened(chosen(disk, large=large), work, tmp_path / "left", large=large)


class Source:
    """A directory with two backups: the first one whole, the second one to be interrupted."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.target = tmp_path / "source", tmp_path / "copy"
        self.left, self.restored = tmp_path / "left", tmp_path / "restored"
        self.work = Work(1)
        directory = Directory(LocalDisk(self.place), retention=Retention(3))
        self.work.run(directory, 6)
        self.disk = RecordingDisk(self.target)
        with monkeypatch.context() as patch:
            patch.setattr(backups, "disk_at", lambda path: self.disk if path == self.target else LocalDisk(path))
            backups.backup(self.place, self.target)
            self.first = directory.now.epoch
            self.disk.promise(self.first)
            self.work.run(directory, 3)
            directory.store.fold()
            self.work.note(directory)
            self.work.edit(directory)
            self.work.note(directory)
            backups.backup(self.place, self.target)
            self.disk.promise(directory.now.epoch)
        directory.close()

    def restoring(self, *, finished: bool) -> Iterator[Directory]:
        """What is restored from what is left, if anything can be."""
        shutil.rmtree(self.restored, ignore_errors=True)
        try:
            backups.restore(self.left, self.restored)
        except (UnknownFormat, InvalidTarget):
            assert not finished
            return
        directory = Directory(LocalDisk(self.restored))
        try:
            yield directory
        finally:
            directory.close()


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("large", SIZES)
def test_backups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool) -> None:
    source = Source(tmp_path, monkeypatch)
    last = max(source.work.acknowledged)
    for outcome in chosen(source.disk, large=large):
        outcome.put(source.left)
        for directory in source.restoring(finished=outcome.promised > 0):
            assert directory.now.epoch >= outcome.promised
            if directory.now.epoch:
                assert directory.content() == source.work.acknowledged[directory.now.epoch]
        backups.backup(source.place, source.left)
        for directory in source.restoring(finished=True):
            assert directory.now.epoch == last
            assert directory.content() == source.work.acknowledged[last]
