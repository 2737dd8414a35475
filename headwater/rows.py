"""Rows as users have them — tuples, dicts, Arrow, pandas, Spark — as one Arrow batch of a table's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import positional
from headwater.errors import EvaluationFailed, InvalidRows
from headwater.lengths import within_lengths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Target(Protocol):
    """What rows are meant for: a table, by its name and its columns."""

    @property
    def name(self) -> str: ...

    @property
    def arrow(self) -> pa.Schema: ...

    @property
    def rows(self) -> pa.Schema:
        """The columns as the engine names them."""
        ...


@dataclass(frozen=True)
class Columns:
    """The columns of a table, for those who know no more of it."""

    name: str
    arrow: pa.Schema

    @cached_property
    def rows(self) -> pa.Schema:
        return positional(self.arrow)


def batch_of(rows: object, table: Target, time_zone: str) -> pa.RecordBatch:
    """The rows, each column in the type of the table's."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _from_arrow(rows, table)
    if hasattr(rows, "toArrow"):
        rows = _from_spark(rows)
    elif type(rows).__module__.startswith("pandas.") and hasattr(rows, "columns"):
        rows = _from_pandas(rows, table, time_zone)
    if isinstance(rows, pa.Table):
        return _from_arrow(rows, table)
    if isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__iter__"):
        raise InvalidRows(
            f"rows for table {table.name!r} must be an Arrow table, a Spark or pandas DataFrame, or a list of tuples or dicts, "
            f"not {type(rows).__name__}"
        )
    return _from_objects(list(rows), table, time_zone)


def _from_spark(rows: Any) -> pa.Table:  # noqa: ANN401  (Spark is imported late)
    from pyspark.errors import PySparkException

    from headwater.evaluation.spark import failure
    from headwater.schema import collected

    try:
        return collected(rows)
    except PySparkException as error:
        raise EvaluationFailed(failure(error)) from error


def frame_of(frame: DataFrame, table: Target) -> DataFrame:
    """A DataFrame's columns in the table's order, named by their place; `fitted` brings their values into its types."""
    from headwater.schema import arrow_of

    order = _columns(frame.columns, table)
    for i, field in zip(order, table.arrow, strict=True):
        _require_castable(arrow_of(frame.schema.fields[i].dataType), field, table)
    names = [f"c{i}" for i in range(len(order))]
    return frame.toDF(*names).select(*(names[i] for i in order)).toDF(*names)


def fitted(rows: pa.RecordBatch, table: Target) -> pa.RecordBatch:
    """Rows of `frame_of`, as Spark hands them over, in the table's types."""
    columns = (
        column if column.type.equals(field.type) else _cast(column, field, table)
        for column, field in zip(rows.columns, table.arrow, strict=True)
    )
    return within_lengths(pa.RecordBatch.from_arrays(list(columns), schema=table.rows), table.arrow, table.name)


def widened(rows: pa.RecordBatch, present: Sequence[int], types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Rows that have some of a table's columns, with NULL in the others."""
    places = {column: place for place, column in enumerate(present)}
    columns = [rows.column(places[i]) if i in places else pa.nulls(rows.num_rows, kind) for i, kind in enumerate(types)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(types))])


def _from_pandas(rows: Any, table: Target, time_zone: str) -> pa.Table:  # noqa: ANN401  (pandas is optional)
    """The frame's columns; timestamps without a zone are in the session's where the table's have one, as Spark takes them."""
    try:
        found = pa.Table.from_pandas(rows, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidRows(f"the frame for table {table.name!r} has a column of mixed values: {error}") from error
    zoned = {field.name.lower() for field in table.arrow if pa.types.is_timestamp(field.type) and field.type.tz}
    for i, field in enumerate(found.schema):
        if field.name.lower() in zoned and pa.types.is_timestamp(field.type) and not field.type.tz:
            found = found.set_column(i, field.name, pc.assume_timezone(found.column(i), time_zone))
    return found


def _from_arrow(rows: pa.Table | pa.RecordBatch, table: Target) -> pa.RecordBatch:
    if rows.schema.equals(table.arrow):
        pieces = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        if len(pieces) == 1:
            # As it is, under other names: for ten rows, to take the columns out one by one costs more than anything else here.
            batch = pieces[0].rename_columns(table.rows.names)
            if batch.schema.equals(table.rows):
                return batch
        columns = rows.columns
    else:
        found = [rows.column(i) for i in _columns(rows.schema.names, table)]
        columns = [
            column if column.type.equals(field.type) else _cast(column, field, table)
            for column, field in zip(found, table.arrow, strict=True)
        ]
    return pa.RecordBatch.from_arrays([_whole(column) for column in columns], schema=table.rows)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field, table: Target) -> pa.Array | pa.ChunkedArray:
    _require_castable(column.type, field, table)
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {field.type}: {error}") from error


def _require_castable(given: pa.DataType, field: pa.Field, table: Target) -> None:
    if not _castable(given, field.type):
        raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {field.type}, the rows have {given}")


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


def _columns(names: Sequence[str], table: Target) -> list[int]:
    """Where in the rows each column of the table is."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidRows(f"the rows for table {table.name!r} have a column named {name!r}: names are text")
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


def _from_objects(rows: list[Any], table: Target, time_zone: str) -> pa.RecordBatch:
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
    return pa.RecordBatch.from_arrays(arrays, schema=table.rows)


def _array(values: list[Any], field: pa.Field, table: Target, time_zone: str) -> pa.Array:
    kind = field.type
    try:
        if pa.types.is_timestamp(kind) and kind.tz and _has_naive(values):
            return pc.assume_timezone(pa.array(values, pa.timestamp("us")), time_zone).cast(kind)
        if pa.types.is_boolean(kind) and any(v is not None and not isinstance(v, bool) for v in values):
            raise InvalidRows(f"column {field.name!r} of table {table.name!r} is bool: it takes True, False and None")
        if pa.types.is_temporal(kind) and any(isinstance(v, int | float) for v in values):
            raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {kind}: it takes no plain numbers")
        if pa.types.is_nested(kind) or (pa.types.is_integer(kind) and any(isinstance(v, float | Decimal) for v in values)):
            values = [_plain(value, kind) for value in values]
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError, ValueError) as error:
        raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {kind}: {error}") from error


def _has_naive(values: list[Any]) -> bool:
    return any(isinstance(value, datetime) and value.tzinfo is None for value in values)


def _plain(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401  (a user's value)
    """Nested values in the shape in which Arrow takes them, and none that Arrow would cut to fit."""
    if value is None:
        return None
    if pa.types.is_integer(kind) and value != int(value):
        raise ValueError(f"{value!r} is no whole number")
    if pa.types.is_nested(kind) and isinstance(value, str | bytes):
        raise ValueError(f"{value!r:.50} is a text, not a {kind}")
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        if not isinstance(value, Mapping):
            value = dict(zip(names, value, strict=True))
        if not value.keys() <= set(names):
            raise ValueError(f"{list(value)} are not fields of {kind}")
        return {field.name: _plain(value.get(field.name), field.type) for field in kind}
    return value
