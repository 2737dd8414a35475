"""Least and greatest values of groups.

They cannot be un-merged: each group keeps its present one, and only when a value as good as that is deleted is the group looked
through again.

    new  =  best(old, values that come)              where no value that goes is as good as the old one
         =  best(all values of the group now)        elsewhere
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import chosen, present
from headwater.operators.ordering import column_ranks
from headwater.picking import picked_or_null

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.delta import Delta
    from headwater.state.arrangement import Arrangement

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest value of a column."""

    column: int
    greatest: bool
    type: pa.DataType
    condition: int | None = None


def renewed(  # noqa: PLR0913  (all of one computation)
    extreme: Extreme, old: pa.Array, *, delta: Delta, ids: Int64s, keys: pa.RecordBatch, after: Arrangement
) -> pa.Array:
    """The extreme of each group after the delta, whose rows are of the groups `ids`; `keys` are the groups' own."""
    size = len(old)
    weights = _counted(extreme, delta.rows, delta.weights)
    candidates = pa.concat_arrays([old, delta.rows.column(extreme.column)])
    ranks = column_ranks(candidates, descending=extreme.greatest, nulls_first=False)
    held = present([old], np.ones(size, np.int64)) != 0
    place, losing = _merge(ranks, held, weights, ids)
    (new,) = picked_or_null([candidates], place)
    if np.count_nonzero(losing):
        again = np.flatnonzero(losing)
        place = np.arange(size)
        place[again] = size + np.arange(len(again))
        rescanned = _rescanned(extreme, keys.take(pa.array(again)), after)
        new = pa.concat_arrays([new, rescanned]).take(pa.array(place))
    return new


def _rescanned(extreme: Extreme, keys: pa.RecordBatch, after: Arrangement) -> pa.Array:
    found = after.lookup(keys, range(keys.num_columns)).consolidated()
    values = found.rows.column(extreme.column)
    ranks = column_ranks(values, descending=extreme.greatest, nulls_first=False)
    weights = _counted(extreme, found.rows, found.weights)
    return picked_or_null([values], _best(ranks, weights, found.probe, keys.num_rows))[0]


def _counted(extreme: Extreme, rows: pa.RecordBatch, weights: Int64s) -> Int64s:
    """The weights, 0 where there is no value or it does not count."""
    if extreme.condition is not None:
        weights = chosen(rows.column(extreme.condition), weights)
    return np.ascontiguousarray(present([rows.column(extreme.column)], weights))


@compiled
def _merge(ranks: Int64s, held: Bools, weights: Int64s, ids: Int64s) -> tuple[Int64s, Bools]:
    """Which of the candidates — one for each group, then those of the rows — is the best of each group, −1 if none is.

    And which groups lose a value that is as good as the one they held, or which held none.
    """
    size = len(held)
    best = np.full(size, -1, np.int64)
    losing = np.zeros(size, np.bool_)
    for g in range(size):
        if held[g]:
            best[g] = g
    for i in range(len(ids)):
        g = ids[i]
        if weights[i] > 0 and (best[g] < 0 or ranks[size + i] < ranks[best[g]]):
            best[g] = size + i
        elif weights[i] < 0:
            losing[g] |= not held[g] or ranks[size + i] <= ranks[g]
    return best, losing


@compiled
def _best(ranks: Int64s, weights: Int64s, ids: Int64s, size: int) -> Int64s:
    best = np.full(size, -1, np.int64)
    for i in range(len(ids)):
        if weights[i] > 0 and (best[ids[i]] < 0 or ranks[i] < ranks[best[ids[i]]]):
            best[ids[i]] = i
    return best
