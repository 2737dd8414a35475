"""Difference: what changes when some groups give other rows than before.

    Δ  =  −old rows + new rows,   without the rows that stay as they are

Old and new rows are aligned by group, so they are compared in place and nothing has to be looked for. Rows are the same ones as
`state.equality` says: NULL is NULL, NaN is NaN, and −0.0 is not 0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.delta import Delta, without_columns
from headwater.picking import picked
from headwater.state import equality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]


def difference(schema: pa.Schema, keys: Sequence[pa.Array], values: Sequence[pa.Array], old: Bools, new: Bools) -> Delta:
    """The change of rows `keys, values`, where each array of values has the old ones, then the new ones.

    `old` and `new` tell which groups have a row.
    """
    differs = old != new
    for array in values:
        _compare(array, differs)
    places, owners, weights = _changed(old, new, differs)
    if not keys and not values:
        return Delta(without_columns(len(places)), weights)
    changed = values if len(places) == 2 * len(old) else picked(values, places)
    return Delta(pa.RecordBatch.from_arrays([*picked(keys, owners), *changed], schema=schema), weights)


def appearance(schema: pa.Schema, keys: Sequence[pa.Array], values: Sequence[pa.Array], new: Bools) -> Delta:
    """The same where no group had a row before."""
    if not keys and not values:
        return Delta.inserting(without_columns(int(new.sum())))
    return Delta.inserting(pa.RecordBatch.from_arrays([*keys, *values], schema=schema)).where(new)


def _compare(array: pa.Array, differs: Bools) -> None:
    """Marks the groups whose old and new value differ."""
    size = len(differs)
    if array.null_count == 0 and array.type.id in _WORDS:
        words = np.frombuffer(array.buffers()[1], np.int64, 2 * size, 8 * array.offset)
        _mark_different(words, differs, pa.types.is_floating(array.type))
    else:
        old, new = (pa.RecordBatch.from_arrays([array.slice(at, size)], ["c0"]) for at in (0, size))
        differs |= ~equality.equal_rows(old, (0,), new, (0,), signed_zeros=True)


_WORDS = frozenset({pa.int64().id, pa.float64().id, pa.duration("us").id, pa.timestamp("us").id})


@compiled
def _mark_different(words: Int64s, differs: Bools, floating: bool) -> None:  # noqa: FBT001  (compiled)
    size = len(differs)
    doubles = words.view(np.float64)
    for i in range(size):
        if words[i] != words[size + i]:
            both_nan = floating and np.isnan(doubles[i]) and np.isnan(doubles[size + i])
            differs[i] |= not both_nan


@compiled
def _changed(old: Bools, new: Bools, differs: Bools) -> tuple[Int64s, Int64s, Int64s]:
    """Where, among old rows and then new ones, the rows that change are, of which groups, and their weights."""
    size = len(old)
    places, owners, weights = np.empty(2 * size, np.int64), np.empty(2 * size, np.int64), np.empty(2 * size, np.int64)
    count = 0
    for version in range(2):
        for group in range(size):
            if differs[group] and (new[group] if version else old[group]):
                places[count] = version * size + group
                owners[count] = group
                weights[count] = 1 if version else -1
                count += 1
    return places[:count], owners[:count], weights[:count]
