"""Yards: where jobs leave the files of runs. A directory that the driver and all executors reach.

A session in a directory has its own; the files of a job count there once a snapshot has them. A session in memory gets a
temporary one, in which nothing stays that the present snapshot does not need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Protocol
from weakref import finalize

from headwater.store.disk import LocalDisk
from headwater.store.manifest import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.runtime.catalog import Snapshot
    from headwater.store.disk import Disk
    from headwater.store.store import Store


@dataclass(frozen=True)
class Yard:
    """A directory, and names for files that nobody else gives."""

    disk: Disk
    new_name: Callable[[], str]


class Yards(Protocol):
    """Opens yards for jobs."""

    def open(self) -> Yard:
        """For the next job: nothing is removed from it until it is settled."""
        ...

    def settled(self, now: Snapshot) -> None:
        """What jobs have left is in this snapshot, or can go."""
        ...

    def close(self) -> None:
        """There will be no more jobs."""
        ...


class StoreYards:
    """In the directory of a session."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self) -> Yard:
        return Yard(self._store.disk, self._store.reserve)

    def settled(self, now: Snapshot) -> None:  # noqa: ARG002
        self._store.release()

    def close(self) -> None:
        """The directory outlives the session."""


class ScratchYards:
    """In a temporary directory of this machine."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._used = False

    @cached_property
    def _disk(self) -> LocalDisk:
        folder = mkdtemp(prefix="headwater-")
        # Also when nobody closes the session.
        self._remove = finalize(self, rmtree, folder, ignore_errors=True)
        return LocalDisk(Path(folder))

    def open(self) -> Yard:
        self._used = True
        return Yard(self._disk, lambda: f"{RUNS}/{next(self._numbers):08}.arrow")

    def settled(self, now: Snapshot) -> None:
        if not self._used:
            return
        self._used = False
        needed = {run.file for state in now.states.values() for kept in state for run in kept.runs}
        for name in self._disk.files(RUNS):
            if name not in needed:
                self._disk.remove(name)

    def close(self) -> None:
        if "_disk" in self.__dict__:
            self._remove()
