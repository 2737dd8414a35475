"""The engine of a session: it analyses, compiles, and defines tables and views. Spark starts when it first needs it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from headwater.algebra.plan import Fixpoint, walk
from headwater.answers import Answer, table_of
from headwater.compiler.compiler import Compiler
from headwater.compiler.linear import Engines
from headwater.compiler.selection import annotated, with_strategy
from headwater.definitions import Definitions
from headwater.delta import Delta, one_batch
from headwater.errors import InvalidOption, InvalidSchema, NotSupported
from headwater.evaluation.duckdb_sql import Connection
from headwater.evaluation.spark import SparkEvaluator, active, failure
from headwater.evaluation.stages import typed
from headwater.frontend.catalyst import Analyser, Query
from headwater.frontend.origins import Origins
from headwater.frontend.recompute import Recompute
from headwater.frontend.recursive import recursive_query
from headwater.lengths import as_string
from headwater.operators.recursive.strategy import EAGER, chosen
from headwater.schema import arrow_of, arrow_schema, loosened
from headwater.sources.attached import Source, at, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from headwater.operators.operator import Key
    from headwater.runtime.catalog import Catalog, Entry, TableEntry, ViewEntry
    from headwater.runtime.driver import Backfill
    from headwater.runtime.outside import Outside, Place
    from headwater.session import Session

# Questions whose plans are remembered.
_REMEMBERED = 100
STRATEGIES = ("auto", "counting", "absorption-lazy", "absorption-eager", "relative", "dred", "recompute")


class Engine:
    """Everything that may need Spark."""

    def __init__(self, spark: Callable[[], SparkSession], time_zone: str) -> None:
        self._spark = spark
        self.time_zone = time_zone
        self.analyser = Analyser(spark)
        self.recompute = Recompute(spark, self.analyser)
        self.origins = Origins(self.analyser)
        self.engines = Engines(Connection(time_zone), SparkEvaluator(spark))
        self.definitions = Definitions(Compiler(self.engines), self.recompute)
        self._questions: dict[str, tuple[Mapping[str, Entry], object, Query]] = {}

    def schema(self, described: str | StructType) -> StructType:
        """A table's columns, from DDL text or as Spark states them."""
        try:
            with active(self._spark()):  # parses the text
                struct = StructType.fromDDL(described) if isinstance(described, str) else described
        except PySparkException as error:
            raise InvalidSchema(f"{described!r} is not a list of columns and types: {failure(error)}") from error
        if not isinstance(struct, StructType) or not struct.fields:
            raise InvalidSchema("a table has at least one column: name and type, as in 'id BIGINT, name STRING'")
        struct = StructType([as_string(field) for field in struct.fields])
        seen: set[str] = set()
        for field in struct.fields:
            if field.name.lower() in seen:
                raise InvalidSchema(f"the column {field.name!r} comes twice; names differ by more than case")
            seen.add(field.name.lower())
            try:
                arrow_of(field.dataType)
            except PySparkException as error:
                raise InvalidSchema(f"column {field.name!r}: {failure(error)}") from error
        return loosened(struct)

    def source(self, source: object, form: str | None) -> Source:
        """What users give as a source of rows."""
        return source_of(self._spark, source, form)

    def outside(self, name: str, schema: StructType, key: Key | None, place: Place) -> Outside:
        """The rows at a place, for a table of these columns."""
        return at(self._spark, place).outside(name, schema, key)

    def arrow_schema(self, schema: StructType) -> pa.Schema:
        return arrow_schema(schema)

    def analyse(self, query: str | DataFrame, now: Catalog, view: str | None = None) -> Query:
        """What Spark makes of a query over the tables and views there are, for a view of that name or for one answer."""
        if isinstance(query, str):
            return self._asked(query, now) if view is None else self._read(query, now, view)
        if not hasattr(query, "_jdf"):
            raise NotSupported(
                f"a view is made of SQL text or of a DataFrame of the same Spark session, not of {type(query).__name__}"
            )
        return self.analyser.frame(query, view)

    def _read(self, text: str, now: Catalog, view: str | None) -> Query:
        schemas = {entry.name: entry.schema for entry in now.shown.values()}
        return recursive_query(self.analyser, text, schemas, view) or self.analyser.sql(text, schemas, view)

    def _asked(self, text: str, now: Catalog) -> Query:
        """What Spark made of a question the last time it was asked, if tables, views, functions and settings are the same."""
        signature = self.analyser.signature()
        known = self._questions.pop(text, None)
        if known is None or known[0] is not now.shown or known[1] != signature:
            known = (now.shown, signature, self._read(text, now, None))
        self._questions[text] = known
        while len(self._questions) > _REMEMBERED:
            self._questions.pop(next(iter(self._questions)), None)
        return known[2]

    def with_strategy(self, query: Query, strategy: str) -> Query:
        """The query with its recursion kept up to date by a strategy."""
        if strategy == "auto":
            return query
        if not isinstance(strategy, str) or chosen(strategy) is None:
            raise InvalidOption(
                f"strategy is one of {', '.join(STRATEGIES)}, or 'absorption-eager every 100 rows' or '… 10 milliseconds', "
                f"not {strategy!r}"
            )
        if query.root is None or not any(isinstance(node, Fixpoint) for node in walk(query.root)):
            if query.root is None or not strategy.startswith(EAGER):
                raise InvalidOption(
                    f"the strategy {strategy} is for recursive queries, and this one has no WITH RECURSIVE; absorption-eager "
                    "is for others, too, unless Spark recomputes them: it keeps what rows follow from beside them"
                )
            return replace(query, root=annotated(query.root, strategy))
        return replace(query, root=with_strategy(query.root, strategy, self.engines.type_of))

    def widened(self, table: TableEntry, rows: pa.Table | DataFrame, columns: StructType) -> Outside:
        """The rows of a table with more columns, in which they are NULL."""
        from pyspark.sql import functions

        frame = self._spark().createDataFrame(rows, table.schema) if isinstance(rows, pa.Table) else rows
        frame = frame.toDF(*table.schema.names)
        added = [StructField(field.name, field.dataType) for field in columns.fields]
        for field in added:
            frame = frame.withColumn(field.name, functions.lit(None).cast(field.dataType))
        return Source(lambda: frame).outside(table.name, StructType([*table.schema.fields, *added]), table.key)

    def read_again(self, view: ViewEntry, now: Catalog) -> Query:
        """The query of a view over tables that have more columns."""
        if view.query.text is None:
            raise NotSupported(f"view {view.name!r} is made of a DataFrame, which cannot be read again; drop it first")
        return self.analyse(view.query.text, now, view.name)

    def frame(self, entry: Entry, rows: pa.Table | DataFrame) -> DataFrame:
        """Rows as a DataFrame that is known to stand for a table or view."""
        frame = self._spark().createDataFrame(rows, entry.schema) if isinstance(rows, pa.Table) else rows
        return self.analyser.stand_in(self._spark(), entry.name, entry.schema, frame)

    def once(self, session: Session, text: str, now: Catalog, content: Backfill) -> Answer:
        """The answer of a query that gives another one each time, from Spark."""
        entries = {entry.name: entry for entry in now.shown.values()}
        read = self.analyser.read_by(text, {name: entry.schema for name, entry in entries.items()})
        contents = {name: self._rows(entries[name], content) for name in read}
        schemas = {name: entries[name].schema for name in read}
        schema, rows = self.recompute.answer(text, schemas, contents, self.analyser.moment())
        found = typed(rows.columns, arrow_schema(schema).types, rows.num_rows)
        return Answer(session, schema, table_of(Delta.inserting(found), arrow_schema(schema)))

    def _rows(self, entry: Entry, content: Backfill) -> pa.RecordBatch | DataFrame:
        """What a table or view holds: as Spark reads it, where it is outside."""
        if entry.output in content.outer:
            return content.outer[entry.output].frame()
        return one_batch(table_of(content.content(entry.output), entry.arrow))
