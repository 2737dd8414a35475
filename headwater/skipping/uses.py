"""What sketches leave of the tables of a query, and how often they were used."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from headwater.sketches.transfer import transfers
from headwater.skipping.reading import Ranges
from headwater.skipping.sketching import scans_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.algebra.plan import Node
    from headwater.frontend.catalyst import Query
    from headwater.runtime.catalog import Snapshot

# If more rows than this would be read, skipping is not worth its condition.
MOST = 0.75
# Ways are compared by so many of their last times. The way without the sketch is first tried at this question; later on, the
# slower one is tried again whenever the quicker one has taken so many times as long since.
_LATELY, _FIRST, _AGAIN = 5, 10, 50


@dataclass
class Usage:
    """How often a sketch was used, and what that saved."""

    times: int = 0
    seconds: float = 0.0
    rows_skipped: int = 0
    skipping: deque[float] = field(default_factory=lambda: deque(maxlen=_LATELY))
    plain: deque[float] = field(default_factory=lambda: deque(maxlen=_LATELY))
    """Seconds of the query with the sketch and without, the last times it was measured."""
    asked: int = 0
    since: float = 0.0
    """Seconds of the quicker way since the slower one was tried."""

    def prefers_skipping(self) -> bool:
        """Whether to use the sketch the next time: if that was quicker, and now and then to see whether it still is."""
        self.asked += 1
        if not self.skipping or not self.plain:
            return not self.skipping or self.asked < _FIRST
        quicker = median(self.skipping) <= median(self.plain)
        slower = median(self.plain if quicker else self.skipping)
        if self.since < _AGAIN * slower:
            return quicker
        self.since = 0.0
        return not quicker

    def took(self, seconds: float, *, skipping: bool) -> None:
        """The query was answered in so much time, with the sketch or without."""
        (self.skipping if skipping else self.plain).append(seconds)
        self.since += seconds

    upkeep: float = 0.0
    """Seconds that commits spent on the sketch, as far as that was noticed."""
    noticed: int | None = None

    def notice(self, epoch: int, seconds: float) -> None:
        """At an epoch the last commit spent so much time on the sketch; those since the last notice are taken to be alike."""
        if self.noticed is not None:
            self.upkeep += (epoch - self.noticed) * seconds
        self.noticed = epoch

    @property
    def is_worth_its_upkeep(self) -> bool:
        """Whether uses saved more than commits spent; so long as it was not tried without, that is assumed."""
        return self.seconds_saved is None or self.upkeep <= self.seconds_saved

    @property
    def seconds_saved(self) -> float | None:
        """What all uses together saved; None if the query was never measured without the sketch."""
        return self.times * median(self.plain) - self.seconds if self.plain else None


@dataclass(frozen=True)
class Use:
    """Sketches that serve a query: the ranges of each scan, by its number from the top of the plan."""

    sketches: tuple[str, ...]
    ranges: Mapping[int, tuple[Ranges, ...]]

    def share(self, rows: Mapping[int, int]) -> float:
        """Which part of all rows of the scans is left."""
        left = sum(count * min((r.share for r in self.ranges.get(number, ())), default=1.0) for number, count in rows.items())
        return left / max(1, sum(rows.values()))

    def beside(self, other: Use) -> Use:
        """The ranges of both: what is left is what both leave."""
        numbers = {*self.ranges, *other.ranges}
        ranges = {number: (*self.ranges.get(number, ()), *other.ranges.get(number, ())) for number in numbers}
        return Use((*self.sketches, *other.sketches), ranges)

    def united(self, other: Use) -> Use:
        """The fragments of both, which are of the same attributes: what is left is what one of them leaves."""
        ranges = {
            number: tuple(
                replace(one, fragments=one.fragments | more.fragments)
                for one, more in zip(parts, other.ranges[number], strict=True)
            )
            for number, parts in self.ranges.items()
        }
        return Use((*self.sketches, *other.sketches), ranges)

    def transferred(self, root: Node) -> Use:
        """With ranges, too, of what is joined with what has ranges."""
        ranges = dict(self.ranges)
        pairs = transfers(root)
        for _ in pairs:
            for (number, column), (target, other) in pairs:
                for part in ranges.get(number, ()):
                    moved = Ranges(other, part.partition, part.fragments - {part.partition.null})
                    if part.column == column and moved not in ranges.get(target, ()):
                        ranges[target] = (*ranges.get(target, ()), moved)
        return Use(self.sketches, ranges)


def counts_of(query: Query, now: Snapshot) -> dict[int, int]:
    """How many rows each scan of a query has, by its number from the top."""
    assert query.root is not None
    return {i: now.total(now.entries[scan.source.lower()]) for i, scan in enumerate(scans_of(query.root))}
