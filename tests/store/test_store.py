"""Directories: what was committed is there again, whatever happened, and nothing else is."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from broken_disks import BreakingDisk, ForgetfulDisk, Fuse, Killed
from kept_tables import Directory, check

from headwater.store import lease
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

    from small_tables import Row

    from headwater.store.disk import Disk


class Work:
    """Random changes, and the content after each epoch that was acknowledged."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.acknowledged: dict[int, dict[str, Any]] = {}
        self.rows: dict[str, list[Row]] = {"r": [], "s": []}

    def run(self, directory: Directory, steps: int = 12) -> None:
        if not directory.now.entries:
            directory.define()
            self.note(directory)
        for step in range(steps):
            if step == 3 and not directory.now.views:
                directory.define("joined")
            elif step == 7 and len(directory.now.views) == 1:
                directory.define("joined", "again")
            elif step == 9:
                directory.store.fold()
            else:
                self.edit(directory)
            self.note(directory)

    def edit(self, directory: Directory) -> None:
        content = directory.content()
        inserted = {name: [(self.random.randrange(3), self.random.randrange(9)) for _ in range(3)] for name in "rs"}
        deleted = {}
        for name in "rs":
            present = sorted(content[name].elements())
            deleted[name] = self.random.sample(present, min(len(present), 2))
        directory.edit(inserted, deleted)

    def note(self, directory: Directory) -> None:
        self.acknowledged[directory.now.epoch] = directory.content()


def bury(disk: Disk) -> None:
    """Makes it known that the holder of the lease is dead."""
    holder = lease.current(disk)
    if holder is not None:
        disk.replace(lease.FILE, json.dumps({**asdict(holder), "started": "long ago"}).encode())


def reopened(disk: Disk, work: Work) -> None:
    """The directory holds an epoch that was acknowledged, the last one or one that was about to be; and it goes on."""
    bury(disk)
    directory = Directory(disk)
    last = max(work.acknowledged, default=0)
    assert directory.now.epoch in (last, last + 1)
    check(directory)
    if directory.now.epoch == last and last:
        assert directory.content() == work.acknowledged[last]
    work.acknowledged = {epoch: content for epoch, content in work.acknowledged.items() if epoch <= directory.now.epoch}
    work.run(directory, 3)
    check(directory)
    directory.close()
    directory = Directory(disk)
    assert directory.content() == work.acknowledged[directory.now.epoch]
    directory.close()


def test_a_directory_is_what_it_was(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    work = Work(1)
    for _ in range(4):
        directory = Directory(disk)
        work.run(directory)
        content, epoch = directory.content(), directory.now.epoch
        directory.close()
        directory = Directory(disk)
        assert (directory.content(), directory.now.epoch) == (content, epoch)
        assert all(run.file for state in directory.now.states.values() for a in state for run in a.runs)
        check(directory)
        directory.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("after", range(0, 120, 3))
def test_a_kill_at_any_operation(tmp_path: Path, after: int) -> None:
    work = Work(after)
    with pytest.raises(Killed):
        killed(BreakingDisk(tmp_path, Fuse(after)), work)
    reopened(LocalDisk(tmp_path), work)


def killed(disk: LocalDisk, work: Work) -> None:
    directory = Directory(disk)
    for _ in range(20):
        work.run(directory)


@pytest.mark.parametrize("seed", range(12))
def test_what_was_not_made_certain_is_lost(tmp_path: Path, seed: int) -> None:
    disk = ForgetfulDisk(tmp_path / "disk", tmp_path / "certain")
    disk.root.mkdir()
    work = Work(seed)
    directory = Directory(disk)
    work.run(directory, 1 + seed)
    disk.power_off()
    reopened(LocalDisk(disk.certain), work)
    directory.close()
