"""A table or view of a directory at an epoch, for who has nothing but the directory: Spark's tasks, programs that export.

    content at epoch E  =  content of the newest manifest, of epoch M   + what the log says of M+1 … E   if M ≤ E
                                                                        − what the log says of E+1 … M   if M > E

A task reads its own range of hashes. The files of a manifest go when the writer has no more use for them; then there
is a newer manifest, which leads to the same content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import DamagedFile, UnknownEpoch, UnknownFormat, UnknownName
from headwater.runtime.catalog import Snapshot, TableEntry
from headwater.runtime.history import with_names
from headwater.state.consolidation import consolidate
from headwater.store import log, manifest
from headwater.store.inspecting import committed
from headwater.store.opening import decoded_without_spark, disk_at
from headwater.store.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from headwater.delta import Delta
    from headwater.runtime.catalog import Catalog, Entry
    from headwater.runtime.history import Changed
    from headwater.state.arrangement import Arrangement
    from headwater.store.disk import Disk
    from headwater.store.manifest import Manifest

# How often files may be gone before they are read.
_ATTEMPTS = 5


@dataclass(frozen=True)
class Change:
    """What an epoch changed in a table or view, when it was, in seconds since 1970, and the columns of then."""

    changed: Changed
    time: float
    names: pa.Schema


class Directory:
    """A directory, as someone sees it who only reads it."""

    def __init__(self, address: str) -> None:
        self.disk: Disk = disk_at(address)
        self._reader = Reader(self.disk, decoded_without_spark)
        self._now = Snapshot()

    def epoch(self) -> int:
        """The number of the last commit."""
        self._now = self._reader.newest(self._now)
        return self._now.epoch

    def entry(self, name: str) -> Entry:
        """A table or view, as the newest manifest has it."""
        self.epoch()
        _, catalog = self._reader.basis
        return _entry(catalog, name, self.disk)

    def content(self, name: str, epoch: int, number: int = 0, count: int = 1) -> Delta:
        """The rows at an epoch, of those whose hashes are in one of `count` ranges; columns that only order them included."""
        for attempt in range(_ATTEMPTS):
            found, catalog = self._newest()
            began = found.began.get(name.lower(), 0)
            if epoch < began:
                raise UnknownEpoch(f"{name!r} is there from epoch {began} on, as it is now, and was asked for at epoch {epoch}")
            try:
                kept = self._kept(found, catalog, name)
                for changed in self._changes_between(name, min(found.epoch, epoch), max(found.epoch, epoch)):
                    for delta in (changed.delta, *(() if changed.former is None else (changed.former.gone,))):
                        kept = kept.insert(delta if found.epoch < epoch else -delta)
                return consolidate(kept.within(number, number + 1, count))
            except (DamagedFile, FileNotFoundError):
                if attempt == _ATTEMPTS - 1 or manifest.newest_name(self.disk) == found.name:
                    raise
        raise AssertionError("The last attempt gives or raises.")

    def rows(self, name: str) -> int:
        """About how many rows there are: those of the newest manifest's runs."""
        found, catalog = self._newest()
        return len(self._kept(found, catalog, name))

    def committed(self, epoch: int) -> float:
        """When an epoch was, in seconds since 1970; where the log does not say so, when the last manifest was written."""
        found, _ = self._newest()
        return committed(self.disk, found, epoch)

    def changes(self, name: str, after: int, until: int) -> Iterator[Change]:
        """What changed after an epoch and until another."""
        names = self.entry(name).arrow
        known = self._changes_after(name, after) if after < until else []
        times = {record.epoch: record.time for record in log.read(self.disk, after)} if known else {}
        for changed, columns in with_names(known, names, until):
            yield Change(changed, times[changed.epoch], columns)

    def _changes_between(self, name: str, after: int, until: int) -> list[Changed]:
        return [changed for changed in self._changes_after(name, after) if changed.epoch <= until] if after < until else []

    def _changes_after(self, name: str, after: int) -> list[Changed]:
        """Raises if the log does not go back so far."""
        found = manifest.newest(self.disk)
        return log.changes(self.disk, name.lower(), after, 0 if found is None else found.history)

    def _newest(self) -> tuple[Manifest, Catalog]:
        found = manifest.newest(self.disk)
        if found is None or found.catalog is None:
            raise UnknownFormat(f"nothing was committed to {self.disk.place!r} yet")
        return found, decoded_without_spark(manifest.get(self.disk, found.catalog))

    def _kept(self, found: Manifest, catalog: Catalog, name: str) -> Arrangement:
        entry = _entry(catalog, name, self.disk)
        state = dict(zip(catalog.steps, manifest.states(self.disk, found), strict=True))[entry.contents]
        if state is None:
            raise UnknownName(f"the state of {entry.name!r} was in a damaged file; repair it first")
        return state[0]

    def require(self, epoch: int) -> int:
        """The epoch, if it has been."""
        last = self.epoch()
        if not 0 <= epoch <= last:
            raise UnknownEpoch(f"there is no epoch {epoch}; the last one is {last}")
        return epoch


def _entry(catalog: Catalog, name: str, disk: Disk) -> Entry:
    entry = catalog.entries.get(name.lower())
    if entry is None:
        names = ", ".join(repr(each.name) for each in catalog.entries.values()) or "none yet"
        raise UnknownName(f"there is no table or view {name!r} in {disk.place!r}; there are: {names}")
    if isinstance(entry, TableEntry) and entry.attached is not None:
        raise UnknownName(
            f"the rows of table {name!r} are not in {disk.place!r}, but at {entry.attached.place}; read them there"
        )
    return entry
