"""What is in a directory, for people: tables, views and their sizes, the last commit, the writer, the log. Without Spark."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING

from headwater.errors import DamagedFile, LostState
from headwater.explanation import maintenance
from headwater.runtime.catalog import Snapshot, TableEntry
from headwater.store import lease, log, manifest
from headwater.store.disk import MARK
from headwater.store.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from headwater.compiler.dataflow import Step
    from headwater.runtime.catalog import Catalog, Entry
    from headwater.store.disk import Disk
    from headwater.store.manifest import Manifest

_FOLDERS = (*manifest.FOLDERS, log.FOLDER)
_FILES = (MARK, lease.FILE, log.LAST)


@dataclass(frozen=True)
class Relation:
    """A table or view."""

    kind: str
    name: str
    rows: int | None
    """None if they were in a file that is damaged. Of an attached table, those that came less those that went."""
    state_bytes: int
    """On disk; what several views share counts for each of them."""
    maintenance: str | None = None
    refresh: str | None = None
    query: str | None = None
    attached: str | None = None
    """Where the rows of an attached table are."""


@dataclass(frozen=True)
class Log:
    """The changes that are kept."""

    segments: int
    bytes: int
    first_epoch: int | None


@dataclass(frozen=True)
class Inspection:
    """Everything that `headwater inspect` shows."""

    place: str
    format: int
    epoch: int
    committed: float | None
    """When the last epoch was, in seconds since 1970."""
    writer: str | None
    """Who is at it now."""
    log: Log
    bytes: int
    relations: tuple[Relation, ...]


def inspect(disk: Disk, decode: Callable[[Any], Catalog]) -> Inspection:
    """A directory as it is now."""
    reader = Reader(disk, decode)
    now = reader.newest(Snapshot())
    found, catalog = reader.basis
    states = {} if found is None else dict(zip(catalog.steps, found.states, strict=True))
    segments = log.segments(disk)
    sizes = {name: disk.size(name) or 0 for name in (*_FILES, *(each for folder in _FOLDERS for each in disk.files(folder)))}
    return Inspection(
        place=disk.place,
        format=manifest.FORMAT,
        epoch=now.epoch,
        committed=None if found is None else committed(disk, found, now.epoch),
        writer=writer(disk),
        log=Log(
            segments=len(segments),
            bytes=sum(sizes.get(segment.name, 0) for segment in segments),
            first_epoch=min((segment.first for segment in segments), default=None),
        ),
        bytes=sum(sizes.values()),
        relations=tuple(_relation(entry, now.entries[name], now, catalog, states) for name, entry in catalog.shown.items()),
    )


def writer(disk: Disk) -> str | None:
    """Who holds the lease, if someone who is alive does."""
    holder = lease.current(disk)
    if holder is None or holder.released or holder.gone:
        return None
    age = time() - disk.touched(lease.FILE)
    return f"{holder.words}, last seen {age:.1f} s ago" if age < lease.TIMEOUT else None


def _relation(
    entry: Entry, flat: Entry, now: Snapshot, catalog: Catalog, states: Mapping[Step, tuple[manifest.Kept, ...] | None]
) -> Relation:
    rows: int | None = None
    with suppress(DamagedFile, LostState):
        rows = now.kept(flat).total
    kept = (each for step in catalog.behind(entry) for each in states[step] or ())
    size = sum(place.bytes for each in kept for place in each.runs)
    if isinstance(entry, TableEntry):
        attached = None if entry.attached is None else str(entry.attached.place)
        return Relation("table", entry.name, rows, size, attached=attached)
    text = entry.query.text
    return Relation("view", entry.name, rows, size, maintenance(entry), entry.refresh, None if text is None else text.strip())


def committed(disk: Disk, found: Manifest, epoch: int) -> float:
    """When the last epoch was: as the log says; if it does not, the time of the manifest."""
    with suppress(DamagedFile, FileNotFoundError):
        for record in log.read(disk, epoch - 1):
            if record.epoch == epoch:
                return record.time
    return found.time
