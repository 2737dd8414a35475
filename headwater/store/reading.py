"""Readers: other processes that see what a writer has committed, whole epochs only, and follow it.

    content at epoch E  =  the runs that the newest manifest names, + what the log says of the epochs after it

A reader keeps nothing but the rows of tables and views; to it, a view is a table that someone else changes. The files of a
manifest are mapped as soon as it is read, so that they can go while they are being read; if one is gone already, a newer
manifest is there.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from headwater.compiler.dataflow import Step
from headwater.errors import DamagedFile, ReadOnly, UnknownFormat
from headwater.evaluation.stages import Columns
from headwater.operators.arrange import Arrange
from headwater.operators.linear import Linear
from headwater.operators.values import Source
from headwater.runtime.catalog import Catalog, Snapshot, TableEntry
from headwater.store import lease, log, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager

    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Entry
    from headwater.runtime.history import Changed
    from headwater.store.disk import Disk
    from headwater.store.manifest import Manifest
    from headwater.store.records import Record

    Decode = Callable[[Any], Catalog]

_log = logging.getLogger("headwater")

# How often a waiting reader looks.
_INTERVAL = 0.01


class Reader:
    """A directory as someone sees it who does not write."""

    def __init__(self, disk: Disk, decode: Decode) -> None:
        if not manifest.is_marked(disk):
            raise UnknownFormat(f"there is no Headwater directory at {disk.place!r}; whoever writes one connects to it first")
        self._disk = disk
        self._decode = decode
        self._manifest: Manifest | None = None
        self._whole = Catalog()
        self._follower = log.Follower(disk, 0)
        self._segments: list[log.Segment] = []
        """Those that were there when the log was last followed."""
        self._damage: DamagedFile | None = None
        """Why the log could not be followed to its end then."""

    def newest(self, now: Snapshot) -> Snapshot:
        """The newest epoch there is; the same snapshot if it is that already. An error if the log is damaged before it."""
        while True:
            name = manifest.newest_name(self._disk)
            now = self._beyond(self._reloaded(self._beyond(now)))
            if self._damage is None:
                return now
            # What a writer changes meanwhile may look like damage.
            if (manifest.newest_name(self._disk), log.segments(self._disk)) == (name, self._segments):
                raise self._damage

    @property
    def place(self) -> str:
        return self._disk.place

    @property
    def basis(self) -> tuple[Manifest | None, Catalog]:
        """The manifest that was read last, and the catalog that it names, with the steps by which views are maintained."""
        return self._manifest, self._whole

    @property
    def began(self) -> Mapping[str, int]:
        """The epochs with which tables and views came to be."""
        return {} if self._manifest is None else self._manifest.began

    def wait(self, now: Snapshot, timeout: float | None) -> Snapshot:
        """The newest epoch, as soon as it is later than the one given, or the time is over."""
        end = None if timeout is None else monotonic() + timeout
        while True:
            then = self.newest(now)
            if then.epoch > now.epoch or (end is not None and monotonic() >= end):
                return then
            sleep(_INTERVAL)

    def _beyond(self, now: Snapshot) -> Snapshot:
        """What the log adds."""
        self._damage = None
        if self._manifest is None:
            return now
        before, source = self._follower.after, self._follower.source
        self._segments = found = log.all_segments(self._disk)
        misled = self._follower.was_misled(found)
        records = list(self._follower.poll(found))
        fence = self._fence_of_holder()
        found = log.segments(self._disk)
        if misled or self._follower.was_misled(found):
            # A commit failed when its record was on disk already: back to what is certain.
            self._manifest = None
            return now
        if found and found[-1].fence < fence:
            # Someone is taking over, and says in a moment which of these count.
            self._follower = log.Follower(self._disk, before, source)
            return now
        for number, record in enumerate(records):
            if record.began is not None:
                # Its manifest says what there is now.
                self._follower = log.Follower(self._disk, record.epoch - 1, self._follower.source)
                later = log.first_after(self._segments, record.epoch)
                self._damage = None if later is None else log.manifest_is_missing(later, record.epoch)
                return _after(now, records[:number])
        self._damage = self._follower.damage(self._segments)
        return _after(now, records)

    def _reloaded(self, now: Snapshot) -> Snapshot:
        """What a newer manifest says, if there is one."""
        while True:
            found, present = log.newest_manifest(self._disk), self._manifest
            if found is None or found == present:
                return now
            if present is not None and found.fence < self._fence_of_holder():
                return now
            if present is not None and found.epoch <= now.epoch and found.catalog == present.catalog:
                # The same in other files: there is no need to leave those that are open.
                return now
            loaded = self._loaded(found)
            if loaded is not None:
                self._whole, snapshot = loaded
                self._manifest = found
                self._follower = log.Follower(self._disk, found.epoch)
                return snapshot

    def _fence_of_holder(self) -> int:
        """The fence of who writes, or is about to; 0 if nobody does."""
        with suppress(DamagedFile):
            holder = lease.current(self._disk)
            if holder is not None and not holder.released and not holder.gone:
                return holder.fence
        return 0

    def _loaded(self, found: Manifest) -> tuple[Catalog, Snapshot] | None:
        """A manifest's content; None if its files are gone, for there is a newer one."""
        assert found.catalog is not None
        try:
            whole = self._decode(manifest.get(self._disk, found.catalog))
        except DamagedFile:
            if manifest.newest(self._disk) != found:
                return None
            raise
        states = dict(zip(whole.steps, manifest.states(self._disk, found), strict=True))
        if any(self._disk.size(file) is None for file in found.files()) and manifest.newest(self._disk) != found:
            return None
        return whole, replace(_flat(found.epoch, whole, states), positions=found.positions)


def _flat(epoch: int, whole: Catalog, states: Mapping[Step, State | None]) -> Snapshot:
    """Tables and views as tables, with the rows that they have."""
    entries: dict[str, Entry] = {}
    kept: dict[Step, State] = {}
    for name, entry in whole.entries.items():
        arranged = entry.contents
        source = Step(Source(arranged.types, entry.name), (), f"Table {entry.name}")
        contents = Step(Arrange(arranged.types, arranged.operator.key), (source,), "Arrange")  # type: ignore[attr-defined]
        kept[source] = ()
        state = states[entry.contents]
        if state is not None:
            kept[contents] = state
        if isinstance(entry, TableEntry):
            entries[name] = replace(entry, source=source, contents=contents)
            continue
        output = source
        if len(source.types) > len(entry.arrow):
            visible = source.types[: len(entry.arrow)]
            output = Step(Linear(visible, Columns(tuple(range(len(visible))), visible)), (source,), "Project")
            kept[output] = ()
        entries[name] = replace(entry, output=output, contents=contents)
    return Snapshot(epoch, Catalog(entries, partitions=whole.partitions), kept)


def _after(now: Snapshot, records: list[Record]) -> Snapshot:
    states, positions = dict(now.states), now.positions
    epoch = now.epoch
    for record in records:
        for name, delta in {**record.tables, **record.views}.items():
            contents = now.entries[name].contents
            if contents in states:
                try:
                    states[contents] = (states[contents][0].insert(delta),)
                except DamagedFile as damage:
                    _log.warning("%r cannot be read, all others can: %s", now.entries[name].name, damage)
                    del states[contents]
        epoch = record.epoch
        positions = positions if record.positions is None else record.positions
    return now if epoch == now.epoch else Snapshot(epoch, now.catalog, states, positions)


class ReadOnlyJournal:
    """Lets no epoch pass."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def commit(self, then: Snapshot, tables: Mapping[str, Delta], views: Mapping[str, Delta], seconds: float) -> None:  # noqa: ARG002
        raise self._refusal

    def make_room(self) -> None: ...

    def defining(self) -> AbstractContextManager[object]:
        raise self._refusal

    def prepare(self, catalog: Catalog, states: Mapping[Step, State]) -> dict[Step, State]:  # noqa: ARG002
        raise self._refusal

    def define(self, then: Snapshot, views: Mapping[str, Changed], began: Collection[str]) -> Snapshot:  # noqa: ARG002
        raise self._refusal

    def changes(self, name: str, after: int, earliest: int) -> list[Changed]:
        found = manifest.newest(self._disk)
        return log.changes(self._disk, name, after, earliest if found is None else found.history)

    @property
    def _refusal(self) -> ReadOnly:
        return ReadOnly(f'this session reads {self._disk.place!r} with mode="r"; change it through the session that writes it')
