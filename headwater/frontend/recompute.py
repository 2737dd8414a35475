"""A whole query answered by Spark, over the rows that tables and views have now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.delta import one_batch
from headwater.evaluation.spark import active, spark_failing
from headwater.evaluation.stages import typed
from headwater.frontend.catalyst import Analyser, quote
from headwater.schema import collected, loosened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.algebra.origin import Reading
    from headwater.algebra.plan import Types
    from headwater.frontend.catalyst import Query


@dataclass(frozen=True)
class Recompute:
    """Runs queries from scratch."""

    spark: Callable[[], SparkSession]
    analyser: Analyser

    def __call__(
        self, query: Query, schemas: Mapping[str, StructType], contents: Mapping[str, pa.RecordBatch]
    ) -> pa.RecordBatch:
        """The answer of a query over the given rows, and the columns by which it is sorted."""
        with spark_failing(), active(self.spark()):
            if query.text is not None:
                session, found = self._found(query.text, schemas, contents, query.reading)
            else:
                frames = {name: self.frame(schemas[name], rows) for name, rows in contents.items()}
                logical = self.analyser.with_rows(query.analysed, frames)
                with self.analyser.naming:
                    session = self.analyser.session_of(query.reading)
                found = self.analyser.dataset(session, logical)
            return one_batch(collected(self.analyser.with_sort_keys(session, found) if query.keys else found))

    def answer(
        self, text: str, schemas: Mapping[str, StructType], contents: Mapping[str, pa.RecordBatch | DataFrame], moment: Reading
    ) -> tuple[StructType, pa.Table]:
        """The answer of SQL, under the time zone and the settings of a moment, over the given rows, and its columns."""
        with spark_failing(), active(self.spark()):
            _, found = self._found(text, schemas, contents, moment)
            return loosened(found.schema), collected(found)

    def _found(
        self, text: str, schemas: Mapping[str, StructType], contents: Mapping[str, pa.RecordBatch | DataFrame], moment: Reading
    ) -> tuple[SparkSession, DataFrame]:
        frames = {name: self.frame(schemas[name], rows)._jdf.queryExecution().analyzed() for name, rows in contents.items()}
        with self.analyser.naming:
            session = self.analyser.session_of(moment)
            for name, frame in frames.items():
                self.analyser.dataset(session, frame).createOrReplaceTempView(quote(name))
            return session, session.sql(text)

    def frame(self, schema: StructType, rows: pa.RecordBatch | DataFrame) -> DataFrame:
        """Rows of the engine as a DataFrame under the users' names."""
        if not isinstance(rows, pa.RecordBatch):
            return rows.toDF(*schema.names)
        table: Any = pa.Table.from_batches([rows]).rename_columns(schema.names)
        return self.spark().createDataFrame(table, loosened(schema))


@dataclass(frozen=True)
class Recomputed:
    """A query as a function of the rows of its sources, one batch for each."""

    query: Query
    sources: tuple[str, ...]
    schemas: tuple[StructType, ...]
    types: Types
    recompute: Recompute

    def __call__(self, inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
        schemas = dict(zip(self.sources, self.schemas, strict=True))
        found = self.recompute(self.query, schemas, dict(zip(self.sources, inputs, strict=True)))
        return typed(found.columns, self.types, found.num_rows)
