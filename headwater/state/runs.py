"""Runs: the immutable pieces of an arrangement.

A run is consolidated, and sorted by the hash of its key; rows of one key hash are sorted by the hash of their other columns, so
that equal rows are neighbours, and to merge runs is to walk along them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.delta import uniform
from headwater.state import blocks, consolidation, hashing, loops, merging, sharing, sorting
from headwater.state.blocks import Block, Spliced
from headwater.state.filtering import KeyFilter
from headwater.state.parallel import PIECE, in_pieces
from headwater.state.signposts import Signposts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.errors import DamagedFile
    from headwater.state.blocks import Format

    Key = tuple[int, ...]
    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]


# So many rows, if they are of few bytes, are sorted and merged in one go.
FEW = 256
_FEW_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Consolidated rows, sorted by ``hashes`` (of the key) and then by *ties*, the hashes of the columns not in the key."""

    block: Block
    weights: NDArray[np.int64]
    """If they are many and all the same, one number in memory (an array of stride 0)."""
    hashes: Hashes
    filter: KeyFilter = field(default_factory=KeyFilter, repr=False)
    """Tells which keys are not there."""
    signposts: Signposts = field(default_factory=Signposts, repr=False)
    """Tell where keys are."""

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def file(self) -> str | None:
        """The file that holds it; None if it is in memory only."""
        return None

    def is_hit(self, damage: DamagedFile) -> bool:  # noqa: ARG002
        """Whether it lies in the damaged part of a file."""
        return False

    @property
    def is_uniform(self) -> bool:
        """Whether it is known that all weights are the same."""
        return not self.weights.strides[0]

    @property
    def nbytes(self) -> int:
        weights = self.weights.itemsize if self.is_uniform else self.weights.nbytes
        return int(self.block.nbytes + weights + self.hashes.nbytes + self.filter.nbytes + self.signposts.nbytes)

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return len(self) * int(self.weights[0]) if self.is_uniform else int(self.weights.sum())

    def part(self, start: int, stop: int) -> Run:
        """The rows from one place to another."""
        block = Block(self.block.words[start:stop], tuple(array.slice(start, stop - start) for array in self.block.others))
        return Run(block, self.weights[start:stop], self.hashes[start:stop])

    def weights_at(self, places: Indices) -> NDArray[np.int64]:
        """The weights of some rows; one number, again, if all are the same."""
        return uniform(int(self.weights[0]), len(places)) if self.is_uniform else self.weights[places]

    def takes(self, count: int) -> bool:
        """Whether so many rows are best added to this run: the two are no more work than the new ones alone."""
        return len(self) + count <= FEW and self.block.nbytes <= _FEW_BYTES


def build(made: Format, rows: pa.RecordBatch, weights: NDArray[np.int64], key: Key, onto: Run | None = None) -> Run:
    """A run of these rows, and of those of a run that takes them."""
    if rows.num_rows > PIECE:
        return _build_large(made, rows, weights, key)
    block = sharing.whole(made, rows)
    hashes = hashing.hash_block(made, block, key or made.every)
    if onto is not None:
        block = blocks.concat([onto.block, block])
        weights, hashes = np.concatenate([onto.weights, weights]), np.concatenate([onto.hashes, hashes])
    if len(block) <= FEW:
        others = _ties(made, block, key) if _has_ties(made, key) else hashes
        order, lines, sums, sorted_hashes, merged = loops.consolidated(block.words, _vectors(weights), hashes, others)
        if not (merged and block.others):
            kept = Block(lines, blocks.taken(block.others, order))
            return Run(kept, sums if weights.ndim > 1 else sums.reshape(-1), sorted_hashes)
    ties = partial(_ties, made, block, key) if _has_ties(made, key) else None
    return _consolidated(made, block.take, weights, _sorted(hashes, ties))


def _build_large(made: Format, rows: pa.RecordBatch, weights: NDArray[np.int64], key: Key) -> Run:
    """Many rows are packed when they are in order: so they are copied once."""
    ties = partial(hashing.hash_rows, rows, made.beside(key)) if _has_ties(made, key) else None
    return _consolidated(made, partial(made.pack_at, rows), weights, _sorted(hashing.hash_rows(rows, key or made.every), ties))


def merge(made: Format, runs: Sequence[Run], key: Key) -> Run:
    """One run with the sum of the others, one or more."""
    if len(runs) == 1:
        return runs[0]
    starts = np.cumsum([0, *map(len, runs)])
    hashes = np.concatenate([run.hashes for run in runs])
    weights = np.concatenate([run.weights for run in runs])
    if len(hashes) <= PIECE and not runs[0].block.others:
        words = np.concatenate([run.block.words for run in runs])
        ties = _ties(made, Block(words, ()), key) if _has_ties(made, key) else hashes
        lines, sums, found, told_apart = merging.merged(words, _vectors(weights), hashes, ties, starts)
        if told_apart:
            return Run(Block(lines, ()), sums if weights.ndim > 1 else sums.reshape(-1), found)
    spliced = Spliced([run.block for run in runs], starts)
    return _consolidated(made, spliced.take, weights, _merged(made, spliced, key, hashes))


def _merged(made: Format, runs: Spliced, key: Key, hashes: Hashes) -> Sorted:
    """The rows of several runs, laid end to end, in order."""
    starts = runs.starts
    if not _has_ties(made, key):
        return _in_order(merging.merge_order(hashes, hashes, starts), hashes, hashes)
    order = merging.order_of_hashes(hashes, starts, len(hashes) // 8)
    if not len(order):
        ties = np.concatenate([_ties(made, block, key) for block in runs.blocks])
        return _in_order(merging.merge_order(hashes, ties, starts), hashes, ties)
    hashes = _taken(hashes, order)
    again = merging.with_equals(hashes)
    if not len(again):
        return Sorted(order, hashes, hashes)
    # Only rows of one hash need be told apart; among the others, any ties are as good.
    ties = hashes.copy()
    ties[again] = _ties(made, runs.take(order[again]), key)
    sorting.settled(order, hashes, ties, 0)
    return Sorted(order, hashes, ties)


def _has_ties(made: Format, key: Key) -> bool:
    """Whether rows of one key may differ."""
    return 0 < len(key) < len(made.every)


def _ties(made: Format, block: Block, key: Key) -> Hashes:
    return hashing.hash_block(made, block, made.beside(key))


def _vectors(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return weights.reshape(len(weights), -1)


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Places of rows in the order of their hashes, and ties among equal ones, with both."""

    order: Indices
    hashes: Hashes
    ties: Hashes

    def at(self, places: NDArray[np.bool_] | Indices) -> Sorted:
        hashes = self.hashes[places]
        return Sorted(self.order[places], hashes, hashes if self.ties is self.hashes else self.ties[places])


def _sorted(hashes: Hashes, ties: Callable[[], Hashes] | None) -> Sorted:
    """The rows with these hashes, and the ties that are asked for if a hash comes twice, in order.

    A sort of plain numbers is several times as quick as one of indices, so the index takes the place of the lowest bits of the
    hash; the few neighbours which only those bits would have told apart are put in order afterwards.
    """
    order, bits = sorting.roughly_sorted(hashes), len(hashes).bit_length()
    hashes = _taken(hashes, order)
    found = hashes if ties is None or not sorting.repeated(hashes, bits) else _taken(ties(), order)
    sorting.settled(order, hashes, found, bits)
    return Sorted(order, hashes, found)


def _in_order(order: Indices, hashes: Hashes, ties: Hashes) -> Sorted:
    taken = _taken(hashes, order)
    return Sorted(order, taken, taken if ties is hashes else _taken(ties, order))


def _consolidated(made: Format, take: Callable[[Indices], Block], weights: NDArray[np.int64], rows: Sorted) -> Run:
    """The run of these rows, which `take` gives; the weights are in the order in which the rows came."""
    if not _uniform(weights):
        weights = _taken(weights, rows.order)
    again = loops.alike(rows.hashes, rows.ties)
    if len(again):
        first, weights = _summed(made, take, weights, rows.order, again)
        rows = rows.at(first)
    kept = consolidation.nonzero(weights)
    if np.count_nonzero(kept) < len(kept):
        rows, weights = rows.at(kept), weights[kept]
    if len(weights) > FEW and _uniform(weights):
        weights = np.broadcast_to(weights[:1].copy(), len(weights))
    order, hashes = rows.order, rows.hashes
    # While the rows are copied, memory is scarce.
    del rows, again, kept
    return Run(take(order), weights, hashes)


def _uniform(weights: NDArray[np.int64]) -> bool:
    """Whether all weights are the same number."""
    return weights.ndim == 1 and not np.count_nonzero(weights != weights[:1])


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
    if same.all():
        first = loops.all_but(again, len(order))
        if _uniform(weights):
            return first, np.diff(first, append=len(order)) * weights[0]
        return first, np.add.reduceat(weights, first, axis=0)
    # Equal rows may stand apart among others of their hash and tie.
    starts = np.ones(len(order), np.bool_)
    starts[again] = False
    leaders = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    groups = consolidation.tell_apart(made, take(order), leaders, signed_zeros=True)
    return groups.representatives, consolidation.sum_by(groups.ids, groups.count, weights)
