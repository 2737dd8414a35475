"""The lease: who may write to a directory.

    fence    grows by one with every holder; what an older holder writes after that is void, whenever it arrives
    alive    a holder touches the lease three times within its time-out; one that has not, or whose process is gone, has lost it

A writer that was asleep cannot know that it has lost the lease until it looks. So it looks *after* its record is on disk and
before it tells anyone: if the lease was still its own then, whoever takes over will read that record. What must not happen
after the lease is lost — to release it, to take something back — is done while nobody can take it.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from threading import Event, Thread
from time import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import xxhash

from headwater.errors import DamagedFile, DirectoryInUse, HeadwaterError
from headwater.ownership import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.store.disk import Disk

FILE = "lease.json"
TIMEOUT = 10.0


@dataclass(frozen=True)
class Holder:
    """Who holds, or held, a lease."""

    fence: int
    token: str
    host: str
    process: int
    user: str
    started: str
    """When the process started, by its system's clock: numbers of processes are used again."""
    released: bool = False

    @property
    def words(self) -> str:
        return f"process {self.process} of {self.user} on {self.host}"

    @property
    def gone(self) -> bool:
        """Whether the process has ended for certain."""
        return self.host == socket.gethostname() and _started(self.process) != self.started


class Lease:
    """The right to write, held until it is released or lost."""

    def __init__(self, disk: Disk, holder: Holder, timeout: float) -> None:
        self.holder = holder
        self._owner = Owner()
        self._disk = disk
        self._timeout = timeout
        self._over = Event()
        self._heart = Thread(target=self._beat, name="headwater-lease", daemon=True)
        self._heart.start()

    @property
    def fence(self) -> int:
        return self.holder.fence

    def require(self) -> None:
        """Raises unless the lease is still held, by this process."""
        self._owner.require()
        present = current(self._disk)
        if present is None or present.token != self.holder.token:
            by = "nobody" if present is None else present.words
            raise DirectoryInUse(
                f"this session has lost the directory {self._disk.place!r}, which is now held by {by}; what it had committed "
                "before is safe. Connect again to go on"
            )

    def release(self) -> None:
        """Lets the next one in at once."""
        self._owner.require()
        self._over.set()
        self._heart.join()
        with suppress(HeadwaterError, OSError), self.kept():
            _give_back(self._disk, self.holder)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Nobody else takes the lease within; raises if it is lost already."""
        with self._disk.undisturbed():
            self.require()
            yield

    def _beat(self) -> None:
        while not self._over.wait(self._timeout / 3):
            with suppress(OSError, HeadwaterError):
                self.require()
                self._disk.touch(FILE)


def acquire(disk: Disk, timeout: float = TIMEOUT, above: int = 0) -> Lease:
    """Takes the lease, from nobody, from one who has released it, or from one who is not alive any more.

    The fence is higher than `above`, whatever became of the lease of those who wrote before.
    """
    with disk.exclusive():
        before = _before(disk, timeout)
        if before is not None and not (before.released or before.gone):
            age = time() - disk.touched(FILE)
            if age < timeout:
                raise DirectoryInUse(
                    f"the directory {disk.place!r} is being written by {before.words}, last seen {age:.1f} s ago; close it "
                    f'there, or read it with mode="r". If that process has died elsewhere, try again in {timeout:.0f} s'
                )
        process = os.getpid()
        fence = 1 + max(above, 0 if before is None else before.fence)
        holder = Holder(fence, uuid4().hex, socket.gethostname(), process, _user(), _started(process))
        try:
            _put(disk, holder)
        except BaseException:
            # It may be there all the same.
            with suppress(HeadwaterError, OSError):
                if current(disk) == holder:
                    _give_back(disk, holder)
            raise
    after = current(disk)
    if after is None or after.token != holder.token:
        by = "someone" if after is None else after.words
        raise DirectoryInUse(f"the directory {disk.place!r} was taken by {by} at the same moment; close it there, or try again")
    return Lease(disk, holder, timeout)


def current(disk: Disk) -> Holder | None:
    """The last one who took the lease."""
    try:
        said = json.loads(disk.read(FILE))
        check = said.pop("check", None)
        if check not in (None, _check(said)):
            raise DamagedFile(FILE, "its checksum is not the one it was written with")
        return Holder(**said)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedFile(FILE, "it does not say who may write") from error


def _before(disk: Disk, timeout: float) -> Holder | None:
    """Who is to be asked; of a file that cannot be read, nobody, when it was not touched for long enough."""
    try:
        return current(disk)
    except DamagedFile as damage:
        if time() - disk.touched(FILE) < timeout:
            what = f"{damage.what}, so that nobody knows who writes here; if nobody does, try again in {timeout:.0f} s"
            raise DamagedFile(FILE, what) from damage
        return None


def _give_back(disk: Disk, holder: Holder) -> None:
    """Says that the lease is free; where that cannot be written, as on a full disk, nothing says that it is held."""
    try:
        _put(disk, replace(holder, released=True))
    except OSError:
        disk.remove(FILE)


def _put(disk: Disk, holder: Holder) -> None:
    said = asdict(holder)
    disk.replace(FILE, json.dumps({**said, "check": _check(said)}).encode())


def _check(said: Any) -> str:  # noqa: ANN401  (as it was read)
    return xxhash.xxh3_64_hexdigest(json.dumps(said, sort_keys=True).encode())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _started(process: int) -> str:
    """When a process of this system started, as the kernel counts; empty if there is none, or only what is left of one."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            state = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state[0] in "ZX" else state[19]
