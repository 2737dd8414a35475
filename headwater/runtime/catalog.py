"""What there is at an epoch: tables, views and the states of all steps, as one immutable value.

A *catalog* is what stays the same from one definition to the next: names, and the dataflow behind them. A *snapshot* is a
catalog with the states that its steps have at one epoch. What follows from the catalog alone is found once, so that a commit
costs as much as the steps it touches, whatever else there is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from headwater.compiler.dataflow import in_order
from headwater.conversion import timed
from headwater.delta import positional
from headwater.errors import LostState
from headwater.interrupts import uninterrupted
from headwater.runtime.driver import NOTHING_OUTSIDE, Backfill
from headwater.runtime.lifetimes import is_hidden, times_of
from headwater.runtime.outside import Content

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headwater.annotations.fragments import Partition
    from headwater.compiler.compiler import Compiler
    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.errors import DamagedFile
    from headwater.frontend.catalyst import Query
    from headwater.operators.operator import Key, State
    from headwater.operators.ordering import Order
    from headwater.runtime.driver import Outer
    from headwater.runtime.lifetimes import Lifetime
    from headwater.runtime.outside import Outside
    from headwater.sketches.captured import Captured
    from headwater.state.arrangement import Arrangement


@dataclass(frozen=True, eq=False)
class TableEntry:
    """A table: where its changes enter, and where its rows are kept; if it is attached to rows outside, its changes only."""

    name: str
    schema: StructType
    arrow: pa.Schema
    key: Key | None
    source: Step
    contents: Step
    attached: Outside | None = None
    lifetime: Lifetime | None = None
    """How long its rows live, if not until they are deleted."""

    @property
    def output(self) -> Step:
        return self.source

    @property
    def times(self) -> str | None:
        """The table, by its name in lower case, that says when rows of this one were inserted, if that matters."""
        return times_of(self.name).lower() if self.lifetime is not None and self.lifetime.event_time is None else None

    @cached_property
    def rows(self) -> pa.Schema:
        """The columns as the engine names them."""
        return positional(self.arrow)

    @cached_property
    def timed(self) -> tuple[int, ...]:
        """The columns in which there are dates or timestamps."""
        return timed(self.arrow)

    @cached_property
    def indexed(self) -> Key:
        """The columns by which rows are kept: the key, or all."""
        return tuple(range(len(self.arrow))) if self.key is None else self.key


@dataclass(frozen=True, eq=False)
class ViewEntry:
    """A view: the step that gives its rows, and where these are kept, with columns that only serve to order them."""

    name: str
    query: Query
    schema: StructType
    arrow: pa.Schema
    refresh: str
    output: Step
    contents: Step
    order: tuple[Order, ...]
    sketch: Captured | None = None
    """What it is a sketch of, if it is one."""

    @cached_property
    def rows(self) -> pa.Schema:
        """The columns as the engine names them."""
        return positional(self.arrow)

    @cached_property
    def timed(self) -> tuple[int, ...]:
        """The columns in which there are dates or timestamps."""
        return timed(self.arrow)

    @property
    def kept(self) -> Step:
        """What gives the rows as they are kept."""
        return self.contents.inputs[0]


Entry = TableEntry | ViewEntry


@dataclass(frozen=True, eq=False)
class Catalog:
    """Tables and views by their names in lower case, the compiler that knows their steps, and partitions of tables."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    compiler: Compiler | None = None
    partitions: tuple[Partition, ...] = ()

    @cached_property
    def tables(self) -> dict[str, TableEntry]:
        return {name: entry for name, entry in self.entries.items() if isinstance(entry, TableEntry)}

    @cached_property
    def views(self) -> dict[str, ViewEntry]:
        return {name: entry for name, entry in self.entries.items() if isinstance(entry, ViewEntry)}

    @cached_property
    def shown(self) -> dict[str, Entry]:
        """The tables and views that users know of."""
        return {name: entry for name, entry in self.entries.items() if not is_hidden(name)}

    @cached_property
    def soft(self) -> list[TableEntry]:
        """The tables whose rows live for a time."""
        return [table for table in self.tables.values() if table.lifetime is not None]

    @cached_property
    def sketches(self) -> dict[str, ViewEntry]:
        """The views that are sketches."""
        return {name: view for name, view in self.views.items() if view.sketch is not None}

    @cached_property
    def steps(self) -> list[Step]:
        """All steps, each after its inputs."""
        return in_order(step for entry in self.entries.values() for step in (entry.output, entry.contents))

    @cached_property
    def kept(self) -> dict[Step, list[str]]:
        """The views that a step gives the rows of, with the columns that only serve to order them."""
        found: dict[Step, list[str]] = {}
        for name, view in self.views.items():
            found.setdefault(view.kept, []).append(name)
        return found

    @cached_property
    def arranged(self) -> dict[Step, Step]:
        """For each step whose output is kept, one that keeps it."""
        return keepers(self.steps, self)

    @cached_property
    def attached(self) -> dict[Step, TableEntry]:
        """The attached tables, by the step that keeps their changes."""
        return {table.contents: table for table in self.tables.values() if table.attached is not None}

    def behind(self, entry: Entry) -> list[Step]:
        """The steps that a table or view consists of: for a table, where its rows are kept."""
        if isinstance(entry, TableEntry):
            return [entry.contents]
        own = in_order([entry.output, entry.contents])
        return [step for step in own if step not in self._tables]

    @cached_property
    def _tables(self) -> frozenset[Step]:
        return frozenset(table.contents for table in self.tables.values())

    def readers(self, name: str) -> list[ViewEntry]:
        """The views that read a table or view directly."""
        return [view for view in self.views.values() if name.lower() in {source.lower() for source in view.query.sources}]

    def above(self, sources: Collection[Step]) -> Sequence[Step]:
        """The steps that changes of these sources can reach, each after its inputs."""
        if len(sources) == 1:
            return self._above[next(iter(sources))]
        reached = {step for source in sources for step in self._above[source]}
        return [step for step in self.steps if step in reached]

    @cached_property
    def below(self) -> dict[Step, frozenset[Step]]:
        """The sources that each step depends on."""
        sources = {table.source for table in self.tables.values()}
        found: dict[Step, frozenset[Step]] = {}
        for step in self.steps:
            inputs = (found[child] for child in step.inputs)
            found[step] = frozenset([step]) if step in sources else frozenset().union(*inputs)
        return found

    @cached_property
    def _above(self) -> dict[Step, list[Step]]:
        above: dict[Step, list[Step]] = {table.source: [] for table in self.tables.values()}
        for step, sources in self.below.items():
            for source in sources:
                if source is not step:
                    above[source].append(step)
        return above


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything at one epoch."""

    epoch: int = 0
    catalog: Catalog = field(default_factory=Catalog)
    states: Mapping[Step, State] = field(default_factory=dict)
    positions: Mapping[str, Any] = field(default_factory=dict)
    """How far each stream that is followed has been applied, by its name."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self.catalog.entries

    @property
    def tables(self) -> dict[str, TableEntry]:
        return self.catalog.tables

    @property
    def views(self) -> dict[str, ViewEntry]:
        return self.catalog.views

    def kept(self, entry: Entry) -> Arrangement:
        """Where the rows of a table or view are kept."""
        if entry.contents not in self.states:
            raise self._lost(entry)
        return self.states[entry.contents][0]

    def without(self, damage: DamagedFile) -> Snapshot:
        """The same without the states that are in the damaged part of a file, and all that follows from them."""
        lost: set[Step] = set()
        for step in self.catalog.steps:
            state = self.states.get(step, ())
            if any(run.is_hit(damage) for arrangement in state for run in arrangement.runs) or lost.intersection(step.inputs):
                lost.add(step)
        return replace(self, states={step: state for step, state in self.states.items() if step not in lost})

    @property
    def is_whole(self) -> bool:
        """Whether every step has its state."""
        return len(self.states) == len(self.catalog.steps)

    @property
    def lost(self) -> list[Entry]:
        """The tables and views that cannot be read, or kept up to date, any more."""
        if self.is_whole:
            return []
        gone = set(self.catalog.steps).difference(self.states)
        return [entry for entry in self.entries.values() if not gone.isdisjoint(self.catalog.behind(entry))]

    def _lost(self, entry: Entry) -> LostState:
        if isinstance(entry, TableEntry):
            return LostState(f"the rows of table {entry.name!r} were in a file that is damaged; restore them from a backup")
        return LostState(
            f"the state of view {entry.name!r} was in a file that is damaged; repair({entry.name!r}) builds it again"
        )

    @uninterrupted
    def contents(self, entry: Entry) -> Delta:
        """The rows of a table or view, consolidated."""
        if isinstance(entry, TableEntry) and entry.attached is not None:
            return Content(entry.attached, self.kept(entry)).delta()
        return self.kept(entry).contents()

    def total(self, entry: Entry) -> int:
        """How many rows a table or view has."""
        if isinstance(entry, TableEntry) and entry.attached is not None:
            return Content(entry.attached, self.kept(entry)).total
        return self.kept(entry).total

    @property
    def outer(self) -> Outer:
        """The content of attached tables, by the steps that give it."""
        return {
            table.source: Content(table.attached, self.states[step][0])
            for step, table in self.catalog.attached.items()
            if table.attached is not None and step in self.states
        }

    @property
    def content(self) -> Backfill:
        """What steps give at this epoch, taken from the arrangements there are."""
        return self.content_with(NOTHING_OUTSIDE)

    def following(self, states: Mapping[Step, State], sources: Mapping[Step, Delta]) -> Backfill:
        """What steps give after changes of tables, with the states that are known already; the tables are brought up here."""
        after = {**self.states, **states}
        for table in self.tables.values():
            if table.source in sources and table.contents not in states:
                after[table.contents] = (self.kept(table).insert(sources[table.source]),)
        return replace(self, states=after).content

    def content_with(self, outer: Outer) -> Backfill:
        """The same, with the content of further tables that are outside."""
        outer = {**self.outer, **outer}
        if self.is_whole:
            return Backfill(self.states, self.catalog.arranged, outer=outer)
        lost = {table.source: self._lost(table) for table in self.tables.values() if table.contents not in self.states}
        return Backfill(self.states, keepers(self.states, self.catalog), lost, outer)

    def readers(self, name: str) -> list[ViewEntry]:
        """The views that read a table or view directly."""
        return self.catalog.readers(name)


def keepers(steps: Iterable[Step], catalog: Catalog) -> dict[Step, Step]:
    """For each step whose output one of the given ones keeps, that one; what keeps changes only is none."""
    return {step.inputs[0]: step for step in steps if step.operator.keeps_rows and step not in catalog.attached}
