"""The lengths of CHAR(n) and VARCHAR(n) columns, which are strings to everyone but those who write them.

    CHAR(n)      a shorter value is filled up with spaces
    both         spaces beyond n are cut off; anything else beyond n is refused

As in Spark, the column is a STRING whose metadata say so: Catalyst reads them there, and fills up what it is compared with.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import InvalidRows

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

# Where Spark keeps the type in the metadata of a field, and we, by places, in those of Arrow's schema.
DECLARED = "__CHAR_VARCHAR_TYPE_STRING"


def as_string(field: StructField) -> StructField:
    """A column of CHAR(n) or VARCHAR(n) as the string that Spark takes it for."""
    from pyspark.sql.types import CharType, StringType, StructField, VarcharType

    if not isinstance(field.dataType, CharType | VarcharType):
        return field
    metadata = {**(field.metadata or {}), DECLARED: field.dataType.simpleString()}
    return StructField(field.name, StringType(), field.nullable, metadata)


def declared(struct: StructType) -> dict[str, str] | None:
    """The metadata of Arrow's schema for these columns; None if none of them has a length."""
    found = {i: field.metadata[DECLARED] for i, field in enumerate(struct.fields) if DECLARED in (field.metadata or {})}
    return {DECLARED: json.dumps(found)} if found else None


def within_lengths(rows: pa.RecordBatch, columns: pa.Schema, table: str) -> pa.RecordBatch:
    """The rows as they are written into a table of these columns."""
    metadata = columns.metadata
    if metadata is None or DECLARED.encode() not in metadata:
        return rows
    for number, kind in json.loads(metadata[DECLARED.encode()]).items():
        place, length = int(number), int(kind.rstrip(")").partition("(")[2])
        column = _fitted(rows.column(place), length, columns.field(place).name, table)
        padded = pc.utf8_rpad(column, length) if kind.startswith("char") else column
        rows = rows.set_column(place, rows.schema.field(place), padded)
    return rows


def _fitted(column: Any, length: int, name: str, table: str) -> Any:  # noqa: ANN401  (an Arrow array)
    long = pc.greater(pc.utf8_length(column), length)
    if not pc.any(long).as_py():
        return column
    wrong = pc.greater(pc.utf8_length(pc.utf8_rtrim(column, " ")), length)
    if pc.any(wrong).as_py():
        value = column.filter(wrong)[0].as_py()
        raise InvalidRows(f"column {name!r} of table {table!r} holds {length} characters, and {value!r:.50} has more")
    return pc.if_else(long, pc.utf8_slice_codeunits(column, 0, length), column)
