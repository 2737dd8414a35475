"""The sketches of a session: found for a query, and used.

Who asks a query need not know of sketches. Of those that may answer it, the one is taken that leaves the fewest rows to read;
Spark then reads these rows only, at the epoch of the question. Without one, or if most rows would have to be read anyway, the
query is answered as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.plan import Limit, walk
from headwater.answers import Answer, table_of
from headwater.compiler.pruning import columns_read
from headwater.delta import Delta
from headwater.errors import HistoryGone, InvalidOption, NotSupported, UnknownEpoch
from headwater.runtime.catalog import TableEntry
from headwater.runtime.driver import Backfill
from headwater.skipping.files import Files, inside
from headwater.skipping.lazily import Lazily
from headwater.skipping.reading import Ranges, Skipping, combined, is_possible
from headwater.skipping.scanned import Scanned, SkippingReport, scans
from headwater.skipping.sketching import (
    are_safe_together,
    fragments_in,
    scans_of,
    united_ones,
    usable,
)
from headwater.skipping.uses import MOST, Usage, Use, counts_of
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from headwater.compiler.dataflow import Step
    from headwater.frontend.catalyst import Query
    from headwater.runtime.catalog import Snapshot, ViewEntry
    from headwater.session import Session

MODES = ("auto", "always", "never")
# Fewer rows than this are read and summed up in the driver sooner than a Spark job starts.
_MANY = 1_000_000
# Rows of a table that are looked at at a time.
_SLICE = 1 << 20


@dataclass
class Sketchbook:
    """What a session knows of its sketches beyond the catalog."""

    session: Session
    mode: str = "auto"
    transfer: bool = True
    room: int = _MANY
    """If a sketch leaves no more rows than this, they are read in the driver; with 0, Spark reads them always."""
    usage: dict[str, Usage] = field(default_factory=dict)

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
                usage.took(perf_counter() - started, skipping=False)
            return found
        own = self._here(query, now, use, content)
        found = self._answer(query, self.frame(query, now, use, content)) if own is None else own
        counts = counts_of(query, now)
        for name, usage in zip(use.sketches, usages, strict=True):
            usage.notice(now.epoch, self._spent(now, name))
            usage.took(perf_counter() - started, skipping=True)
            usage.times += 1
            usage.seconds += perf_counter() - started
            usage.rows_skipped += round(sum(counts.values()) * (1 - use.share(counts)))
        return found

    def _here(self, query: Query, now: Snapshot, use: Use, content: Backfill | None) -> Answer | None:
        """The answer from what the sketches leave, in the driver; None if that is much, or can be read by Spark only."""
        if not self.room:
            return None
        assert query.root is not None
        before = now.content if content is None else content
        needed: dict[str, list[Sequence[Ranges]]] = {}
        columns: dict[str, set[int]] = {}
        for number, (scan, read) in enumerate(zip(scans_of(query.root), columns_read(query.root), strict=True)):
            needed.setdefault(scan.source.lower(), []).append(use.ranges.get(number, ()))
            columns.setdefault(scan.source.lower(), set()).update(read)
        given: dict[Step, Delta] = {}
        room = self.room
        for name, accesses in needed.items():
            entry = now.entries[name]
            if entry.output in before.outer:
                found = self.files.fetched(before.outer[entry.output], accesses, columns[name], room)
            else:
                slices = now.kept(entry).in_slices(_SLICE) if content is None else [before.content(entry.output)]
                parts = [part.where(inside(part.rows, accesses)) for part in slices]
                found = Delta.concat(parts) if parts else before.content(entry.output)
            if found is None:
                return None
            room -= len(found) if entry.output in before.outer else 0
            given[entry.output] = found
        return self.session.computed(query, now, Backfill({}, {}, given=given))

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
            self.usage.setdefault(name, Usage()).took(without.seconds, skipping=False)
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
                content = now.outer[entry.source]
                found = self.files.groups(content, ranges) if ranges else self.files.total(content)
                groups = None if groups is None or found is None else groups + found
            else:
                handed += leaves[number].count()
        started = perf_counter()
        frame = self._skipping.frame(query, leaves)
        self._skipping.answer(query, frame)
        seconds = perf_counter() - started
        files, rows = scans(frame)
        return Scanned(files, groups, rows + handed, seconds)

    def use(self, query: Query, now: Snapshot, epoch: int | None = None) -> Use | None:
        """The sketch that leaves the fewest rows to read, and others that leave still fewer; None if none serves the query."""
        if query.root is None or not is_possible(query.root):
            return None
        counts = counts_of(query, now)
        each = [use for name in usable(now, query.root) for use in [self._use(now, name, epoch)] if use is not None]
        found: Use | None = None if each else self._united(query, now, epoch)
        for use in sorted(each, key=lambda use: use.share(counts)):
            names = (*(found.sketches if found else ()), *use.sketches)
            sketches = [now.views[name].sketch for name in names]
            if found is None:
                found = use
            elif are_safe_together(now.catalog, query.root, [sketch for sketch in sketches if sketch is not None]):
                found = found.beside(use)
        return found.transferred(query.root) if found is not None and self.transfer else found

    def _united(self, query: Query, now: Snapshot, epoch: int | None) -> Use | None:
        """Sketches that serve the query all together: what is left is what one of them leaves."""
        assert query.root is not None
        found: Use | None = None
        for name in united_ones(now, query.root):
            use = self._use(now, name, epoch)
            if use is None:
                return None
            found = use if found is None else found.united(use)
        return found

    def _use(self, now: Snapshot, name: str, epoch: int | None) -> Use | None:
        view = now.views[name]
        assert view.sketch is not None
        fragments = fragments_in(self.content(now, view, epoch), view.sketch) if self._was_there(view, epoch) else None
        if fragments is None:
            return None
        ranges: dict[int, tuple[Ranges, ...]] = {}
        for access, chosen_ones in zip(view.sketch.accesses, fragments, strict=True):
            more = Ranges(access.column, access.partition, chosen_ones)
            ranges[access.scan] = (*ranges.get(access.scan, ()), more)
        return Use((name,), ranges)

    def _was_there(self, view: ViewEntry, epoch: int | None) -> bool:
        return epoch is None or epoch >= self.session.epochs.history.began(view.name.lower())

    def content(self, now: Snapshot, view: ViewEntry, epoch: int | None = None) -> pa.RecordBatch:
        """The rows of a sketch."""
        assert view.sketch is not None
        # Where nobody knows any more what was needed then, it is as if a guard were violated.
        unknown = pa.RecordBatch.from_pydict({"c0": pa.array([-1]), "c1": pa.array([0])})
        if view.sketch.lazy:
            found = self.lazily.rows(view, now, epoch)
            return unknown if found is None else found
        if epoch is None:
            return now.contents(view).rows
        try:
            return self.session.epochs.at(view, epoch).rows
        except (HistoryGone, UnknownEpoch):
            return unknown

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
            rows = self.files.pruned(outer[entry.output], ranges).frame()
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

    def _spent(self, now: Snapshot, name: str) -> float:
        """The seconds that the last commit that reached a sketch spent on it."""
        work = self.session.epochs.work
        steps = (work.get(step) for step in now.catalog.behind(now.views[name]))
        return sum(done.seconds for done in steps if done is not None and not done.rebuilt)

    def _is_worth(self, use: Use, query: Query, now: Snapshot) -> bool:
        assert query.root is not None
        scans = scans_of(query.root)
        counts = counts_of(query, now)
        if use.share(counts) > MOST:
            return False
        if any(now.entries[scan.source.lower()].output in now.outer for scan in scans):
            return True
        return sum(counts[number] for number in use.ranges) >= _MANY

    @cached_property
    def files(self) -> Files:
        """The files of attached tables."""
        return Files(lambda: self.session.spark)

    @cached_property
    def lazily(self) -> Lazily:
        """The sketches that are maintained when they are used."""
        return Lazily(self.session, self.files)

    @property
    def _skipping(self) -> Skipping:
        return Skipping(lambda: self.session.spark)


def require_skipping(mode: str) -> str:
    if mode not in MODES:
        raise InvalidOption(f"skipping is one of {', '.join(MODES)}, not {mode!r}")
    return mode
