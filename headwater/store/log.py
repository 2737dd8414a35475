"""The log: what every epoch changed, one record after another, in segments.

    segment   log/<fence>-<serial>-<first epoch>.log
    valid     a record counts unless a later segment begins at its epoch, or before

So whoever takes over after epoch E, or could not write to the end of a segment, begins one at E + 1, and what an older segment
says from there on is void. The log is what follows the last manifest, what readers follow, and, read backwards, how the past is
found again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import DamagedFile
from headwater.runtime.history import history_gone
from headwater.store.records import Decoder, Encoder, framed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.delta import Delta
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
    """The end of the log."""

    def __init__(self, disk: Disk, fence: int) -> None:
        self._disk = disk
        self._fence = fence
        self._serial = max((segment.serial for segment in segments(disk)), default=0)
        self._file: Appending | None = None
        self._encoder = Encoder()
        self.bytes = 0
        """Written since the segment began."""

    def begin(self, first: int) -> Segment:
        """The next segment, for the epochs from here on; what the one before says is certain first."""
        self.sync()
        self.close()
        self._serial += 1
        segment = Segment(self._fence, self._serial, first)
        self._file = self._disk.log(segment.name)
        self._encoder = Encoder()
        self.bytes = 0
        return segment

    def append(self, record: Record) -> None:
        """Writes a record, all of it or, as far as anyone will ever see, nothing."""
        if self._file is None:
            self.begin(record.epoch)
        assert self._file is not None
        try:
            self._file.append(self._encoder.encode(record))
        except OSError:
            self.abandon()
            raise
        self.bytes = self._file.size

    def sync(self) -> None:
        """All that was appended is certain."""
        file = self._file
        if file is not None:
            try:
                file.sync()
            except OSError:
                if file is self._file:
                    self.abandon()
                    raise

    def abandon(self) -> None:
        """The last record, of which nobody knows how much is on disk, does not count: the next one begins a segment."""
        self.close()

    def close(self) -> None:
        file, self._file = self._file, None
        self.bytes = 0
        if file is not None:
            file.close()


class Follower:
    """Reads the log as it grows."""

    def __init__(self, disk: Disk, after: int) -> None:
        self._disk = disk
        self.after = after
        self._segment: Segment | None = None
        self._offset = 0
        self._decoder = Decoder()

    def poll(self) -> Iterator[Record]:
        """The records of the epochs that come next, as far as they can be had; a gap ends them."""
        for segment, end in with_ends(segments(self._disk)):
            if (self._segment is not None and segment < self._segment) or (end is not None and end <= self.after + 1):
                continue
            if segment != self._segment:
                self._segment, self._offset, self._decoder = segment, 0, Decoder()
            yield from self._of_segment(segment, end)

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
                self.after = record.epoch
                yield record


def read(disk: Disk, after: int) -> Iterator[Record]:
    """The valid records of the epochs after one, in order; damage within them is an error."""
    found = segments(disk)
    for segment, end in with_ends(found):
        if end is not None and end <= after + 1:
            continue
        expected = max(segment.first, after + 1)
        for record in _records(disk, segment, last=end is None):
            if end is not None and record.epoch >= end:
                break
            if record.epoch > after:
                expected = record.epoch + 1
                yield record
        if end is not None and expected < end:
            raise DamagedFile(segment.name, f"the epochs from {expected} to {end - 1} cannot be read")


def changes(disk: Disk, name: str, after: int, earliest: int) -> list[tuple[int, Delta]]:
    """What changed in a table or view after an epoch, where otherwise only what is after the `earliest` is known."""
    earliest = min((segment.first - 1 for segment in segments(disk)), default=earliest)
    if after < earliest:
        raise history_gone(name, after, earliest)
    found: list[tuple[int, Delta]] = []
    for record in read(disk, after):
        if record.began is not None and name in record.began:
            found = []
        deltas = {**record.tables, **record.views}
        if name in deltas:
            found.append((record.epoch, deltas[name]))
    return found


def with_ends(found: Sequence[Segment]) -> list[tuple[Segment, int | None]]:
    """Each segment with the epoch at which later ones take over; None for the last."""
    ends: list[int | None] = []
    end: int | None = None
    for segment in reversed(found):
        ends.append(end)
        end = segment.first if end is None else min(end, segment.first)
    return list(zip(found, reversed(ends), strict=True))


def _records(disk: Disk, segment: Segment, *, last: bool) -> Iterator[Record]:
    data = disk.read(segment.name)
    end = 0
    for record, end in Decoder().decode(data):  # noqa: B007  (the last end is wanted)
        yield record
    if last and continues(data, end):
        raise DamagedFile(segment.name, f"what it says at byte {end:,} is not what was written, and more follows")


def continues(data: bytes, start: int) -> bool:
    """Whether a whole record comes after a place where none begins: then it is damage, and not the end of a torn write."""
    return any(framed(data, place) for place in range(start + 8, len(data), 8))
