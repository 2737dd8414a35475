"""The session: what a person touches. Tables, transactions, live views, SQL."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from threading import current_thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from headwater.answers import Answer, table_of
from headwater.boundary import boundary, bounded
from headwater.clocks import Clock
from headwater.cluster.placement import require_mode
from headwater.cluster.yard import StoreYards
from headwater.definitions import Definition
from headwater.errors import (
    DependentViews,
    InvalidOption,
    InvalidSchema,
    InvalidTransaction,
    NonDeterministic,
    NotSupported,
    UnknownName,
)
from headwater.expiring import Expiring, lifetime_of
from headwater.ownership import ScratchFolder
from headwater.relations import Past, Sketch, Table, View
from headwater.runtime.catalog import TableEntry, ViewEntry
from headwater.runtime.lifetimes import hidden
from headwater.runtime.transactions import Staging
from headwater.schema import COLLATED
from headwater.sources.attached import require_sound
from headwater.transaction import Transaction
from headwater.workplace import Workplace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.annotations.fragments import Partition
    from headwater.datalog import Program
    from headwater.drafts import Draft
    from headwater.frontend.catalyst import Query
    from headwater.pipelines.described import Pipeline
    from headwater.pipelines.planning import Step
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.runtime.driver import Backfill
    from headwater.sinks.exporting import Export
    from headwater.sinks.targets import Exports
    from headwater.sketches.tuning import Tuning
    from headwater.skipping.capturing import Capturing, Chosen
    from headwater.skipping.scanned import SkippingReport
    from headwater.skipping.sketchbook import Sketchbook
    from headwater.skipping.sketching import On
    from headwater.sources.following import Streams
    from headwater.sources.streams import Stream
    from headwater.store.catalogs import Wanted

_log = logging.getLogger("headwater")

REFRESH = ("auto", "incremental", "full")


def connect(  # noqa: PLR0913  (each a choice of its own)
    directory: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    mode: str = "w",
    durability: str = "sync",
    retain: int | str = 10_000,
    memory: int | str | None = None,
    placement: str = "auto",
    clock: str | datetime = "wall",
) -> Session:
    """A session on local Spark, started when first needed, or on the one given.

    Without a directory, its tables and views are in memory and end with it. A directory, by its path or the URI of an object
    store, outlives it: whoever connects to it next goes on where this one ended. There is one writer at a time; others read
    with mode "r". With `durability` sync, a commit is on disk when it returns; with async a tenth of a second later; with
    memory when the session is closed, or in the background. `retain` says how long changes, and so the past, can be read: a
    number of epochs, or an age such as "7 days". With `memory`, in bytes or as "2 GB", state that is not on disk yet, and what
    it takes to merge it, are kept below that; the rest is read from disk where it is needed. `placement` says where epochs are
    run: in the driver, on Spark's executors (cluster), or where it is expected to be quicker (auto). By the `clock`, rows of
    tables with a ttl expire: that of the wall, that of the data (the latest event time there was), or one that stands at the
    datetime given until `advance`.
    """
    if mode not in ("r", "w"):
        raise InvalidOption(f'mode is "w" for the one writer or "r" for readers, not {mode!r}')
    session = Session(spark, require_mode(placement), clock)
    if directory is not None:
        session._open(directory, mode, durability, retain, memory)  # noqa: SLF001  (a part of how a session begins)
    return session


@bounded
class Session(Workplace):
    """Tables that change and views that stay exact."""

    def __init__(self, spark: SparkSession | None = None, placement: str = "auto", clock: str | datetime = "wall") -> None:
        super().__init__(spark, placement)
        self._expiring = Expiring(self, Clock(clock))

    def _open(self, directory: str | Path, mode: str, durability: str, retain: int | str, memory: int | str | None) -> None:
        """Goes on with what is in a directory; to be called first."""
        from headwater.store.opening import disk_at, open_to_read, open_to_write

        disk = disk_at(directory)
        if mode == "r":
            self._reader, self.epochs = open_to_read(disk, self._engine_for)
        else:
            self._store, self.epochs, wanted = open_to_write(disk, self._engine_for, durability, retain, memory)
            try:
                self._place(StoreYards(self._store), self.placement)
                while wanted:
                    self._make_again(wanted.pop(0))
                self._expiring.begin()
            except BaseException:
                self.close()
                raise

    # -- time

    @property
    def now(self) -> datetime | None:
        """The time by the clock of the session; None if that is the clock of data of which there was none yet."""
        return self._expiring.clock.shown()

    def advance(self, to: datetime | timedelta | str) -> int:
        """Lets the clock go on to a time, or by a span such as "10 minutes"; rows that are due then expire. Gives the epoch."""
        self._require_no_transaction()
        self._require_open()
        self._require_writer()
        self._expiring.clock.advance(to)
        self._expiring.run()
        return self.epoch

    # -- epochs of others, and of the past

    def refresh(self) -> int:
        """With mode "r": goes on to the newest epoch, and gives its number."""
        return self.wait(timeout=0)

    def wait(self, timeout: float | None = None) -> int:
        """With mode "r": waits for an epoch after this one, so many seconds at most, and gives the number of the newest."""
        self._require_open()
        if self._reader is None:
            raise NotSupported('this session makes the epochs itself; only sessions with mode "r" wait for them')
        from headwater.store.opening import go_on

        go_on(self._reader, self.epochs, timeout)
        return self.epoch

    def at(self, epoch: int) -> Past:
        """Tables and views as they were at an epoch."""
        return Past(self, epoch)

    def repair(self, name: str) -> None:
        """Builds a view again whose state was in a damaged file."""
        with self._defining() as now:
            if not isinstance(self._find(name), ViewEntry):
                self._view(name)
            if self.snapshot.is_whole:
                return
            self._define(Definition(now, (name.lower(),)))

    # -- tables

    def create_table(  # noqa: PLR0913  (each a choice of its own)
        self,
        name: str,
        schema: str | StructType | None = None,
        *,
        key: str | Sequence[str] | None = None,
        source: DataFrame | str | Path | None = None,
        format: str | None = None,  # noqa: A002  (the public name)
        ttl: str | timedelta | None = None,
        event_time: str | None = None,
    ) -> Table:
        """A new table; `schema` as in CREATE TABLE, `key` the column or columns that identify a row.

        It is empty, or has the rows of a `source`, and its columns, if there is no schema. A Spark DataFrame is loaded, as one
        job on the executors. A path of files, in the `format` parquet or another one that Spark reads, and the name of a table
        of Spark's catalog are attached: their rows stay where they are, and must stay as they are.

        With a `ttl`, such as "10 minutes", a row lives for so long from the time in the column `event_time`, for ever if that
        is NULL, or from when it was inserted.
        """
        with self._defining() as now:
            self._require_free(name)
            self.forget_streams_into(name)
            definitions = self._engine.definitions
            if source is None:
                if schema is None:
                    raise InvalidSchema("a table has columns: give a schema, or a source that has them")
                struct = self._engine.schema(schema)
                lifetime = lifetime_of(struct, ttl, event_time)
                self._expiring.require_times(name, lifetime)
                self._define(definitions.table(now, name, struct, key_of(struct, key), lifetime=lifetime))
            else:
                given = self._engine.source(source, format)
                struct = self._engine.schema(given.columns if schema is None else schema)
                outside = given.outside(name, struct, key_of(struct, key))
                lifetime = lifetime_of(struct, ttl, event_time)
                if lifetime is not None and (outside.place is not None or lifetime.event_time is None):
                    raise NotSupported(
                        "rows that are attached do not expire, and rows that are loaded expire by an event_time of their own; "
                        "create the table without a source, and insert the rows"
                    )
                require_sound(outside)
                self._define(*definitions.with_rows(now, outside, lifetime))
        return Table(self, name.lower())

    def table(self, name: str) -> Table:
        self.table_entry(name)
        return Table(self, name.lower())

    def tables(self) -> Mapping[str, Table]:
        shown = self.snapshot.catalog.shown
        return MappingProxyType({e.name: Table(self, key) for key, e in shown.items() if isinstance(e, TableEntry)})

    def hidden_table(self, name: str, schema: str, key: tuple[int, ...]) -> TableEntry:
        """A table that users do not see, which is made when it is first asked for."""
        with self._defining() as now:
            if hidden(name) not in now.tables:
                self._define(self._engine.definitions.table(now, hidden(name), self._engine.schema(schema), key))
            return self.snapshot.tables[hidden(name)]

    def drop_table(self, name: str) -> None:
        with self._defining() as now:
            self.table_entry(name)
            self._drop(now, name)

    # -- views

    def create_view(
        self, name: str, query: str | DataFrame, *, refresh: str = "auto", strategy: str = "auto", replace: bool = False
    ) -> View:
        """A live view of a query, SQL or a DataFrame built on `dataframe(…)`.

        `refresh` is auto (incremental where there is a rule, else recomputed and compared), incremental (refused if a part
        would be recomputed) or full. `strategy` says how a recursion is kept up to date: auto, counting, absorption-lazy,
        absorption-eager, relative, dred or recompute; the rows are the same. With `replace`, a view of that name gets the new
        query in one epoch. Other threads go on committing while the view is built; it is there, and exact, as of the epoch at
        which this ends.
        """
        if refresh not in REFRESH:
            raise NotSupported(f"refresh is one of {', '.join(REFRESH)}, not {refresh!r}")
        with self._defining() as now:
            if not (replace and isinstance(self._find(name), ViewEntry)):
                self._require_free(name)
            analysed = self._engine.with_strategy(self._engine.analyse(query, now, name), strategy)
            self._require_no_cycle(name, analysed.sources)
            self._define(self._engine.definitions.view(self.snapshot, name, analysed, refresh))
        return View(self, name.lower())

    def view(self, name: str) -> View:
        self._view(name)
        return View(self, name.lower())

    def views(self) -> Mapping[str, View]:
        found = {entry.name: View(self, key) for key, entry in self.snapshot.views.items() if entry.sketch is None}
        return MappingProxyType(found)

    def drop_view(self, name: str) -> None:
        with self._defining() as now:
            self._view(name)
            self._drop(now, name)

    # -- sketches

    def partition(
        self, table: str, column: str, fragments: int | None = None, *, bounds: Sequence[object] | None = None
    ) -> Partition:
        """Cuts a table into fragments of about one depth by ranges of a column; sketches by that column then use them.

        There are as many as is usual for its rows, unless a number is given, or the bounds between the ranges themselves.
        Nothing is moved: a partition is its bounds.
        """
        with self._defining() as now:
            made = self.capturing.partition(now, table, column, fragments, bounds)
            self._define(self._engine.definitions.partitioned(now, made))
        return made

    def create_sketch(  # noqa: PLR0913  (each a choice of its own)
        self,
        name: str,
        query: str | DataFrame,
        *,
        on: On | None = None,
        fragments: int | None = None,
        maintain: str = "eager",
        witnesses: bool = False,
        key_filter: bool = True,
        push_down: bool = True,
        best: int | None = None,
    ) -> Sketch:
        """A sketch of a query: which ranges of the columns that `on` names by table its answer needs, kept up to date.

        The same query is then answered from these ranges only. Columns by which that could give another answer are refused.
        Without `on`, the column is taken that leaves the fewest rows, and without `fragments` as many as that takes: both by
        sizes that a sample suggests.
        `maintain` is eager, by every commit, or lazy, when the sketch is used. With `witnesses`, of groups with nothing but
        least and greatest values only the rows that have these are needed: a smaller sketch, which serves fewer queries.

        The last three are ways to maintain it, which change what it costs and nothing else: joins ask a filter which keys there
        are; selections come before all else; of a limit, of a least and of a greatest value the `best` rows are kept, and not
        all, which are read again when deletions have used these up.
        """
        from headwater.skipping.capturing import require_maintenance, tuning_of
        from headwater.skipping.partitioning import require_count

        require_maintenance(maintain)
        require_count(fragments)
        tuning = tuning_of(key_filter=key_filter, push_down=push_down, best=best)
        by = self._chosen(query, on, fragments, witnesses=witnesses)
        return self.define_sketch(name, query, by, maintain=maintain, witnesses=witnesses, tuning=tuning)

    def define_sketch(  # noqa: PLR0913  (each a choice of its own)
        self,
        name: str,
        query: str | DataFrame,
        by: Chosen,
        *,
        maintain: str = "eager",
        witnesses: bool = False,
        tuning: Tuning | None = None,
    ) -> Sketch:
        """A sketch by columns, and by numbers of fragments, that are chosen already."""
        from headwater.skipping.capturing import maintained

        with self._defining() as now:
            self._require_free(name)
            analysed = self._engine.analyse(query, now, name)
            catalog, sketch, captured = self.capturing.sketched(now, analysed, by, witnesses=witnesses, tuning=tuning)
            captured = maintained(captured, now, maintain)
            snapshot = replace(self.snapshot, catalog=catalog)
            self._define(self._engine.definitions.view(snapshot, name, sketch, "auto", captured))
        return Sketch(self, name.lower())

    def _chosen(self, query: str | DataFrame, on: On | None, fragments: int | None, *, witnesses: bool) -> Chosen:
        """What a sketch is made by: as it is said, and for what is not said the best."""
        from headwater.skipping.capturing import Chosen

        self._require_open()
        if on is not None and (fragments is not None or not self.capturing.are_large(on)):
            return Chosen(on, fragments)
        analysed = self._engine.analyse(query, self.snapshot.catalog)
        if on is not None:
            return self.capturing.counted(analysed, on, witnesses=witnesses)
        answer = (lambda: self.answer(query).arrow()) if isinstance(query, str) else None
        found = self.capturing.choose(analysed, fragments, answer, witnesses=witnesses)
        if found is None:
            raise InvalidOption(
                "no column is safe and leaves out a quarter of the rows, as far as one can tell; name one with on"
            )
        return found

    def sketch(self, name: str) -> Sketch:
        self._sketch(name)
        return Sketch(self, name.lower())

    def sketches(self) -> Mapping[str, Sketch]:
        return MappingProxyType({view.name: Sketch(self, key) for key, view in self.snapshot.catalog.sketches.items()})

    def drop_sketch(self, name: str) -> None:
        with self._defining() as now:
            self._sketch(name)
            self._drop(now, name)

    def explain_skipping(self, query: str | DataFrame) -> SkippingReport:
        """Runs a query on Spark without a sketch and with the one that serves it, and says what was read for each."""
        now = self.snapshot
        with self.noticing_damage():
            return self.sketchbook.explain(self._engine.analyse(query, now.catalog), now)

    @cached_property
    def capturing(self) -> Capturing:
        """What makes sketches."""
        from headwater.skipping.capturing import Capturing

        return Capturing(self)

    @cached_property
    def sketchbook(self) -> Sketchbook:
        """What finds and uses sketches."""
        from headwater.skipping.sketchbook import Sketchbook

        return Sketchbook(self)

    @property
    def learns_sketches(self) -> bool:
        """Whether a query over attached tables whose like was asked five times gets a sketch by itself."""
        return self.capturing.learns

    @learns_sketches.setter
    def learns_sketches(self, learns: bool) -> None:
        self.capturing.learns = bool(learns)

    @property
    def skipping(self) -> str:
        """Whether sketches are used: where it pays (auto), always, or never."""
        return self.sketchbook.mode

    @skipping.setter
    def skipping(self, mode: str) -> None:
        from headwater.skipping.sketchbook import require_skipping

        self.sketchbook.mode = require_skipping(mode)

    def dataframe(self, name: str) -> DataFrame:
        """A Spark DataFrame of a table's or view's rows now, on which a view can be built."""
        now = self.snapshot
        entry = self._find(name, now)
        if entry is None:
            raise self._unknown(name)
        with self.noticing_damage():
            return self._engine.frame(entry, self.rows_of(entry, now))

    def export(self, table: str, path: str | Path, *, cluster_by: str | None = None, files: int | None = None) -> None:
        """Writes the rows of a table as Parquet files, by a job of Spark's.

        With `cluster_by` they are in order of that column, within the files and from one to the next. A table attached to them
        can then be skipped by a sketch of that column.
        """
        from headwater.skipping.clustering import export

        now = self.snapshot
        entry = self.table_entry(table)
        with self.noticing_damage():
            export(self.spark, entry, self.rows_of(entry, now), now.total(entry), str(path), cluster_by, files)

    # -- changes

    def insert(self, table: str, rows: object) -> int:
        """Adds rows, as one epoch; gives its number."""
        with self.transaction() as transaction:
            transaction.insert(table, rows)
        return self._epoch_of(transaction)

    def delete(self, table: str, rows: object) -> int:
        """Removes rows, each of which must be there, as one epoch."""
        with self.transaction() as transaction:
            transaction.delete(table, rows)
        return self._epoch_of(transaction)

    def upsert(self, table: str, rows: object) -> int:
        """Adds rows in place of those with the same key, as one epoch."""
        with self.transaction() as transaction:
            transaction.upsert(table, rows)
        return self._epoch_of(transaction)

    def replace(self, table: str, source: DataFrame | str | Path, *, format: str | None = None) -> int:  # noqa: A002
        """Gives a table the rows of a source, as one epoch, which changes what differs; gives its number.

        Both are compared on the executors. A table that is attached is attached to the new place from then on, if the source
        is one; that is an epoch of its own, in which nothing changes.
        """
        with self._defining():
            entry = self.table_entry(table)
            new = self._engine.source(source, format).outside(entry.name, entry.schema, entry.key)
            if entry.attached is not None and entry.attached.place == new.place:
                raise InvalidOption(
                    f"table {entry.name!r} is attached to {new.place} already, and what that was before cannot be told; "
                    "write the new rows to another place"
                )
            require_sound(new)
            with self._committing() as transaction:
                transaction.become(entry, new)
            epoch = self._epoch_of(transaction)
            if entry.attached is not None and new.place is not None:
                self._define(self._engine.definitions.attached_to(self.snapshot.catalog, entry, new))
        return epoch

    # -- streams

    def follow(  # noqa: PLR0913  (each a choice of its own)
        self,
        table: str | Mapping[str, str],
        stream: DataFrame | tuple[DataFrame, DataFrame],
        *,
        mode: str = "append",
        name: str | None = None,
        on_error: str = "dead-letter",
        trigger: Mapping[str, Any] | None = None,
    ) -> Stream:
        """Applies a Structured Streaming DataFrame to a table from here on: each of its batches exactly once, as one epoch.

        With `mode` append, rows are inserted; with upsert, they replace those with the same key; with cdc, columns of the
        stream say what happened: Debezium's envelopes, `_change_type` as in Spark's change tables, `_op` with + and −; or there
        is a pair of streams, of rows that came and of rows that went. For a stream of several tables, as headwater_postgres
        gives, `table` is a mapping from the names there to the names here. A row that the table cannot take goes to the table
        `<table>_dead_letters`, or, with `on_error` stop, stops the stream. `name`, the table's unless another is given, is what
        the stream is known by when it is followed again, also by a later process: it goes on where it was. `trigger` is as in
        `DataStreamWriter.trigger`.
        """
        self._require_no_transaction()
        self._require_writer()
        return self.following.follow(table, stream, mode=mode, name=name, on_error=on_error, trigger=trigger or {})

    def forget(self, stream: str) -> None:
        """Forgets how far a stream was applied: when it is followed again, it begins anew."""
        self._require_no_transaction()
        self._require_writer()
        self.following.forget(stream)

    def forget_streams_into(self, table: str) -> None:
        """Forgets the streams that changed another table of that name, which was dropped."""
        for stream, position in self.snapshot.positions.items():
            if table.lower() in position["tables"]:
                self.following.forget(stream)

    def streams(self) -> Mapping[str, Stream]:
        """The streams that were followed in this session, by name: `.progress`, `.stop()`, `.resume()`."""
        return self.following.known

    def await_idle(self) -> int:
        """Waits until all that the sources have now is applied, and all subscribers were told, and gives the epoch.

        Raises if a stream has failed. Streams that were stopped are not waited for.
        """
        self._require_no_transaction()
        for stream in self.following.known.values():
            if stream.progress.state != "stopped":
                stream.await_idle()
        self.epochs.subscriptions.await_idle()
        return self.epoch

    @cached_property
    def following(self) -> Streams:
        """What follows streams."""
        from headwater.sources.following import Streams

        return Streams(self)

    def checkpoints(self) -> Path:
        """The folder in which Spark notes how far streams are."""
        from headwater.store.disk import LocalDisk

        if self._store is None:
            return self._scratch.path
        if not isinstance(self._store.disk, LocalDisk):
            raise NotSupported("streams can be followed into a directory on a disk, and not yet into an object store")
        return self._store.disk.path("streams")

    @cached_property
    def _scratch(self) -> ScratchFolder:
        return ScratchFolder()

    def add_columns(self, table: str, columns: StructType) -> None:
        """Gives a table more columns, in which its rows are NULL, as one epoch; views that read it are read again."""
        with self.drafting(widens=True) as draft:
            draft.add_columns(table, columns)

    @contextmanager
    def drafting(self, *, widens: bool = False, rehearsal: bool = False) -> Iterator[Draft]:
        """Tables and views that are defined as one epoch at the end of the block, or not at all if anything fails.

        Where a table gets more columns, the draft `widens`: its rows must stay as they are until then, so nobody commits. A
        `rehearsal` builds everything, and changes nothing.
        """
        from headwater.drafts import Draft

        with self._defining(), ExitStack() as held:
            if widens:
                held.enter_context(self.epochs.journal.defining())
                held.enter_context(self.epochs.writing)
            draft = Draft(self, self._engine, self.snapshot)
            yield draft
            definition, loads = draft.definition()
            if rehearsal:
                self.epochs.rehearse(definition.catalog, definition.rebuilt, loads)
            elif not draft.is_empty:
                self._define(definition, loads)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Changes of any tables that become one epoch at the end of the block, or nothing if anything fails."""
        try:
            with self._committing() as transaction:
                yield transaction
        finally:
            # Also of an epoch after which the thread was interrupted.
            self.epochs.tell()
        self._afterwards()

    @contextmanager
    def _committing(self) -> Iterator[Transaction]:
        """The same, of which nobody is told yet."""
        self._require_no_transaction()
        self._require_writer()
        self.epochs.journal.make_room()
        writing = self.epochs.writing
        with self.noticing_damage(), writing:
            transaction = Transaction(self, Staging(self.snapshot, self._expiring.clock.now()))
            writer = self._writer = current_thread()
            try:
                with writing.interruptible():
                    yield transaction
                if not writing.is_mine:
                    raise InvalidTransaction(
                        "the transaction does not end in the thread in which it began, so nothing of it was committed; "
                        "begin and end it in one thread"
                    )
                with boundary("Session.transaction"):
                    changes, advanced = transaction.end()
            finally:
                transaction.close()
                if self._writer is writer:
                    self._writer = None
                if not writing.is_mine:
                    writing.free_from(writer)
            self._require_open()
            with boundary("Session.transaction"):
                transaction.epoch = self.epochs.commit(changes, advanced, transaction.positions)
                self._expiring.noted(changes)

    def _afterwards(self) -> None:
        """What follows an epoch when its locks are released."""
        self._expiring.follow()
        self.epochs.tell()

    @staticmethod
    def _epoch_of(transaction: Transaction) -> int:
        assert transaction.epoch is not None
        return transaction.epoch

    # -- SQL

    def sql(self, text: str) -> Any:  # noqa: ANN401  (depends on the statement)
        """Runs one statement: a query gives an `Answer`, CREATE a table or view, a change the epoch."""
        from headwater.frontend.statements import parse
        from headwater.statements import Runner

        self._require_open()
        return Runner(self).run(parse(text))

    def datalog(self, program: str) -> Program:
        """Runs a Datalog program: predicates of facts become tables, those with rules live views, questions are answered."""
        from headwater.datalog import run

        self._require_open()
        return run(self, program)

    def answer(self, text: str, content: Backfill | None = None, epoch: int | None = None) -> Answer:
        """The answer of a query at this epoch, or over other content of the tables, which may be that of an epoch."""
        now = self.snapshot
        try:
            query = self._engine.analyse(text, now.catalog)
        except NonDeterministic:
            return self._engine.once(self, text, now.catalog, now.content if content is None else content)

        def plain() -> Answer:
            return self._without_sketches(query, text, now, content)

        if now.catalog.sketches and (content is None or epoch is not None):
            with self.noticing_damage():
                found = self.sketchbook.answer(query, now, plain, content, epoch)
            if content is None and self._reader is None and not self._in_transaction:
                self.capturing.review()
            return found
        return plain()

    def _without_sketches(self, query: Query, text: str, now: Snapshot, given: Backfill | None) -> Answer:
        content = now.content if given is None else given
        if any(now.entries[name.lower()].output in content.outer for name in query.sources):
            # Spark has the rows.
            found = self.sketchbook.settled(query, now, content)
            if found is None:
                found = self._engine.once(self, text, now.catalog, content)
            if given is None and self._reader is None and not self._in_transaction:
                self.capturing.notice(query, found)
            return found
        return self.computed(query, now, content)

    def computed(self, query: Query, now: Snapshot, content: Backfill) -> Answer:
        """The answer of a query that the engine computes from the content of tables and views."""
        with self.noticing_damage():
            rows, presentation = self._engine.definitions.answer(now, query, content)
        names = self._engine.arrow_schema(query.schema)
        return Answer(self, query.schema, table_of(rows, names, presentation.order))

    def exports(self) -> Mapping[str, Export]:
        """The exports that were begun in this session with `View.write_to`, by name: `.progress`, `.stop()`, `.resume()`."""
        return self.exporting.known

    @cached_property
    def exporting(self) -> Exports:
        """What writes views to targets."""
        from headwater.sinks.targets import Exports

        self._require_writer()
        return Exports(None if self._store is None else self._store.disk, self.certain_epoch)

    # -- whole pipelines

    def plan(self, pipeline: Pipeline) -> list[Step]:
        """What `apply` would do, step by step; nothing is changed."""
        from headwater.pipelines.running import planned

        return planned(self, pipeline)

    def apply(self, pipeline: Pipeline) -> list[Step]:
        """Brings tables and views to what is described, follows its sources and writes its sinks; gives what was done."""
        from headwater.pipelines.running import applied

        return applied(self, pipeline)

    # -- for plain Spark

    def publish(self, *names: str) -> None:
        """Makes tables and views, all of them or the named ones, temporary views of the Spark session, which are always live.

        `spark.sql` joins them with anything. Each is read, by one task, from the directory, so there must be one, as of the
        newest epoch whenever a query runs.
        """
        from pyspark.sql.types import StructField, StructType

        from headwater.frontend.catalyst import quote
        from headwater.sinks.spark_source import live

        if self._store is None:
            raise NotSupported("Spark reads published views from a directory, and this session has none: connect to one")
        for name in names or [*self.tables(), *self.views()]:
            entry = self._find(name)
            if entry is None:
                raise self._unknown(name)
            columns = StructType([StructField(field.name, field.dataType) for field in entry.schema.fields])
            once = self.spark.range(0, 1, 1, 1)
            frame = once.mapInArrow(live(self._store.disk.address, entry.name, entry.arrow), columns)
            frame.createOrReplaceTempView(quote(entry.name))

    # -- the end

    def close(self) -> None:
        """Gives everything back; a Spark session that was given stays as it is.

        A commit of another thread comes before it, or is refused. If the disk fails, and epochs would be lost by that, this
        raises `StorageFailed` and the session stays open: close it again when the disk is mended.
        """
        self.owner.require()
        with self._closing:
            if self._closed:
                return
            self._expiring.close(wait=not self._in_transaction)
            if "following" in self.__dict__:
                self.following.close()
            if "exporting" in self.__dict__:
                self.exporting.close()
            self.epochs.subscriptions.finish()
            try:
                if self._store is not None:
                    self._store.close()
            finally:
                if self._store is None or self._store.is_closed:
                    self._end()

    def _end(self) -> None:
        """Gives back what is left when nothing is to be kept any more."""
        self._closed = True
        self.epochs.subscriptions.drop()
        self.executors.close()
        if "_scratch" in self.__dict__:
            self._scratch.remove()
        spark = self.__dict__.get("spark")
        if self._given is None and spark is not None:
            spark.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A fork that leaves the block ends nothing.
        if self.owner.is_here:
            self.close()

    # -- inner matters

    def _drop(self, now: Catalog, name: str) -> None:
        readers = now.readers(name)
        if readers:
            names = ", ".join(repr(view.name) for view in readers)
            raise DependentViews(f"{name!r} cannot be dropped, because {names} read it; drop them first")
        self._define(self._engine.definitions.without(now, name))

    def _make_again(self, view: Wanted) -> None:
        """A view of an older release, whose steps this one does not know."""
        if view.text is None:
            _log.warning("View %r was made of a DataFrame by an older release; create it again", view.name)
        else:
            self.create_view(view.name, view.text, refresh=view.refresh)

    @contextmanager
    def _defining(self) -> Iterator[Catalog]:
        """The one who may make the next catalog, from the one there is."""
        self._require_no_transaction()
        self._require_writer()
        with self.epochs.defining:
            yield self.snapshot.catalog
        self._afterwards()


def key_of(schema: StructType, key: str | Sequence[str] | None) -> tuple[int, ...] | None:
    """The places of the columns that identify a row."""
    if key is None:
        return None
    names = [key] if isinstance(key, str) else list(key)
    known = [field.name.lower() for field in schema.fields]
    if not names or not all(isinstance(name, str) for name in names) or len({name.lower() for name in names}) < len(names):
        raise InvalidSchema(f"a key is one or more different columns, not {key!r}")
    for name in names:
        if name.lower() not in known:
            raise UnknownName(f"the key column {name!r} is not a column of the table; it has {', '.join(schema.names)}")
    places = tuple(known.index(name.lower()) for name in names)
    for place in places:
        kind = schema.fields[place].dataType.simpleString()
        if COLLATED in kind:
            raise InvalidSchema(
                f"the key column {schema.fields[place].name!r} is {kind}, but keys are compared by their bytes; "
                "give it the type STRING, and compare it under a collation in queries"
            )
    return places


__all__ = ["Session", "Sketch", "Table", "View", "connect"]
