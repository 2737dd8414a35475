"""Equal rows found, and merged: the normal form of a delta.

Rows are brought together by their hashes, and rows of one hash are then compared. The trap is to leave the comparison out:
once in about 2⁶⁴/n² times two different rows would be merged, and nobody would ever find out why. Where the comparison fails,
the rows of that one hash are told apart by exact rounds, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.picking import rows_at
from headwater.state import columns, equality, hashing, loops
from headwater.state.layout import kind_of
from headwater.state.parallel import PIECE, in_pieces
from headwater.state.sharing import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.state.blocks import Block, Format

    Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A partition of rows into groups of equal ones."""

    ids: Indices
    """The number of every row's group, 0 … count−1, in the order of their first rows."""
    representatives: Indices
    """The first row of every group."""

    @property
    def count(self) -> int:
        return len(self.representatives)


def group_rows(rows: pa.RecordBatch, chosen: Sequence[int], *, signed_zeros: bool = False) -> Groups:
    """The groups of rows that are equal on the given columns, as keys or, with signed zeros, as rows."""
    count = rows.num_rows
    if count <= 1 or not chosen:
        return Groups(np.zeros(count, np.int64), np.arange(min(count, 1)))
    if count > PIECE and all(kind_of(rows.column(i).type) for i in chosen):
        groups = Groups(*loops.distinct(hashing.hash_rows(rows, chosen)))
        if groups.count == count or _confirmed(rows, chosen, groups, signed_zeros=signed_zeros):
            return groups
    made, block = packed(rows, chosen)
    ids, first = loops.distinct(hashing.hash_block(made, block, made.every))
    if len(first) == count:
        return Groups(ids, first)
    spec = made.exact if signed_zeros else made.spec(made.every)
    if not block.others and loops.agree(block.words, spec, ids, first):
        return Groups(ids, first)
    leaders = first[ids]
    again = np.flatnonzero(leaders != np.arange(count))
    if same_rows(made, block, again, leaders[again], signed_zeros=signed_zeros).all():
        return Groups(ids, first)
    return tell_apart(made, block, leaders, signed_zeros=signed_zeros)


def _confirmed(rows: pa.RecordBatch, chosen: Sequence[int], groups: Groups, *, signed_zeros: bool) -> bool:
    """Whether the rows, of columns of fixed width, are the same as the first ones of their groups.

    They may be many: so they are never all in memory as a block.
    """
    made, leaders = packed(rows_at(rows.select(chosen), groups.representatives), range(len(chosen)))
    spec = made.exact if signed_zeros else made.spec(made.every)
    confirmed = []

    def confirm(start: int, stop: int) -> None:
        piece, block = packed(rows.slice(start, stop - start), chosen)
        asked = piece.exact if signed_zeros else piece.spec(piece.every)
        confirmed.append(loops.all_as_leaders(block.words, asked, groups.ids[start:stop], leaders.words, spec))

    in_pieces(rows.num_rows, confirm)
    return all(confirmed)


def tell_apart(made: Format, block: Block, leaders: Indices, *, signed_zeros: bool) -> Groups:
    """The rare case: different rows of one hash, whose first row leads them. Each round, the leaders take their equals."""
    found = leaders.copy()
    pending = np.arange(len(leaders))
    while len(pending):
        _, first, inverse = np.unique(leaders[pending], return_index=True, return_inverse=True)
        leader = pending[first][inverse]
        same = same_rows(made, block, pending, leader, signed_zeros=signed_zeros)
        found[pending[same]] = leader[same]
        pending = pending[~same]
    representatives, ids = np.unique(found, return_inverse=True)
    return Groups(ids, representatives)


def same_rows(made: Format, block: Block, left: Indices, right: Indices, *, signed_zeros: bool) -> NDArray[np.bool_]:
    """Whether the rows left[i] and right[i] of a block are the same, as keys or, with signed zeros, as rows."""
    same = loops.same_keys(block.words, made.exact if signed_zeros else made.spec(made.every), left, right)
    if block.others:
        a, b = (columns.batch([columns.take(array, pa.array(at)) for array in block.others]) for at in (left, right))
        every = range(len(block.others))
        same &= equality.equal_rows(a, every, b, every, signed_zeros=signed_zeros)
    return same


def sum_by(ids: Indices, count: int, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The weights — numbers or vectors — summed for each of `count` groups, exactly (modulo 2⁶⁴)."""
    sums = np.zeros((count, *weights.shape[1:]), np.int64)
    if weights.ndim == 1:
        loops.add_at(sums, ids, np.ascontiguousarray(weights))
    else:
        loops.add_lines_at(sums, ids, weights)
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
            return Delta(rows_at(delta.rows, groups.representatives[kept]), weights[kept])
    return delta.where(nonzero(delta.weights))
