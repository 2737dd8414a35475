"""The log: what every epoch changed, one record after another, in segments.

    segment   log/<fence>-<serial>-<first epoch>.log
    valid     a record counts unless a later segment begins at its epoch, or before

So whoever takes over after epoch E, or could not write to the end of a segment, begins one at E + 1, and what an older segment
says from there on is void. The log is what follows the last manifest, what readers follow, and, read backwards, how the past is
found again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from headwater.errors import DamagedFile
from headwater.runtime.history import Changed, history_gone
from headwater.store.records import Decoder, Encoder, says_certain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.store.disk import Appending, Disk
    from headwater.store.records import Record

FOLDER = "log"
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
        self._file = self._disk.log(Segment(self._fence, self._serial, first).name)
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
        self._decoder = Decoder()

    def poll(self, found: Sequence[Segment]) -> Iterator[Record]:
        """The records of the epochs that come next in the segments there are, as far as they can be had; a gap ends them."""
        for segment, end in with_ends(found):
            if (self._segment is not None and segment < self._segment) or (end is not None and end <= self.after + 1):
                continue
            if segment != self._segment:
                self._segment, self._offset, self._decoder = segment, 0, Decoder()
            yield from self._of_segment(segment, end)

    def was_misled(self, found: Sequence[Segment]) -> bool:
        """Whether something that was read is void, as a later one of the segments there are tells."""
        return self.source is not None and any(self.source < other and other.first <= self.after for other in found)

    def _of_segment(self, segment: Segment, end: int | None) -> Iterator[Record]:
        try:
            data = self._disk.read(segment.name, self._offset)
        except FileNotFoundError:
            return
        start = self._offset
        for record, stop in self._decoder.decode(data):
            if end is not None and record.epoch >= end:
                return
            if record.epoch > self.after + 1:
                return
            self._offset = start + stop
            if record.epoch == self.after + 1:
                self.after, self.source = record.epoch, segment
                yield record


def read(disk: Disk, after: int) -> Iterator[Record]:
    """The valid records of the epochs after one, in order; damage within them is an error."""
    found = segments(disk)
    for segment, end in with_ends(found):
        if end is not None and end <= after + 1:
            continue
        data = disk.read(segment.name)
        expected, place = segment.first, 0
        for record, stop in Decoder().decode(data):
            if end is not None and record.epoch >= end:
                break
            expected, place = record.epoch + 1, stop
            if record.epoch > after:
                yield record
        if expected < end if end is not None else says_certain(data, place, expected):
            epochs = f"{max(expected, after + 1)}" + ("" if end is None else f" to {end - 1}")
            raise DamagedFile(segment.name, f"the epochs from {epochs} cannot be read, which begin at byte {place:,}")


def changes(disk: Disk, name: str, after: int, earliest: int) -> list[Changed]:
    """What changed in a table or view after an epoch, where nothing is logged that comes before the `earliest`."""
    while True:
        earliest = max(earliest, min((segment.first - 1 for segment in segments(disk)), default=earliest))
        if after < earliest:
            raise history_gone(name, after, earliest)
        # A segment that is gone was removed meanwhile.
        with suppress(FileNotFoundError):
            return _changes(disk, name, after)


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
