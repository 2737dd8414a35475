"""The log: what every epoch changed, one record after another, in segments.

    segment   log/<fence>-<serial>-<first epoch>.log
    valid     a record counts unless a later segment begins at its epoch, or before
    log.json  the segment that was begun last, noted before the first record goes into it

So whoever takes over after epoch E, or could not write to the end of a segment, begins one at E + 1, and what an older segment
says from there on is void. The log is what follows the last manifest, what readers follow, and, read backwards, how the past is
found again.

A checksum tells that a file was changed, not that it is gone. These rules do:

    epochs        the epochs of a segment follow each other, and the next segment goes on with the next epoch
    last segment  the log ends with the segment that `log.json` names, or a later one
    manifest      a segment that begins after the epoch of a definition is begun only when the manifest of that epoch is certain

So the loss of any one segment, and of the manifest, is noticed, and a commit pays nothing for it: a note is written when a
segment begins, which is when a directory is opened, folded or defined anew, and after a commit that failed. A directory without
`log.json` is one of an earlier release, or has lost only that note.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING

from headwater.errors import DamagedFile
from headwater.runtime.history import Changed, history_gone
from headwater.store import manifest
from headwater.store.records import Decoder, Encoder, says_certain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.store.disk import Appending, Disk
    from headwater.store.manifest import Manifest
    from headwater.store.records import Record

FOLDER = "log"
LAST = "log.json"
_NAME = re.compile(r"log/(\d+)-(\d+)-(\d+)\.log")


@dataclass(frozen=True, order=True)
class Segment:
    """A file of the log."""

    fence: int
    serial: int
    first: int

    @property
    def name(self) -> str:
        return f"{FOLDER}/{self.fence:08}-{self.serial:08}-{self.first:012}.log"


def segments(disk: Disk) -> list[Segment]:
    """All segments, in the order in which they were begun."""
    found = (_NAME.fullmatch(name) for name in disk.files(FOLDER))
    return sorted(Segment(*map(int, match.groups())) for match in found if match is not None)


def all_segments(disk: Disk) -> list[Segment]:
    """All segments; an error if the last one that was begun is gone."""
    # Noted after it was made, so it is there by now.
    last = last_begun(disk)
    found = segments(disk)
    if last is not None and (not found or found[-1] < last):
        raise DamagedFile(
            last.name,
            f"it is missing, and with it all epochs from {last.first} on; restore the directory from a backup, "
            f"or remove {LAST!r} to go on without these epochs",
        )
    return found


def last_begun(disk: Disk) -> Segment | None:
    """The segment that was begun last; None if that was not noted."""
    return None if disk.size(LAST) is None else Segment(**manifest.get(disk, LAST))


def note_last(disk: Disk, segment: Segment) -> None:
    """Makes it certain that a segment has begun, so that its loss is noticed."""
    manifest.put(disk, LAST, asdict(segment))


def newest_manifest(disk: Disk) -> Manifest | None:
    """The manifest that counts; None if nothing was ever defined, an error if it is gone."""
    found = manifest.newest(disk)
    if found is not None:
        return found
    # In this order: what a definition writes comes after the first segment of its session.
    has_files = any(disk.files(folder) for folder in (manifest.RUNS, manifest.CATALOGS))
    existing = all_segments(disk)
    if first_after(existing, 1) is None and (existing or not has_files):
        return None
    if manifest.newest_name(disk) is not None:
        # It was written meanwhile.
        return newest_manifest(disk)
    raise DamagedFile(manifest.FOLDER, "there is no manifest, but there are files that only come with one")


def first_after(found: Sequence[Segment], epoch: int) -> Segment | None:
    """The first segment that counts and begins after an epoch."""
    return next((each for each, end in with_ends(found) if each.first > epoch and (end is None or end > each.first)), None)


def manifest_is_missing(segment: Segment, epoch: int) -> DamagedFile:
    """The error for a definition without its manifest, where a segment begins after its epoch."""
    what = f"it is missing: the log defines something at epoch {epoch}, and goes on after it"
    return DamagedFile(manifest.name_of(segment.fence, epoch), what)


class Writer:
    """The end of the log. One thread at a time writes; others may sync."""

    def __init__(self, disk: Disk, fence: int) -> None:
        self._disk = disk
        self._fence = fence
        self._serial = max((segment.serial for segment in segments(disk)), default=0)
        self._file: Appending | None = None
        # A file is not closed while someone syncs it.
        self._syncing = Lock()
        self._encoder = Encoder()
        self._last = 0
        self._certain = 0
        self._before = 0
        self.bytes = 0
        """How many are in this segment."""
        self.failed: OSError | None = None
        """Why something that was appended may never become certain."""

    def begin(self, first: int) -> None:
        """The next segment, for the epochs from here on; what the one before says is certain first."""
        self.sync()
        self.close()
        self._serial += 1
        segment = Segment(self._fence, self._serial, first)
        file = self._disk.log(segment.name)
        try:
            note_last(self._disk, segment)
        except BaseException:
            file.close()
            raise
        self._file = file
        self._encoder = Encoder()
        self._last = self._certain = first - 1

    def fits(self, epoch: int) -> bool:
        """Whether an epoch can be added to this segment; else another one is to begin with it."""
        return self._file is not None and epoch > self._last

    def append(self, record: Record) -> None:
        """Writes a record. If that fails, or nobody is told of it, `take_back` comes next, or another record of that epoch."""
        assert self._file is not None
        self._last, self._before = record.epoch, self._file.size
        self._file.append(self._encoder.encode(record, self._certain))
        self.bytes = self._file.size

    def sync(self) -> None:
        """All that was appended is certain."""
        with self._syncing:
            if self._file is None:
                return
            last = self._last
            try:
                self._file.sync()
            except OSError as error:
                self.failed = error
                raise
            self._certain = max(self._certain, last)

    def take_back(self) -> None:
        """The last record, of which nobody knows how much is on disk, does not count. The next one begins a segment."""
        if self._file is not None:
            with suppress(OSError):
                self._file.cut(self._before)
        with suppress(OSError):
            self.sync()
        self.close()

    def close(self) -> None:
        with self._syncing:
            file, self._file, self.bytes = self._file, None, 0
            if file is not None:
                try:
                    file.close()
                except OSError as error:
                    self.failed = error


class Follower:
    """Reads the log as it grows."""

    def __init__(self, disk: Disk, after: int, source: Segment | None = None) -> None:
        """Begins after an epoch; `source` is the segment that this epoch was read from."""
        self._disk = disk
        self.after = after
        self.source = source
        self._segment: Segment | None = None
        self._offset = 0
        self._expected = 0
        self._decoder = Decoder()
        self._rest = b""
        """What comes after the last whole record."""
        self._is_torn = False

    def poll(self, found: Sequence[Segment]) -> Iterator[Record]:
        """The records of the epochs that come next in the segments there are, as far as they can be had; a gap ends them."""
        for segment, end in with_ends(found):
            if (self._segment is not None and segment < self._segment) or (end is not None and end <= self.after + 1):
                continue
            if segment.first > self.after + 1:
                return
            if segment != self._segment:
                self._segment, self._offset, self._expected, self._decoder = segment, 0, segment.first, Decoder()
                self._rest, self._is_torn = b"", False
            yield from self._of_segment(segment, end)

    def damage(self, found: Sequence[Segment]) -> DamagedFile | None:
        """Why the next epoch cannot be read though it was committed, after a poll of these segments; None if it was not."""
        for segment, end in with_ends(found):
            if end is not None and end <= max(self.after + 1, segment.first):
                continue
            if segment.first > self.after + 1:
                return _gap(segment, self.after + 1)
            if end is not None or self._is_torn:
                return _unreadable(segment, self.after + 1, end, self._offset)
        return None

    def was_misled(self, found: Sequence[Segment]) -> bool:
        """Whether something that was read is void, as a later one of the segments there are tells."""
        return self.source is not None and any(self.source < other and other.first <= self.after for other in found)

    def _of_segment(self, segment: Segment, end: int | None) -> Iterator[Record]:
        try:
            data = self._disk.read(segment.name, self._offset)
        except FileNotFoundError:
            return
        start, read = self._offset, 0
        for record, stop in _in_order(segment, self._decoder.decode(data), self._expected):
            if end is not None and record.epoch >= end:
                return
            self._offset, self._expected, read = start + stop, record.epoch + 1, stop
            if record.epoch == self.after + 1:
                self.after, self.source = record.epoch, segment
                yield record
        if data[read:] != self._rest:
            # A rest may stay for long, and is looked at once.
            self._rest = data[read:]
            self._is_torn = says_certain(self._rest, 0, self._expected)


def read(disk: Disk, after: int) -> Iterator[Record]:
    """The valid records of the epochs after one, each once and in order; damage and gaps are errors."""
    for segment, end in with_ends(all_segments(disk)):
        if end is not None and end <= max(after + 1, segment.first):
            continue
        if segment.first > after + 1:
            raise _gap(segment, after + 1)
        data = disk.read(segment.name)
        expected, place = segment.first, 0
        for record, stop in _in_order(segment, Decoder().decode(data), expected):
            if end is not None and record.epoch >= end:
                break
            expected, place = record.epoch + 1, stop
            if record.epoch > after:
                after = record.epoch
                yield record
        if expected < end if end is not None else says_certain(data, place, expected):
            raise _unreadable(segment, max(expected, after + 1), end, place)


def _in_order(segment: Segment, records: Iterator[tuple[Record, int]], expected: int) -> Iterator[tuple[Record, int]]:
    """The records of a segment, which are those of one epoch after another."""
    for record, stop in records:
        if record.epoch != expected:
            raise DamagedFile(segment.name, f"it has epoch {record.epoch} where epoch {expected} should be")
        expected += 1
        yield record, stop


def _gap(segment: Segment, first: int) -> DamagedFile:
    return DamagedFile(segment.name, f"the epochs from {first} to {segment.first - 1}, which come before it, are missing")


def _unreadable(segment: Segment, first: int, end: int | None, place: int) -> DamagedFile:
    epochs = f"{first}" + ("" if end is None else f" to {end - 1}")
    return DamagedFile(segment.name, f"the epochs from {epochs} cannot be read, which begin at byte {place:,}")


def changes(disk: Disk, name: str, after: int, earliest: int) -> list[Changed]:
    """What changed in a table or view after an epoch, where nothing is logged that comes before the `earliest`."""
    while True:
        found = segments(disk)
        earliest = max(earliest, min((segment.first - 1 for segment in found), default=earliest))
        if after < earliest:
            raise history_gone(name, after, earliest)
        # A segment that is gone was removed meanwhile.
        with suppress(FileNotFoundError):
            try:
                return _changes(disk, name, after)
            except DamagedFile:
                if segments(disk) == found:
                    raise


def _changes(disk: Disk, name: str, after: int) -> list[Changed]:
    found: list[Changed] = []
    for record in read(disk, after):
        former = record.former.get(name)
        if name in record.untold:
            raise history_gone(name, after, record.epoch)
        anew = record.began is not None and name in record.began and former is None
        if anew:
            found = []
        deltas = {**record.tables, **record.views}
        if name in deltas:
            found.append(Changed(record.epoch, deltas[name], former, anew))
    return found


def with_ends(found: Sequence[Segment]) -> list[tuple[Segment, int | None]]:
    """Each segment with the epoch at which later ones take over; None for the last."""
    ends: list[int | None] = []
    end: int | None = None
    for segment in reversed(found):
        ends.append(end)
        end = segment.first if end is None else min(end, segment.first)
    return list(zip(found, reversed(ends), strict=True))
