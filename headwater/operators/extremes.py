"""Least and greatest values of groups.

They cannot be un-merged: each group keeps its present one, with the number of rows that have it, and only when the last of
these is deleted is the group looked through again.

    new  =  best(old, values that come)              where rows that have it remain
         =  best(all values of the group now)        elsewhere
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import chosen, present
from headwater.operators.ordering import column_ranks
from headwater.picking import picked, picked_or_null
from headwater.state.slicing import lookup_slices

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
    counted: bool = field(default=False, metadata={"later": True})
    """Whether the number of rows that have it is kept; else there is one for certain."""
    best: int | None = field(default=None, metadata={"later": True})
    """If so many of the best values are kept instead of all rows: see `buffers`. What is counted then are all values."""


@dataclass(frozen=True, slots=True)
class Best:
    """The extreme of each group, NULL if it has none, and how many rows have it, at least."""

    values: pa.Array
    counts: Int64s


def renewed(  # noqa: PLR0913  (all of one computation)
    extreme: Extreme, old: Best, *, delta: Delta, ids: Int64s, keys: pa.RecordBatch, after: Arrangement
) -> Best:
    """The extreme of each group after the delta, whose rows are of the groups `ids`; `keys` are the groups' own."""
    size = len(old.values)
    weights = counted(extreme, delta.rows, delta.weights)
    candidates = pa.concat_arrays([old.values, delta.rows.column(extreme.column)])
    ranks = column_ranks(candidates, descending=extreme.greatest, nulls_first=False)
    held = present([old.values], np.ones(size, np.int64)) != 0
    place, counts, losing = _merge(ranks, held, _known(old), weights, ids)
    (new,) = picked_or_null([candidates], place)
    if np.count_nonzero(losing):
        again = np.flatnonzero(losing)
        place = np.arange(size)
        place[again] = size + np.arange(len(again))
        found = _rescanned(extreme, keys.take(pa.array(again)), after)
        new = pa.concat_arrays([new, found.values]).take(pa.array(place))
        counts[again] = found.counts
    return Best(new, counts)


def _known(old: Best) -> Int64s:
    """How many rows have the very value; −1 where they may have another one that is equal, as −0.0 and 0.0 are."""
    kind = old.values.type
    if pa.types.is_floating(kind):
        return np.where(pc.fill_null(pc.equal(old.values, 0.0), fill_value=False), -1, old.counts)
    return np.full(len(old.counts), -1) if pa.types.is_nested(kind) else old.counts


def _rescanned(extreme: Extreme, keys: pa.RecordBatch, after: Arrangement) -> Best:
    """The best of all rows of groups: of slices of them first, then of these."""
    values, owners, counts = [pa.nulls(0, extreme.type)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for found in lookup_slices(after, keys, range(keys.num_columns)):
        weights = counted(extreme, found.rows, found.weights)
        place, amounts = _best_of(extreme, found.rows.column(extreme.column), weights, found.probe, keys.num_rows)
        there = np.flatnonzero(place >= 0)
        values += picked([found.rows.column(extreme.column)], place[there])
        owners.append(there)
        counts.append(amounts[there])
    candidates = pa.concat_arrays(values)
    place, amounts = _best_of(extreme, candidates, np.concatenate(counts), np.concatenate(owners), keys.num_rows)
    return Best(picked_or_null([candidates], place)[0], amounts)


def _best_of(extreme: Extreme, values: pa.Array, weights: Int64s, ids: Int64s, size: int) -> tuple[Int64s, Int64s]:
    ranks = column_ranks(values, descending=extreme.greatest, nulls_first=False)
    place, counts = _best(ranks, weights, ids, size)
    return place, counts


def counted(extreme: Extreme, rows: pa.RecordBatch, weights: Int64s) -> Int64s:
    """The weights, 0 where there is no value or it does not count."""
    if extreme.condition is not None:
        weights = chosen(rows.column(extreme.condition), weights)
    return np.ascontiguousarray(present([rows.column(extreme.column)], weights))


@compiled
def _merge(ranks: Int64s, held: Bools, known: Int64s, weights: Int64s, ids: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Which of the candidates — one for each group, then those of the rows — is the best of each group, −1 if none is.

    And how many rows have it, given how many are `known` to have the one held, and which groups may have lost all of these;
    where that is −1, one that goes may have been the last.
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
        losing[g] |= weights[i] < 0 and (not held[g] or (known[g] < 0 and ranks[size + i] <= ranks[g]))
    counts = np.zeros(size, np.int64)
    for g in range(size):
        if held[g] and best[g] == g:
            counts[g] = max(known[g], 1)
    for i in range(len(ids)):
        g = ids[i]
        if best[g] >= 0 and ranks[size + i] == ranks[best[g]]:
            counts[g] += weights[i]
    for g in range(size):
        losing[g] |= best[g] >= 0 and counts[g] <= 0
    return best, counts, losing


@compiled
def _best(ranks: Int64s, weights: Int64s, ids: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """Which row is the best of each group, −1 if it has none, and the weight of all that are as good."""
    best = np.full(size, -1, np.int64)
    counts = np.zeros(size, np.int64)
    for i in range(len(ids)):
        g = ids[i]
        if weights[i] > 0:
            if best[g] < 0 or ranks[i] < ranks[best[g]]:
                best[g], counts[g] = i, 0
            if ranks[i] == ranks[best[g]]:
                counts[g] += weights[i]
    return best, counts
