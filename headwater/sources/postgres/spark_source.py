"""Spark's data source `headwater_postgres`: tables of PostgreSQL as a stream of changes.

    spark.readStream.format("headwater_postgres").option("address", "postgresql:///shop").option("tables", "orders").load()

A row is a change: `table`, `op` (r for rows that were there, c, u, d, t for a table that was emptied), `xid`, `lsn` and `ts`
of the transaction, and the row `before` and `after` as maps from column to text; a large value that an update did not change is
not in `after`. The first batch is the snapshot, and each later one has whole transactions.

An offset is a place of the server's log, and what the snapshot has seen. The slot keeps the log from there on, until Spark has
noted a batch as done; so either side may be killed, and start again. In the first batch, the snapshot is a transaction that is
open on the server: if one of them is killed meanwhile, the stream begins anew, with another one.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType, TimestampType

from headwater.errors import InvalidOption
from headwater.sources.postgres import capture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from headwater.sources.postgres.capture import Capture

    Offset = dict[str, Any]

SCHEMA = StructType(
    [
        StructField("table", StringType()),
        StructField("op", StringType()),
        StructField("xid", LongType()),
        StructField("lsn", LongType()),
        StructField("ts", TimestampType()),
        StructField("before", MapType(StringType(), StringType())),
        StructField("after", MapType(StringType(), StringType())),
    ]
)
# A batch is so much of the server's log.
_BYTES = 64 << 20
_MUCH = 1 << 20


@dataclass(frozen=True)
class Part(InputPartition):
    """A table of the snapshot, or all changes between two places."""

    capture: Capture
    after: int
    until: int
    seen: str
    table: str | None = None
    exported: str | None = None


class PostgresSource(DataSource):
    """What Spark calls by the name `headwater_postgres`."""

    @classmethod
    def name(cls) -> str:
        return "headwater_postgres"

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  (as Spark calls it)
        said = self.options
        found = capture.Capture.of(said.get("address", ""), said.get("tables", ""), said.get("slot", "headwater"))
        return Changes(found, _bytes(said.get("bytesPerBatch")))


class Changes(DataSourceStreamReader):
    """The stream; the connections that it needs beside the tasks are its own."""

    def __init__(self, found: Capture, limit: int) -> None:
        self._capture = found
        self._limit = limit
        self._open: Any = None
        self._snapshot: Any = None
        # Up to where the server may forget its log, and where it ended when nothing in it was of interest.
        self._advanced = self._quiet = -1

    def __reduce__(self) -> tuple[type[Changes], tuple[Capture, int]]:
        # To the tasks goes what was asked for, and no connection.
        return Changes, (self._capture, self._limit)

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"lsn": 0, "seen": ""}

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: ANN401, ARG002, N802
        if not start["seen"]:
            return self._begin()
        # Spark asks for more when the last batch is done.
        self.commit(start)
        connection = self._connection()
        capture.require_unread(connection, self._capture, start["lsn"])
        end = capture.end_of_log(connection)
        if end <= start["lsn"] or end == self._quiet:
            return start
        if end - start["lsn"] < _MUCH and not capture.has_changes(connection, self._capture):
            # What the log has is not about these tables; when it is much, the server may forget it.
            self._quiet = end
            return start
        return {"lsn": min(end, start["lsn"] + self._limit), "seen": start["seen"]}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["lsn"] == end["lsn"]:
            return []
        if start["seen"]:
            return [Part(self._capture, start["lsn"], end["lsn"], end["seen"])]
        return [Part(self._capture, 0, end["lsn"], end["seen"], table, end["exported"]) for table in self._capture.tables]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        if partition.table is not None and partition.exported is not None:
            return capture.snapshot(partition.capture, partition.table, partition.exported, partition.until)
        # A task has none, and the driver need not connect again.
        with capture.connected(self._capture.address) if self._open is None else nullcontext(self._connection()) as connection:
            return iter([capture.changes(connection, partition.capture, partition.after, partition.until, partition.seen)])

    def commit(self, end: Offset) -> None:
        self._close_snapshot()
        if self._advanced != end["lsn"]:
            capture.advance(self._connection(), self._capture, end["lsn"])
            self._advanced = end["lsn"]

    def stop(self) -> None:
        self._close_snapshot()
        if self._open is not None:
            self._open.close()

    def _begin(self) -> Offset:
        """A slot, and a snapshot that tasks can share until the first batch is done."""
        capture.prepare(self._capture)
        self._close_snapshot()
        self._snapshot = capture.connect(self._capture.address, autocommit=False)
        self._snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        (exported, seen) = self._snapshot.execute("SELECT pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
        # A transaction that has ended before is seen by the snapshot; one that ends later is after this place.
        with capture.connected(self._capture.address) as connection:
            place = capture.read_until(connection, self._capture)
        return {"lsn": place, "seen": seen, "exported": exported}

    def _connection(self) -> Any:  # noqa: ANN401  (a class of an optional package)
        if self._open is None or self._open.closed or self._open.broken:
            self._open = capture.connect(self._capture.address)
        return self._open

    def _close_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None


def _bytes(said: str | None) -> int:
    if said is None:
        return _BYTES
    if not said.isdigit() or int(said) < 1:
        raise InvalidOption(f"the option bytesPerBatch is a number of bytes of the server's log, not {said!r}")
    return int(said)
