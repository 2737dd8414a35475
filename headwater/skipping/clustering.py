"""Writes tables as Parquet files; clustered, a range of the column is in few files and few row groups of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException

from headwater.errors import EvaluationFailed, InvalidOption, InvalidTarget
from headwater.evaluation.spark import failure
from headwater.skipping.partitioning import column_of
from headwater.text import is_unicode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.runtime.catalog import TableEntry

# Rows of a file, and bytes of a row group: small enough to leave most of them out, large enough to read the others at speed.
_ROWS_A_FILE = 1_000_000
_BYTES_A_GROUP = 4 << 20


def export(  # noqa: PLR0913, PLR0917  (each a part of what is asked for)
    spark: SparkSession,
    table: TableEntry,
    rows: pa.Table | DataFrame,
    total: int,
    path: str,
    cluster_by: str | None,
    files: int | None,
) -> None:
    """Writes the rows of a table to a path where nothing is yet."""
    if not is_unicode(path):
        raise InvalidOption(f"{path!r} has half of a surrogate pair in it, which is no character, so Spark writes no such path")
    if files is not None and (not isinstance(files, int) or files < 1):
        raise InvalidOption(f"files is a number from 1 on, not {files!r}")
    frame = spark.createDataFrame(rows, table.schema) if isinstance(rows, pa.Table) else rows.toDF(*table.schema.names)
    count = files or max(1, -(-total // _ROWS_A_FILE))
    if cluster_by is not None:
        name = table.arrow.names[column_of(table, cluster_by)]
        column = frame[f"`{name.replace('`', '``')}`"]
        frame = frame.repartitionByRange(count, column).sortWithinPartitions(column)
    elif files is not None:
        frame = frame.repartition(count)
    try:
        frame.write.option("parquet.block.size", str(_BYTES_A_GROUP)).parquet(path)
    except PySparkException as error:
        if "ALREADY_EXISTS" in (error.getCondition() or ""):
            raise InvalidTarget(f"there is something at {path!r} already; give a path where nothing is yet") from error
        raise EvaluationFailed(failure(error)) from error
