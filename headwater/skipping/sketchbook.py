"""The sketches of a session: found for a query, and used.

Who asks a query need not know of sketches. Of those that may answer it, the one is taken that leaves the fewest rows to read;
Spark then reads these rows only, at the epoch of the question. Without one, or if most rows would have to be read anyway, the
query is answered as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra.plan import Limit, walk
from headwater.answers import Answer, table_of
from headwater.delta import Delta
from headwater.errors import HistoryGone, InvalidOption, NotSupported, UnknownEpoch
from headwater.runtime.catalog import TableEntry
from headwater.runtime.driver import Backfill
from headwater.runtime.outside import Content
from headwater.skipping.footers import Footers, read_footers
from headwater.skipping.reading import Ranges, Skipping, combined, is_possible
from headwater.skipping.scanned import Scanned, SkippingReport, scans
from headwater.skipping.sketching import (
    are_safe_together,
    fragments_in,
    scans_of,
    usable,
)
from headwater.skipping.uses import MOST, Usage, Use, counts_of
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headwater.compiler.dataflow import Step
    from headwater.frontend.catalyst import Query
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Snapshot, ViewEntry
    from headwater.session import Session

MODES = ("auto", "always", "never")
# Fewer rows than this in the engine's own tables are summed up sooner than a Spark job starts.
_MANY = 1_000_000


@dataclass(frozen=True)
class Listed:
    """The files at a place, and the columns that Spark finds in them."""

    columns: StructType
    files: tuple[str, ...]


@dataclass
class Sketchbook:
    """What a session knows of its sketches beyond the catalog."""

    session: Session
    mode: str = "auto"
    transfer: bool = True
    usage: dict[str, Usage] = field(default_factory=dict)
    _footers: dict[tuple[str, str], Footers | None] = field(default_factory=dict)
    _places: dict[str, Listed] = field(default_factory=dict)

    def used(self, name: str) -> Usage:
        """How often a sketch was used in this session."""
        return self.usage.get(name.lower(), Usage())

    def answer(
        self,
        query: Query,
        now: Snapshot,
        plain: Callable[[], Answer],
        content: Backfill | None = None,
        epoch: int | None = None,
    ) -> Answer:
        """The answer at this epoch, or at an earlier one with the content of then: from sketches, or else by `plain`.

        With auto, that is what was quicker the last times; each way is tried again now and then.
        """
        use = None if self.mode == "never" else self.use(query, now, epoch)
        if use is None or (self.mode == "auto" and not self._is_worth(use, query, now)):
            return plain()
        started = perf_counter()
        usages = [self.usage.setdefault(name, Usage()) for name in use.sketches]
        if self.mode == "auto" and not all(usage.prefers_skipping() for usage in usages):
            found = plain()
            for usage in usages:
                usage.plain.append(perf_counter() - started)
            return found
        own = self._own(query, now, use, content)
        found = self._answer(query, self.frame(query, now, use, content)) if own is None else own
        counts = counts_of(query, now)
        for usage in usages:
            usage.skipping.append(perf_counter() - started)
            usage.times += 1
            usage.seconds += perf_counter() - started
            usage.rows_skipped += round(sum(counts.values()) * (1 - use.share(counts)))
        return found

    def _own(self, query: Query, now: Snapshot, use: Use, content: Backfill | None) -> Answer | None:
        """The answer from the engine's own tables, cut down to the ranges; None if some rows are Spark's."""
        assert query.root is not None
        before = now.content if content is None else content
        needed: dict[str, list[Sequence[Ranges]]] = {}
        for number, scan in enumerate(scans_of(query.root)):
            needed.setdefault(scan.source.lower(), []).append(use.ranges.get(number, ()))
        states: dict[Step, State] = {}
        for name, accesses in needed.items():
            entry = now.entries[name]
            if entry.output in before.outer:
                return None
            rows = consolidate(before.content(entry.output))
            if all(accesses):
                rows = rows.where(np.logical_or.reduce([_inside(rows.rows, ranges) for ranges in accesses]))
            states[entry.contents] = (Arrangement.empty(rows.rows.schema, ()).insert(rows),)
        part = Backfill(states, {now.entries[name].output: now.entries[name].contents for name in needed})
        return self.session.computed(query, now, part)

    def settled(self, query: Query, now: Snapshot, content: Backfill) -> Answer | None:
        """The answer of a query with a limit from Spark, with ties as the engine breaks them; None if it has no limit."""
        if query.root is None or not is_possible(query.root):
            return None
        if not any(isinstance(node, Limit) for node in walk(query.root)):
            return None
        return self._answer(query, self.frame(query, now, None, content))

    def _answer(self, query: Query, frame: DataFrame) -> Answer:
        rows = self._skipping.answer(query, frame)
        return Answer(self.session, query.schema, table_of(Delta.inserting(rows), self.session.arrow_schema(query.schema)))

    def explain(self, query: Query, now: Snapshot) -> SkippingReport:
        """Runs a query on Spark without a sketch and with the one that serves it best, and says what was read."""
        if query.root is None or not is_possible(query.root):
            raise NotSupported("this query cannot be run on Spark with some of its rows left out")
        use = self.use(query, now)
        without = self._scanned(query, now, None)
        if use is None:
            return SkippingReport(None, {}, without, without)
        skipping = self._scanned(query, now, use)
        for name in use.sketches:
            self.usage.setdefault(name, Usage()).plain.append(without.seconds)
        ranges: dict[str, tuple[str, ...]] = {}
        for number, parts in use.ranges.items():
            for part in parts:
                texts = [part.partition.text(interval) for interval in part.partition.intervals(part.coarse)]
                null = ["NULL"] if part.partition.null in part.coarse else []
                source = scans_of(query.root)[number].source
                column = now.entries[source.lower()].arrow.names[part.column]
                ranges[f"{source}.{column} (access {number + 1})"] = (*texts, *null)
        names = ", ".join(now.views[name].name for name in use.sketches)
        return SkippingReport(names, ranges, without, skipping)

    def _scanned(self, query: Query, now: Snapshot, use: Use | None) -> Scanned:
        """Runs the query, and counts what was read for it."""
        assert query.root is not None
        handed = 0
        groups: int | None = 0
        leaves = {}
        for number, scan in enumerate(scans_of(query.root)):
            ranges = () if use is None else use.ranges.get(number, ())
            leaves[number] = self._leaf(now, scan.source, ranges, None)
            entry = now.entries[scan.source.lower()]
            if isinstance(entry, TableEntry) and entry.source in now.outer:
                found = self._groups(query, now.outer[entry.source], number, ranges)
                groups = None if groups is None or found is None else groups + found
            else:
                handed += leaves[number].count()
        started = perf_counter()
        frame = self._skipping.frame(query, leaves)
        self._skipping.answer(query, frame)
        seconds = perf_counter() - started
        files, rows = scans(frame)
        return Scanned(files, groups, rows + handed, seconds)

    def _groups(self, query: Query, content: Content, number: int, ranges: Sequence[Ranges]) -> int | None:
        """How many row groups of an attached table have to be read."""
        parts = ranges or self._any_ranges(query, number)
        least: int | None = None
        for part in parts:
            footers = self.footers(content, part)
            if footers is not None:
                found = sum(map(len, footers.needed(part).values())) if ranges else footers.count
                least = found if least is None else min(least, found)
        return least

    def _any_ranges(self, query: Query, number: int) -> tuple[Ranges, ...]:
        use = self.use(query, self.session.snapshot)
        return () if use is None else use.ranges.get(number, ())

    def use(self, query: Query, now: Snapshot, epoch: int | None = None) -> Use | None:
        """The sketch that leaves the fewest rows to read, and others that leave still fewer; None if none serves the query."""
        if query.root is None or not is_possible(query.root):
            return None
        counts = counts_of(query, now)
        each = [use for name in usable(now, query.root) for use in [self._use(now, name, epoch)] if use is not None]
        found: Use | None = None
        for use in sorted(each, key=lambda use: use.share(counts)):
            names = (*(found.sketches if found else ()), *use.sketches)
            sketches = [now.views[name].sketch for name in names]
            if found is None:
                found = use
            elif are_safe_together(now.catalog, query.root, [sketch for sketch in sketches if sketch is not None]):
                found = found.beside(use)
        return found.transferred(query.root) if found is not None and self.transfer else found

    def _use(self, now: Snapshot, name: str, epoch: int | None) -> Use | None:
        view = now.views[name]
        assert view.sketch is not None
        fragments = fragments_in(self._content(now, view, epoch), view.sketch) if self._was_there(view, epoch) else None
        if fragments is None:
            return None
        ranges: dict[int, tuple[Ranges, ...]] = {}
        for access, chosen_ones in zip(view.sketch.accesses, fragments, strict=True):
            more = Ranges(access.column, access.partition, chosen_ones)
            ranges[access.scan] = (*ranges.get(access.scan, ()), more)
        return Use((name,), ranges)

    def _was_there(self, view: ViewEntry, epoch: int | None) -> bool:
        return epoch is None or epoch >= self.session.epochs.history.began(view.name.lower())

    def _content(self, now: Snapshot, view: ViewEntry, epoch: int | None) -> pa.RecordBatch:
        if epoch is None:
            return now.contents(view).rows
        try:
            return self.session.epochs.at(view, epoch).rows
        except (HistoryGone, UnknownEpoch):
            # Nobody knows any more what was needed then: as if a guard were violated.
            return pa.RecordBatch.from_pydict({"c0": pa.array([-1]), "c1": pa.array([0])})

    def frame(self, query: Query, now: Snapshot, use: Use | None, content: Backfill | None = None) -> DataFrame:
        """The query on Spark over the rows of its tables; with a sketch, over those that it says are needed."""
        assert query.root is not None
        leaves = {}
        for number, scan in enumerate(scans_of(query.root)):
            ranges = () if use is None else use.ranges.get(number, ())
            leaves[number] = self._leaf(now, scan.source, ranges, content)
        return self._skipping.frame(query, leaves)

    def _leaf(self, now: Snapshot, source: str, ranges: Sequence[Ranges], content: Backfill | None) -> DataFrame:
        entry = now.entries[source.lower()]
        outer = now.outer if content is None else content.outer
        rows: pa.Table | DataFrame
        if entry.output in outer:
            rows = self._pruned(outer[entry.output], ranges).frame()
        elif content is not None:
            rows = table_of(consolidate(content.content(entry.output)), entry.arrow)
        else:
            rows = self.session.rows_of(entry, now)
        if isinstance(rows, pa.Table):
            for part in ranges:
                rows = part.kept(rows)
            return self.session.spark.createDataFrame(rows, entry.schema)
        if not ranges:
            return rows
        columns = [rows[name] for name in rows.columns]
        return rows.where(combined(ranges, columns, [part.dataType for part in entry.schema.fields]))

    def _pruned(self, content: Content, ranges: Sequence[Ranges]) -> Content:
        """The content of an attached table without the files that cannot have rows in the ranges."""
        outside = content.outside
        files: set[str] | None = None
        for part in ranges:
            footers = self.footers(content, part)
            if footers is not None:
                needed = set(footers.needed(part))
                files = needed if files is None else files & needed
        if files is None or outside.place is None:
            return content
        listed = self._listed(content)
        kept = [file for file in listed.files if file in files]
        path = outside.place.path
        if any("%" in file for file in kept):
            # Spark gives addresses, and takes paths.
            return content

        def read() -> DataFrame:
            if not kept:
                return self.session.spark.createDataFrame([], listed.columns)
            return self.session.spark.read.schema(listed.columns).option("basePath", path).parquet(*kept)

        return Content(replace(outside, read=read), content.changes)

    def footers(self, content: Content, ranges: Ranges) -> Footers | None:
        """What the footers of an attached table's files say; they are read once."""
        place = content.outside.place
        if place is None or place.format != "parquet":
            return None
        # Not the column of the partition, which may be of a table that this one is joined with.
        name = content.outside.schema.names[ranges.column]
        key = (str(place), name)
        if key not in self._footers:
            self._footers[key] = read_footers(self._listed(content).files, name, ranges.partition.type)
        return self._footers[key]

    def _listed(self, content: Content) -> Listed:
        """The files of an attached table, which stay as they are: Spark lists them once."""
        key = str(content.outside.place)
        if key not in self._places:
            whole = content.outside.read()
            self._places[key] = Listed(whole.schema, tuple(whole.inputFiles()))
        return self._places[key]

    def _is_worth(self, use: Use, query: Query, now: Snapshot) -> bool:
        assert query.root is not None
        scans = scans_of(query.root)
        counts = counts_of(query, now)
        if use.share(counts) > MOST:
            return False
        if any(now.entries[scan.source.lower()].output in now.outer for scan in scans):
            return True
        return sum(counts[number] for number in use.ranges) >= _MANY

    @property
    def _skipping(self) -> Skipping:
        return Skipping(lambda: self.session.spark)


def _inside(rows: pa.RecordBatch, ranges: Sequence[Ranges]) -> NDArray[np.bool_]:
    """Which rows of a table are in all of the ranges."""
    return np.logical_and.reduce([part.inside(rows.column(part.column)) for part in ranges])


def require_skipping(mode: str) -> str:
    if mode not in MODES:
        raise InvalidOption(f"skipping is one of {', '.join(MODES)}, not {mode!r}")
    return mode
