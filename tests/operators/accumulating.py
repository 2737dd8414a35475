"""Accumulators driven as an aggregate drives them: rows into cells, cells into a state, states to results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.operators.accumulators import Accumulator, Cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

State = dict[tuple[int, int], np.ndarray]
# Slots of others, on both sides, that must neither be touched nor read.
_BEFORE, _BEHIND = 2, 1
_FOREIGN = 77


def cells_of(acc: Accumulator, size: int, groups: Sequence[int], inputs: Sequence[pa.Array], weights: Sequence[int]) -> Cells:
    cells = Cells(size, _BEFORE + acc.width + _BEHIND)
    acc.add(inputs, np.array(weights, np.int64), np.array(groups, np.int64), cells, _BEFORE)
    assert not cells.sums[:, :_BEFORE].any()
    assert not cells.sums[:, _BEFORE + acc.width :].any()
    return cells


def state_of(acc: Accumulator, groups: Sequence[int], inputs: Sequence[pa.Array], weights: Sequence[int]) -> State:
    """The state as an arrangement has it: one vector for each (group, bucket), none that is all zero."""
    cells = cells_of(acc, max(groups, default=0) + 1, groups, inputs, weights)
    keys = zip(cells.groups.tolist(), cells.buckets.tolist(), strict=True)
    vectors = cells.sums[: cells.used, _BEFORE : _BEFORE + acc.width]
    state = dict(zip(keys, vectors, strict=True))
    assert len(state) == cells.used, "a pair of group and bucket has one cell"
    return {key: vector for key, vector in state.items() if vector.any()}


def results(acc: Accumulator, size: int, state: State) -> pa.Array:
    """Of each group: as the only version, and as the second one of two, which must give the same.

    Empty cells in buckets of other functions change nothing.
    """
    cells = Cells(size, _BEFORE + acc.width + _BEHIND)
    keys = np.array([*state, (size - 1, 9_999)], np.int64)
    vectors = np.full((len(keys), cells.sums.shape[1]), _FOREIGN)
    vectors[:, _BEFORE : _BEFORE + acc.width] = 0
    if state:
        vectors[: len(state), _BEFORE : _BEFORE + acc.width] = list(state.values())
    places = cells.place(keys[:, 0], keys[:, 1])
    cells.sums[places] = vectors
    alone = acc.finish(cells.alone(), _BEFORE)
    assert alone.type == acc.type
    alone.validate(full=True)
    assert len(alone) == size
    later = Cells(size, cells.sums.shape[1])
    both = acc.finish(later.before_and_after(later.place(keys[:, 0], keys[:, 1]), vectors), _BEFORE)
    assert repr(both.to_pylist()) == repr(alone.to_pylist() * 2)
    return alone
