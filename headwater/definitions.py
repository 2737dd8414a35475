"""Definitions of tables and views: from a schema or a query to steps with state, ready to be committed as one epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.plan import Fixpoint, Scan, Values, walk
from headwater.compiler.dataflow import Step, in_order
from headwater.compiler.estimates import Facts
from headwater.compiler.presentation import Presentation, presented
from headwater.errors import DependentViews, NotIncremental, NotSupported
from headwater.evaluation.stages import Columns
from headwater.frontend.recompute import Recomputed
from headwater.operators.arrange import Arrange
from headwater.operators.linear import Linear
from headwater.operators.regroup import Regroup
from headwater.operators.values import Source
from headwater.runtime.catalog import Catalog, TableEntry, ViewEntry
from headwater.runtime.driver import Backfill
from headwater.runtime.lifetimes import times_of
from headwater.runtime.outside import Content
from headwater.schema import arrow_schema
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.types import StructType

    from headwater.algebra.plan import Node
    from headwater.annotations.fragments import Partition
    from headwater.compiler.compiler import Compiler
    from headwater.delta import Delta
    from headwater.frontend.catalyst import Query
    from headwater.frontend.recompute import Recompute
    from headwater.operators.operator import Key
    from headwater.runtime.catalog import Entry, Snapshot
    from headwater.runtime.driver import Outer
    from headwater.runtime.lifetimes import Lifetime
    from headwater.runtime.outside import Outside
    from headwater.sketches.captured import Captured


@dataclass(frozen=True)
class Definition:
    """A catalog to come, and the views in it that are new or defined anew."""

    catalog: Catalog
    rebuilt: tuple[str, ...] = ()


class Definitions:
    """Makes the next catalog. Whatever is compiled for it stays with it, and is forgotten if it never comes to be."""

    def __init__(self, compiler: Compiler, recompute: Recompute) -> None:
        self._empty = compiler
        self._recompute = recompute

    def table(  # noqa: PLR0913, PLR0917  (what a table consists of)
        self,
        now: Catalog,
        name: str,
        schema: StructType,
        key: Key | None,
        attached: Outside | None = None,
        lifetime: Lifetime | None = None,
    ) -> Definition:
        arrow = arrow_schema(schema)
        compiler = self._compiler(now)
        source = Step(Source(tuple(arrow.types), name), (), f"Table {name}")
        indexed = key if key is not None else tuple(range(len(arrow)))
        contents = compiler.arrange(source, indexed) if attached is None else _changes(source, indexed)
        entry = TableEntry(name, schema, arrow, key, source, contents, attached, lifetime)
        entries = {**now.entries, name.lower(): entry}
        if entry.times is not None:
            entries[entry.times] = _times(compiler, entry)
        return Definition(replace(now, entries=entries, compiler=compiler))

    def with_rows(self, now: Catalog, outside: Outside, lifetime: Lifetime | None) -> tuple[Definition, Outer]:
        """A table attached to rows outside, or one that is to begin with them; what it loads."""
        name, is_lasting = outside.columns.name, outside.place is not None
        defined = self.table(now, name, outside.schema, outside.key, outside if is_lasting else None, lifetime)
        return defined, {} if is_lasting else {defined.catalog.tables[name.lower()].source: Content(outside)}

    def widened(
        self, snapshot: Snapshot, table: TableEntry, outside: Outside, again: Callable[[ViewEntry, Catalog], Query]
    ) -> tuple[Definition, Outer]:
        """The catalog with more columns in a table, whose rows are given; the views above it are read `again`, and rebuilt."""
        now = snapshot.catalog
        above = _above(now, table.name)
        compiler = self._compiler(now, snapshot)
        for key in (table.name.lower(), *above):
            _forget_reading(compiler, key)
        started = replace(now, compiler=compiler)
        defined = self.table(started, table.name, outside.schema, table.key, lifetime=table.lifetime)
        entries, compiler = dict(defined.catalog.entries), self._compiler(defined.catalog, snapshot)
        # Sketches only save time, and can be made again.
        rebuilt = tuple(key for key in above if now.views[key].sketch is None)
        for key in above:
            old = entries.pop(key)
            if key in rebuilt:
                assert isinstance(old, ViewEntry)
                query = again(old, replace(now, entries=entries, compiler=compiler))
                entries[key] = self._entry(compiler, entries, old.name, query, old.refresh)
        source = defined.catalog.tables[table.name.lower()].source
        return _defined(now, entries, compiler, rebuilt), {source: Content(outside)}

    def attached_to(self, now: Catalog, table: TableEntry, outside: Outside) -> Definition:
        """The catalog with a table attached to other rows outside, and no changes since."""
        entry = replace(table, attached=outside, contents=_changes(table.source, table.indexed))
        return Definition(replace(now, entries={**now.entries, table.name.lower(): entry}, compiler=self._compiler(now)))

    def partitioned(self, now: Catalog, partition: Partition) -> Definition:
        """The catalog with a table cut into fragments in one more way."""
        return Definition(replace(now, partitions=(*now.partitions, partition)))

    def view(self, snapshot: Snapshot, name: str, query: Query, refresh: str, sketch: Captured | None = None) -> Definition:
        """A new view or sketch, or another definition of an existing view, with the views on top of it rebuilt."""
        now = snapshot.catalog
        replaced = now.views.get(name.lower())
        if replaced is not None:
            self._require_same_columns(now, replaced, query)
        rebuilt = [name.lower(), *(_above(now, name) if replaced is not None else [])]
        compiler = self._compiler(now, snapshot)
        for key in rebuilt:
            _forget_reading(compiler, key)
        entries = dict(now.entries)
        for key in rebuilt:
            old = now.views.get(key)
            if key == name.lower():
                made = self._entry(compiler, entries, name, _kept(query, sketch), refresh)
                entries[key] = replace(made, query=query, sketch=sketch)
            else:
                assert old is not None
                made = self._entry(compiler, entries, old.name, _kept(old.query, old.sketch), old.refresh)
                entries[key] = replace(made, query=old.query, sketch=old.sketch)
        return _defined(now, entries, compiler, tuple(rebuilt))

    def without(self, now: Catalog, name: str) -> Definition:
        """The catalog without a table or view."""
        dropped = now.entries[name.lower()]
        gone = {name.lower(), dropped.times if isinstance(dropped, TableEntry) else None}
        entries = {key: entry for key, entry in now.entries.items() if key not in gone}
        compiler = self._compiler(now)
        _forget_reading(compiler, name.lower())
        kept = tuple(partition for partition in now.partitions if partition.table != name.lower())
        return _defined(replace(now, partitions=kept), entries, compiler)

    def answer(self, snapshot: Snapshot, query: Query, content: Backfill) -> tuple[Delta, Presentation]:
        """The rows of a query that is not kept."""
        presentation = self._presentation(query, "auto")
        step = self._root(self._compiler(snapshot.catalog, snapshot), snapshot.entries, query, presentation, "auto")
        return consolidate(content.content(step)), presentation

    def over(self, root: Node, rows: Mapping[str, Delta]) -> Delta:
        """The rows of a plan over the given rows of what it reads, by names in lower case."""
        sources = {name: Step(Source(tuple(given.rows.schema.types), name), (), name) for name, given in rows.items()}
        content = Backfill({}, {}, given={sources[name]: given for name, given in rows.items()})
        return consolidate(content.content(self._empty.fork({}).root(root, sources)))

    def apart(self, snapshot: Snapshot, query: Query) -> Step:
        """What keeps the rows of a query, by steps that have nothing but tables in common with those there are."""
        compiler = self._empty.fork(_facts(snapshot))
        presentation = self._presentation(query, "auto")
        return compiler.arrange(self._root(compiler, snapshot.entries, query, presentation, "auto"), ())

    def _compiler(self, now: Catalog, snapshot: Snapshot | None = None) -> Compiler:
        """One that knows the steps there are, and whose own ones concern nobody else."""
        return (self._empty if now.compiler is None else now.compiler).fork({} if snapshot is None else _facts(snapshot))

    def _entry(self, compiler: Compiler, entries: Mapping[str, Entry], name: str, query: Query, refresh: str) -> ViewEntry:
        presentation = self._presentation(query, refresh)
        kept = self._root(compiler, entries, query, presentation, refresh)
        visible = tuple(range(presentation.visible))
        types = kept.types[: len(visible)]
        output = kept
        if len(kept.types) > len(visible):
            output = Step(Linear(types, Columns(visible, types)), (kept,), "Project")
        contents = compiler.arrange(kept, ())
        if refresh == "incremental":
            self._require_incremental(name, contents)
        arrow = arrow_schema(query.schema)
        return ViewEntry(name, query, query.schema, arrow, refresh, output, contents, presentation.order)

    def _presentation(self, query: Query, refresh: str) -> Presentation:
        if refresh == "full" or query.root is None:
            types = tuple(arrow_schema(query.schema).types)
            return Presentation(Scan(types=types + query.keys, source=""), len(types), query.order)
        return presented(query.root, self._empty.type_of)

    def _root(
        self, compiler: Compiler, entries: Mapping[str, Entry], query: Query, presentation: Presentation, refresh: str
    ) -> Step:
        if refresh == "full" and query.root is not None and any(isinstance(node, Fixpoint) for node in walk(query.root)):
            raise NotSupported("Spark cannot recompute WITH RECURSIVE … UNION; create the view with refresh auto")
        if refresh == "full" or query.root is None:
            return self._recomputed(compiler, entries, query, presentation, refresh)
        return compiler.root(presentation.node, {key: entry.output for key, entry in entries.items()})

    def _recomputed(
        self, compiler: Compiler, entries: Mapping[str, Entry], query: Query, presentation: Presentation, refresh: str
    ) -> Step:
        """Spark answers the whole query again, and the answers are compared."""
        sources = tuple(sorted(query.sources))
        types = presentation.node.types
        schemas = tuple(entries[name.lower()].schema for name in sources)
        evaluate = Recomputed(query, sources, schemas, types, self._recompute)
        steps = tuple(compiler.arrange(entries[name.lower()].output, ()) for name in sources)
        why = "the view was created with refresh full" if refresh == "full" else f"the query has {query.unreadable}"
        operator = Regroup(types, tuple(s.types for s in steps), (), (), evaluate, why, "spark", whole=True)
        return Step(operator, steps, "Recompute")

    def _require_incremental(self, name: str, contents: Step) -> None:
        for step in in_order([contents]):
            if step.operator.maintenance == "recomputed":
                raise NotIncremental(
                    f"view {name!r} cannot be incremental: {step.label} would be recomputed ({step.operator.reason()}). "
                    "Create it with refresh auto, or change the query"
                )

    def _require_same_columns(self, now: Catalog, old: ViewEntry, query: Query) -> None:
        same = [(f.name.lower(), f.dataType) for f in old.schema] == [(f.name.lower(), f.dataType) for f in query.schema]
        readers = now.readers(old.name)
        if readers and not same:
            names = ", ".join(repr(view.name) for view in readers)
            raise DependentViews(
                f"view {old.name!r} cannot be replaced by a query with other columns, because {names} read it; drop them first"
            )


def _times(compiler: Compiler, table: TableEntry) -> TableEntry:
    """What keeps when rows of a table were inserted, found by the columns by which these are known."""
    from pyspark.sql.types import StructField, StructType, TimestampType

    known = [table.schema.fields[i] for i in table.indexed]
    schema = StructType([*known, StructField("time", TimestampType())])
    arrow, name = arrow_schema(schema), times_of(table.name)
    source = Step(Source(tuple(arrow.types), name), (), f"Table {name}")
    contents = compiler.arrange(source, tuple(range(len(known))))
    return TableEntry(name, schema, arrow, None, source, contents)


def _changes(source: Step, key: Key) -> Step:
    """What keeps the changes of an attached table: no one else may take it for the table's rows."""
    return Step(Arrange(source.types, key), (source,), "Arrange changes")


def _defined(now: Catalog, entries: Mapping[str, Entry], compiler: Compiler, rebuilt: tuple[str, ...] = ()) -> Definition:
    catalog = replace(now, entries=entries, compiler=compiler)
    compiler.forget(catalog.steps)
    return Definition(catalog, rebuilt)


def _facts(now: Snapshot) -> dict[str, Facts]:
    """How large tables and views are: what the order of joins depends on."""
    return {
        name: Facts(now.kept(entry), entry.key if isinstance(entry, TableEntry) else None)
        for name, entry in now.entries.items()
        if entry.contents in now.states and entry.contents not in now.catalog.attached
    } | {
        table.name.lower(): Facts(None, table.key, content.counted)
        for table in now.catalog.attached.values()
        for content in [table.attached]
        if content is not None
    }


def _forget_reading(compiler: Compiler, name: str) -> None:
    compiler.forget_if(lambda node: any(isinstance(n, Scan) and n.source.lower() == name for n in walk(node)))


def _above(now: Catalog, name: str) -> list[str]:
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


def _kept(query: Query, sketch: Captured | None) -> Query:
    """The query of a view as commits keep it up to date: for a sketch that is maintained when it is used, there is nothing."""
    if sketch is None or not sketch.lazy or query.root is None:
        return query
    types = query.root.types
    nothing = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in types], names=[f"c{i}" for i in range(len(types))])
    return replace(query, root=Values(types=types, rows=nothing))
