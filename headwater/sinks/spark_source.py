"""Spark's data source `headwater`: live views, and their changes, for any Spark program that reaches the directory.

    spark.read.format("headwater").load("dir/view")                                 the rows now; option epoch: the rows then
    spark.readStream.format("headwater").option("changes", "types").load("dir/view")  all rows as inserts, then every change

Tasks read the files themselves: of content, each a range of hashes; of changes, the log. With the option `changes` each row
says what happened to it: `types` adds `_change_type` (insert or delete), `_commit_version`, which is the epoch, and
`_commit_timestamp`, as Spark's change tables have them; `weight` adds `_weight` in place of the first. With the option
`since`, what was there at that epoch is left out. An offset of the stream is an epoch.

A DataFrame of Spark's has the columns with which it was loaded. If the view is given others, whoever reads the old DataFrame
gets the error `SchemaChanged`; so does a stream that has told rows under the old columns, since it cannot take them back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from headwater.errors import InvalidOption, SchemaChanged
from headwater.runtime.history import history_gone, same_columns
from headwater.schema import arrow_schema
from headwater.sinks.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.delta import Delta

CHANGES = ("types", "weight")
_AT_ONCE = 1 << 14
_ROWS = 1 << 19
_MOMENT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Wanted:
    """What was asked for, as it goes to the tasks."""

    directory: str
    name: str
    columns: pa.Schema | None
    """The columns that Spark expects; None while it asks for them."""
    changes: str | None = None
    epoch: int | None = None
    since: int | None = None


@dataclass(frozen=True)
class Part(InputPartition):
    """What a task reads: a range of the content at an epoch, or the changes from one epoch to another."""

    wanted: Wanted
    epoch: int
    after: int | None = None
    number: int = 0
    count: int = 1


class HeadwaterSource(DataSource):
    """What Spark calls by the name `headwater`."""

    @classmethod
    def name(cls) -> str:
        return "headwater"

    def schema(self) -> StructType:
        wanted = self._wanted()
        fields = [StructField(field.name, field.dataType) for field in Directory(wanted.directory).entry(wanted.name).schema]
        return StructType([*fields, *_told(wanted)])

    def reader(self, schema: StructType) -> DataSourceReader:
        return Content(self._wanted(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (as Spark calls it)
        wanted = self._wanted(schema)
        if wanted.changes is None:
            raise InvalidOption(
                'a stream of headwater tells changes: say how with .option("changes", "types") or .option("changes", "weight")'
            )
        return Feed(wanted)

    def _wanted(self, schema: StructType | None = None) -> Wanted:
        place = self.options.get("path")
        if not place or "/" not in place.rstrip("/"):
            raise InvalidOption('load("dir/view") names the directory and the view')
        directory, _, name = place.rstrip("/").rpartition("/")
        changes = self.options.get("changes")
        if changes is not None and changes not in CHANGES:
            raise InvalidOption(f"the option changes is one of {', '.join(CHANGES)}, not {changes!r}")
        wanted = Wanted(directory, name, None, changes, _number(self.options, "epoch"), _number(self.options, "since"))
        if schema is None:
            return wanted
        own = schema.fields[: len(schema.fields) - len(_told(wanted))]
        return replace(wanted, columns=arrow_schema(StructType(own)))


class Content(DataSourceReader):
    """The rows at an epoch; or, with `changes`, all that happened until then."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        directory = Directory(self._wanted.directory)
        epoch = directory.epoch() if self._wanted.epoch is None else directory.require(self._wanted.epoch)
        if self._wanted.changes is not None and self._wanted.since is not None:
            return [Part(self._wanted, epoch, self._wanted.since)]
        return _ranges(self._wanted, directory, epoch)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


class Feed(DataSourceStreamReader):
    """The changes, as a stream; a new one begins with all rows, unless it is told since when."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    @cached_property
    def _directory(self) -> Directory:
        return Directory(self._wanted.directory)

    def __reduce__(self) -> tuple[type[Feed], tuple[Wanted]]:
        # To the tasks goes what was asked for, not what was read of it.
        return Feed, (self._wanted,)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"epoch": -1 if self._wanted.since is None else self._wanted.since}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ANN401, ARG002, N802
        return {"epoch": max(start["epoch"], self._directory.epoch())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start["epoch"] < 0:
            return _ranges(self._wanted, self._directory, end["epoch"])
        return [Part(self._wanted, end["epoch"], start["epoch"])] if start["epoch"] < end["epoch"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


def register(spark: Any) -> None:  # noqa: ANN401  (Spark is imported late)
    """Lets a Spark session read directories, `format("headwater")`, and PostgreSQL, `format("headwater_postgres")`."""
    from headwater.sources.postgres.spark_source import PostgresSource

    for source in (HeadwaterSource, PostgresSource):
        spark.dataSource.register(source)


def live(directory: str, name: str, columns: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rows of a table or view whenever they are asked for, in one task, so that all of them are of one epoch."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            assert batch.num_rows == 1
            yield from _read(Part(Wanted(directory, name, columns), Directory(directory).epoch()))

    return run


def planned(spark: Any, directory: str, name: str) -> Any:  # noqa: ANN401  (Spark is imported late)
    """The rows as of now, as a DataFrame of a Spark session that need not know the data source.

    In a session of Spark Connect a data source in Python makes the runner of pipelines fail once all is done (SPARK-59135).
    """
    found = Directory(directory)
    columns = StructType([StructField(field.name, field.dataType) for field in found.entry(name).schema])
    parts = _ranges(Wanted(directory, name, arrow_schema(columns)), found, found.epoch())

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read(parts[number])

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(run, columns)


def _ranges(wanted: Wanted, directory: Directory, epoch: int) -> list[InputPartition]:
    """Tasks of so many rows each, as far as can be told."""
    count = max(1, -(-directory.rows(wanted.name) // _ROWS))
    return [Part(wanted, epoch, None, number, count) for number in range(count)]


def _read(part: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(part, Part)
    directory, wanted = Directory(part.wanted.directory), part.wanted
    names = directory.entry(wanted.name).arrow
    _require_columns(wanted, names)
    if part.after is None:
        found = directory.content(wanted.name, part.epoch, part.number, part.count).select(range(len(names)))
        moment = directory.committed(part.epoch) if wanted.changes is not None else 0.0
        yield from _batches(found, names, wanted, part.epoch, moment)
        return
    for change in directory.changes(wanted.name, part.after, part.epoch):
        changed = change.changed
        _require_columns(wanted, change.names)
        if changed.anew and part.after != wanted.since:
            raise history_gone(wanted.name, part.after, changed.epoch)
        for delta, columns in changed.parts(change.names):
            _require_columns(wanted, columns)
            yield from _batches(delta, names, wanted, changed.epoch, change.time)


def _require_columns(wanted: Wanted, names: pa.Schema) -> None:
    if wanted.columns is not None and not same_columns(wanted.columns, names):
        expected, found = (", ".join(schema.names) for schema in (wanted.columns, names))
        raise SchemaChanged(
            f"{wanted.name!r} was given other columns: ({expected}) are not ({found}), or have other types. Load it or "
            "publish it again; a stream begins anew, with another checkpoint: its rows of old columns cannot be taken back"
        )


def _batches(delta: Delta, names: pa.Schema, wanted: Wanted, epoch: int, time: float) -> Iterator[pa.RecordBatch]:
    places = np.arange(len(delta)) if wanted.changes == "weight" else np.repeat(np.arange(len(delta)), np.abs(delta.weights))
    fields = [pa.field(field.name, field.type) for field in names]
    moment = pa.scalar(datetime.fromtimestamp(time, UTC), _MOMENT)
    for start in range(0, len(places), _AT_ONCE):
        chosen = places[start : start + _AT_ONCE]
        columns = delta.rows.take(pa.array(chosen)).columns
        told: list[tuple[str, pa.Array]] = []
        if wanted.changes == "types":
            kinds = np.where(delta.weights[chosen] > 0, "insert", "delete").tolist()
            told.append(("_change_type", pa.array(kinds, pa.string())))
        elif wanted.changes == "weight":
            told.append(("_weight", pa.array(delta.weights[chosen])))
        if wanted.changes is not None:
            told.append(("_commit_version", pa.array(np.full(len(chosen), epoch))))
            told.append(("_commit_timestamp", pa.repeat(moment, len(chosen))))
        schema = pa.schema([*fields, *(pa.field(name, column.type) for name, column in told)])
        yield pa.RecordBatch.from_arrays([*columns, *(column for _, column in told)], schema=schema)


def _told(wanted: Wanted) -> list[StructField]:
    if wanted.changes is None:
        return []
    kind = StructField("_change_type", StringType()) if wanted.changes == "types" else StructField("_weight", LongType())
    return [kind, StructField("_commit_version", LongType()), StructField("_commit_timestamp", TimestampType())]


def _number(options: Any, name: str) -> int | None:  # noqa: ANN401  (Spark's own kind of dict)
    said = options.get(name)
    if said is None:
        return None
    try:
        return int(said)
    except ValueError as error:
        raise InvalidOption(f"the option {name} is an epoch, a number, not {said!r}") from error
