"""Changes by key: what is to go from a target, and what is to be there instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.errors import InvalidTarget, UnknownName
from headwater.state.consolidation import group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


def last_by_key(changes: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Rows with keys that are gone after the change, and the new rows of the other keys.

    Raises if a key has two rows afterwards, as far as the change tells: then it is none.
    """
    weights = changes.column("_weight").to_numpy()
    rows = changes.drop_columns(["_weight"])
    came = rows.filter(pa.array(weights > 0))
    went = rows.filter(pa.array(weights < 0))
    chosen = [_place(rows, name) for name in key]
    batch = _batch(came, chosen)
    groups = group_rows(batch, range(len(chosen)))
    if groups.count < came.num_rows or (weights > 1).any():
        raise InvalidTarget(f"two rows of the view have the same key ({', '.join(key)}), so it is none; give one that differs")
    both = group_rows(_batch(pa.concat_tables([came, went]), chosen), range(len(chosen)))
    again = np.isin(both.ids[came.num_rows :], both.ids[: came.num_rows])
    gone = np.flatnonzero(~again)
    return went.take(pa.array(gone)), came


def require_key(rows: pa.Table, key: Sequence[str]) -> None:
    """Raises unless the columns tell the rows apart."""
    chosen = [_place(rows, name) for name in key]
    if group_rows(_batch(rows, chosen), range(len(chosen))).count < rows.num_rows:
        raise InvalidTarget(f"two rows of the view have the same key ({', '.join(key)}), so it is none; give one that differs")


def _place(rows: pa.Table, name: str) -> int:
    names = [each.lower() for each in rows.column_names]
    if name.lower() not in names:
        raise UnknownName(f"the key column {name!r} is not a column of the view; it has {', '.join(rows.column_names)}")
    return names.index(name.lower())


def _batch(rows: pa.Table, chosen: Sequence[int]) -> pa.RecordBatch:
    columns = [rows.column(i) for i in chosen]
    arrays = [pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])
