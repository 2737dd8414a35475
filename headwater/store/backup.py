"""Backups: a copy of a directory as of one epoch, made while the writer works, and brought up to date by the next one.

    order   new runs and the catalog | the manifest | segments of the log that the directory has no more go
            | the log, segment by segment, and the note of the last one | what else the copy does not need any more goes
    so      at any moment the copy is the former one, or the new one as far as its log has come

Files of runs never change, so one that is there is not copied again; a log segment only grows. What is copied is
compared with its checksums, so that damage does not take the place of a copy that was good. When the writer has removed files
in the meantime, there is a newer manifest, and the copy goes on with that one; when it has begun a segment of the log, with it
too, for what the segment before says at its end may not count any more.

A copy has no lease. A backup has the identity of its directory, so that no other one is mixed with it; what is restored from it
is a directory of its own, for the two go different ways from there on.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import DamagedFile, InvalidTarget, StorageFailed, UnknownFormat
from headwater.store import lease, log, manifest, runfiles
from headwater.store.disk import FIRST, MARK, LocalDisk
from headwater.store.opening import disk_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from headwater.store.disk import Disk
    from headwater.store.log import Segment
    from headwater.store.manifest import Manifest
    from headwater.store.runfiles import Place

    # Told how many bytes were done, and how many there are in all.
    Told = Callable[[int, int], None]

_FOLDERS = (*manifest.FOLDERS, log.FOLDER)
_CHUNK = 8 << 20


@dataclass(frozen=True)
class Copied:
    """What was done: the epoch of the manifest, files and bytes that were copied, and files that were there already."""

    epoch: int
    files: int
    bytes: int
    present: int


def backup(directory: str | Path, target: str | Path, told: Told = lambda done, total: None) -> Copied:  # noqa: ARG005
    """Makes the target, a path or a URI, a copy of the directory."""
    source, copy = _apart(directory, target)
    with _storage():
        identity = _identity(source)
        found = manifest.identity(copy)
        if found is None:
            if not _is_empty(copy):
                raise InvalidTarget(f"{copy.place!r} is not empty and no backup; give a place of its own")
            manifest.mark(copy, identity)
        elif found != identity:
            raise InvalidTarget(f"{copy.place!r} is the backup of another directory than {source.place!r}; give another place")
        if (holder := lease.current(copy)) is not None:
            raise InvalidTarget(
                f"{copy.place!r} was written to by {holder.words}, so it is no backup any more; give another place"
            )
        return _Copy(source, copy, told).run()


def restore(target: str | Path, directory: str | Path, told: Told = lambda done, total: None) -> Copied:  # noqa: ARG005
    """Makes a new directory of a backup."""
    source, copy = _apart(target, directory)
    with _storage():
        _identity(source)
        if not _is_empty(copy):
            raise InvalidTarget(f"{copy.place!r} is not empty; remove it, or restore into another directory")
        if manifest.newest_name(source) is None:
            raise UnknownFormat(f"the backup at {source.place!r} is empty, or was not finished; run it to its end first")
        copied = _Copy(source, copy, told).run()
        manifest.mark(copy)
        return copied


class _Vanished(Exception):
    """A file was removed while it was to be copied."""


class _Copy:
    """One copy in the making."""

    def __init__(self, source: Disk, target: Disk, told: Told) -> None:
        self._source = source
        self._target = target
        self._told = told
        self._done = 0
        self._total = 0
        self._copied: set[str] = set()
        self._present: set[str] = set()

    def run(self) -> Copied:
        while True:
            name = manifest.newest_name(self._source)
            segments = log.all_segments(self._source)
            try:
                found = log.newest_manifest(self._source)
                if found is not None:
                    self._manifest(found)
                self._remove_segments([segment.name for segment in segments])
                for segment in segments:
                    self._segment(segment.name)
            except _Vanished as error:
                if (manifest.newest_name(self._source), log.segments(self._source)) == (name, segments):
                    raise DamagedFile(str(error), "it is missing; `headwater check` says what that means") from error
                continue
            if log.segments(self._source) == segments:
                if segments:
                    self._note_last(segments[-1])
                self._remove(found)
                epoch = 0 if found is None else found.epoch
                return Copied(epoch, len(self._copied), self._done, len(self._present - self._copied))

    def _manifest(self, found: Manifest) -> None:
        places: dict[str, list[Place]] = {}
        for place in found.places():
            places.setdefault(place.file, []).append(place)
        trusted = self._certain_files()
        sizes = {name: self._size(name) for name in places}
        waiting = {
            name: size for name, size in sizes.items() if not self._has(name, size, () if name in trusted else places[name])
        }
        self._present.update(places.keys() - waiting.keys())
        self._total = self._done + sum(waiting.values())
        for name in waiting:
            self._run(name, places[name])
        if waiting:
            self._target.settle(manifest.RUNS)
        assert found.catalog is not None
        for name in (found.catalog, found.name):
            data = self._read(name)
            if self._target.size(name) != len(data) or self._target.read(name) != data:
                self._target.replace(name, data)
                self._count(name, len(data))

    def _certain_files(self) -> Collection[str]:
        """The files that the manifest of the copy names: they were certain before it was there."""
        try:
            present = manifest.newest(self._target)
        except DamagedFile:
            return ()
        return () if present is None else present.files()

    def _has(self, name: str, size: int, doubtful: Sequence[Place]) -> bool:
        """Whether the copy has a file of runs, of which some places are to be compared with their checksums.

        The power may have gone when it had its size, but not all of its bytes.
        """
        if self._target.size(name) != size:
            return False
        try:
            for place in doubtful:
                runfiles.checked(self._target.map(name), place)
        except (DamagedFile, OSError, ValueError):
            return False
        return True

    def _run(self, name: str, places: list[Place]) -> None:
        try:
            memory = self._source.map(name)
        except FileNotFoundError as error:
            raise _Vanished(name) from error
        for place in places:
            runfiles.checked(memory, place)
        whole = pa.py_buffer(memory)

        def fill(sink: pa.NativeFile) -> None:
            for start in range(0, whole.size, _CHUNK):
                piece = whole.slice(start, min(_CHUNK, whole.size - start))
                sink.write(piece)
                self._count(name, piece.size)

        self._target.write(name, fill)

    def _segment(self, name: str) -> None:
        if self._target.size(name) == self._size(name):
            self._present.add(name)
            return
        data = self._read(name)
        self._target.replace(name, data)
        self._count(name, len(data))

    def _note_last(self, segment: Segment) -> None:
        present = None
        with suppress(DamagedFile):
            present = log.last_begun(self._target)
        if present != segment:
            log.note_last(self._target, segment)

    def _remove_segments(self, needed: list[str]) -> None:
        """Before new ones come, so that no gap is between them and those that stay; the note may be of one that goes."""
        outdated = [name for name in self._target.files(log.FOLDER) if name not in needed]
        if outdated:
            self._target.remove(log.LAST)
            self._target.settle(".")
        for name in outdated:
            self._target.remove(name)

    def _remove(self, found: Manifest | None) -> None:
        needed = set() if found is None else {*found.files(), found.name, found.catalog}
        for folder in manifest.FOLDERS:
            for name in self._target.files(folder):
                if name not in needed:
                    self._target.remove(name)

    def _size(self, name: str) -> int:
        size = self._source.size(name)
        if size is None:
            raise _Vanished(name)
        return size

    def _read(self, name: str) -> bytes:
        try:
            return self._source.read(name)
        except FileNotFoundError as error:
            raise _Vanished(name) from error

    def _count(self, name: str, size: int) -> None:
        self._copied.add(name)
        self._done += size
        self._total = max(self._total, self._done)
        self._told(self._done, self._total)


def _apart(source: str | Path, target: str | Path) -> tuple[Disk, Disk]:
    """The disks of two places, neither of which is within the other."""
    disks = disk_at(source), disk_at(target)
    one, other = (f"{disk.root.resolve() if isinstance(disk, LocalDisk) else disk.place}/" for disk in disks)
    if one.startswith(other) or other.startswith(one):
        raise InvalidTarget(f"{disks[1].place!r} and {disks[0].place!r} are not apart; give a place outside of the other")
    return disks


def _identity(source: Disk) -> str:
    found = manifest.identity(source)
    if found is None:
        raise UnknownFormat(f"there is no Headwater directory at {source.place!r}; give the path of one")
    return found


def _is_empty(disk: Disk) -> bool:
    """Whether nothing is there, but what someone left who was killed while marking it."""
    if isinstance(disk, LocalDisk):
        return not disk.root.exists() or all(entry.name in FIRST for entry in disk.root.iterdir())
    return disk.size(MARK) is None and not any(disk.files(folder) for folder in _FOLDERS)


@contextmanager
def _storage() -> Iterator[None]:
    """What a disk refuses, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"the copy was not finished: {error}; mend that and run it again") from error
