"""Following: from what users give — a table, a stream, a mode — to a stream whose batches are committed.

Each batch is one transaction: rows in the tables' types, letters about what these cannot take, and how far the stream is. A
stream may be of several tables; what their source has changed at once is changed at once here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import InvalidOption, InvalidRows, InvalidStream, MissingKey, NameTaken, UnknownName
from headwater.filenames import require_name
from headwater.runtime.lifetimes import hidden
from headwater.schema import arrow_schema
from headwater.sources import checkpoints, envelopes, frames, held, sifting, wholes
from headwater.sources.applying import Applied, apply
from headwater.sources.direct_reading import DirectReading, pace
from headwater.sources.events import coming, form_of, from_envelopes
from headwater.sources.postgres import captured
from headwater.sources.postgres.widening import Known
from headwater.sources.spark_reading import SparkReading
from headwater.sources.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headwater.runtime.catalog import TableEntry
    from headwater.runtime.transactions import Staging
    from headwater.session import Session
    from headwater.sources.events import Events
    from headwater.sources.frames import Batch
    from headwater.sources.held import Pool
    from headwater.sources.postgres.captured import Captured
    from headwater.sources.reading import Reading

    # What came of a batch for a table, and of what its places are places.
    Outcome = tuple[str, Applied, Batch | Pool]
    # Reads a batch; what it gives changes tables accordingly, and says what came of it, table by table.
    Changing = Callable[[Batch], Callable[[Staging], Iterable[Outcome]]]

MODES = ("append", "upsert", "cdc")
ON_ERROR = ("dead-letter", "stop")
LETTERS = "stream STRING, batch BIGINT, row BIGINT, file STRING, error STRING, record STRING"


@dataclass(frozen=True, eq=False)
class Feed:
    """How the batches of a stream change tables."""

    name: str
    sources: Mapping[str, str]
    """The tables, by the names that they have at the source; of a stream that is of one table, by its own."""
    change: Changing
    keeps_letters: bool
    """Whether there are tables for what cannot be taken; else it stops the stream."""
    notes: Callable[[], Mapping[str, Any]] = dict
    """What is to be known of the source when a later process goes on."""

    @property
    def tables(self) -> list[str]:
        return [table.lower() for table in self.sources.values()]


class Streams:
    """The streams of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, Stream] = {}

    @property
    def known(self) -> Mapping[str, Stream]:
        return MappingProxyType(dict(self._known))

    def follow(  # noqa: PLR0913  (as users say it)
        self,
        table: str | Mapping[str, str],
        stream: DataFrame | tuple[DataFrame, DataFrame],
        *,
        mode: str,
        name: str | None,
        on_error: str,
        trigger: Mapping[str, Any],
    ) -> Stream:
        wanted = dict(table) if isinstance(table, Mapping) else {table: table}
        entries = {source: self._session.table_entry(each) for source, each in wanted.items()}
        self.require_followable(stream, entries, mode, on_error, several=isinstance(table, Mapping))
        called = ", ".join(entry.name for entry in entries.values()) if name is None else require_name(name, "a stream")
        if called in self._known and self._known[called].is_running:
            raise NameTaken(f"stream {called!r} is followed already; stop it first, or give this one another name")
        if isinstance(table, Mapping):
            feed, frame = self._of_several(called, entries, stream, keeps_letters=on_error != "stop")
        else:
            feed, frame = self._of_one(called, entries[table], stream, mode, keeps_letters=on_error != "stop")
        for entry in entries.values() if feed.keeps_letters else ():
            if _letters(entry.name).lower() not in self._session.snapshot.tables:
                self._session.create_table(_letters(entry.name), LETTERS)
        made = Stream(
            called,
            _reading(frame, checkpoints.folder_of(self._session.checkpoints(), called), trigger),
            lambda batch, at: self._commit(feed, batch, at),
            lambda: self._session.snapshot.positions,
            self._session.certain_epoch,
        )
        made.resume()
        self._known[called] = made
        return made

    @staticmethod
    def require_followable(
        stream: object, entries: Mapping[str, TableEntry], mode: str, on_error: str, *, several: bool
    ) -> None:
        """Raises if tables, which may be such to come, cannot follow a stream of one table or of several."""
        if mode not in MODES:
            raise InvalidOption(f"mode is one of {', '.join(MODES)}, not {mode!r}")
        if on_error not in ON_ERROR:
            raise InvalidOption(f"on_error is one of {', '.join(ON_ERROR)}, not {on_error!r}")
        for entry in entries.values():
            if entry.key is None and (mode == "upsert" or several):
                raise MissingKey(
                    f"table {entry.name!r} has no key, so nothing says which rows to replace; create it with key=…"
                )
        if several:
            frame: Any = stream
            if not getattr(frame, "isStreaming", False):
                raise InvalidStream("what tables follow is a DataFrame of spark.readStream, and this is none")
            if not set(frame.columns) >= captured.COLUMNS:
                envelopes.normalised(frame, entries)
            return
        (table,) = entries.values()
        frame = frames.one_stream(stream, mode, table)
        columns = frames.columns(frame, mode, frames.corrupt_column(frame, table))
        sifting.require_castable(table, arrow_schema(columns))

    def forget(self, name: str) -> None:
        stream = self._known.pop(name, None)
        if stream is not None:
            stream.stop()
        if name not in self._session.snapshot.positions:
            raise UnknownName(f"nothing of a stream {name!r} was applied, so there is nothing to forget")
        with self._session.transaction() as transaction:
            positions = self._session.snapshot.positions
            transaction.positions = {each: at for each, at in positions.items() if each != name}
            keeps = self._session.snapshot.tables.get(hidden(held.TABLE))
            if keeps is not None:
                held.drop(transaction.staging, keeps, name)

    def close(self) -> None:
        for stream in self._known.values():
            stream.stop()

    def _of_one(
        self, name: str, table: TableEntry, stream: object, mode: str, *, keeps_letters: bool
    ) -> tuple[Feed, DataFrame]:
        frame = frames.one_stream(stream, mode, table)
        corrupt = frames.corrupt_column(frame, table)
        self._fit(table, frames.columns(frame, mode, corrupt))
        events = form_of(frame.columns) if mode == "cdc" else coming

        def change(batch: Batch) -> Callable[[Staging], Iterable[Outcome]]:
            found = events(batch.rows) if corrupt is None else _readable(batch.rows, corrupt, events)
            told = replace(batch, corrupt=corrupt)
            return lambda staging: [(table.name, apply(staging, self._session.table_entry(table.name), found, mode), told)]

        return Feed(name, {table.name: table.name}, change, keeps_letters), frames.with_files(frame)

    def _of_several(
        self, name: str, entries: Mapping[str, TableEntry], stream: object, *, keeps_letters: bool
    ) -> tuple[Feed, DataFrame]:
        frame: Any = stream
        if not set(frame.columns) >= captured.COLUMNS:
            return self._of_envelopes(name, entries, frame, keeps_letters=keeps_letters)
        sources = {captured.qualified(source): entry.name for source, entry in entries.items()}
        origin = frames.source_of(frame)
        known = None if origin is None else Known(origin[1].get("address", ""), self._noted(name))

        def change(batch: Batch) -> Callable[[Staging], Iterable[Outcome]]:
            found = {}
            for source, table in sources.items():
                if known is not None:
                    known.begin(source)
                part = captured.of_table(batch.rows, source)
                if part is not None:
                    found[table] = part
                    if known is not None:
                        has = self._session.table_entry(table).schema.names
                        known.follow(source, part.events.rows.column_names, has, self._widen, table)
            return lambda staging: [(table, self._change(staging, table, part), batch) for table, part in found.items()]

        return Feed(
            name, sources, change, keeps_letters, notes=lambda: {} if known is None else {"columns": dict(known.columns)}
        ), frame

    def _of_envelopes(
        self, name: str, entries: Mapping[str, TableEntry], frame: DataFrame, *, keeps_letters: bool
    ) -> tuple[Feed, DataFrame]:
        """Debezium's changes of several tables, by whole transactions."""
        read = envelopes.normalised(frame, entries)
        keys, tables = list(entries), [entry.name for entry in entries.values()]
        self._session.hidden_table(held.TABLE, held.COLUMNS, held.KEY)
        waiting = 0

        def apply_complete(staging: Staging, batch: Batch) -> Iterable[Outcome]:
            nonlocal waiting
            now = self._session.snapshot
            keeps = now.tables[hidden(held.TABLE)]
            pool = held.pooled(staging, keeps, name, batch, begins=name not in now.positions)
            found = wholes.sort(pool.rows, keys)
            held.hold(staging, keeps, name, pool, found.held, found.ready)
            waiting = len(found.held)
            unread = np.flatnonzero(pool.rows.column(envelopes.UNREAD).is_valid().to_numpy())
            # Whose table nobody can tell is said to the first.
            yield tables[0], Applied(0, dict.fromkeys(map(int, unread), "the record cannot be read")), pool
            for i, table in enumerate(tables):
                places = found.ready[found.targets[found.ready] == i]
                events = from_envelopes(pool.of_table(i, places))
                bad = tuple((int(places[at]), why) for at, why in events.bad)
                events = replace(events, places=places[events.places], bad=bad)
                yield table, apply(staging, self._session.table_entry(table), events, "cdc"), pool

        def change(batch: Batch) -> Callable[[Staging], Iterable[Outcome]]:
            return lambda staging: apply_complete(staging, batch)

        sources = dict(zip(keys, tables, strict=True))
        return Feed(name, sources, change, keeps_letters, notes=lambda: {"held": waiting}), frames.with_files(read)

    def _noted(self, name: str) -> dict[str, list[str]]:
        return dict(self._session.snapshot.positions.get(name, {}).get("columns", {}))

    def _widen(self, table: str, columns: Mapping[str, str]) -> None:
        from pyspark.sql.types import StructField, StructType

        types = StructType.fromDDL(", ".join(f"c{i} {kind}" for i, kind in enumerate(columns.values())))
        assert isinstance(types, StructType)
        fields = [StructField(name, field.dataType) for name, field in zip(columns, types.fields, strict=True)]
        self._session.add_columns(table, StructType(fields))

    def _change(self, staging: Staging, table: str, found: Captured) -> Applied:
        entry = self._session.table_entry(table)
        if found.emptied:
            staging.empty(entry)
        events, absent = captured.typed(found, entry)
        return apply(staging, entry, events, "cdc", absent)

    def _fit(self, table: TableEntry, columns: StructType) -> None:
        """Takes columns into the table that are new in the stream; refuses a stream that does not fit."""
        known = {field.name.lower() for field in table.schema.fields}
        added = [field for field in columns.fields if field.name.lower() not in known]
        sifting.require_castable(table, arrow_schema(columns))
        if added:
            self._session.add_columns(table.name, type(columns)(added))

    def _commit(self, feed: Feed, batch: Batch, position: dict[str, Any]) -> tuple[int, int]:
        """One epoch of a batch: the rows that the tables take, letters about the others, and how far the stream is."""
        session = self._session
        taken = dead = 0
        change = feed.change(batch)
        with session.transaction() as transaction:
            for table, applied, told in change(transaction.staging):
                taken, dead = taken + applied.rows, dead + len(applied.bad)
                if applied.bad:
                    letters = [(feed.name, *told.origin(at), why, told.record(at)) for at, why in sorted(applied.bad.items())]
                    if not feed.keeps_letters:
                        raise _refusal(letters)
                    transaction.insert(_letters(table), letters)
            position = {**position, "tables": feed.tables, **feed.notes()}
            transaction.positions = {**session.snapshot.positions, feed.name: position}
        # The source may forget the batch when this returns.
        session.certain_epoch()
        return taken, dead


def _reading(frame: DataFrame, checkpoint: Path, trigger: Mapping[str, Any]) -> Reading:
    """By the driver itself, what of our own sources comes as it is; all else by Spark."""
    from pyspark.sql.datasource import CaseInsensitiveDict

    from headwater.sources.postgres.spark_source import SCHEMA, PostgresSource

    found, paced = frames.source_of(frame), pace(trigger)
    if found is None or found[0] != PostgresSource.name() or paced is None:
        return SparkReading(frame, checkpoint, trigger)
    source = PostgresSource(CaseInsensitiveDict(found[1]))
    return DirectReading(lambda: source.streamReader(SCHEMA), arrow_schema(SCHEMA), checkpoint, *paced)


def _letters(table: str) -> str:
    return f"{table}_dead_letters"


def _refusal(letters: list[tuple[str, int, int, str | None, str, str]]) -> InvalidRows:
    name, batch, row, file, why, record = letters[0]
    where = f"row {row} of batch {batch}" + ("" if file is None else f", from {file}")
    return InvalidRows(f"stream {name!r}: {where}: {why}: {record}; {len(letters)} like this")


def _readable(rows: pa.Table, column: str, events: Callable[[pa.Table], Events]) -> Events:
    """What is told by the records that Spark could read; the others are bad."""
    raw = rows.column(column).is_valid().to_numpy()
    kept = np.flatnonzero(~raw)
    found = events(rows.drop_columns([column]).take(pa.array(kept)))
    bad = [(int(at), "the record cannot be read") for at in np.flatnonzero(raw)]
    misunderstood = [(int(kept[at]), why) for at, why in found.bad]
    return replace(found, places=kept[found.places], bad=(*misunderstood, *bad))
