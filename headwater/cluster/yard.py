"""Yards: where jobs leave the files of runs. A directory that the driver and all executors reach.

A session in a directory has its own; the files of a job count there once a snapshot has them. A session in memory gets a
temporary one, in which nothing stays that the present snapshot does not need. There may be two jobs at once, of an epoch and
of a view that is being built: each has a yard, and what is in the one stays when the other is settled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from headwater.ownership import ScratchFolder
from headwater.store.disk import LocalDisk
from headwater.store.manifest import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from headwater.runtime.catalog import Snapshot
    from headwater.store.disk import Disk
    from headwater.store.store import Store


@dataclass(frozen=True)
class Yard:
    """A directory, and names for files that nobody else gives, each also the beginning of other names; for one job."""

    disk: Disk
    reserve: Callable[[], str]
    keep: Callable[[Collection[str]], None] = lambda _: None
    names: list[str] = field(default_factory=list)

    def new_name(self) -> str:
        self.names.append(self.reserve())
        return self.names[-1]

    def hold(self, names: Collection[str]) -> None:
        """Files that are there already stay as well."""
        self.names.extend(names)
        self.keep(names)


class Yards(Protocol):
    """Opens yards for jobs."""

    def open(self) -> Yard:
        """For the next job: nothing is removed from it until it is settled."""
        ...

    def settled(self, yard: Yard, now: Callable[[], Snapshot]) -> None:
        """What the job has left is in the present snapshot, or can go."""
        ...

    def close(self) -> None:
        """There will be no more jobs."""
        ...


class StoreYards:
    """In the directory of a session."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self) -> Yard:
        return Yard(self._store.disk, self._store.reserve, self._store.hold)

    def settled(self, yard: Yard, now: Callable[[], Snapshot]) -> None:  # noqa: ARG002
        self._store.release(yard.names)

    def close(self) -> None:
        """The directory outlives the session."""


class ScratchYards:
    """In a temporary directory of this machine."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = Lock()
        self._open: list[Yard] = []

    @cached_property
    def _disk(self) -> LocalDisk:
        self._scratch = ScratchFolder()
        return LocalDisk(self._scratch.path)

    def open(self) -> Yard:
        yard = Yard(self._disk, lambda: f"{RUNS}/{next(self._numbers):08}.arrow")
        with self._lock:
            self._open.append(yard)
        return yard

    def settled(self, yard: Yard, now: Callable[[], Snapshot]) -> None:
        with self._lock:
            self._open.remove(yard)
            found = self._disk.files(RUNS)
            reserved = tuple(name.removesuffix(".arrow") for other in self._open for name in other.names)
        # In this order: what another job has left is in the present snapshot before its yard is closed.
        needed = {run.file for state in now().states.values() for kept in state for run in kept.runs}
        for name in found:
            if name not in needed and not name.startswith(reserved):
                self._disk.remove(name)

    def close(self) -> None:
        if "_disk" in self.__dict__:
            self._scratch.remove()
