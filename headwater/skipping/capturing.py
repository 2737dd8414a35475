"""Makes partitions and sketches: checks what a query allows, cuts tables where they are not cut yet, and chooses columns.

How large a sketch by a column would be is estimated from a sample. Where there can be none, it may be known from the answer: if
that shows an attribute, it shows the attribute of every row that was needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from headwater.algebra.plan import walk
from headwater.delta import one_batch
from headwater.errors import InvalidOption, NotSupported, UnsafeSketch
from headwater.sketches.tuning import Tuning
from headwater.skipping.estimating import estimates
from headwater.skipping.partitioning import Attribute, column_of, partition_at, partition_of, require_count
from headwater.skipping.reading import Ranges, is_possible
from headwater.skipping.sketching import (
    candidates,
    chosen,
    has_one_row,
    known_partition,
    safe_and_visible,
    scans_of,
    sketch_query,
    template_of,
    wanted,
)
from headwater.skipping.uses import MOST, Use, counts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from headwater.algebra.plan import Node
    from headwater.annotations.fragments import Partition
    from headwater.answers import Answer
    from headwater.frontend.catalyst import Query
    from headwater.runtime.catalog import Catalog, TableEntry
    from headwater.session import Session
    from headwater.sketches.captured import Captured, Estimate
    from headwater.sketches.facts import Access, Guard
    from headwater.skipping.sketching import On

MAINTENANCE = ("eager", "lazy")
BEST = 1_000_000
# A kind of query that was asked so often will be asked again.
_OFTEN = 5
# How the names of sketches begin that come by themselves.
_LEARNT = "auto_"
# Of a table of fewer rows, the usual number of fragments is as good as any.
_LARGE = 100_000


@dataclass(frozen=True)
class Chosen:
    """By what a sketch is to be made: columns, the number of fragments of each, and the estimates that these come from."""

    on: On
    fragments: int | Mapping[tuple[str, str], int] | None
    estimates: tuple[Estimate, ...] = ()

    def count(self, table: str, column: str) -> int | None:
        """Into how many fragments a table is cut by a column; None for the usual number."""
        if self.fragments is None or isinstance(self.fragments, int):
            return self.fragments
        return self.fragments.get((table.lower(), column))


@dataclass
class Capturing:
    """Captures sketches of a session; if it `learns`, also of queries that are asked again and again."""

    session: Session
    learns: bool = False
    often: int = _OFTEN
    seen: dict[Node, int] = field(default_factory=dict)

    def partition(
        self, now: Catalog, table: str, column: str, fragments: int | None, bounds: Sequence[object] | None
    ) -> Partition:
        """A new partition, not yet in the catalog."""
        require_count(fragments)
        entry = self.session.table_entry(table)
        attribute = self._attribute(entry, column_of(entry, column))
        return partition_of(now, attribute, fragments) if bounds is None else partition_at(now, attribute, bounds)

    def _attribute(self, table: TableEntry, column: int) -> Attribute:
        now = self.session.snapshot
        return Attribute(table, column, self.session.rows_of(table, now), now.total(table))

    def sketched(
        self,
        now: Catalog,
        query: Query,
        by: Chosen,
        *,
        witnesses: bool = False,
        tuning: Tuning | None = None,
    ) -> tuple[Catalog, Query, Any]:
        """The catalog with the partitions that a sketch needs, the query that is the sketch, and what it is."""
        accesses = wanted(now, query, by.on)
        if query.root is not None and not is_possible(query.root):
            raise NotSupported(
                "a query with recursion, a Python function, a limit of nested values or twice the same scalar subquery is "
                "answered without sketches, so none can be made of it"
            )
        assert query.root is not None
        if not all(map(has_one_row, walk(query.root))):
            raise NotSupported("a scalar subquery that may give several rows would fail commits; end it with LIMIT 1")
        choice = chosen(now, query.root, accesses, self.holds)
        scans = scans_of(query.root)
        partitions: dict[Access, Partition] = {}
        for access in choice.accesses:
            table = now.tables[scans[access[0]].source.lower()]
            fragments = by.count(table.name, table.arrow.names[access[1]])
            found = known_partition(now, table, access[1], fragments)
            if found is None:
                found = partition_of(now, self._attribute(table, access[1]), fragments)
                now = replace(now, partitions=(*now.partitions, found))
            partitions[access] = found
        made = replace(choice, witnesses=witnesses, tuning=tuning or Tuning())
        asked, captured = sketch_query(now, query, made, partitions, self.session.engines.type_of)
        return now, asked, replace(captured, estimates=by.estimates)

    def holds(self, guard: Guard) -> bool:
        """Whether a fact is true of a table now."""
        now = self.session.snapshot
        table = now.tables[guard.table]
        if table.source in now.outer:
            frame = now.outer[table.source].frame()
            column = frame[f"c{guard.column}"]
            broken = {"≥ 0": column < 0, "≤ 0": column > 0, "not null": column.isNull()}[guard.kind]
            return frame.where(broken).first() is None
        return guard.holds(now.kept(table).contents().rows.column(guard.column))

    def choose(
        self, query: Query, fragments: int | None, answer: Callable[[], pa.Table] | None, *, witnesses: bool = False
    ) -> Chosen | None:
        """The table and column by which a sketch leaves the fewest rows, and by how many fragments; None if it leaves too many.

        That is estimated from a sample or, where there can be none, known from the answer for the columns that it shows.
        """
        if query.root is None or not is_possible(query.root):
            return None
        now, scans = self.session.snapshot, scans_of(query.root)
        listed = [(scans[number].source.lower(), column) for number, column in candidates(now.catalog, query.root)]
        found = estimates(self.session, query, dict.fromkeys(listed), fragments, witnesses=witnesses)
        every = tuple(told.estimate for told in found)
        for best in (told.estimate for told in found if told.left <= MOST):
            on = {now.tables[best.table].name: best.column}
            with suppress(UnsafeSketch):
                # What is true of a sample need not be true of all rows.
                chosen(now.catalog, query.root, wanted(now.catalog, query, on), self.holds)
                return Chosen(on, {(best.table, best.column): best.fragments}, (best, *(e for e in every if e is not best)))
        shown = None if found or answer is None else self._shown(query, answer())
        return None if shown is None else Chosen(shown, fragments)

    def are_large(self, on: On) -> bool:
        """Whether one of the tables has so many rows that it matters into how many fragments it is cut."""
        now = self.session.snapshot
        tables = [now.tables.get(name.lower()) for name in on if isinstance(name, str)] if isinstance(on, Mapping) else []
        return any(table is not None and now.total(table) >= _LARGE for table in tables)

    def counted(self, query: Query, on: On, *, witnesses: bool = False) -> Chosen:
        """The columns that were named, with the number of fragments that a sample suggests for those that are not yet cut."""
        now = self.session.snapshot
        accesses = wanted(now.catalog, query, on)
        assert query.root is not None
        scans = scans_of(query.root)
        named = dict.fromkeys((scans[number].source.lower(), column) for number, column in accesses)
        places = [(name, i) for name, i in named if known_partition(now.catalog, now.tables[name], i, None) is None]
        if not places or not is_possible(query.root):
            return Chosen(on, None)
        found = [told.estimate for told in estimates(self.session, query, dict.fromkeys(places), None, witnesses=witnesses)]
        return Chosen(on, {(each.table, each.column): each.fragments for each in found}, tuple(found))

    def _shown(self, query: Query, answer: pa.Table) -> On | None:
        """The best of the columns that the answer shows; None if none leaves out enough."""
        assert query.root is not None
        now = self.session.snapshot
        scans = scans_of(query.root)
        counts = counts_of(query, now)
        best: tuple[float, On] | None = None
        for (number, column), shown in safe_and_visible(now.catalog, query.root, self.session.engines.type_of).items():
            table = now.tables[scans[number].source.lower()]
            found = known_partition(now.catalog, table, column, None)
            if found is None:
                found = partition_of(now.catalog, self._attribute(table, column), None)
            values = one_batch(answer.select([shown])).column(0)
            share = Use((), {number: (Ranges(column, found, frozenset(found.fragments(values).tolist())),)}).share(counts)
            if share <= MOST and (best is None or share < best[0]):
                best = (share, {table.name: table.arrow.names[column]})
        return None if best is None else best[1]

    def review(self) -> None:
        """Drops sketches that came by themselves and cost commits more than they save; the next ones come half as soon."""
        if not self.learns:
            return
        for name in list(self.session.snapshot.catalog.sketches):
            if name.startswith(_LEARNT) and not self.session.sketchbook.used(name).is_worth_its_upkeep:
                self.session.drop_sketch(name)
                self.session.sketchbook.usage.pop(name, None)
                self.seen.clear()
                self.often *= 2

    def notice(self, query: Query, answer: Answer) -> None:
        """A query was answered without a sketch: makes one if its like was seen often enough, and one would be worth it."""
        now = self.session.snapshot
        if not self.learns or query.root is None or query.text is None or not is_possible(query.root):
            return
        if not any(now.entries[scan.source.lower()].output in now.outer for scan in scans_of(query.root)):
            return
        kind = template_of(query.root)
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if self.seen[kind] != self.often:
            return
        found = self.choose(query, None, answer.arrow)
        if found is not None:
            number = next(i for i in count(1) if f"{_LEARNT}{i}" not in now.entries)
            self.session.define_sketch(f"{_LEARNT}{number}", query.text, found)


def tuning_of(*, key_filter: bool, push_down: bool, best: int | None) -> Tuning:
    """The techniques by which a sketch is to be maintained."""
    if best is not None and (not isinstance(best, int) or isinstance(best, bool) or not 1 <= best <= BEST):
        raise InvalidOption(f"best is how many rows or values are kept, from 1 to {BEST:,}, or None for all, not {best!r}")
    for name, value in (("key_filter", key_filter), ("push_down", push_down)):
        if not isinstance(value, bool):
            raise InvalidOption(f"{name} is True or False, not {value!r}")
    return Tuning(key_filter, push_down, best)


def require_maintenance(maintain: str) -> None:
    if maintain not in MAINTENANCE:
        raise InvalidOption(f"maintain is one of {', '.join(MAINTENANCE)}, not {maintain!r}")


def maintained(sketch: Captured, now: Catalog, maintain: str) -> Captured:
    """The sketch as it is to be kept up to date: eager or lazy."""
    views = sorted(name for name in sketch.query.sources if name.lower() not in now.tables)
    if maintain == "lazy" and views:
        raise NotSupported(f"a sketch of a query over views ({', '.join(views)}) is maintained by every commit, not lazily")
    return replace(sketch, lazy=maintain == "lazy")
