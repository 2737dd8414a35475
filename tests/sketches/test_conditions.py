"""Ranges as Spark's conditions: of every value they say what the fragments say, and they reach the scan of a file."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headwater.annotations.fragments import Partition
from headwater.schema import arrow_of
from headwater.skipping.reading import Ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ODD = "\U0001f600"
# The values of which each column has some, and the bounds between its ranges.
COLUMNS: list[tuple[Any, list[Any], list[Any]]] = [
    (IntegerType(), [None, -(2**31), -1, 0, 1, 2, 3, 2**31 - 1], [0, 2]),
    (LongType(), [None, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1, 0], [2**53, 2**53 + 1]),
    (DoubleType(), [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1e300], [0.0, 0.1]),
    (FloatType(), [None, math.nan, math.inf, -math.inf, -0.0, 0.5, 0.25, 1.0], [0.25, math.inf]),
    (
        DecimalType(30, 2),
        [None, *map(Decimal, ("1.10", "1.11", "-7", "0", "99999999999999999999.99", "1.09", "2"))],
        [Decimal("1.10"), Decimal(2)],
    ),
    (
        DateType(),
        [None, *(date(2020, 1, day) for day in range(1, 7)), date(9999, 12, 31)],
        [date(2020, 1, 2), date(2020, 1, 4)],
    ),
    (
        TimestampType(),
        [None, *(datetime(2020, 1, 1, 0, 0, s, s, UTC) for s in range(7))],
        [datetime(2020, 1, 1, 0, 0, 1, 1, UTC), datetime(2020, 1, 1, 0, 0, 3, tzinfo=UTC)],
    ),
    (
        TimestampNTZType(),
        [None, *(datetime(2020, 1, 1, 0, 0, s, s) for s in range(7))],
        [datetime(2020, 1, 1, 0, 0, 1, 1), datetime(2020, 1, 1, 0, 0, 3)],
    ),
    (StringType(), [None, "", "a", "ab", "z", "é", "'quoted'", _ODD], ["a", "é"]),
]


def test_conditions_say_what_fragments_say(spark: SparkSession) -> None:
    names = [f"c{i}" for i in range(len(COLUMNS))]
    schema = StructType([StructField(name, kind) for name, (kind, _, _) in zip(names, COLUMNS, strict=True)])
    arrays = [pa.array(values, arrow_of(kind)) for kind, values, _ in COLUMNS]
    table: Any = pa.Table.from_arrays(arrays, names=names)
    frame = spark.createDataFrame(table, schema)
    conditions, expected = [], []
    for column, (kind, _, ends) in enumerate(COLUMNS):
        bounds = pa.RecordBatch.from_arrays([pa.array(ends, arrow_of(kind))], names=["c0"])
        cut = Partition("t", names[column], 1, bounds, (1,) * 4)
        for chosen in (set(), {0}, {1}, {2}, {3}, {0, 2}, {1, 2, 3}, {0, 1, 2}, {0, 1, 2, 3}):
            ranges = Ranges(column, cut, frozenset(chosen))
            conditions.append(ranges.condition(frame[names[column]], kind))
            expected.append(ranges.inside(arrays[column]).tolist())
    found = frame.select(*conditions).toArrow()
    for i, (condition, wanted) in enumerate(zip(conditions, expected, strict=True)):
        assert [value is True for value in found.column(i).to_pylist()] == wanted, condition
