"""Least and greatest values of groups from a buffer of the best ones, where the rows of groups are not kept.

    buffer(g)  =  the rows of g with its first values in the order, none left out up to the last of them
    new        =  the first of buffer(g) + ΔR                   a change beyond the last of them cannot matter

With each group stands the number of all its values: while the buffer has as many, it has all. A buffer that deletions have
emptied, though the group has values left, is filled again from the rows: whoever has these is asked for them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.delta import Delta
from headwater.operators.extremes import Best, Extreme, counted
from headwater.operators.operator import Exhausted
from headwater.operators.ordering import column_ranks
from headwater.picking import picked, picked_or_null, rows_at
from headwater.state import slicing
from headwater.state.consolidation import group_rows, sum_by
from headwater.state.slicing import bounds_of_slices, counts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.state.arrangement import Arrangement

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]


def buffered(  # noqa: PLR0913  (all of one computation)
    extreme: Extreme,
    old: Best,
    buffer: Arrangement,
    *,
    delta: Delta,
    ids: Int64s,
    keys: pa.RecordBatch,
    after: Arrangement | None,
) -> tuple[Best, Arrangement]:
    """The extreme of each group and how many values it has after the delta, whose rows are of the groups `ids`; and the buffer.

    `after` are all rows by their groups, if they are at hand: without them, an empty buffer raises `Exhausted`.
    """
    size, width = keys.num_rows, keys.num_columns
    held = buffer.lookup(keys, range(width)).consolidated()
    weights = counted(extreme, delta.rows, delta.weights)
    totals = old.counts + sum_by(ids, size, weights)
    changed = delta.rows.column(extreme.column)
    values = pa.concat_arrays([held.rows.column(width), changed])
    ranks = column_ranks(values, descending=extreme.greatest, nulls_first=False)
    of_held = len(held.weights)
    complete = sum_by(held.probe, size, held.weights) == old.counts
    last, filled = _last(ranks[:of_held], held.probe, size)
    concerns = complete[ids] | (filled[ids] & (ranks[of_held:] <= last[ids]))
    reaching = np.flatnonzero((weights != 0) & concerns)
    rows = np.concatenate([np.arange(of_held), of_held + reaching])
    groups, amounts = np.concatenate([held.probe, ids[reaching]]), np.concatenate([held.weights, weights[reaching]])
    if pa.types.is_floating(values.type):
        # −0.0 and 0.0 are equal, but one may go while the other stays.
        exact = pa.RecordBatch.from_arrays([pa.array(groups), values.take(pa.array(rows))], ["c0", "c1"])
        same = group_rows(exact, (0, 1), signed_zeros=True)
        rows, groups = rows[same.representatives], groups[same.representatives]
        amounts = sum_by(same.ids, same.count, amounts)
    order = np.lexsort((ranks[rows], groups))
    rows, groups, amounts = rows[order], groups[order], amounts[order]
    place, counts, best = _placed(groups, ranks[rows], amounts, size)
    most = extreme.best or 0
    dropped = np.flatnonzero((place >= most) & (counts > 2 * most)[groups])
    empty = (best < 0) & (totals > 0)
    change = [(values.take(pa.array(of_held + reaching)), ids[reaching], weights[reaching])]
    change.append((values.take(pa.array(rows[dropped])), groups[dropped], -amounts[dropped]))
    places = np.where(best >= 0, rows[best], -1) if len(rows) else best
    (new,) = picked_or_null([values], places)
    if empty.any():
        if after is None:
            raise Exhausted
        again = np.flatnonzero(empty)
        counts = counts_of(after, rows_at(keys, again), range(width))
        for start, stop in pairwise(bounds_of_slices(counts, slicing.PAIRS)):
            new, more = _refilled(extreme, again[start:stop], new, keys, after)
            change.append(more)
    return Best(new, totals), buffer.insert(_rows(buffer, keys, change))


def _rows(buffer: Arrangement, keys: pa.RecordBatch, parts: list[tuple[pa.Array, Int64s, Int64s]]) -> Delta:
    """Values of groups, with weights, as rows of a buffer."""
    values = pa.concat_arrays([part[0] for part in parts])
    owners, weights = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    rows = pa.RecordBatch.from_arrays([*picked(keys.columns, owners), values], schema=buffer.schema)
    return Delta(rows, weights).where(weights != 0)


def _refilled(
    extreme: Extreme, again: Int64s, new: pa.Array, keys: pa.RecordBatch, after: Arrangement
) -> tuple[pa.Array, tuple[pa.Array, Int64s, Int64s]]:
    """The extremes with those of the groups `again` found among all rows, and what their buffers get."""
    found = after.lookup(keys.take(pa.array(again)), range(keys.num_columns)).consolidated()
    weights = counted(extreme, found.rows, found.weights)
    values = found.rows.column(extreme.column)
    ranks = column_ranks(values, descending=extreme.greatest, nulls_first=False)
    order = np.lexsort((ranks, found.probe))
    places, _, best = _placed(found.probe[order], ranks[order], weights[order], len(again))
    chosen = order[places < (extreme.best or 0)]
    place = np.arange(len(new))
    place[again] = len(new) + order[best]
    merged = pa.concat_arrays([new, values]).take(pa.array(place))
    return merged, (values.take(pa.array(chosen)), again[found.probe[chosen]], weights[chosen])


@compiled
def _last(ranks: Int64s, owners: Int64s, size: int) -> tuple[Int64s, Bools]:
    """The greatest of the ranks of each group, and which groups have any."""
    last = np.full(size, np.iinfo(np.int64).min)
    filled = np.zeros(size, np.bool_)
    for i in range(owners.size):
        g = owners[i]
        last[g] = max(last[g], ranks[i])
        filled[g] = True
    return last, filled


@compiled
def _placed(groups: Int64s, ranks: Int64s, weights: Int64s, size: int) -> tuple[Int64s, Int64s, Int64s]:
    """Of rows sorted by group and rank: how many values of its group come before each; and of each group how many it has.

    Equal values count together, and not at all if their weights are none in sum. And the first row of each group that is there,
    −1 if there is none.
    """
    place = np.empty(groups.size, np.int64)
    counts = np.zeros(size, np.int64)
    best = np.full(size, -1, np.int64)
    i = 0
    while i < groups.size:
        first, g, total, there = i, groups[i], 0, -1
        while i < groups.size and groups[i] == g and ranks[i] == ranks[first]:
            place[i] = counts[g]
            total += weights[i]
            if weights[i] > 0 and there < 0:
                there = i
            i += 1
        if total > 0:
            if counts[g] == 0:
                best[g] = there
            counts[g] += 1
    return place, counts, best
