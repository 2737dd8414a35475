"""Spark's types, as its JSON tells them, in Arrow — the same mapping as Spark's own Arrow exchange."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType


def arrow_type(described: Any) -> pa.DataType:  # noqa: ANN401  (JSON)
    """The Arrow type for a type as `DataType.jsonValue` describes it."""
    from pyspark.sql.types import _parse_datatype_json_value

    return arrow_of(_parse_datatype_json_value(described))


@cache
def arrow_of(spark_type: DataType) -> pa.DataType:
    """The Arrow type in which Spark hands over values of this type."""
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(spark_type, timezone="UTC")


def arrow_schema(struct: StructType) -> pa.Schema:
    """The Arrow schema of Spark rows, under the users' names."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, arrow_of(field.dataType)) for field in struct.fields])
