"""Runs: the immutable pieces of an arrangement.

A run is consolidated, and sorted by the hash of its key; rows of one key hash are sorted by the hash of their other columns, so
that equal rows are neighbours, and to merge runs is to walk along them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.state import blocks, consolidation, hashing, loops
from headwater.state.parallel import PIECE, in_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.state.blocks import Block, Format

    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Consolidated rows, sorted by ``hashes`` (of the key) and then by ``ties`` (of the columns which are not the key)."""

    block: Block
    weights: NDArray[np.int64]
    hashes: Hashes
    ties: Hashes

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def file(self) -> str | None:
        """The file that holds it; None if it is in memory only."""
        return None

    @property
    def nbytes(self) -> int:
        hashes = self.hashes.nbytes if self.ties is self.hashes else self.hashes.nbytes + self.ties.nbytes
        return int(self.block.nbytes + self.weights.nbytes + hashes)


def build(made: Format, rows: pa.RecordBatch, weights: NDArray[np.int64], key: Sequence[int]) -> Run:
    """A run of these rows."""
    others = [i for i in made.every if i not in key]
    if rows.num_rows <= PIECE:
        block = made.pack(rows)
        hashes = hashing.hash_block(made, block, key or others)
        ties = hashing.hash_block(made, block, others) if key and others else hashes
        return _consolidated(made, block.take, weights, _sorted(hashes, ties))
    # Many rows are packed when they are in order: so they are copied once.
    hashes = hashing.hash_rows(rows, key or others)
    ties = hashing.hash_rows(rows, others) if key and others else hashes
    return _consolidated(made, lambda at: made.pack_at(rows, at), weights, _sorted(hashes, ties))


def merge(made: Format, runs: Sequence[Run]) -> Run:
    """One run with the sum of the others, one or more."""
    if len(runs) == 1:
        return runs[0]
    hashes = np.concatenate([run.hashes for run in runs])
    single = runs[0].ties is runs[0].hashes
    ties = hashes if single else np.concatenate([run.ties for run in runs])
    starts = np.cumsum([0, *map(len, runs)])
    order = loops.merge_order(hashes, ties, starts)
    hashes = _taken(hashes, order)
    ties = hashes if single else _taken(ties, order)
    weights = np.concatenate([run.weights for run in runs])
    parts = [run.block for run in runs]
    return _consolidated(made, lambda at: blocks.spliced(parts, starts, at), weights, Sorted(order, hashes, ties))


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Places of rows in the order of their hashes, and ties among equal ones, with both."""

    order: Indices
    hashes: Hashes
    ties: Hashes

    def at(self, places: NDArray[np.bool_] | Indices) -> Sorted:
        hashes = self.hashes[places]
        return Sorted(self.order[places], hashes, hashes if self.ties is self.hashes else self.ties[places])


def _sorted(hashes: Hashes, ties: Hashes) -> Sorted:
    """The rows with these hashes and ties in order.

    A sort of plain numbers is several times as quick as one of indices, so the index takes the place of the lowest bits of the
    hash; the few neighbours which only those bits would have told apart are put in order afterwards.
    """
    single = ties is hashes
    count = len(hashes)
    if count <= loops.SHORT:
        order, hashes, ties = loops.sorted_few(hashes, ties)
        return Sorted(order, hashes, hashes if single else ties)
    order = roughly_sorted(hashes)
    hashes, ties = _taken(hashes, order), _taken(ties, order)
    loops.settle(order, hashes, ties, count.bit_length())
    return Sorted(order, hashes, hashes if single else ties)


def roughly_sorted(hashes: Hashes) -> Indices:
    """The order in which hashes ascend but for their lowest bits, as many as the number of hashes has."""
    bits = len(hashes).bit_length()
    numbers = loops.numbered(hashes, bits)
    numbers.sort()
    numbers &= np.uint64((1 << bits) - 1)
    return numbers.view(np.int64)


def _consolidated(made: Format, take: Callable[[Indices], Block], weights: NDArray[np.int64], rows: Sorted) -> Run:
    """The run of these rows, which `take` gives; the weights are in the order in which the rows came."""
    if weights.ndim > 1 or (weights != weights[:1]).any():
        weights = _taken(weights, rows.order)
    again = loops.alike(rows.hashes, rows.ties)
    if len(again):
        first, weights = _summed(made, take, weights, rows.order, again)
        rows = rows.at(first)
    kept = consolidation.nonzero(weights)
    if not kept.all():
        rows, weights = rows.at(kept), weights[kept]
    return Run(take(rows.order), weights, rows.hashes, rows.ties)


def _taken(values: NDArray[Any], indices: Indices) -> NDArray[Any]:
    """The values at the indices, on all cores if they are many."""
    if len(indices) <= PIECE:
        return values.take(indices, axis=0)
    found = np.empty((len(indices), *values.shape[1:]), values.dtype)
    in_pieces(len(indices), lambda start, stop: values.take(indices[start:stop], axis=0, out=found[start:stop], mode="clip"))
    return found


def _summed(
    made: Format, take: Callable[[Indices], Block], weights: NDArray[np.int64], order: Indices, again: Indices
) -> tuple[Indices, NDArray[np.int64]]:
    """The places of different rows, and the sums of their weights; at the places `again`, rows may be those before them."""
    pairs = take(np.concatenate([order[again], order[again - 1]]))
    here = np.arange(len(again))
    same = consolidation.same_rows(made, pairs, here, here + len(again), signed_zeros=True)
    starts = np.ones(len(order), np.bool_)
    starts[again] = ~same
    first = np.flatnonzero(starts)
    if same.all():
        return first, np.add.reduceat(weights, first, axis=0)
    # Equal rows may stand apart among others of their hash and tie.
    starts[again] = False
    leaders = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    groups = consolidation.tell_apart(made, take(order), leaders, signed_zeros=True)
    return groups.representatives, consolidation.sum_by(groups.ids, groups.count, weights)
