"""The few things that the store does to a file system, and which of them survive a loss of power.

A name is a path below the directory, with slashes. What `write` did is certain only after `settle` of the folder, what was
appended to a log only after its `sync`. All of the store's safety is made of these, so a test that breaks them — by
a kill before or amid one, by forgetting what was not settled, by a full disk — has broken whatever can break.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from mmap import ACCESS_COPY, mmap
from pathlib import Path, PurePosixPath
from time import monotonic, sleep
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import pyarrow as pa

from headwater import private_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    # Writes a file's content to where it is told.
    Fill = Callable[[pa.NativeFile], object]

_WORKING = ".part"
_LOCK = "lease.lock"
# What is done under the lock takes milliseconds.
_PATIENCE = 10.0
_INTERVAL = 0.005
MARK = "headwater.json"
# What may be there before the mark is.
FIRST = frozenset({MARK, MARK + _WORKING, _LOCK})


class Appending(Protocol):
    """A file that grows at its end."""

    size: int

    def append(self, pieces: Sequence[bytes | pa.Buffer]) -> None: ...

    def sync(self) -> None:
        """What was appended is certain from here on."""
        ...

    def cut(self, size: int) -> None:
        """Takes back what came after the first `size` bytes, as far as that can be done."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """A directory of the store."""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        ...

    @property
    def address(self) -> str:
        """What opens it in another process: as `place`, with all that is needed to get there."""
        ...

    def write(self, name: str, fill: Fill) -> int:
        """A new file, its content certain, its name not yet; gives its size."""
        ...

    def settle(self, folder: str) -> None:
        """Names given and taken in the folder are certain from here on."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """The file has this content, or still the one before, whatever happens; then it is certain."""
        ...

    def log(self, name: str) -> Appending:
        """A new, empty log, its name certain."""
        ...

    def read(self, name: str, start: int = 0) -> bytes: ...

    def map(self, name: str) -> mmap:
        """The content of a file that never changes, read as it is needed."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of the file; None if there is none."""
        ...

    def files(self, folder: str) -> list[str]:
        """The names of all files in a folder, in order; also of those that someone left who was killed amid `replace`."""
        ...

    def remove(self, name: str) -> None:
        """Whoever has mapped the file goes on reading it."""
        ...

    def touch(self, name: str) -> None:
        """Sets the time of the file to now."""
        ...

    def touched(self, name: str) -> float:
        """The time of the file, as `time` counts; 0 if there is none."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """At most one process at a time is within, as far as the file system knows how."""
        ...

    def undisturbed(self) -> AbstractContextManager[None]:
        """Nobody is within `exclusive` meanwhile, where the file system has locks; where it has none, this does not wait."""
        ...


class LocalDisk:
    """A directory of the local file system, or of one that is mounted as if it were."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._mapped: WeakValueDictionary[str, mmap] = WeakValueDictionary()

    @property
    def place(self) -> str:
        return str(self.root)

    @property
    def address(self) -> str:
        return str(self.root)

    def write(self, name: str, fill: Fill) -> int:
        path = self._path_to_make(name)
        try:
            private_files.create(path)
            with pa.OSFile(str(path), "wb") as sink:
                fill(sink)
                size = int(sink.tell())
            _sync(path)
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        return size

    def rename(self, name: str, new: str) -> None:
        self.path(name).rename(self.path(new))

    def settle(self, folder: str) -> None:
        _sync(self.path(folder))

    def replace(self, name: str, data: bytes) -> None:
        self.write(name + _WORKING, lambda sink: sink.write(data))
        self.rename(name + _WORKING, name)
        self.settle(str(PurePosixPath(name).parent))

    def log(self, name: str) -> Appending:
        log = LocalLog(self._path_to_make(name))
        self.settle(str(PurePosixPath(name).parent))
        return log

    def read(self, name: str, start: int = 0) -> bytes:
        with self.path(name).open("rb") as file:
            file.seek(start)
            return file.read()

    def map(self, name: str) -> mmap:
        found = self._mapped.get(name)
        if found is None:
            with self.path(name).open("rb") as file:
                # Compiled loops take arrays that may be written to; a private mapping is one, and nobody writes.
                found = self._mapped[name] = mmap(file.fileno(), 0, access=ACCESS_COPY)
        return found

    def size(self, name: str) -> int | None:
        try:
            return self.path(name).stat().st_size
        except FileNotFoundError:
            return None

    def files(self, folder: str) -> list[str]:
        try:
            found = sorted(entry.name for entry in os.scandir(self.path(folder)) if entry.is_file())
        except FileNotFoundError:
            return []
        return [f"{folder}/{name}" for name in found]

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.path(name).unlink()

    def touch(self, name: str) -> None:
        os.utime(self.path(name))

    def touched(self, name: str) -> float:
        try:
            return self.path(name).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        path = self._path_to_make(_LOCK)
        while True:
            private_files.create(path)
            with path.open("wb") as file:
                _lock(file.fileno())
                try:
                    if _is_at(path, file.fileno()):
                        yield
                        return
                finally:
                    # To close the file is not enough: a process that was forked meanwhile has it open as well.
                    fcntl.flock(file.fileno(), fcntl.LOCK_UN)

    def undisturbed(self) -> AbstractContextManager[None]:
        return self.exclusive()

    def path(self, name: str) -> Path:
        return self.root / name

    def _path_to_make(self, name: str) -> Path:
        """The path of a file to come, whose folder is there, and certain."""
        path = self.path(name)
        if not path.parent.exists():
            self.make_folder(path.parent)
        return path

    def make_root(self) -> None:
        """The directory itself, certain, also if someone was killed who had just made it, or something above it."""
        self.make_folder(self.root)
        for folder in self.root.parents:
            # One that cannot be synced was not made for this.
            with suppress(OSError):
                _sync(folder)

    def make_folder(self, path: Path) -> None:
        """A folder with all that it is in, certain; what is not above the directory is private."""
        missing = [path, *path.parents]
        missing = missing[: next(i for i, folder in enumerate(missing) if folder.exists())]
        for folder in reversed(missing):
            if folder.is_relative_to(self.root):
                private_files.make_folder(folder)
            else:
                folder.mkdir(exist_ok=True)
            _sync(folder.parent)


class LocalLog:
    """A log on a local disk."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, private_files.FILE)
        self.size = 0

    def append(self, pieces: Sequence[bytes | pa.Buffer]) -> None:
        self.size += sum(_written(self._descriptor, piece) for piece in pieces)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def cut(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self.size = size

    def close(self) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Waits for the lock, but not for ever: whoever has it may be asleep."""
    end = monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if monotonic() > end:
                raise OSError(error.errno, f"another process holds {_LOCK!r} and does not go on") from error
            sleep(_INTERVAL)
        else:
            return


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is the one at a path: a lock on one that was removed keeps nobody out."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _written(descriptor: int, piece: bytes | pa.Buffer) -> int:
    view = memoryview(piece)
    total = len(view)
    while view:
        view = view[os.write(descriptor, view) :]
    return total
