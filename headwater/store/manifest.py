"""Manifests: everything at one epoch, as the names of the files that hold it.

    manifests/<fence>-<epoch>.json  =  checksum | JSON: the catalog's file, and for every step the runs of its arrangements

A manifest appears whole or not at all, and what it names is on disk before it is. The one of the highest fence and epoch
counts; what happened after it is in the log.

The mark, `headwater.json`, is the first file of a directory. Where another one is and the mark is not, the mark was lost.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import xxhash

from headwater.errors import DamagedFile, UnknownFormat
from headwater.state.arrangement import Arrangement
from headwater.store import lease
from headwater.store.disk import MARK
from headwater.store.runfiles import Place, StoredRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from headwater.operators.operator import State
    from headwater.state.runs import Run
    from headwater.store.disk import Disk

FORMAT = 1
FOLDER = "manifests"
RUNS = "runs"
CATALOGS = "catalogs"
# Where everything is that a manifest names, and manifests themselves.
FOLDERS = (RUNS, CATALOGS, FOLDER)
_NAME = re.compile(r"manifests/(\d+)-(\d+)\.json")


@dataclass(frozen=True)
class Manifest:
    """The content of a directory at an epoch; the states of step i of the catalog are at place i."""

    fence: int
    epoch: int
    time: float
    catalog: str | None
    states: tuple[tuple[Kept, ...] | None, ...]
    """None for a step whose state was lost and not repaired yet."""
    began: Mapping[str, int] = field(default_factory=dict)
    """The epochs with which tables and views came to be."""
    history: int = 0
    """The epoch after which the log tells everything."""
    positions: Mapping[str, Any] = field(default_factory=dict)
    """How far each stream that is followed has been applied, by its name."""

    @property
    def name(self) -> str:
        return name_of(self.fence, self.epoch)

    def places(self) -> Iterator[Place]:
        return (place for state in self.states for kept in state or () for place in kept.runs)

    def files(self) -> dict[str, int]:
        """The files of runs, and how many bytes of each are in use."""
        found: dict[str, int] = {}
        for place in self.places():
            found[place.file] = found.get(place.file, 0) + place.bytes
        return found


@dataclass(frozen=True)
class Kept:
    """An arrangement: its columns, key, the width of its weights, and its runs."""

    columns: str
    key: tuple[int, ...]
    width: int | None
    runs: tuple[Place, ...]

    @staticmethod
    def of(arrangement: Arrangement, places: Sequence[Place]) -> Kept:
        columns = base64.b64encode(arrangement.schema.serialize()).decode()
        return Kept(columns, arrangement.key, arrangement.width, tuple(places))

    @staticmethod
    def stored(arrangement: Arrangement) -> Kept:
        """An arrangement all of whose runs are in files."""
        return Kept.of(arrangement, [place_of(run) for run in arrangement.runs])

    def arrangement(self, run: Callable[[Place], Run]) -> Arrangement:
        """The arrangement, of the runs that are given for the places of its runs."""
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.columns)))
        return Arrangement(schema, self.key, self.width, tuple(map(run, self.runs)))

    @staticmethod
    def read(columns: str, key: list[int], width: int | None, runs: list[dict[str, Any]]) -> Kept:
        """From the fields of one, as JSON has them."""
        return Kept(columns, tuple(key), width, tuple(Place(**place) for place in runs))


def place_of(run: Run) -> Place:
    """Where a run is that is in a file."""
    assert isinstance(run, StoredRun)
    return run.place


def name_of(fence: int, epoch: int) -> str:
    return f"{FOLDER}/{fence:08}-{epoch:012}.json"


def states(disk: Disk, manifest: Manifest) -> list[State | None]:
    """The state of every step."""

    def run(place: Place) -> StoredRun:
        return StoredRun(disk, place)

    return [None if state is None else tuple(kept.arrangement(run) for kept in state) for state in manifest.states]


def write(disk: Disk, manifest: Manifest) -> None:
    put(disk, manifest.name, asdict(manifest))


def newest(disk: Disk) -> Manifest | None:
    """The manifest that counts."""
    name = newest_name(disk)
    if name is None:
        return None
    try:
        found = get(disk, name)
    except DamagedFile:
        if newest_name(disk) != name:
            # A newer one has taken its place.
            return newest(disk)
        raise
    kept = tuple(None if state is None else tuple(Kept.read(**each) for each in state) for state in found.pop("states"))
    return Manifest(**found, states=kept)


def newest_name(disk: Disk) -> str | None:
    return max((name for name in disk.files(FOLDER) if _NAME.fullmatch(name)), default=None)


def mark(disk: Disk, identity: str | None = None) -> None:
    """Makes the directory one of ours: a new one, or a copy of the one with that identity."""
    disk.replace(MARK, json.dumps({"format": FORMAT, "id": identity or uuid4().hex}).encode())


def is_marked(disk: Disk) -> bool:
    """Whether the directory is one of ours, which this release can read."""
    return identity(disk) is not None


def identity(disk: Disk) -> str | None:
    """What tells a directory, and copies of it, from others; None if it is none of ours, an error if it has lost its mark."""
    try:
        said = json.loads(disk.read(MARK))
        if int(said["format"]) > FORMAT:
            raise UnknownFormat(
                f"{disk.place!r} has the format {said['format']}, and this release knows formats up to {FORMAT}; "
                "open it with the release that has written it, or a newer one"
            )
        return str(said["id"])
    except FileNotFoundError:
        others = disk.size(lease.FILE) is not None or any(disk.files(folder) for folder in FOLDERS)
        # Once more, as somebody may just have made the directory: its mark came first.
        if others and disk.size(MARK) is None:
            what = "it is missing, and other files of a Headwater directory are there; restore the directory from a backup"
            raise DamagedFile(MARK, what) from None
        return identity(disk) if others else None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(MARK, "it does not say which directory this is, and of which format") from error


def put(disk: Disk, name: str, content: object) -> None:
    """A JSON file with its checksum."""
    text = json.dumps(content, separators=(",", ":")).encode()
    disk.replace(name, xxhash.xxh3_64_hexdigest(text).encode() + b"\n" + text)


def get(disk: Disk, name: str) -> Any:  # noqa: ANN401  (whatever was put)
    try:
        check, _, text = disk.read(name).partition(b"\n")
    except OSError as error:
        raise DamagedFile(name, f"it cannot be read: {error}") from error
    if xxhash.xxh3_64_hexdigest(text).encode() != check:
        raise DamagedFile(name, "its checksum is not the one it was written with")
    return json.loads(text)
