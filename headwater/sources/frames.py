"""Streams as Spark is asked to read them: what Spark can do to a stream is done by Spark.

JSON is read in the types of a table, two streams become one with a sign, the file that each row is from is noted.
With the rows of a batch come hashes of these files: their names are asked for when something is wrong with a row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater.errors import InvalidStream
from headwater.schema import collected
from headwater.sinks.json_forms import texts
from headwater.sources.events import describing, form_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headwater.runtime.catalog import TableEntry

_FILE = "_headwater_file"
_CORRUPT = "spark.sql.columnNameOfCorruptRecord"
_ENVELOPE = frozenset({"op", "before", "after"})


def one_stream(stream: object, mode: str, table: TableEntry) -> DataFrame:
    """The stream; of a pair, rows that came and rows that went, with a sign."""
    from pyspark.sql import functions

    frames: list[Any] = list(stream) if isinstance(stream, tuple | list) else [stream]
    if not all(getattr(frame, "isStreaming", False) for frame in frames):
        raise InvalidStream("what a table follows is a DataFrame of spark.readStream, and this is none")
    if len(frames) == 2 and mode == "cdc":
        came, went = frames
        return came.withColumn("_op", functions.lit("+")).unionByName(
            went.withColumn("_op", functions.lit("-")), allowMissingColumns=True
        )
    if len(frames) != 1:
        raise InvalidStream("a pair of streams, of rows that came and rows that went, is for mode cdc")
    return _enveloped(frames[0], table) if mode == "cdc" else frames[0]


def _enveloped(frame: DataFrame, table: TableEntry) -> DataFrame:
    """Debezium's envelopes, where they come as JSON: as the value of a message, or in before and after."""
    from pyspark.sql import functions
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    row = table.schema.simpleString()
    names = {name.lower() for name in frame.columns}
    if "value" in names and not names & {"op", "_op", "_change_type", "_weight"}:
        source = StructType([StructField("lsn", LongType()), StructField("ts_ms", LongType())]).simpleString()
        envelope = f"op:string,before:{row},after:{row},source:{source}"
        text = frame["value"].cast(StringType())
        read = functions.from_json(text, f"struct<payload:struct<{envelope}>,{envelope}>")
        frame = frame.withColumn("_read", read)
        parts = [
            functions.coalesce(frame[f"_read.payload.{part}"], frame[f"_read.{part}"]).alias(part)
            for part in ("op", "before", "after", "source")
        ]
        return frame.select(
            *parts, functions.when(frame["_read.op"].isNull() & frame["_read.payload.op"].isNull(), text).alias("_unread")
        )
    if names >= _ENVELOPE:
        for part in ("before", "after"):
            if isinstance(frame.schema[part].dataType, StringType):
                frame = frame.withColumn(part, functions.from_json(frame[part], row))
    return frame


def columns(frame: DataFrame, mode: str, corrupt: str | None) -> StructType:
    """The columns of the stream that are meant for the table."""
    from pyspark.sql.types import StructType

    fields = [field for field in frame.schema.fields if field.name != corrupt]
    if mode == "cdc":
        form_of(frame.columns)
        if {field.name.lower() for field in fields} >= _ENVELOPE:
            after = next(field for field in fields if field.name.lower() == "after")
            if not isinstance(after.dataType, StructType):
                raise InvalidStream(
                    f"in Debezium's envelopes, after is a row or JSON, and here it is {after.dataType.simpleString()}"
                )
            return after.dataType
        told = describing([field.name for field in fields])
        fields = [field for field in fields if field.name not in told]
    return StructType(fields)


def corrupt_column(frame: DataFrame, table: TableEntry) -> str | None:
    known = {name.lower() for name in table.schema.names}
    for name in (str(frame.sparkSession.conf.get(_CORRUPT)), "_unread"):
        if name in frame.columns and name.lower() not in known:
            return name
    return None


def with_files(frame: DataFrame) -> DataFrame:
    """The stream with the file that each row is from, where there is one."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions

    try:
        return frame.select("*", functions.col("_metadata.file_path").alias(_FILE))
    except PySparkException:
        return frame


def source_of(frame: DataFrame) -> tuple[str, dict[str, str]] | None:
    """The format and the options of a stream to which nothing else is done; None if something is, or they are not told."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    if plan.nodeName() != "StreamingRelationV2":
        return None
    return str(plan.sourceName()), dict(plan.extraOptions().asCaseSensitiveMap())


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of a stream, in the driver."""

    number: int
    rows: pa.Table
    files: pa.ChunkedArray | None = None
    """By row, the hash of the name of its file."""
    frame: DataFrame | None = None
    """What knows the names of these files."""
    corrupt: str | None = None
    """The column in which Spark puts records that it cannot read."""

    @staticmethod
    def of(frame: DataFrame, number: int) -> Batch:
        from pyspark.sql import functions

        if _FILE not in frame.columns:
            return Batch(number, collected(frame))
        found = collected(frame.withColumn(_FILE, functions.xxhash64(_FILE)))
        return Batch(number, found.drop_columns([_FILE]), found.column(_FILE), frame)

    def origin(self, at: int) -> tuple[int, int, str | None]:
        """The batch, the row and the file of a row."""
        return self.number, at, self.file_of(at)

    def record(self, at: int) -> str:
        """A row as it came."""
        raw = None if self.corrupt is None else self.rows.column(self.corrupt)[at].as_py()
        names = [name for name in self.rows.column_names if name != self.corrupt]
        return record_of(self.rows.select(names), at) if raw is None else str(raw)

    def file_of(self, row: int) -> str | None:
        return None if self.files is None else self._names.get(self.files[row].as_py())

    @cached_property
    def _names(self) -> dict[int, str]:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions

        assert self.frame is not None
        try:
            found = self.frame.select(functions.xxhash64(_FILE), _FILE).distinct().collect()
        except PySparkException:
            # Somebody has removed the files, of which we have the rows.
            return {}
        return {number: name for number, name in found}  # noqa: C416  (rows of Spark's)


def record_of(rows: pa.Table, at: int, *, all_columns: bool = True) -> str:
    """A row as JSON; all of its columns, or those that have a value."""
    row = rows.slice(at, 1)
    told = [
        f"{json.dumps(name, ensure_ascii=False)}: {texts(column)[0]}"
        for name, column in zip(row.column_names, row.columns, strict=True)
        if all_columns or column.null_count == 0
    ]
    return "{" + ", ".join(told) + "}"
