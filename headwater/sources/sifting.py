"""Sifting: rows of a stream in the types of a table, and those among them that the table cannot take, each with the reason.

A batch is tried as a whole; only where that fails is it looked at more closely, in halves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.conversion import convertible
from headwater.errors import SchemaChanged
from headwater.rows import UNFIT, sound_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headwater.runtime.catalog import TableEntry

    Read = Callable[[pa.Array, pa.DataType], pa.Array]

Bad = dict[int, str]


def in_types_of(table: TableEntry, rows: pa.Table, read: Read) -> tuple[pa.RecordBatch, Bad]:
    """The rows in the table's columns; where a value does not fit, NULL and a complaint. Columns that are missing are NULL."""
    bad: Bad = {}
    places = {name.lower(): i for i, name in enumerate(rows.column_names)}
    columns = []
    for field in table.arrow:
        if field.name.lower() not in places:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        columns.append(_cast(_whole(rows.column(places[field.name.lower()])), field, bad, read))
    return pa.RecordBatch.from_arrays(columns, schema=table.rows), bad


def require_values(table: TableEntry, rows: pa.RecordBatch, columns: Sequence[int], bad: Bad, among: NDArray[np.bool_]) -> None:
    """Adds a complaint for each row among some that has a NULL in one of these columns."""
    for i in columns:
        column = rows.column(i)
        if column.null_count:
            name = table.arrow.field(i).name
            what = "in the key" if i in (table.key or ()) else "NOT NULL"
            for at in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False) & among):
                bad.setdefault(int(at), f"column {name!r} is {what} and has no value")


def required(table: TableEntry) -> list[int]:
    """The columns in which there must be no NULL."""
    return sorted({*(table.key or ()), *(i for i, field in enumerate(table.schema.fields) if not field.nullable)})


def require_castable(table: TableEntry, schema: pa.Schema) -> None:
    """Refuses a stream with a column that can never fit, or without one of the table's."""
    given = {field.name.lower(): field for field in schema}
    for field in table.arrow:
        if field.name.lower() not in given:
            raise SchemaChanged(f"the stream has no column {field.name!r}, which table {table.name!r} has; give it one")
        found = given[field.name.lower()].type
        if not convertible(found, field.type):
            raise SchemaChanged(
                f"column {field.name!r} of table {table.name!r} is {field.type}, and in the stream it is {found}; cast it there"
            )


def _cast(column: pa.Array, field: pa.Field, bad: Bad, read: Read) -> pa.Array:
    def cast(start: int, stop: int) -> list[pa.Array]:
        part = column.slice(start, stop - start)
        try:
            return [sound_column(part, field.type, read)]
        except UNFIT as error:
            if stop - start == 1:
                bad.setdefault(start, f"column {field.name!r} is {field.type}: {error}")
                return [pa.nulls(1, field.type)]
        middle = (start + stop) // 2
        return cast(start, middle) + cast(middle, stop)

    if not len(column):
        return pa.array([], field.type)
    parts = cast(0, len(column))
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
