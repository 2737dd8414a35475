"""Directories in object stores, where nothing is appended, renamed or locked: an object appears whole, by one put.

    file   one object; written to a local file first, and mapped from one, which is fetched once and gone with the mapping
    log    a prefix, with one object for each sync:  log/….log/00000000, …/00000001, …
    lease  one object, and another beside it that is put again and again: its time says that the holder is alive

To open a directory here fetches what is in it, once.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock
from time import sleep
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType

from headwater.errors import DamagedFile, InvalidOption
from headwater.redaction import shown_cause
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyarrow.fs import FileInfo

    from headwater.store.disk import Appending, Disk, Fill

# Whoever takes a lease waits so many seconds before it looks whose it is: longer than another one needs to put its own.
SETTLING = 1.0
_ALIVE = ".alive"
_CHUNK = 8 << 20


class ObjectDisk:
    """A prefix of an object store, through any file system that PyArrow has for one."""

    def __init__(
        self, files: FileSystem, root: str, place: str, settling: float = SETTLING, address: str | None = None
    ) -> None:
        self._files = files
        self._root = root.rstrip("/")
        self._place = place
        self.address = place if address is None else address
        self._settling = settling
        self._mapped: WeakValueDictionary[str, mmap] = WeakValueDictionary()
        # Who writes a file maps it next.
        self._written: mmap | None = None

    @staticmethod
    def at(uri: str) -> Disk:
        """The disk for a URI such as s3://bucket/path; for file:///path, the local one."""
        parts = urlsplit(uri)
        if parts.scheme == "file":
            return LocalDisk(Path(unquote(parts.path)))
        try:
            files, root = FileSystem.from_uri(_with_single_puts(uri) if parts.scheme == "s3" else uri)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidOption(
                f"{uri.partition('?')[0]!r} is no place that PyArrow knows: {error}; give a path, or a URI such as s3://bucket/path"
            ) from shown_cause(error, uri)
        return ObjectDisk(files, root, f"{parts.scheme}://{root.rstrip('/')}", address=uri)

    @property
    def place(self) -> str:
        return self._place

    def write(self, name: str, fill: Fill) -> int:
        with TemporaryDirectory(prefix="headwater-") as folder:
            path = Path(folder) / "file"
            with pa.OSFile(str(path), "wb") as sink:
                fill(sink)
            if not path.stat().st_size:
                self._put(name, b"")
                return 0
            with path.open("rb") as file:
                memory = mmap(file.fileno(), 0, access=ACCESS_COPY)
        self._put(name, pa.py_buffer(memory))
        self._written = self._mapped[name] = memory
        return len(memory)

    def settle(self, folder: str) -> None:
        """A put is certain at once."""

    def replace(self, name: str, data: bytes) -> None:
        self._put(name, data)

    def log(self, name: str) -> Appending:
        return ObjectLog(self, name)

    def put_part(self, name: str, number: int, data: bytes) -> None:
        """The next object of a log."""
        self._put(f"{name}/{number:08}", data)

    def read(self, name: str, start: int = 0) -> bytes:
        try:
            with self._files.open_input_file(self._path(name)) as file:
                file.seek(min(start, file.size()))
                return file.read()
        except FileNotFoundError:
            parts = self._parts(name)
            if not parts:
                raise
        found = []
        for number, info in enumerate(parts):
            if int(info.base_name) != number:
                raise DamagedFile(name, f"its part {number} is missing")
            if start < info.size:
                with self._files.open_input_file(info.path) as file:
                    file.seek(start)
                    found.append(file.read())
            start = max(0, start - info.size)
        return b"".join(found)

    def map(self, name: str) -> mmap:
        found = self._mapped.get(name)
        if found is None:
            with TemporaryFile(prefix="headwater-") as file, self._files.open_input_stream(self._path(name)) as stream:
                while chunk := stream.read(_CHUNK):
                    file.write(chunk)
                file.flush()
                found = self._mapped[name] = mmap(file.fileno(), 0, access=ACCESS_COPY)
        return found

    def size(self, name: str) -> int | None:
        info = self._files.get_file_info(self._path(name))
        if info.type == FileType.File:
            return int(info.size)
        parts = self._parts(name)
        return sum(part.size for part in parts) if parts else None

    def files(self, folder: str) -> list[str]:
        found = self._files.get_file_info(FileSelector(self._path(folder), allow_not_found=True))
        return sorted(f"{folder}/{info.base_name}" for info in found)

    def remove(self, name: str) -> None:
        self._mapped.pop(name, None)
        info = self._files.get_file_info(self._path(name))
        with suppress(FileNotFoundError):
            if info.type == FileType.Directory:
                self._files.delete_dir(info.path)
            elif info.type == FileType.File:
                self._files.delete_file(info.path)

    def touch(self, name: str) -> None:
        """Puts another object beside: to put the same one again could undo what someone else has put in the meantime."""
        self._put(name + _ALIVE, b"")

    def touched(self, name: str) -> float:
        """By the clock of the store."""
        found = self._files.get_file_info([self._path(name), self._path(name + _ALIVE)])
        return max(info.mtime.timestamp() if info.type == FileType.File and info.mtime else 0.0 for info in found)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Only as good as can be: there are no locks, so it ends when the put of another one has had time to arrive.

        Of two who put at once, the last one wins, and both see who it was if they look then. A put that takes longer than that
        is noticed with the next look at the lease, as is a lease that was lost.
        """
        yield
        sleep(self._settling)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """There are no locks, and what is done within cannot wait."""
        yield

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _put(self, name: str, data: bytes | pa.Buffer) -> None:
        with self._files.open_output_stream(self._path(name)) as stream:
            stream.write(data)

    def _parts(self, name: str) -> list[FileInfo]:
        """The objects of a log, in order."""
        found = self._files.get_file_info(FileSelector(self._path(name), allow_not_found=True))
        return sorted((info for info in found if info.type == FileType.File), key=lambda info: info.base_name)


def _with_single_puts(uri: str) -> str:
    """What is small goes to S3 by one request, and not by three."""
    return uri if "allow_delayed_open=" in uri else f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"


class ObjectLog:
    """A log as a row of objects."""

    def __init__(self, disk: ObjectDisk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._pending: list[bytes] = []
        self._adding = Lock()
        self._syncing = Lock()
        # Where each part begins; the first one is empty, and makes the log known.
        self._starts: list[int] = []
        self.size = 0
        self._put(b"", -1)

    def append(self, pieces: Sequence[bytes | pa.Buffer]) -> None:
        whole = b"".join(pieces)
        with self._adding:
            self._pending.append(whole)
            self.size += len(whole)

    def sync(self) -> None:
        with self._syncing:
            with self._adding:
                pending, self._pending = self._pending, []
                start = self.size - sum(map(len, pending))
            if pending:
                self._put(b"".join(pending), start)

    def cut(self, size: int) -> None:
        """What was put stays, unless it all came after that; then whatever there is of it goes."""
        with self._syncing, self._adding:
            while self._pending and self.size > size:
                self.size -= len(self._pending.pop())
            while self._starts and self._starts[-1] >= size:
                self._starts.pop()
                self._disk.remove(f"{self._name}/{len(self._starts):08}")

    def close(self) -> None:
        self.sync()

    def _put(self, data: bytes, start: int) -> None:
        # Noted before, for what fails may have arrived.
        self._starts.append(start)
        self._disk.put_part(self._name, len(self._starts) - 1, data)
