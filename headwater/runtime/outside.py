"""Rows outside: those of a table that Spark reads where they are, because they are not kept here, or not yet.

    content of a table  =  rows outside  +  changes

A table that is being loaded has such rows until its first epoch. An attached one has them for as long as it is there, and what
is kept of it are its changes, some of which may take away rows that are outside.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.errors import EvaluationFailed, UnknownName
from headwater.evaluation.spark import failure
from headwater.redaction import redacted, shown_cause
from headwater.rows import Columns, fitted, frame_of
from headwater.schema import collected
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from headwater.operators.operator import Key
    from headwater.state.arrangement import Arrangement

# Fewer rows than this are sent to all tasks that look for their like.
_FEW = 1_000_000


@dataclass(frozen=True)
class Place:
    """Where rows are: files of a format under a path, or a table of Spark's catalog."""

    path: str | None = None
    format: str | None = None
    table: str | None = None

    def __str__(self) -> str:
        return f"{self.format} at {redacted(str(self.path))}" if self.table is None else f"table {self.table}"


@dataclass(frozen=True, eq=False)
class Outside:
    """The rows that `read` gives, for a table of these columns and this key; with a place, all sessions can read them."""

    columns: Columns
    schema: StructType
    key: Key | None
    read: Callable[[], DataFrame]
    place: Place | None = None

    def frame(self) -> DataFrame:
        """The rows as Spark reads them: the table's columns in order, `c0, c1, …`, in types from which there is a way."""
        with _reading(self.place):
            return frame_of(self.read(), self.columns)

    def typed(self) -> DataFrame:
        """The same in the table's types."""
        frame = self.frame()
        types = self._struct
        if [field.dataType for field in frame.schema] == [field.dataType for field in types]:
            return frame
        columns = self.columns

        def cast(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return (fitted(batch, columns) for batch in batches)

        return frame.mapInArrow(cast, types)

    def rows(self) -> pa.RecordBatch:
        """All of them, brought to the driver."""
        return self._brought(self.frame())

    def counted(self) -> int:
        """How many there are; Spark counts them once."""
        return self._count

    @cached_property
    def _count(self) -> int:
        with _reading(self.place):
            return self.frame().count()

    def matching(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Those that have the key of one of the given rows; without a key, those like one of them, maybe with others."""
        frame = self.frame()
        return self._brought(frame.join(*self._like(frame, rows), "left_semi"))

    def without(self, rows: pa.RecordBatch) -> DataFrame:
        """The others, in the table's types."""
        frame = self.typed()
        return frame.join(*self._like(frame, rows), "left_anti")

    def local(self, spark: SparkSession, rows: pa.RecordBatch, columns: Sequence[int]) -> DataFrame:
        """Some columns of rows of the table, as Spark knows them."""
        table = pa.Table.from_arrays([rows.column(i) for i in columns], names=[f"c{i}" for i in columns])
        return spark.createDataFrame(table, type(self._struct)([self._struct.fields[i] for i in columns]))

    def _like(self, frame: DataFrame, rows: pa.RecordBatch) -> tuple[DataFrame, Column]:
        from pyspark.sql import functions

        compared = self.key or [i for i, field in enumerate(self.schema) if _is_comparable(field.dataType)]
        sought = self.local(frame.sparkSession, rows, compared).toDF(*(f"s{i}" for i in compared))
        condition = reduce(and_, (frame[f"c{i}"].eqNullSafe(sought[f"s{i}"]) for i in compared), functions.lit(True))  # noqa: FBT003
        return (functions.broadcast(sought) if rows.num_rows < _FEW else sought), condition

    def _brought(self, frame: DataFrame) -> pa.RecordBatch:
        with _reading(self.place):
            found = collected(frame)
        arrays = [
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
            for column in found.columns
        ]
        return fitted(pa.RecordBatch.from_arrays(arrays, names=self.columns.rows.names), self.columns)

    @cached_property
    def _struct(self) -> StructType:
        """The table's columns under the engine's names."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(f"c{i}", field.dataType) for i, field in enumerate(self.schema.fields)])


@dataclass(frozen=True, eq=False)
class Content:
    """All rows of a table: those outside, and what changed since."""

    outside: Outside
    changes: Arrangement | None = None

    def delta(self) -> Delta:
        """All of it, in the driver."""
        rows = Delta.inserting(self.outside.rows())
        return rows if self.changes is None else consolidate(Delta.concat([rows, self.changes.contents()]))

    @property
    def total(self) -> int:
        return self.outside.counted() + (0 if self.changes is None else self.changes.total)

    def found(self, rows: pa.RecordBatch) -> Delta:
        """The rows that are there under the keys of the given ones."""
        assert self.outside.key is not None
        found = [Delta.inserting(self.outside.matching(rows))]
        if self.changes is not None:
            changed = self.changes.lookup(rows, self.outside.key)
            found.append(Delta(changed.rows, changed.weights))
        return consolidate(Delta.concat(found))

    def frame(self) -> DataFrame:
        """All of it as Spark knows it: columns `c0, c1, …` in the table's types.

        Rows that may have been taken away are looked for in the driver, as there are few; all others stay where they are.
        """
        changes = None if self.changes is None else self.changes.contents()
        if changes is None or not len(changes):
            return self.outside.typed()
        gone = changes.rows.filter(pa.array(changes.weights < 0))
        if gone.num_rows:
            others = self.outside.without(gone)
            changes = consolidate(Delta.concat([Delta.inserting(self.outside.matching(gone)), changes]))
        else:
            others = self.outside.typed()
        copies = np.repeat(np.arange(len(changes)), np.maximum(changes.weights, 0))
        rows = changes.take(copies).rows
        if not rows.num_rows:
            return others
        return others.union(self.outside.local(others.sparkSession, rows, range(rows.num_columns)))


@contextmanager
def _reading(place: Place | None) -> Iterator[None]:
    """What Spark says of rows that cannot be read, as an error of ours."""
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except AnalysisException as error:
        where = "the rows" if place is None else place
        raise UnknownName(f"Spark cannot read {where}: {failure(error)}") from shown_cause(error)
    except PySparkException as error:
        raise EvaluationFailed(failure(error)) from shown_cause(error)


def _is_comparable(kind: DataType) -> bool:
    """Whether Spark can compare values of the type."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, ArrayType):
        return _is_comparable(kind.elementType)
    if isinstance(kind, StructType):
        return all(_is_comparable(field.dataType) for field in kind.fields)
    return not isinstance(kind, MapType | VariantType)
