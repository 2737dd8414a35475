"""Makes partitions and sketches: checks what a query allows, cuts tables where they are not cut yet, and chooses columns.

If the answer of a query shows an attribute, it shows that of every row that was needed: so the size of a sketch by that column
is known before it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import one_batch
from headwater.errors import InvalidOption, NotSupported
from headwater.sketches.tuning import Tuning
from headwater.skipping.partitioning import Attribute, column_of, partition_at, partition_of, require_count
from headwater.skipping.reading import Ranges, is_possible
from headwater.skipping.sketching import chosen, known_partition, safe_and_visible, scans_of, sketch_query, template_of, wanted
from headwater.skipping.uses import MOST, Use, counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Node
    from headwater.annotations.fragments import Partition
    from headwater.answers import Answer
    from headwater.frontend.catalyst import Query
    from headwater.runtime.catalog import Catalog, TableEntry
    from headwater.session import Session
    from headwater.sketches.captured import Captured
    from headwater.sketches.facts import Access, Guard
    from headwater.skipping.sketching import On

MAINTENANCE = ("eager", "lazy")
BEST = 1_000_000
# A kind of query that was asked so often will be asked again.
_OFTEN = 5
# How the names of sketches begin that come by themselves.
_LEARNT = "auto_"


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

    def sketched(  # noqa: PLR0913  (each a choice of its own)
        self,
        now: Catalog,
        query: Query,
        on: On,
        fragments: int | None,
        *,
        witnesses: bool = False,
        tuning: Tuning = Tuning(),  # noqa: B008  (a value)
    ) -> tuple[Catalog, Query, Any]:
        """The catalog with the partitions that a sketch needs, the query that is the sketch, and what it is."""
        require_count(fragments)
        accesses = wanted(now, query, on)
        if query.root is not None and not is_possible(query.root):
            raise NotSupported(
                "a query with a scalar subquery, recursion, a Python function or a limit of nested values is answered without "
                "sketches, so none can be made of it"
            )
        assert query.root is not None
        choice = chosen(now, query.root, accesses, self.holds)
        scans = scans_of(query.root)
        partitions: dict[Access, Partition] = {}
        for access in choice.accesses:
            table = now.tables[scans[access[0]].source.lower()]
            found = known_partition(now, table, access[1], fragments)
            if found is None:
                found = partition_of(now, self._attribute(table, access[1]), fragments)
                now = replace(now, partitions=(*now.partitions, found))
            partitions[access] = found
        made = replace(choice, witnesses=witnesses, tuning=tuning)
        return now, *sketch_query(now, query, made, partitions, self.session.engines.type_of)

    def holds(self, guard: Guard) -> bool:
        """Whether a fact is true of a table now."""
        now = self.session.snapshot
        table = now.tables[guard.table]
        if table.source in now.outer:
            frame = now.outer[table.source].frame()
            column = frame[f"c{guard.column}"]
            broken = {"≥ 0": column < 0, "≤ 0": column > 0, "not null": column.isNull()}[guard.kind]
            return frame.where(broken).first() is None
        values = now.kept(table).contents().rows.column(guard.column)
        if guard.kind == "not null":
            return not values.null_count
        ends = pc.min_max(values)
        end = (ends["min"] if guard.kind == "≥ 0" else ends["max"]).as_py()
        return end is None or bool(end >= 0 if guard.kind == "≥ 0" else end <= 0)

    def choose(self, query: Query, answer: pa.Table) -> On | None:
        """The table and column by which a sketch leaves the fewest rows, by the answer; None if none leaves out enough."""
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
        on = self.choose(query, answer.arrow())
        if on is not None:
            number = next(i for i in count(1) if f"{_LEARNT}{i}" not in now.entries)
            self.session.create_sketch(f"{_LEARNT}{number}", query.text, on=on)


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
