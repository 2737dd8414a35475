"""The compiled loops that make several runs one: a walk along all of them at once.

Runs ascend by the hash of their key. Where hashes are equal, they ascend by *ties*, the hashes of the other columns; most
merges never meet two equal hashes, so ties are asked for only if they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.compiled import compiled
from headwater.state.loops import same_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Words = NDArray[np.uint64]


@compiled
def _precedes(hashes: Hashes, ties: Hashes, i: int, j: int) -> bool:
    """Whether line i comes before line j."""
    return bool(hashes[i] < hashes[j] or (hashes[i] == hashes[j] and ties[i] < ties[j]))


@compiled
def merge_order(hashes: Hashes, ties: Hashes, starts: Indices) -> Indices:
    """The order in which hashes, and ties among them, ascend; they already do from each start to the next."""
    heads = starts[:-1].copy()
    order = np.empty(hashes.size, np.int64)
    for k in range(order.size):
        best = -1
        for r in range(heads.size):
            at = heads[r]
            if at == starts[r + 1]:
                continue
            if best < 0 or _precedes(hashes, ties, at, best):
                best = at
                run = r
        order[k] = best
        heads[run] += 1
    return order


@compiled
def order_of_hashes(hashes: Hashes, starts: Indices, most: int) -> Indices:
    """The same by the hashes alone; nothing if more than so many rows have the hash of another one."""
    heads = starts[:-1].copy()
    order = np.empty(hashes.size, np.int64)
    again = 0
    for k in range(order.size):
        best = -1
        for r in range(heads.size):
            at = heads[r]
            if at < starts[r + 1] and (best < 0 or hashes[at] < hashes[best]):
                best = at
                run = r
        order[k] = best
        heads[run] += 1
        again += k > 0 and hashes[order[k - 1]] == hashes[best]
        if again > most:
            return order[:0]
    return order


@compiled
def with_equals(hashes: Hashes) -> Indices:
    """The places of ascending hashes that are there more than once."""
    places = np.empty(hashes.size, np.int64)
    found = 0
    for i in range(hashes.size):
        if (i and hashes[i - 1] == hashes[i]) or (i + 1 < hashes.size and hashes[i + 1] == hashes[i]):
            places[found] = i
            found += 1
    return places[:found].copy()


@compiled
def _is_something(sums: Indices, at: int) -> bool:
    found = False
    for c in range(sums.shape[1]):
        found |= sums[at, c] != 0
    return found


@compiled
def merged(
    words: Words, weights: Indices, hashes: Hashes, ties: Hashes, starts: Indices
) -> tuple[Words, Indices, Hashes, bool]:
    """The lines of runs laid end to end, with equal ones merged and zeros gone.

    Lines, weights (vectors) and hashes; and whether that is the answer: not if different lines have one hash and tie.
    """
    heads = starts[:-1].copy()
    lines, sums, found = np.empty_like(words), np.empty_like(weights), np.empty_like(hashes)
    kept, last = 0, -1
    for _ in range(hashes.size):
        best = -1
        for r in range(heads.size):
            at = heads[r]
            if at < starts[r + 1] and (best < 0 or _precedes(hashes, ties, at, best)):
                best = at
                run = r
        heads[run] += 1
        if last >= 0 and hashes[last] == hashes[best] and ties[last] == ties[best]:
            if not same_line(words, last, words, best):
                return lines[:0], sums[:0], found[:0], False
            for c in range(weights.shape[1]):
                sums[kept, c] += weights[best, c]
            continue
        kept += last >= 0 and _is_something(sums, kept)
        for c in range(words.shape[1]):
            lines[kept, c] = words[best, c]
        for c in range(weights.shape[1]):
            sums[kept, c] = weights[best, c]
        found[kept] = hashes[best]
        last = best
    kept += last >= 0 and _is_something(sums, kept)
    if 2 * kept > hashes.size:
        return lines[:kept], sums[:kept], found[:kept], True
    return lines[:kept].copy(), sums[:kept].copy(), found[:kept].copy(), True
