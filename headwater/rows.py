"""Rows as users have them — tuples, dicts, Arrow, pandas, Spark — as one Arrow batch of a table's schema.

Every value is exactly what it was, or the rows are refused: `values` reads Python's, `conversion` converts columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from headwater.conversion import Unfit, converted, convertible, require_sound, timed
from headwater.delta import positional
from headwater.errors import EvaluationFailed, InvalidRows
from headwater.lengths import within_lengths
from headwater.values import column_of, in_zone, is_named, names_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

# What Arrow and Python raise for values that do not fit.
UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError, ValueError, ArithmeticError)
_PLAIN = {tuple, list}


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

    @property
    def timed(self) -> tuple[int, ...]:
        """The columns in which there are dates or timestamps."""
        ...


@dataclass(frozen=True)
class Columns:
    """The columns of a table, for those who know no more of it."""

    name: str
    arrow: pa.Schema

    @cached_property
    def rows(self) -> pa.Schema:
        return positional(self.arrow)

    @cached_property
    def timed(self) -> tuple[int, ...]:
        return timed(self.arrow)


def batch_of(rows: object, table: Target, time_zone: str) -> pa.RecordBatch:
    """The rows, each column in the type of the table's; those that are not Arrow's or Spark's may have times of a zone."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _from_arrow(rows, table)
    if hasattr(rows, "toArrow"):
        return _from_arrow(_from_spark(rows), table)
    if type(rows).__module__.startswith("pandas.") and hasattr(rows, "columns"):
        return _from_pandas(rows, table, time_zone)
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
        given = arrow_of(frame.schema.fields[i].dataType)
        if not convertible(given, field.type):
            raise InvalidRows(f"column {field.name!r} of table {table.name!r} is {field.type}, the rows have {given}")
    names = [f"c{i}" for i in range(len(order))]
    return frame.toDF(*names).select(*(names[i] for i in order)).toDF(*names)


def fitted(rows: pa.RecordBatch, table: Target) -> pa.RecordBatch:
    """Rows of `frame_of`, as Spark hands them over, in the table's types."""
    _require_valid(rows, table)
    columns = [_fit(column, field, table) for column, field in zip(rows.columns, table.arrow, strict=True)]
    found = _sound(pa.RecordBatch.from_arrays(columns, schema=table.rows), table)
    return within_lengths(found, table.arrow, table.name)


def sound_column(column: pa.Array, wanted: pa.DataType, read: Callable[[pa.Array, pa.DataType], pa.Array]) -> pa.Array:
    """A column read as a table's type, with no value that is damaged or that Python has not; raises one of `UNFIT`."""
    column.validate(full=True)
    found = read(column, wanted)
    require_sound(found)
    return found


def widened(rows: pa.RecordBatch, present: Sequence[int], types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Rows that have some of a table's columns, with NULL in the others."""
    places = {column: place for place, column in enumerate(present)}
    columns = [rows.column(places[i]) if i in places else pa.nulls(rows.num_rows, kind) for i, kind in enumerate(types)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(types))])


def _from_pandas(rows: Any, table: Target, time_zone: str) -> pa.RecordBatch:  # noqa: ANN401  (pandas is optional)
    """The frame's columns; timestamps without a zone are in the session's where the table's have one, as Spark takes them.

    What pandas takes for missing is NULL, NaN among it: pandas has no other NULL in a column of floats.
    """
    columns = []
    for place, field in zip(_columns(list(rows.columns), table), table.arrow, strict=True):
        try:
            columns.append(_from_series(rows.iloc[:, place], field.type, time_zone))
        except UNFIT as error:
            raise _refused(field, table, error) from error
    return _sound(pa.RecordBatch.from_arrays(columns, schema=table.rows), table)


def _from_series(series: Any, wanted: pa.DataType, time_zone: str) -> pa.Array:  # noqa: ANN401  (pandas is optional)
    if series.dtype == object:
        return column_of(series.where(series.notna(), None).tolist(), wanted, time_zone)
    column = _whole(pa.Array.from_pandas(series))
    column.validate(full=True)
    if pa.types.is_timestamp(wanted) and wanted.tz and pa.types.is_timestamp(column.type) and not column.type.tz:
        column = in_zone(column, time_zone)
    return converted(column, wanted)


def _from_arrow(rows: pa.Table | pa.RecordBatch, table: Target) -> pa.RecordBatch:
    _require_valid(rows, table)
    if rows.schema.equals(table.arrow):
        pieces = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        if len(pieces) == 1:
            # As it is, under other names: for ten rows, to take the columns out one by one costs more than anything else here.
            batch = pieces[0].rename_columns(table.rows.names)
            if batch.schema.equals(table.rows):
                return _sound(batch, table)
        columns = [_whole(column) for column in rows.columns]
    else:
        found = [rows.column(i) for i in _columns(rows.schema.names, table)]
        columns = [_fit(_whole(column), field, table) for column, field in zip(found, table.arrow, strict=True)]
    return _sound(pa.RecordBatch.from_arrays(columns, schema=table.rows), table)


def _require_valid(rows: pa.Table | pa.RecordBatch, table: Target) -> None:
    """Refuses what is no Arrow data, whatever its types say: text that is no UTF-8, offsets that lead nowhere."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidRows(f"the rows for table {table.name!r} are damaged: {error}") from error


def _sound(rows: pa.RecordBatch, table: Target) -> pa.RecordBatch:
    """The rows, whose times are all such that Python has them."""
    for i in table.timed:
        try:
            require_sound(rows.column(i))
        except Unfit as error:
            raise _refused(table.arrow.field(i), table, error) from error
    return rows


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _fit(column: pa.Array, field: pa.Field, table: Target) -> pa.Array:
    if column.type.equals(field.type):
        return column
    try:
        return converted(column, field.type)
    except UNFIT as error:
        raise _refused(field, table, error) from error


def _refused(field: pa.Field, table: Target, error: Exception) -> InvalidRows:
    return InvalidRows(f"column {field.name!r} of table {table.name!r} is {field.type}: {error}")


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
    columns = []
    for values, field in zip(_values(rows, table), table.arrow, strict=True):
        try:
            columns.append(column_of(values, field.type, time_zone))
        except UNFIT as error:
            raise _refused(field, table, error) from error
    return pa.RecordBatch.from_arrays(columns, schema=table.rows)


def _values(rows: list[Any], table: Target) -> Sequence[Sequence[Any]]:
    """By column of the table, the values of all rows: those with names by name, others by position."""
    width = len(table.arrow)
    classes = set(map(type, rows))
    if classes <= _PLAIN and set(map(len, rows)) == {width}:
        return list(zip(*rows, strict=True))
    if any(issubclass(each, Mapping) or is_named(each) for each in classes):
        named = [names for names in map(names_in, rows) if names is not None]
        if len(named) == len(rows):
            return _by_name(rows, named, table)
        if named:
            raise InvalidRows(
                f"the rows for table {table.name!r} are tuples of {width} values, or dicts and others with names, but not both"
            )
    for row in rows:
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != width:
            raise InvalidRows(f"a row for table {table.name!r} must be a tuple of {width} values or a dict, not {brief(row)}")
    return list(zip(*rows, strict=True)) or [()] * width


def _by_name(rows: list[Any], named: Sequence[tuple[str, ...]], table: Target) -> list[list[Any]]:
    names = named[0]
    order = [names[place] for place in _columns(names, table)]
    for given in named:
        if given != names and set(given) != set(names):
            raise InvalidRows(f"the rows for table {table.name!r} have different columns: {list(names)} and {list(given)}")
    pairs = zip(rows, named, strict=True)
    dicts = [row if isinstance(row, Mapping) else dict(zip(given, row, strict=True)) for row, given in pairs]
    return [[row[name] for row in dicts] for name in order]
