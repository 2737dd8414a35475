"""Disks that break: at any one operation, or in what they forget when the power goes."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa

from headwater.store import disk as disks
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.store.disk import Appending, Fill


class Killed(BaseException):
    """The process is gone: nothing may handle this."""


class Fuse:
    """Lets so many operations pass and then breaks, for good."""

    def __init__(
        self, operations: int | None = None, error: Callable[[], BaseException] = Killed, *, once: bool = False
    ) -> None:
        self.left = operations
        self.error = error
        self.once = once
        self.passed = 0
        self.burnt = False

    def half(self) -> bool:
        """Whether this operation is the one that breaks; half of it may be done."""
        self.passed += 1
        if self.burnt and not self.once:
            raise self.error()
        return self.left is not None and self.passed == self.left + 1

    def blow(self) -> None:
        self.burnt = True
        raise self.error()


# How the operating system is asked for something, where the store does.
_CALLS: tuple[tuple[Any, str], ...] = (
    *((os, name) for name in ("open", "write", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir", "scandir")),
    *((os, name) for name in ("stat", "utime")),
    (io, "open"),
    (pa, "OSFile"),
    (disks, "mmap"),
)


@contextmanager
def breaking_calls(root: Path, fuse: Fuse) -> Iterator[None]:
    """Every call of the operating system that this thread makes for files below a directory goes through the fuse."""
    thread = get_ident()

    def concerned(which: object) -> bool:
        if isinstance(which, int):
            which = Path(f"/proc/self/fd/{which}").readlink()
        return get_ident() == thread and os.fspath(which).startswith(str(root))  # type: ignore[call-overload]

    def call(real: Callable[..., Any], which: object, *given: Any, **named: Any) -> Any:
        if concerned(which) and fuse.half():
            fuse.blow()
        return real(which, *given, **named)

    patches = [patch.object(place, name, partial(call, getattr(place, name))) for place, name in _CALLS]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


class BreakingDisk(LocalDisk):
    """A disk on which an operation is the last one, amid which the process dies, or which fails."""

    def __init__(self, root: Path, fuse: Fuse) -> None:
        super().__init__(root)
        self.fuse = fuse

    def write(self, name: str, fill: Fill) -> int:
        if self.fuse.half():
            super().write(name, lambda sink: sink.write(b"half"))
            self.fuse.blow()
        return super().write(name, fill)

    def rename(self, name: str, new: str) -> None:
        self._whole()
        super().rename(name, new)

    def settle(self, folder: str) -> None:
        self._whole()
        super().settle(folder)

    def remove(self, name: str) -> None:
        self._whole()
        super().remove(name)

    def log(self, name: str) -> Appending:
        self._whole()
        return BreakingLog(super().log(name), self.fuse)

    def _whole(self) -> None:
        if self.fuse.half():
            self.fuse.blow()


class BreakingLog:
    def __init__(self, log: Appending, fuse: Fuse) -> None:
        self._log = log
        self._fuse = fuse

    @property
    def size(self) -> int:
        return self._log.size

    def append(self, pieces: Sequence[bytes | pa.Buffer]) -> None:
        if self._fuse.half():
            whole = b"".join(bytes(piece) for piece in pieces)
            self._log.append([whole[: len(whole) // 2]])
            self._fuse.blow()
        self._log.append(pieces)

    def sync(self) -> None:
        if self._fuse.half():
            self._fuse.blow()
        self._log.sync()

    def cut(self, size: int) -> None:
        if self._fuse.half():
            self._fuse.blow()
        self._log.cut(size)

    def close(self) -> None:
        self._log.close()


class ForgetfulDisk(LocalDisk):
    """A disk that keeps only what was made certain, in a directory beside: what is there after the power has gone."""

    def __init__(self, root: Path, certain: Path) -> None:
        super().__init__(root)
        self.certain = certain
        self._names: dict[str, str | None] = {}
        self._lock = Lock()
        self._is_on = True

    def power_off(self) -> None:
        with self._lock:
            self._is_on = False

    @contextmanager
    def powered(self) -> Iterator[bool]:
        with self._lock:
            yield self._is_on

    def write(self, name: str, fill: Fill) -> int:
        size = super().write(name, fill)
        self._names[name] = name
        return size

    def rename(self, name: str, new: str) -> None:
        super().rename(name, new)
        self._names[name], self._names[new] = None, new

    def remove(self, name: str) -> None:
        super().remove(name)
        self._names[name] = None

    def settle(self, folder: str) -> None:
        super().settle(folder)
        with self.powered() as on:
            for name, present in list(self._names.items()) if on else []:
                if str(PurePosixPath(name).parent) == folder:
                    del self._names[name]
                    copy = self.certain / name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.unlink(missing_ok=True)
                    if present is not None:
                        os.link(self.path(name), copy)

    def log(self, name: str) -> Appending:
        copy = self.certain / name
        with self.powered() as on:
            if on:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.touch()
        return ForgetfulLog(self, super().log(name), self.path(name), copy)


class ForgetfulLog:
    def __init__(self, disk: ForgetfulDisk, log: Appending, path: Path, copy: Path) -> None:
        self._disk = disk
        self._log = log
        self._path = path
        self._copy = copy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def sync(self) -> None:
        self._log.sync()
        with self._disk.powered() as on:
            if on:
                self._copy.write_bytes(self._path.read_bytes())


class TornDisk(LocalDisk):
    """A disk on which parts of a log that was not synced may be missing, while later parts are there."""

    def log(self, name: str) -> Appending:
        self._torn = TornLog(super().log(name), self.path(name))
        return self._torn

    def tear(self, number: int) -> None:
        """Takes out a record of those that came after the last sync, counted from one."""
        start, stop = self._torn.pieces[number - 1]
        data = bytearray(self._torn.path.read_bytes())
        data[start:stop] = bytes(stop - start)
        self._torn.path.write_bytes(data)


class TornLog:
    def __init__(self, log: Appending, path: Path) -> None:
        self._log = log
        self.path = path
        self.pieces: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, pieces: Sequence[bytes | pa.Buffer]) -> None:
        start = self._log.size
        self._log.append(pieces)
        self.pieces.append((start, self._log.size))

    def sync(self) -> None:
        self._log.sync()
        self.pieces = []
