"""Rows as users have them — tuples, dicts, Arrow, pandas, Spark — as one Arrow batch of a table's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import one_batch, positional
from headwater.errors import InvalidRows

if TYPE_CHECKING:
    from headwater.runtime.catalog import TableEntry


def batch_of(rows: object, table: TableEntry, time_zone: str) -> pa.RecordBatch:
    """The rows, each column in the type of the table's."""
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif type(rows).__module__.startswith("pyspark.sql"):
        rows = rows.toArrow()  # type: ignore[attr-defined]
    elif type(rows).__module__.startswith("pandas."):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return _from_arrow(rows, table)
    if isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__iter__"):
        raise InvalidRows(
            f"rows for table {table.name!r} must be an Arrow table, a Spark or pandas DataFrame, or a list of tuples or dicts, "
            f"not {type(rows).__name__}"
        )
    return _from_objects(list(rows), table, time_zone)


def _from_arrow(rows: pa.Table, table: TableEntry) -> pa.RecordBatch:
    columns = [rows.column(i) for i in _columns(rows.schema.names, table)]
    arrays = []
    for column, field in zip(columns, table.arrow, strict=True):
        arrays.append(column if column.type.equals(field.type) else _cast(column, field, table))
    if not arrays:
        return one_batch(rows)
    return one_batch(pa.Table.from_arrays(arrays, schema=positional(table.arrow)))


def _cast(column: pa.ChunkedArray, field: pa.Field, table: TableEntry) -> pa.ChunkedArray:
    if not _castable(column.type, field.type):
        raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {field.type}, the rows have {column.type}")
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {field.type}: {error}") from error


def _castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Only casts within a family: a number does not become a string unasked."""
    if pa.types.is_null(given):
        return True
    return _family(given) == _family(wanted)


def _family(kind: pa.DataType) -> str:  # noqa: PLR0911  (one case a kind)
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp without zone"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list"
    return str(kind).split("<", 1)[0].split("[", 1)[0]


def _columns(names: Sequence[str], table: TableEntry) -> list[int]:
    """Where in the rows each column of the table is."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        if name.lower() in places:
            raise InvalidRows(f"the rows for table {table.name!r} have the column {name!r} twice")
        places[name.lower()] = i
    wanted = [name.lower() for name in table.arrow.names]
    unknown = [name for name in names if name.lower() not in wanted]
    missing = [name for name in table.arrow.names if name.lower() not in places]
    if unknown or missing:
        complaint = [f"no column {name!r} in the table" for name in unknown] + [f"no {name!r} in the rows" for name in missing]
        raise InvalidRows(f"the rows do not fit table {table.name!r}: {', '.join(complaint)}")
    return [places[name] for name in wanted]


def _from_objects(rows: list[Any], table: TableEntry, time_zone: str) -> pa.RecordBatch:
    if rows and all(isinstance(row, Mapping) for row in rows):
        for row in rows:
            if row.keys() != rows[0].keys():
                raise InvalidRows(f"the rows for table {table.name!r} have different columns: {list(rows[0])} and {list(row)}")
        names = list(rows[0])
        order = [names[i] for i in _columns(names, table)]
        values = [[row[name] for row in rows] for name in order]
    else:
        width = len(table.arrow)
        for row in rows:
            if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != width:
                raise InvalidRows(
                    f"a row for table {table.name!r} must be a tuple of {width} values or a dict, not {row!r:.200}"
                )
        values = [[row[i] for row in rows] for i in range(width)]
    arrays = [_array(column, field, table, time_zone) for column, field in zip(values, table.arrow, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=positional(table.arrow))


def _array(values: list[Any], field: pa.Field, table: TableEntry, time_zone: str) -> pa.Array:
    kind = field.type
    try:
        if pa.types.is_timestamp(kind) and kind.tz and _has_naive(values):
            return pc.assume_timezone(pa.array(values, pa.timestamp("us")), time_zone).cast(kind)
        if pa.types.is_boolean(kind) and any(v is not None and not isinstance(v, bool) for v in values):
            raise InvalidRows(f"column {field.name!r} of table {table.name!r} is bool: it takes True, False and None")
        return pa.array([_plain(value, kind) for value in values] if pa.types.is_nested(kind) else values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError, ValueError) as error:
        raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {kind}: {error}") from error


def _has_naive(values: list[Any]) -> bool:
    return any(isinstance(value, datetime) and value.tzinfo is None for value in values)


def _plain(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401  (a user's value)
    """Nested values in the shape in which Arrow takes them."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind) and isinstance(value, tuple | list):
        return {kind.field(i).name: _plain(item, kind.field(i).type) for i, item in enumerate(value)}
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _plain(value.get(kind.field(i).name), kind.field(i).type) for i in range(kind.num_fields)}
    return value
