"""Checking a directory: everything in it is read and compared with its checksums, and nothing is changed.

    damage   a file that is missing or is not what was written, and what of it follows: tables and views that cannot be read
    note     what a person may want to know and nothing suffers from: files that nothing needs, changes that are not kept

A writer may be at work. What it removes meanwhile is no damage: a newer manifest is there, and that one is checked instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.errors import DamagedFile, UnknownFormat, UnreadableCatalog
from headwater.store import lease, log, manifest, runfiles
from headwater.store.records import Decoder, says_certain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from mmap import mmap
    from typing import Any

    from headwater.compiler.dataflow import Step
    from headwater.runtime.catalog import Catalog
    from headwater.store.disk import Disk
    from headwater.store.log import Segment
    from headwater.store.manifest import Manifest
    from headwater.store.runfiles import Place

    Decode = Callable[[Any], Catalog]
    # Told how many bytes were done, and how many there are in all.
    Told = Callable[[int, int], None]

EVERYTHING = "all tables and views"
# A writer that folds without a pause is not followed for ever.
_ROUNDS = 20


@dataclass(frozen=True)
class Finding:
    """What was found about a file, and which tables and views suffer."""

    file: str
    what: str
    affected: tuple[str, ...] = ()
    is_damage: bool = True


@dataclass(frozen=True)
class Report:
    """The outcome: at which epoch the newest manifest is, how much was read, and what was found."""

    epoch: int
    files: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        return not any(finding.is_damage for finding in self.findings)


def check(disk: Disk, decode: Decode, told: Told = lambda done, total: None) -> Report:  # noqa: ARG005  (nobody listens)
    """Reads all of a directory."""
    try:
        if not manifest.is_marked(disk):
            raise UnknownFormat(f"there is no Headwater directory at {disk.place!r}; give the path of one")
    except DamagedFile as damage:
        return Report(0, 1, 0, (Finding(damage.file, damage.what, (EVERYTHING,)),))
    return _Check(disk, decode, told).report()


@dataclass
class _Check:
    disk: Disk
    decode: Decode
    told: Told
    done: int = 0
    sound: set[Place] = field(default_factory=set)
    """Runs that were read already, when a newer manifest came."""
    damaged: dict[Place, DamagedFile] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)

    def report(self) -> Report:
        """What is wrong with the newest manifest; what is missing of one that is outdated may just have been removed."""
        for _ in range(_ROUNDS):
            name = manifest.newest_name(self.disk)
            found, findings = self._manifest()
            epoch, history = (0, 0) if found is None else (found.epoch, found.history)
            if found is not None or not findings:
                findings += self._log(epoch, history)
            findings += self._lease()
            is_newest = manifest.newest_name(self.disk) == name
            if is_newest:
                findings += self._unneeded(found)
            if is_newest or not findings:
                break
        return Report(epoch, len(self.files), self.done, tuple(findings))

    def _lease(self) -> Iterator[Finding]:
        try:
            lease.current(self.disk)
        except DamagedFile:
            yield Finding(lease.FILE, "it does not say who may write; remove it when nobody does")

    # -- the manifest, and what it names

    def _manifest(self) -> tuple[Manifest | None, list[Finding]]:
        try:
            found = log.newest_manifest(self.disk)
        except DamagedFile as damage:
            return None, [Finding(damage.file, damage.what, (EVERYTHING,))]
        if found is None:
            return None, []
        self.files.add(found.name)
        segments = log.segments(self.disk)
        total = sum(place.bytes for place in found.places()) + sum(self.disk.size(each.name) or 0 for each in segments)
        for place in found.places():
            self._run(place, total)
        return found, self._of_catalog(found)

    def _run(self, place: Place, total: int) -> None:
        if place in self.sound or place in self.damaged:
            return
        self.files.add(place.file)
        memory: mmap | None = None
        try:
            memory = self.disk.map(place.file)
        except (OSError, ValueError):
            memory = None
        try:
            runfiles.checked(memory, place)
        except DamagedFile as damage:
            self.damaged[place] = damage
        else:
            self.sound.add(place)
        self.done += place.bytes
        self.told(self.done, max(total, self.done))

    def _of_catalog(self, found: Manifest) -> list[Finding]:
        """What the damage of runs, and of the catalog itself, means for tables and views."""
        damaged = {place.file: self.damaged[place].what for place in found.places() if place in self.damaged}
        assert found.catalog is not None
        self.files.add(found.catalog)
        try:
            catalog = self.decode(manifest.get(self.disk, found.catalog))
            steps = dict(zip(catalog.steps, found.states, strict=True))
        except (DamagedFile, UnreadableCatalog, ValueError) as error:
            what = error.what if isinstance(error, DamagedFile) else str(error)
            return [Finding(file, what, (EVERYTHING,)) for file, what in {found.catalog: what, **damaged}.items()]
        findings = []
        for file, what in sorted(damaged.items()):
            hit = {
                step
                for step, state in steps.items()
                if any(place.file == file and place in self.damaged for each in state or () for place in each.runs)
            }
            findings.append(Finding(file, what, affected(catalog, hit)))
        lost = {step for step, state in steps.items() if state is None}
        if lost:
            what = "it says that states were lost to a damaged file; repair the views, restore the tables from a backup"
            findings.append(Finding(found.name, what, affected(catalog, lost)))
        return findings

    def _unneeded(self, found: Manifest | None) -> Iterator[Finding]:
        if found is None:
            return
        needed = {*found.files(), found.name, found.catalog}
        for name in [name for folder in manifest.FOLDERS for name in self.disk.files(folder) if name not in needed]:
            size = self.disk.size(name)
            if size is not None:
                yield Finding(name, f"nothing needs its {size:,} bytes; a writer removes it when it folds", is_damage=False)

    # -- the log

    def _log(self, epoch: int, history: int) -> Iterator[Finding]:
        """What is wrong with the log, where a manifest is at an epoch, and says after which epoch all was logged."""
        try:
            found = log.all_segments(self.disk)
        except DamagedFile as damage:
            yield Finding(damage.file, damage.what, (EVERYTHING,))
            found = log.segments(self.disk)
        counting = [(segment, end) for segment, end in log.with_ends(found) if end is None or end > segment.first]
        if counting and counting[0][0].first > epoch + 1:
            first = counting[0][0]
            what = f"the epochs from {epoch + 1} to {first.first - 1}, which come before it, are missing"
            yield Finding(first.name, what, (EVERYTHING,))
        for segment, end in counting:
            try:
                data = self.disk.read(segment.name)
            except DamagedFile as damage:
                yield Finding(damage.file, damage.what, (EVERYTHING,))
            except FileNotFoundError:
                # Changes are kept for a time, and that of these is over.
                continue
            else:
                if segment.name not in self.files:
                    self.files.add(segment.name)
                    self.done += len(data)
                    self.told(self.done, self.done)
                yield from _Segment(segment, end, log.first_after(found, segment.first), epoch, history).findings(data)


@dataclass(frozen=True)
class _Segment:
    """A segment that counts up to the epoch before `end`, and the next one; the newest manifest is at `epoch`."""

    segment: Segment
    end: int | None
    next: Segment | None
    epoch: int
    history: int

    def findings(self, data: bytes) -> Iterator[Finding]:
        """What is wrong with it."""
        segment, end, epoch = self.segment, self.end, self.epoch
        expected, stop = segment.first, 0
        for record, stop in Decoder().decode(data):  # noqa: B007  (the last one is wanted)
            if end is not None and record.epoch >= end:
                return
            if record.epoch > expected:
                yield self._missing(expected, record.epoch - 1)
            if record.epoch < expected:
                what = f"it has epoch {record.epoch} where epoch {expected} should be"
                yield Finding(segment.name, what, (_since(record.epoch, epoch),))
            if record.began is not None and record.epoch > epoch and self.next is not None:
                damage = log.manifest_is_missing(self.next, record.epoch)
                yield Finding(damage.file, damage.what, (_since(record.epoch, epoch),))
            expected = record.epoch + 1
        if end is not None and expected < end:
            if stop == len(data) and end <= self.history + 1:
                what = f"the changes of the epochs from {expected} to {end - 1} were not kept"
                yield Finding(segment.name, what, is_damage=False)
            else:
                yield self._missing(expected, end - 1)
        elif end is None and says_certain(data, stop, expected):
            what = f"what it says at byte {stop:,} is not what was written, and more follows"
            yield Finding(segment.name, what, (_since(expected, epoch),))

    def _missing(self, first: int, last: int) -> Finding:
        return Finding(self.segment.name, f"the epochs from {first} to {last} cannot be read", (_since(first, self.epoch),))


def _since(first: int, epoch: int) -> str:
    return f"{EVERYTHING} from epoch {first} on" if first > epoch else f"the past of {EVERYTHING} before epoch {epoch}"


def affected(catalog: Catalog, lost: set[Step]) -> tuple[str, ...]:
    """The tables and views that cannot be read, or kept up to date, without the states of some steps."""
    gone: set[Step] = set()
    for step in catalog.steps:
        if step in lost or not gone.isdisjoint(step.inputs):
            gone.add(step)
    return tuple(
        f"{'table' if name in catalog.tables else 'view'} {entry.name}"
        for name, entry in catalog.entries.items()
        if not gone.isdisjoint(catalog.behind(entry))
    )
