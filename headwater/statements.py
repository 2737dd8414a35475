"""Runs the SQL statements of Headwater on a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from headwater.answers import Answer
from headwater.errors import NotSupported, UnknownName
from headwater.explanation import statistics
from headwater.frontend import statements
from headwater.runtime.catalog import ViewEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.runtime.catalog import TableEntry
    from headwater.session import Session
    from headwater.transaction import Transaction


class Runner:
    """One statement after another."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, statement: statements.Statement) -> Any:  # noqa: ANN401, C901, PLR0911  (depends on the statement)
        match statement:
            case statements.Query(text):
                return self._session.answer(text)
            case statements.CreateTable():
                return self._create_table(statement)
            case statements.CreateView():
                return self._create_view(statement)
            case statements.Insert() | statements.Update() | statements.Delete() | statements.Merge():
                with self._session.transaction() as transaction:
                    self.change(statement, transaction)
                return self._session.epoch
            case statements.CreateSketch():
                return self._create_sketch(statement)
            case statements.ShowSketches():
                return self._show_sketches()
            case statements.Drop():
                return self._drop(statement)
            case statements.ShowViews():
                return self._show_views()
            case statements.ShowTables():
                return self._texts(
                    ["table", "key"], [(t.name, ", ".join(t.key or ())) for t in self._session.tables().values()]
                )
            case statements.Describe():
                return self._describe(statement)
            case statements.Explain():
                lines = self._session.view(statement.name).explain(statement.format).split("\n")
                return self._texts(["plan"], [(line,) for line in lines])

    def _create_table(self, statement: statements.CreateTable) -> Any:  # noqa: ANN401  (a table)
        existing = self._session.tables()
        if statement.if_not_exists and statement.name.lower() in {name.lower() for name in existing}:
            return self._session.table(statement.name)
        return self._session.create_table(
            statement.name, statement.columns_ddl, key=statement.key, ttl=statement.ttl, event_time=statement.event_time
        )

    def _create_view(self, statement: statements.CreateView) -> Any:  # noqa: ANN401  (a view)
        existing = {name.lower() for name in self._session.views()}
        if statement.if_not_exists and statement.name.lower() in existing:
            return self._session.view(statement.name)
        return self._session.create_view(
            statement.name,
            statement.query,
            refresh=statement.refresh,
            strategy=statement.strategy,
            replace=statement.replace,
        )

    def _create_sketch(self, statement: statements.CreateSketch) -> Any:  # noqa: ANN401  (a sketch)
        existing = {name.lower() for name in self._session.sketches()}
        if statement.if_not_exists and statement.name.lower() in existing:
            return self._session.sketch(statement.name)
        on: dict[str, list[str]] = {}
        for table, columns in statement.on:
            on.setdefault(table, []).extend(columns)
        options: dict[str, Any] = dict(statement.options)
        return self._session.create_sketch(statement.name, statement.query, on=on or None, **options)

    def change(self, statement: statements.Statement, transaction: Transaction) -> None:
        """Asks for the rows to change by a query, and changes them in the transaction."""
        if not isinstance(statement, statements.Insert | statements.Update | statements.Delete | statements.Merge):
            raise NotSupported("a transaction takes INSERT, UPDATE, DELETE and MERGE; other statements stand alone")
        table = self._session.table_entry(statement.table)
        columns = statements.target_columns(table.schema)
        old, new = self._rows(statement, table, columns, transaction)
        transaction.replace(table.name, old, new)

    def _rows(
        self,
        statement: statements.Statement,
        table: TableEntry,
        columns: list[statements.TargetColumn],
        transaction: Transaction,
    ) -> tuple[pa.Table, pa.Table]:
        """The rows that go and the rows that come."""

        def ask(text: str) -> pa.Table:
            return transaction.answer(text).arrow()

        width = len(columns)
        nothing = table.arrow.empty_table()
        match statement:
            case statements.Insert():
                return nothing, self._named(table, ask(statements.select_inserted(statement, columns)), 0)
            case statements.Delete():
                return self._named(table, ask(statements.select_deleted(statement, columns)), 0), nothing
            case statements.Update():
                found = ask(statements.select_updated(statement, columns))
                return self._named(table, found, 0), self._named(table, found, width)
            case statements.Merge():
                found = statements.merged_actions(ask(statements.select_merged(statement, columns)))
                action = found.column("action").to_numpy(zero_copy_only=False)
                gone = found.filter(pa.array((action == "D") | (action == "U")))
                come = found.filter(pa.array((action == "I") | (action == "U")))
                first = found.num_columns - 2 * width
                return self._named(table, gone, first), self._named(table, come, first + width)
        raise TypeError(type(statement).__name__)

    def _named(self, table: TableEntry, found: pa.Table, first: int) -> pa.Table:
        """Some columns of an answer as rows of the table."""
        columns = [found.column(first + i) for i in range(len(table.arrow))]
        return pa.Table.from_arrays(columns, names=table.arrow.names)

    def _drop(self, statement: statements.Drop) -> None:
        session = self._session
        names: Iterable[str]
        names, drop = {
            "table": (session.tables(), session.drop_table),
            "view": (session.views(), session.drop_view),
            "sketch": (session.sketches(), session.drop_sketch),
        }[statement.kind]
        if not (statement.if_exists and statement.name.lower() not in {name.lower() for name in names}):
            drop(statement.name)

    def _show_views(self) -> Answer:
        now = self._session.snapshot
        rows = []
        for view in now.views.values():
            if view.sketch is not None:
                continue
            figures = statistics(now, view, self._session.epochs.work, self._session.executors)
            why = "; ".join(f"{part['operator']}: {part['why']}" for part in figures["recomputed"] + figures["touched_groups"])
            rows.append((view.name, figures["class"], view.refresh, str(figures["rows"]), why))
        return self._texts(["view", "class", "refresh", "rows", "why"], rows)

    def _show_sketches(self) -> Answer:
        names = ["sketch", "on", "valid", "ranges", "share", "estimated", "uses", "rows_skipped", "query"]
        rows = []
        for sketch in self._session.sketches().values():
            figures = sketch.stats()
            accesses = figures["accesses"]
            on = ", ".join(f"{each['table']}({each['column']})" for each in accesses)
            shares = ", ".join(f"{each['share']:.1%}" for each in accesses)
            told = {(each["table"], each["column"]): f"{each['share']:.1%}" for each in figures["estimates"]}
            estimated = ", ".join(told.get((each["table"], each["column"]), "") for each in accesses)
            ranges = ", ".join(str(each["ranges"]) for each in accesses)
            used = (str(figures["times_used"]), str(figures["rows_skipped"]))
            rows.append((sketch.name, on, str(figures["valid"]).lower(), ranges, shares, estimated, *used, sketch.query or ""))
        return self._texts(names, rows)

    def _describe(self, statement: statements.Describe) -> Answer:
        entry = self._session.snapshot.catalog.shown.get(statement.name.lower())
        is_view = isinstance(entry, ViewEntry)
        if entry is None or (statement.kind == "view" and not is_view) or (statement.kind == "table" and is_view):
            raise UnknownName(f"there is no {statement.kind or 'table or view'} {statement.name!r}")
        key = set() if isinstance(entry, ViewEntry) or entry.key is None else {entry.arrow.names[i] for i in entry.key}
        rows = [(f.name, f.dataType.simpleString(), "key" if f.name in key else "") for f in entry.schema.fields]
        return self._texts(["column", "type", "key"], rows)

    def _texts(self, names: list[str], rows: Sequence[tuple[str, ...]]) -> Answer:
        schema = StructType([StructField(name, StringType()) for name in names])
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(names))]
        return Answer(self._session, schema, pa.Table.from_arrays(columns, names=names))
