"""Definitions of tables and views: from a schema or a query to steps with state, ready to be committed as one epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.algebra.plan import Scan, walk
from headwater.compiler.dataflow import Step, in_order
from headwater.compiler.presentation import Presentation, presented
from headwater.delta import Delta
from headwater.errors import DependentViews, NotIncremental
from headwater.evaluation.stages import Columns, typed
from headwater.operators.linear import Linear
from headwater.operators.regroup import Regroup
from headwater.operators.values import Source
from headwater.runtime.catalog import TableEntry, ViewEntry
from headwater.schema import arrow_schema
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headwater.compiler.compiler import Compiler
    from headwater.frontend.catalyst import Query
    from headwater.frontend.recompute import Recompute
    from headwater.operators.operator import Key, State
    from headwater.runtime.catalog import Entry, Snapshot
    from headwater.runtime.driver import Backfill, Work


@dataclass(frozen=True)
class Definition:
    """A catalog with the states it needs, how views changed by it, and which of them have other columns than before."""

    entries: Mapping[str, Entry]
    states: Mapping[Step, State]
    work: Mapping[Step, Work]
    changed: Mapping[str, Delta]
    restarted: frozenset[str] = frozenset()


class Definitions:
    """Makes the catalog of the next epoch."""

    def __init__(self, compiler: Compiler, recompute: Recompute) -> None:
        self._compiler = compiler
        self._recompute = recompute

    def table(self, now: Snapshot, name: str, schema: StructType, key: Key | None) -> Definition:
        arrow = arrow_schema(schema)
        source = Step(Source(tuple(arrow.types), name), (), f"Table {name}")
        contents = self._compiler.arrange(source, key if key is not None else tuple(range(len(arrow))))
        entry = TableEntry(name, schema, arrow, key, source, contents)
        backfill = now.content
        for step in (source, contents):
            backfill.build(step)
        return Definition({**now.entries, name.lower(): entry}, backfill.states, backfill.work, {})

    def view(self, now: Snapshot, name: str, query: Query, refresh: str) -> Definition:
        """A new view, or another definition of an existing one, with the views on top of it rebuilt."""
        replaced = now.views.get(name.lower())
        if replaced is not None:
            self._require_same_columns(now, replaced, query)
        rebuilt = [name.lower(), *(_above(now, name) if replaced is not None else [])]
        for key in rebuilt:
            self._forget_reading(key)
        try:
            entries = dict(now.entries)
            built = {}
            for key in rebuilt:
                old = now.views.get(key)
                if key == name.lower():
                    entry = self._entry(entries, name, query, refresh, now.epoch + 1)
                else:
                    assert old is not None
                    entry = self._entry(entries, old.name, old.query, old.refresh, old.created)
                entries[key] = built[key] = entry
            definition = self._filled(now, entries, built)
        except BaseException:
            # What was compiled reads views as they would have been.
            self._forget_others(now.entries)
            raise
        self._forget_others(entries)
        return definition

    def without(self, now: Snapshot, name: str) -> Definition:
        """The catalog without a table or view."""
        entries = {key: entry for key, entry in now.entries.items() if key != name.lower()}
        self._forget_reading(name.lower())
        self._forget_others(entries)
        return Definition(entries, now.states, {}, {})

    def answer(self, now: Snapshot, query: Query, content: Backfill) -> tuple[Delta, Presentation]:
        """The rows of a query that is not kept."""
        presentation = self._presentation(query)
        step = self._root(now.entries, query, presentation, "auto")
        rows = consolidate(content.content(step))
        self._forget_others(now.entries)
        return rows, presentation

    def _entry(self, entries: Mapping[str, Entry], name: str, query: Query, refresh: str, epoch: int) -> ViewEntry:
        presentation = self._presentation(query)
        kept = self._root(entries, query, presentation, refresh)
        visible = tuple(range(presentation.visible))
        types = kept.types[: len(visible)]
        output = kept
        if len(kept.types) > len(visible):
            output = Step(Linear(types, Columns(visible, types)), (kept,), "Project")
        contents = self._compiler.arrange(kept, ())
        if refresh == "incremental":
            self._require_incremental(name, contents)
        arrow = arrow_schema(query.schema)
        return ViewEntry(name, query, query.schema, arrow, refresh, output, contents, presentation.order, epoch)

    def _presentation(self, query: Query) -> Presentation:
        if query.root is None:
            types = tuple(arrow_schema(query.schema).types)
            return Presentation(Scan(types=types, source=""), len(types), ())
        return presented(query.root)

    def _root(self, entries: Mapping[str, Entry], query: Query, presentation: Presentation, refresh: str) -> Step:
        if refresh == "full" or query.root is None:
            return self._recomputed(entries, query, presentation, refresh)
        return self._compiler.root(presentation.node, {key: entry.output for key, entry in entries.items()})

    def _recomputed(self, entries: Mapping[str, Entry], query: Query, presentation: Presentation, refresh: str) -> Step:
        """Spark answers the whole query again, and the answers are compared."""
        sources = sorted(query.sources)
        types = tuple(arrow_schema(query.schema).types)[: presentation.visible]
        schemas = {name: entries[name.lower()].schema for name in sources}

        def evaluate(inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
            found = self._recompute(query, schemas, dict(zip(sources, inputs, strict=True)))
            return typed(found.columns, types, found.num_rows)

        steps = tuple(self._compiler.arrange(entries[name.lower()].output, ()) for name in sources)
        why = "the view was created with refresh full" if refresh == "full" else f"the query has {query.unreadable}"
        operator = Regroup(types, tuple(s.types for s in steps), (), (), evaluate, why, "spark", whole=True)
        return Step(operator, steps, "Recompute")

    def _filled(self, now: Snapshot, entries: Mapping[str, Entry], built: Mapping[str, ViewEntry]) -> Definition:
        backfill = now.content
        changed = {}
        restarted = set()
        for key, entry in built.items():
            for step in in_order([entry.contents, entry.output]):
                backfill.build(step)
            content = _visible(entry, backfill.content(entry.contents))
            old = now.views.get(key)
            if old is not None and old.arrow.types == entry.arrow.types:
                content = Delta.concat([content, -_visible(old, now.contents(old))])
            elif old is not None:
                restarted.add(key)
            changed[key] = content
        return Definition(entries, backfill.states, backfill.work, changed, frozenset(restarted))

    def _forget_others(self, entries: Mapping[str, Entry]) -> None:
        """Drops the compiled steps that these tables and views do not need."""
        self._compiler.forget(in_order(step for entry in entries.values() for step in (entry.output, entry.contents)))

    def _forget_reading(self, name: str) -> None:
        self._compiler.forget_if(lambda node: any(isinstance(n, Scan) and n.source.lower() == name for n in walk(node)))

    def _require_incremental(self, name: str, contents: Step) -> None:
        for step in in_order([contents]):
            if step.operator.maintenance == "recomputed":
                raise NotIncremental(
                    f"view {name!r} cannot be incremental: {step.label} would be recomputed ({step.operator.reason()}). "
                    "Create it with refresh auto, or change the query"
                )

    def _require_same_columns(self, now: Snapshot, old: ViewEntry, query: Query) -> None:
        same = [(f.name.lower(), f.dataType) for f in old.schema] == [(f.name.lower(), f.dataType) for f in query.schema]
        readers = now.readers(old.name)
        if readers and not same:
            names = ", ".join(repr(view.name) for view in readers)
            raise DependentViews(
                f"view {old.name!r} cannot be replaced by a query with other columns, because {names} read it; drop them first"
            )


def _above(now: Snapshot, name: str) -> list[str]:
    """All views that read a view, directly or not, each after those it reads."""
    found: list[str] = []
    pending = [name.lower()]
    while pending:
        for view in now.readers(pending.pop(0)):
            key = view.name.lower()
            if key in found:
                found.remove(key)
            found.append(key)
            pending.append(key)
    return found


def _visible(entry: ViewEntry, rows: Delta) -> Delta:
    return rows.select(range(len(entry.arrow)))
