"""Sources: what a table is loaded from, or attached to, and the look at its rows before they count.

    a DataFrame                                     loaded: its rows are copied
    a path: a `Path`, or text with a slash in it    attached: its rows stay in their files
    any other text                                  the name of a table of Spark's catalog, attached

What an insert would refuse is refused here as well: a NULL where there must be none, a key that comes twice, other columns. But
that is a question to Spark, which looks at the rows where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import (
    DuplicateKey,
    EvaluationFailed,
    InvalidOption,
    InvalidRows,
    NonDeterministic,
    NotSupported,
    NullKey,
    UnknownName,
)
from headwater.lengths import DECLARED
from headwater.redaction import shown_cause
from headwater.rows import Columns, fitted
from headwater.runtime.outside import Outside, Place
from headwater.schema import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from headwater.operators.operator import Key

_FORMAT = "parquet"


@dataclass(frozen=True, eq=False)
class Source:
    """Rows for a table; with a place, it is to be attached to them."""

    read: Callable[[], DataFrame]
    place: Place | None = None

    @property
    def columns(self) -> StructType:
        """The columns that it gives a table which has no others, as CREATE TABLE AS does: any of them may be NULL."""
        from pyspark.errors import PySparkException
        from pyspark.sql.types import StructField, StructType

        from headwater.evaluation.spark import failure

        try:
            found = self.read().schema
        except PySparkException as error:
            raise UnknownName(f"Spark cannot read {self.place or 'the rows'}: {failure(error)}") from shown_cause(error)
        return StructType([StructField(f.name, f.dataType, metadata=_declared_length(f)) for f in found.fields])

    def outside(self, name: str, schema: StructType, key: Key | None) -> Outside:
        """The rows, for a table of these columns."""
        return Outside(Columns(name, arrow_schema(schema)), schema, key, self.read, self.place)


def _declared_length(field: StructField) -> dict[str, str]:
    """What is kept of the metadata of a column: the length of a CHAR or VARCHAR."""
    return {DECLARED: field.metadata[DECLARED]} if DECLARED in (field.metadata or {}) else {}


def source_of(spark: Callable[[], SparkSession], source: object, form: str | None) -> Source:
    """What users give as a source; `form` is the format of files."""
    if hasattr(source, "_jdf"):
        if form is not None:
            raise InvalidOption("format is for files: a DataFrame has none")
        frame: Any = source
        return Source(lambda: frame)
    if isinstance(source, Path) or (isinstance(source, str) and ("/" in source or form is not None)):
        return at(spark, Place(path=_qualified(spark(), str(source)), format=form or _FORMAT))
    if not isinstance(source, str) or not source.strip():
        raise InvalidOption(
            f"a source is a DataFrame, a path, which has a slash in it, or the name of a table that Spark knows, not {source!r}"
        )
    _require_lasting(spark(), source)
    return at(spark, Place(table=source))


def at(spark: Callable[[], SparkSession], place: Place) -> Source:
    """What is at a place."""

    def read() -> DataFrame:
        if place.table is not None:
            return spark().table(place.table)
        assert place.path is not None
        assert place.format is not None
        return spark().read.format(place.format).load(place.path)

    return Source(read, place)


def require_sound(outside: Outside) -> None:
    """Refuses rows that an insert would refuse, as far as that can be told before they are read."""
    from pyspark.errors import PySparkException

    from headwater.evaluation.spark import failure

    frame = outside.frame()
    if outside.place is not None:
        _require_fitting(outside, frame)
    required = [i for i, field in enumerate(outside.schema.fields) if not field.nullable]
    key = outside.key or ()
    if not key and not required:
        return
    if not frame._jdf.queryExecution().analyzed().deterministic():  # noqa: SLF001  (py4j)
        raise NonDeterministic(
            f"the rows for table {outside.columns.name!r} are others each time they are read, so what is found out about "
            "them does not hold; write them to a file first"
        )
    try:
        _require_values(outside, frame, sorted({*key, *required}))
        if key:
            _require_distinct(outside, frame, key)
    except PySparkException as error:
        raise EvaluationFailed(failure(error)) from shown_cause(error)


def _require_fitting(outside: Outside, frame: DataFrame) -> None:
    """Refuses values for which the table's types have no room: who loads rows meets them, who attaches them would too late."""
    if frame.schema.simpleString() == outside.typed().schema.simpleString():
        return
    columns = outside.columns

    def complaints(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                fitted(batch, columns)
            except InvalidRows as error:
                yield pa.RecordBatch.from_pydict({"complaint": [str(error).removeprefix(f"[{InvalidRows.code}] ")]})
                return

    found = frame.mapInArrow(complaints, "complaint STRING").first()
    if found is not None:
        raise InvalidRows(found["complaint"])


def _require_values(outside: Outside, frame: DataFrame, columns: list[int]) -> None:
    from pyspark.sql import functions

    nulls = frame.select(*(functions.max(frame[f"c{i}"].isNull()) for i in columns)).first()
    assert nulls is not None
    for i, has_null in zip(columns, nulls, strict=True):
        name, table = outside.schema.names[i], outside.columns.name
        if has_null and i in (outside.key or ()):
            raise NullKey(f"column {name!r} is in the key of table {table!r} and cannot be NULL. Nothing was changed")
        if has_null:
            raise InvalidRows(f"column {name!r} of table {table!r} is NOT NULL. Nothing was changed")


def _require_distinct(outside: Outside, frame: DataFrame, key: Key) -> None:
    """Keys are compared in the table's types: different values may become one."""
    keys = [frame[f"c{i}"].try_cast(outside.schema.fields[i].dataType).alias(f"c{i}") for i in key]
    names = [f"c{i}" for i in key]
    counted = frame.select(*keys).dropna(subset=names).groupBy(*names).count()
    again = counted.filter(counted["count"] > 1).drop("count").first()
    if again is not None:
        shown = ", ".join(f"{outside.schema.names[i]}={value!r}" for i, value in zip(key, again, strict=True))
        raise DuplicateKey(
            f"the key ({shown}) of table {outside.columns.name!r} comes more than once in the rows. Nothing was changed"
        )


def _qualified(spark: SparkSession, path: str) -> str:
    """The path as Spark finds it, from wherever it is read."""
    jvm: Any = spark._jvm  # noqa: SLF001  (py4j)
    found = jvm.org.apache.hadoop.fs.Path(path)
    system = found.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    return str(system.makeQualified(found).toString())


def _require_lasting(spark: SparkSession, name: str) -> None:
    from pyspark.errors import PySparkException

    from headwater.evaluation.spark import failure

    try:
        is_temporary = spark.catalog.getTable(name).isTemporary
    except PySparkException as error:
        raise UnknownName(f"Spark's catalog has no table {name!r}; a path has a slash in it. {failure(error)}") from error
    if is_temporary:
        raise NotSupported(
            f"{name!r} is a temporary view, which ends with its session, so no table can be attached to it; "
            "give it as a DataFrame to copy its rows"
        )
