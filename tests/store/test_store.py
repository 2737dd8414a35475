"""Directories: what was committed is there again, whatever happened, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from broken_disks import BreakingDisk, ForgetfulDisk, Fuse, Killed
from kept_tables import Directory, Work, check, killed, reopened

from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path


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
@pytest.mark.parametrize(
    "after", [*range(0, 120, 8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(400) if n % 8 or n >= 120)]
)
def test_a_kill_at_any_operation(tmp_path: Path, after: int) -> None:
    work = Work(after)
    with pytest.raises(Killed):
        killed(BreakingDisk(tmp_path, Fuse(after)), work)
    reopened(LocalDisk(tmp_path), work)


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
