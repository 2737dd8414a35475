"""What all parts of a session stand on: where it is, what its names mean, and what it refuses.

It knows the epochs, the engine and the places of work, and nothing of what users may do with them: that is `session`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from functools import cached_property
from threading import RLock, current_thread
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.answers import table_of
from headwater.cluster.cluster import Cluster
from headwater.cluster.lending import Lending
from headwater.cluster.placement import Placement, require_mode
from headwater.cluster.yard import ScratchYards
from headwater.errors import (
    DamagedFile,
    HeadwaterError,
    InvalidName,
    InvalidRows,
    InvalidTransaction,
    NameTaken,
    ReadOnly,
    SessionClosed,
    UnknownName,
    ViewCycle,
)
from headwater.lengths import within_lengths
from headwater.ownership import Owner
from headwater.rows import batch_of
from headwater.runtime.catalog import TableEntry, ViewEntry
from headwater.runtime.driver import NOTHING_OUTSIDE
from headwater.runtime.epochs import Epochs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Thread

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.cluster.yard import Yards
    from headwater.compiler.linear import Engines
    from headwater.definitions import Definition, Definitions
    from headwater.engine import Engine
    from headwater.frontend.catalyst import Query
    from headwater.runtime.catalog import Entry, Snapshot
    from headwater.runtime.driver import Outer
    from headwater.store.reading import Reader
    from headwater.store.store import Store


class Workplace:
    """The state of a session."""

    def __init__(self, spark: SparkSession | None, placement: str) -> None:
        self._given = spark
        self._closed = False
        self.owner = Owner()
        self._closing = RLock()
        self._writer: Thread | None = None
        """The thread whose transaction is open."""
        self._store: Store | None = None
        self._reader: Reader | None = None
        self._zone: str | None = None
        self.epochs = Epochs()
        self._place(ScratchYards(), placement)

    def _place(self, yards: Yards, mode: str) -> None:
        """Lets epochs run on executors, whose files are in these yards."""
        cluster = Cluster(lambda: self.spark, lambda: self._engine.time_zone)
        self.executors = Placement(cluster, yards, mode, lambda: self._given is not None or "spark" in self.__dict__)
        self._lending = Lending(cluster, yards)
        self.epochs.executors = self.executors

    # -- where we are

    @property
    def epoch(self) -> int:
        """The number of the last commit."""
        return self.epochs.now.epoch

    @property
    def snapshot(self) -> Snapshot:
        """Everything at the last commit, as one immutable value."""
        self._require_open()
        return self.epochs.now

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session; starts a local one if none was given."""
        self._require_open()
        return self._given if self._given is not None else _local_spark()

    @cached_property
    def _engine(self) -> Engine:
        from headwater.engine import Engine

        zone = self._zone or self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        return Engine(lambda: self.spark, zone)

    def _engine_for(self, zone: str | None) -> Engine:
        """The engine; made for a time zone, if it is not there yet and one is given."""
        self._zone = self._zone or zone
        return self._engine

    @property
    def definitions(self) -> Definitions:
        """What makes steps of queries."""
        return self._engine.definitions

    @property
    def engines(self) -> Engines:
        """What evaluates expressions."""
        return self._engine.engines

    @property
    def placement(self) -> str:
        """Where epochs are run: driver, cluster, or auto."""
        return self.executors.mode

    @placement.setter
    def placement(self, mode: str) -> None:
        self.executors.mode = require_mode(mode)

    # -- rows

    def rows_of(self, entry: Entry, now: Snapshot) -> pa.Table | DataFrame:
        """What a table or view holds: as Spark reads it, where it does."""
        if entry.output in now.outer:
            return now.outer[entry.output].frame()
        order = entry.order if isinstance(entry, ViewEntry) else ()
        # Who only reads a directory cannot keep its files from being removed.
        if self._reader is None:
            types = [field.dataType for field in entry.schema]
            lent = self._lending.frame(now.kept(entry), self.placement, types, order, lambda: self.epochs.now)
            if lent is not None:
                return lent
        return table_of(now.contents(entry), entry.arrow, order)

    def rows_for(self, table: TableEntry, rows: object) -> pa.RecordBatch:
        """Users' rows in the table's types."""
        zone = "UTC" if isinstance(rows, pa.Table | pa.RecordBatch) else self._engine.time_zone
        return within_lengths(batch_of(rows, table, zone), table.arrow, table.name)

    def one_row(self, entry: Entry, row: object) -> pa.RecordBatch:
        """A user's row, a tuple or a dict, in the types of a table or view."""
        if not isinstance(row, Mapping | tuple | list):
            raise InvalidRows(f"a row of {entry.name!r} is a tuple of its values or a dict, not {type(row).__name__}")
        return batch_of([row], entry, self._engine.time_zone)

    def columns(self, described: str | StructType) -> StructType:
        """A table's columns, as they are described in CREATE TABLE."""
        return self._engine.schema(described)

    def arrow_schema(self, schema: StructType) -> pa.Schema:
        return self._engine.arrow_schema(schema)

    def analysed(self, query: str | DataFrame) -> Query:
        """What Spark makes of a query over the tables and views there are."""
        return self._engine.analyse(query, self.snapshot.catalog)

    # -- names

    def table_entry(self, name: str) -> TableEntry:
        entry = self._find(name)
        if isinstance(entry, ViewEntry):
            raise UnknownName(f"{name!r} is a view, not a table; views change only with the tables they read")
        if entry is None:
            raise self._unknown(name, "table")
        return entry

    def _view(self, name: str) -> ViewEntry:
        entry = self._find(name)
        if isinstance(entry, TableEntry):
            raise UnknownName(f"{name!r} is a table, not a view")
        if entry is None:
            raise self._unknown(name, "view")
        if entry.sketch is not None:
            raise UnknownName(f"{name!r} is a sketch, not a view")
        return entry

    def _sketch(self, name: str) -> ViewEntry:
        entry = self._find(name)
        if not isinstance(entry, ViewEntry) or entry.sketch is None:
            names = ", ".join(repr(view.name) for view in self.snapshot.catalog.sketches.values()) or "none yet"
            raise UnknownName(f"there is no sketch {name!r}; there are: {names}")
        return entry

    def _find(self, name: str, now: Snapshot | None = None) -> Entry | None:
        if not isinstance(name, str):
            raise InvalidName(f"{name!r} is not the name of a table or view: names are text")
        return (self.snapshot if now is None else now).catalog.shown.get(name.lower())

    def _unknown(self, name: str, kind: str = "table or view") -> HeadwaterError:
        names = ", ".join(repr(entry.name) for entry in self.snapshot.catalog.shown.values()) or "none yet"
        return UnknownName(f"there is no {kind} {name!r}; there are: {names}")

    def _require_free(self, name: str, now: Snapshot | None = None) -> None:
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise InvalidName(f"{name!r} cannot be the name of a table or view")
        entry = self._find(name, now)
        if entry is not None:
            kind = "table" if isinstance(entry, TableEntry) else "view" if entry.sketch is None else "sketch"
            raise NameTaken(f"there is a {kind} {entry.name!r} already; drop it first or take another name")

    def _require_no_cycle(self, name: str, sources: frozenset[str], now: Snapshot | None = None) -> None:
        entries = (self.snapshot if now is None else now).entries
        pending, seen = [source.lower() for source in sources], set[str]()
        while pending:
            source = pending.pop()
            if source == name.lower():
                raise ViewCycle(f"view {name!r} would read itself; a view can only read tables and other views")
            entry = entries.get(source)
            if isinstance(entry, ViewEntry) and source not in seen:
                seen.add(source)
                pending += [s.lower() for s in entry.query.sources]

    # -- epochs

    def certain_epoch(self) -> int:
        """The last epoch, which outlives the process: whoever is told of it can rely on it."""
        epoch = self.epoch
        if self._store is not None:
            self._store.make_certain()
        return epoch

    def _define(self, definition: Definition, loads: Outer = NOTHING_OUTSIDE) -> None:
        self._require_open()
        with self.noticing_damage():
            self.epochs.define(definition.catalog, definition.rebuilt, loads)

    @contextmanager
    def noticing_damage(self) -> Iterator[None]:
        """Where a file turns out to be damaged, the rest goes on without what was in it."""
        try:
            yield
        except DamagedFile as damage:
            if isinstance(damage.__cause__, DamagedFile):
                # It was noticed further in.
                raise
            raise self.epochs.set_aside(damage) from damage

    # -- what is refused

    def _require_no_transaction(self) -> None:
        self.owner.require()
        if self._in_transaction:
            raise InvalidTransaction(
                "a transaction is open: change tables through it, and do all else before or after its block"
            )

    def _require_writer(self) -> None:
        if self._reader is not None:
            raise ReadOnly('this session reads with mode "r"; change the directory through the session that writes it')

    @property
    def _in_transaction(self) -> bool:
        """Whether a transaction of this thread is open."""
        return self._writer is current_thread()

    def _require_open(self) -> None:
        self.owner.require()
        if self._closed:
            raise SessionClosed("the session is closed; connect again")


def _local_spark() -> SparkSession:
    """A Spark in this process and one JVM, which nobody reaches from another machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("headwater")
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
