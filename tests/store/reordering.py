"""What may be on a disk after the power has gone: every legal outcome of what was not yet made certain.

A `RecordingDisk` notes what is done to a directory. At any moment, an operation on a name (create, rename, unlink, make a
folder) that came after the last sync of its folder may have reached the disk or not, in any order, but that operations on the
same name keep theirs. What was appended to a file since its last sync may be there, be missing with zeros in its place, or be
torn. `Crashes` gives all of these outcomes, each once, or so many of them where there are too many.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import combinations, count, product
from pathlib import PurePosixPath
from threading import RLock
from typing import TYPE_CHECKING

from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headwater.store.disk import Appending, Fill

# What a process says of itself: it is not part of what the store keeps.
_LOCK = "lease.lock"


@dataclass(frozen=True)
class Naming:
    """Names given and taken, in one step: a number of a file, True for a folder, None for nothing."""

    names: tuple[tuple[str, int | bool | None], ...]

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.names[0][0]).parent)


@dataclass(frozen=True)
class Writing:
    """Bytes of a file from a place on, or its end there."""

    file: int
    start: int
    data: bytes | None


@dataclass(frozen=True)
class Syncing:
    """A file whose bytes, or a folder whose names, are certain."""

    what: int | str


@dataclass(frozen=True)
class Promise:
    """From here on, nothing before this epoch may be lost."""

    epoch: int


Operation = Naming | Writing | Syncing | Promise


class RecordingDisk(LocalDisk):
    """A disk that notes what is done to it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.operations: list[Operation] = []
        self._numbers = count()
        self._doing = RLock()
        self.files_before: dict[str, int] = {}
        self.bytes_before: dict[int, bytes] = {}
        self.folders_before: set[str] = set()
        for path in sorted(root.rglob("*")) if root.exists() else ():
            name = str(path.relative_to(root))
            if path.is_dir():
                self.folders_before.add(name)
            elif name != _LOCK:
                self.files_before[name] = number = next(self._numbers)
                self.bytes_before[number] = path.read_bytes()
        self._files = dict(self.files_before)

    def promise(self, epoch: int) -> None:
        """Whoever uses the disk was told that this epoch is safe."""
        with self._doing:
            self.operations.append(Promise(epoch))

    def new_file(self, name: str) -> int:
        self._files[name] = number = next(self._numbers)
        self.operations.append(Naming(((name, number),)))
        return number

    def write(self, name: str, fill: Fill) -> int:
        with self._doing:
            size = super().write(name, fill)
            number = self.new_file(name)
            self.operations += [Writing(number, 0, self.path(name).read_bytes()), Syncing(number)]
            return size

    def rename(self, name: str, new: str) -> None:
        with self._doing:
            super().rename(name, new)
            self._files[new] = self._files.pop(name)
            self.operations.append(Naming(((name, None), (new, self._files[new]))))

    def remove(self, name: str) -> None:
        with self._doing:
            super().remove(name)
            if self._files.pop(name, None) is not None:
                self.operations.append(Naming(((name, None),)))

    def settle(self, folder: str) -> None:
        with self._doing:
            super().settle(folder)
            self.operations.append(Syncing(folder))

    def make_folder(self, path: Path) -> None:
        with self._doing:
            is_new = not path.exists()
            super().make_folder(path)
            if is_new and path != self.root:
                name = str(path.relative_to(self.root))
                self.operations += [Naming(((name, True),)), Syncing(str(PurePosixPath(name).parent))]

    def log(self, name: str) -> Appending:
        with self._doing:
            # Its folder is synced by what it calls: only then the file is there, too.
            self._path_to_make(name)
            number = self.new_file(name)
            return RecordingLog(self, super().log(name), number, self._doing)


class RecordingLog:
    def __init__(self, disk: RecordingDisk, log: Appending, number: int, doing: RLock) -> None:  # type: ignore[valid-type]
        self._disk = disk
        self._log = log
        self._number = number
        self._doing = doing

    @property
    def size(self) -> int:
        return self._log.size

    def append(self, pieces: Sequence[bytes | pa.Buffer]) -> None:
        with self._doing:  # type: ignore[attr-defined]
            start = self._log.size
            self._log.append(pieces)
            self._disk.operations.append(Writing(self._number, start, b"".join(bytes(piece) for piece in pieces)))

    def sync(self) -> None:
        # What is appended meanwhile may be certain, or not.
        with self._doing:  # type: ignore[attr-defined]
            self._log.sync()
            self._disk.operations.append(Syncing(self._number))

    def cut(self, size: int) -> None:
        with self._doing:  # type: ignore[attr-defined]
            self._log.cut(size)
            self._disk.operations.append(Writing(self._number, size, None))

    def close(self) -> None:
        self._log.close()


@dataclass(frozen=True)
class Outcome:
    """What is on the disk: the bytes of each file by its name, and the folders; and which epoch must be there."""

    files: frozenset[tuple[str, bytes]]
    folders: frozenset[str]
    promised: int

    def put(self, place: Path) -> LocalDisk:
        """Makes a directory of it."""
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for folder in sorted(self.folders):
            (place / folder).mkdir()
        for name, data in self.files:
            if (place / name).parent.is_dir():
                (place / name).write_bytes(data)
        return LocalDisk(place)


@dataclass
class _Moment:
    """What is certain after some operations, and what is not yet."""

    names: dict[str, int | bool | None] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    naming: list[Naming] = field(default_factory=list)
    writing: dict[int, list[Writing]] = field(default_factory=dict)
    promised: int = 0

    def go_on(self, operation: Operation) -> None:
        match operation:
            case Naming():
                self.naming.append(operation)
            case Writing():
                self.writing.setdefault(operation.file, []).append(operation)
            case Syncing(int(number)):
                self.contents[number] = _written(self.contents.get(number, b""), self.writing.pop(number, []))
            case Syncing(folder):
                for done in [each for each in self.naming if each.folder == folder]:
                    self.names.update(done.names)
                    self.naming.remove(done)
            case Promise(epoch):
                self.promised = epoch

    def outcomes(self, most: int, chosen: random.Random) -> Iterator[Outcome]:
        """All that the disk may have now; if there are more than so many, the extreme ones, and some of the others."""
        namings = list(_closed(self.naming, most, chosen))
        numbers = sorted(self.writing)
        contents = [list(_contents(self.contents.get(number, b""), self.writing[number])) for number in numbers]
        total = len(namings)
        for each in contents:
            total *= len(each)
        if total <= most:
            picked = product(namings, *contents)
        else:
            extremes = [(namings[i], *(each[i] for each in contents)) for i in (0, -1)]
            picked = iter([*extremes, *((chosen.choice(namings), *map(chosen.choice, contents)) for _ in range(most - 2))])
        for named, *written in picked:
            yield self._outcome(named, dict(zip(numbers, written, strict=True)))

    def _outcome(self, named: Sequence[Naming], written: dict[int, bytes]) -> Outcome:
        names = dict(self.names)
        for done in named:
            names.update(done.names)
        contents = self.contents | written
        files = frozenset(
            (name, contents.get(number, b"")) for name, number in names.items() if number is not None and number is not True
        )
        return Outcome(files, frozenset(name for name, what in names.items() if what is True), self.promised)


def _closed(naming: Sequence[Naming], most: int, chosen: random.Random) -> Iterator[tuple[Naming, ...]]:
    """The sets of operations that may have been done: with one, all before it on the same names. None of them, all, others."""
    touching = [{name for name, _ in each.names} for each in naming]
    before = [{j for j in range(i) if touching[i] & touching[j]} for i in range(len(naming))]

    def is_closed(picked: set[int]) -> bool:
        return all(before[i] <= picked for i in picked)

    every = range(len(naming))
    if 2 ** len(naming) <= 64 * most:
        sets = (set(some) for size in range(len(naming) + 1) for some in combinations(every, size))
    else:
        few = [set(), *({i} for i in every)]
        many = [set(every) - {i} for i in every]
        random_ones = ({i for i in every if chosen.random() < share} for share in (0.2, 0.5, 0.8) for _ in range(most))
        sets = iter([*few, *random_ones, *many, set(every)])
    for picked in sets:
        if is_closed(picked):
            yield tuple(naming[i] for i in sorted(picked))


def _contents(certain: bytes, pending: Sequence[Writing]) -> Iterator[bytes]:
    """What a file may contain: nothing of what is pending first, all of it last."""
    found = {certain: None}
    for size in range(len(pending)):
        for some in combinations(pending, size):
            found[_written(certain, some)] = None
    for each in range(1, len(pending) + 1):
        *done, last = pending[:each]
        if last.data:
            torn = replace(last, data=last.data[: len(last.data) // 2])
            found[_written(certain, [*done, torn])] = None
            found[_written(certain, [*done, replace(last, data=bytes(len(last.data)))])] = None
    whole = _written(certain, pending)
    found.pop(whole, None)
    yield from found
    yield whole


def _written(content: bytes, pending: Sequence[Writing]) -> bytes:
    for each in pending:
        content = content[: each.start].ljust(each.start, b"\0")[: each.start] + (
            b"" if each.data is None else each.data + content[each.start + len(each.data) :]
        )
    return content


class Crashes:
    """All that a loss of power may leave behind while a disk was recorded."""

    def __init__(self, disk: RecordingDisk, most: int = 64, seed: int = 0) -> None:
        """At most so many outcomes of each moment."""
        self._disk = disk
        self._most = most
        self._random = random.Random(seed)
        self.moments: Counter[str] = Counter()

    def outcomes(self, *, every: int = 1) -> list[Outcome]:
        """Each outcome once, with the latest epoch that was promised when it could be; only of every so-manieth moment."""
        disk = self._disk
        names: dict[str, int | bool | None] = {**disk.files_before, **dict.fromkeys(disk.folders_before, True)}
        moment = _Moment(names, dict(disk.bytes_before))
        found: dict[tuple[frozenset[tuple[str, bytes]], frozenset[str]], Outcome] = {}
        for number, operation in enumerate(disk.operations):
            moment.go_on(operation)
            if number % every == 0 or isinstance(operation, Promise):
                for outcome in moment.outcomes(self._most, self._random):
                    # Epochs that were promised stay so: the last promise is the strongest.
                    found[outcome.files, outcome.folders] = outcome
        return list(found.values())
