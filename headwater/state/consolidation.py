"""Equal rows found, and merged: the normal form of a delta.

Rows are brought together by sorting their hashes, and neighbours of one hash are then compared as rows. The trap is to leave
the comparison out: once in about 2⁶⁴/n² times two different rows would be merged, and nobody would ever find out why.
Where the comparison fails, the rows of that one hash are told apart by exact rounds, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.state import equality, hashing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A partition of rows into groups of equal ones."""

    ids: Indices
    """The number of every row's group, 0 … count−1."""
    representatives: Indices
    """The first row of every group."""

    @property
    def count(self) -> int:
        return len(self.representatives)


def group_rows(rows: pa.RecordBatch, columns: Sequence[int], *, signed_zeros: bool = False) -> Groups:
    """The groups of rows that are equal on the given columns, as keys or, with signed zeros, as rows."""
    count = rows.num_rows
    if count <= 1 or not columns:
        return Groups(np.zeros(count, np.int64), np.arange(min(count, 1)))
    hashes = hashing.hash_rows(rows, columns)
    order = np.argsort(hashes)
    ordered = hashes[order]
    groups = segment(rows, columns, order, ordered[1:] == ordered[:-1], signed_zeros=signed_zeros)
    ids = np.empty(count, np.int64)
    ids[order] = groups.ids
    return Groups(ids, first_of(ids, groups.count))


def segment(
    rows: pa.RecordBatch, columns: Sequence[int], order: Indices, alike: NDArray[np.bool_], *, signed_zeros: bool
) -> Groups:
    """The groups of the rows as they stand in the given order, where ``alike[i]`` says that its rows i and i+1 have one hash.

    The numbers in the result are places in that order. The representatives ascend, whether hashes collide or not.
    """
    starts = np.ones(len(order), np.bool_)
    starts[1:] = ~alike
    ties = np.flatnonzero(alike)
    ids = np.cumsum(starts) - 1
    representatives = np.flatnonzero(starts)
    if len(ties):
        same = _equal_at(rows, columns, order[ties], order[ties + 1], signed_zeros=signed_zeros)
        if not same.all():
            mixed = np.isin(ids, ids[ties[~same]])
            pending = np.flatnonzero(mixed)
            return _tell_apart(rows, columns, order, representatives[ids], pending, signed_zeros=signed_zeros)
    return Groups(ids, representatives)


def _tell_apart(  # noqa: PLR0913  (all of one computation)
    rows: pa.RecordBatch,
    columns: Sequence[int],
    order: Indices,
    segments: Indices,
    pending: Indices,
    *,
    signed_zeros: bool,
) -> Groups:
    """The rare case: rows of one hash that differ, in the segments (named by their first places) of the pending places.

    Each round, the first pending row of every segment takes its equals.
    """
    leaders = segments.copy()
    while len(pending):
        _, first, inverse = np.unique(segments[pending], return_index=True, return_inverse=True)
        leader = pending[first][inverse]
        same = _equal_at(rows, columns, order[pending], order[leader], signed_zeros=signed_zeros)
        leaders[pending[same]] = leader[same]
        pending = pending[~same]
    representatives, ids = np.unique(leaders, return_inverse=True)
    return Groups(ids, representatives)


def first_of(ids: Indices, count: int) -> Indices:
    """The first place at which each group number stands."""
    first = np.full(count, len(ids))
    np.minimum.at(first, ids, np.arange(len(ids)))
    return first


def _equal_at(
    rows: pa.RecordBatch, columns: Sequence[int], left: Indices, right: Indices, *, signed_zeros: bool
) -> NDArray[np.bool_]:
    compared = rows.select(list(columns))
    every = range(len(columns))
    first, second = compared.take(pa.array(left)), compared.take(pa.array(right))
    return equality.equal_rows(first, every, second, every, signed_zeros=signed_zeros)


def sum_by(ids: Indices, count: int, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The weights — numbers or vectors — summed for each of `count` groups, exactly (modulo 2⁶⁴)."""
    sums = np.zeros((count, *weights.shape[1:]), np.int64)
    if weights.ndim == 1:
        np.add.at(sums, ids, weights)
    else:
        for column in range(weights.shape[1]):
            np.add.at(sums[:, column], ids, weights[:, column])
    return sums


def nonzero(weights: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which weights are not zero, or not the zero vector."""
    mask = weights != 0
    return mask if mask.ndim == 1 else np.asarray(mask.any(axis=1))


def consolidate(delta: Delta) -> Delta:
    """The same change with equal rows merged and zeros gone; the rows keep the order of their first appearance.

    Example: rows ``a, b, a`` with weights ``1, 2, −1`` become ``b`` with weight 2.
    """
    if len(delta) > 1:
        groups = group_rows(delta.rows, range(delta.rows.num_columns), signed_zeros=True)
        if groups.count < len(delta):
            weights = sum_by(groups.ids, groups.count, delta.weights)
            kept = np.flatnonzero(nonzero(weights))
            kept = kept[np.argsort(groups.representatives[kept])]
            return Delta(delta.rows.take(pa.array(groups.representatives[kept])), weights[kept])
    return delta.where(nonzero(delta.weights))
