"""Rows picked out of columns by their places.

Arrow's own `take` costs more than ten rows are worth: where a column is plain numbers, NumPy picks them out of its buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

_NUMBERS = {
    kind.id: np.dtype(f"u{kind.bit_width // 8}")
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.date32(), pa.timestamp("us"), pa.duration("us")),
    )
}


def picked(columns: Sequence[pa.Array], places: Int64s) -> list[pa.Array]:
    """The values at the places, column by column."""
    found, index = [], None
    for column in columns:
        dtype = _NUMBERS.get(column.type.id)
        if dtype is not None and len(column) and not column.null_count:
            values = np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)
            found.append(pa.Array.from_buffers(column.type, len(places), [None, pa.py_buffer(values.take(places))]))
        else:
            index = pa.array(places) if index is None else index
            found.append(column.take(index))
    return found


def picked_or_null(columns: Sequence[pa.Array], places: Int64s) -> list[pa.Array]:
    """The values at the places, NULL where the place is −1."""
    missing = places < 0
    if not np.count_nonzero(missing):
        return picked(columns, places)
    index = pa.array(places, mask=missing)
    return [column.take(index) for column in columns]


def rows_at(rows: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
    """The rows at the places."""
    if not rows.num_columns:
        return rows.take(pa.array(places))
    return pa.RecordBatch.from_arrays(picked(rows.columns, places), schema=rows.schema)
