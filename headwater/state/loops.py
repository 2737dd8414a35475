"""The compiled loops of the state layer: lines are hashed, copied, compared and summed up.

How lines are put in order is in `sorting`, how they are found in runs in `searching`, how runs become one in `merging`.

Columns are told to a loop by a *spec*, a line each: first word, number of words, NULL bit, whether it is a float (`blocks`).
Half a word counts as LOW or HIGH; its value is that of the whole word which it would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import uint64

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Words = NDArray[np.uint64]
    Spec = NDArray[np.int64]
    Mask = NDArray[np.bool_]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LENGTH = np.uint64(0xD6E8FEB86659FD93)
NULL = np.uint64(0x2545F4914F6CDD1D)
_NEGATIVE_ZERO = np.uint64(1 << 63)
LOW, HIGH = -1, -2


@compiled
def mix(word: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: a bijection of 64 bits which no sum or product survives."""
    word ^= word >> uint64(30)
    word *= uint64(0xBF58476D1CE4E5B9)
    word ^= word >> uint64(27)
    word *= uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@compiled
def value(words: Words, i: int, at: int, size: int) -> np.uint64:
    """What stands in a line's word, or in half of it."""
    word = words[i, at]
    if size == LOW:
        return np.uint64(np.int64(word << uint64(32)) >> np.int64(32))
    if size == HIGH:
        return np.uint64(np.int64(word) >> np.int64(32))
    return word


# -- hashing


@compiled
def hash_words(words: Words, spec: Spec, total: Hashes) -> None:
    """Hash := mix(hash + column) over the columns of the spec, for every line, into `total`."""
    for i in range(total.size):
        h = total[i]
        for c in range(spec.shape[0]):
            flag = spec[c, 2]
            if (words[i, flag >> 6] >> uint64(flag & 63)) & uint64(1):
                part = NULL
            else:
                part = value(words, i, spec[c, 0], spec[c, 1])
                if spec[c, 3] and part == _NEGATIVE_ZERO:
                    part = uint64(0)
                if spec[c, 1] == 2:
                    part = mix(part + GOLDEN) + words[i, spec[c, 0] + 1]
            h = mix(h + part)
        total[i] = h


@compiled
def combine(total: Hashes, parts: Hashes) -> None:
    """Hash := mix(hash + part)."""
    for i in range(total.size):
        total[i] = mix(total[i] + parts[i])


@compiled
def hash_bytes(data: NDArray[np.uint8], offsets: Indices, found: Hashes) -> None:
    """Σ mix(word ⊕ (position+1)·γ) + length·γ', mixed, over the 8-byte words of every string; the last may be shorter."""
    for i in range(found.size):
        start, length = offsets[i], offsets[i + 1] - offsets[i]
        total = uint64(0)
        position = uint64(0)
        at = start
        end = start + length
        while at < end:
            word = uint64(0)
            for k in range(min(8, end - at)):
                word |= uint64(data[at + k]) << uint64(8 * k)
            position += uint64(1)
            total += mix(word ^ (position * GOLDEN))
            at += 8
        found[i] = mix(total + uint64(length) * LENGTH)


@compiled
def fold(elements: Hashes, lengths: Indices, found: Hashes) -> None:
    """The same over the consecutive elements of lists."""
    at = 0
    for i in range(found.size):
        total = uint64(0)
        for k in range(lengths[i]):
            total += mix(elements[at] ^ (uint64(k + 1) * GOLDEN))
            at += 1
        found[i] = mix(total + uint64(lengths[i]) * LENGTH)


# -- copying


@compiled
def gather(words: Words, indices: Indices, into: Words) -> None:
    """The lines at the indices."""
    for i in range(indices.size):
        for c in range(words.shape[1]):
            into[i, c] = words[indices[i], c]


@compiled
def gather_some(words: Words, indices: Indices, columns: Indices, into: Words) -> None:
    """Some words of the lines at the indices."""
    for i in range(indices.size):
        for c in range(columns.size):
            into[i, c] = words[indices[i], columns[c]]


@compiled
def gather_from(words: Words, start: int, indices: Indices, into: Words) -> None:
    """Those of the lines at the indices that are here, if the first line has the index `start`."""
    for i in range(indices.size):
        line = indices[i] - start
        if 0 <= line < words.shape[0]:
            for c in range(words.shape[1]):
                into[i, c] = words[line, c]


# -- comparing


@compiled
def same_key(a: Words, i: int, spec_a: Spec, b: Words, j: int, spec_b: Spec) -> bool:
    """Whether line i of one is the same as line j of the other, each on the columns of its spec."""
    for c in range(spec_a.shape[0]):
        flag_a, flag_b = spec_a[c, 2], spec_b[c, 2]
        null_a = (a[i, flag_a >> 6] >> uint64(flag_a & 63)) & uint64(1)
        null_b = (b[j, flag_b >> 6] >> uint64(flag_b & 63)) & uint64(1)
        if null_a != null_b:
            return False
        at, bt = spec_a[c, 0], spec_b[c, 0]
        x, y = value(a, i, at, spec_a[c, 1]), value(b, j, bt, spec_b[c, 1])
        if x != y and not (spec_a[c, 3] and (x << uint64(1)) == uint64(0) and (y << uint64(1)) == uint64(0)):
            return False
        if spec_a[c, 1] == 2 and a[i, at + 1] != b[j, bt + 1]:
            return False
    return True


@compiled
def same_line(a: Words, i: int, b: Words, j: int) -> bool:
    """Whether line i of one is the same, word by word, as line j of the other."""
    same = True
    for c in range(a.shape[1]):
        same &= a[i, c] == b[j, c]
    return same


@compiled
def same_keys(words: Words, spec: Spec, left: Indices, right: Indices) -> Mask:
    """Whether the lines left[i] and right[i] are the same on the columns of the spec."""
    same = np.empty(left.size, np.bool_)
    for i in range(left.size):
        same[i] = same_key(words, left[i], spec, words, right[i], spec)
    return same


@compiled
def agree(words: Words, spec: Spec, ids: Indices, first: Indices) -> bool:
    """Whether each line is the same, on the columns of the spec, as the first one of its number."""
    for i in range(ids.size):
        leader = first[ids[i]]
        if leader != i and not same_key(words, i, spec, words, leader, spec):
            return False
    return True


@compiled
def all_as_leaders(words: Words, spec: Spec, ids: Indices, leaders: Words, leaders_spec: Spec) -> bool:
    """Whether each line is the same, on the columns of the spec, as the line of its number among the leaders."""
    same = True
    for i in range(ids.size):
        same &= same_key(words, i, spec, leaders, ids[i], leaders_spec)
    return same


@compiled
def distinct(hashes: Hashes) -> tuple[Indices, Indices]:
    """The number of each hash among the different ones, in the order of their first appearance, and where that is.

    The numbers take the place of the hashes, which are gone.
    """
    ids = hashes.view(np.int64)
    first, different = np.empty(1024, np.int64), np.empty(1024, np.uint64)
    size = 2048
    known, numbers = np.empty(size, np.uint64), np.full(size, -1, np.int64)
    found = 0
    for i in range(hashes.size):
        h = hashes[i]
        slot = np.int64(h & uint64(size - 1))
        while numbers[slot] >= 0 and known[slot] != h:
            slot = (slot + 1) & (size - 1)
        if numbers[slot] < 0:
            known[slot], numbers[slot], first[found], different[found] = h, found, i, h
            ids[i] = found
            found += 1
            if found == first.size:
                # The table is half full: a larger one, with all that is known.
                size *= 4
                longer, more = np.empty(size // 2, np.int64), np.empty(size // 2, np.uint64)
                longer[:found], more[:found] = first, different
                first, different = longer, more
                known, numbers = np.empty(size, np.uint64), np.full(size, -1, np.int64)
                for k in range(found):
                    slot = np.int64(different[k] & uint64(size - 1))
                    while numbers[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    known[slot], numbers[slot] = different[k], k
        else:
            ids[i] = numbers[slot]
    return ids, first[:found].copy()


# -- consolidating


@compiled
def alike(hashes: Hashes, ties: Hashes) -> Indices:
    """The places whose hash and tie are those of the place before."""
    count = 0
    for i in range(1, hashes.size):
        count += hashes[i] == hashes[i - 1] and ties[i] == ties[i - 1]
    found = np.empty(count, np.int64)
    count = 0
    for i in range(1, hashes.size):
        if hashes[i] == hashes[i - 1] and ties[i] == ties[i - 1]:
            found[count] = i
            count += 1
    return found


@compiled
def all_but(places: Indices, count: int) -> Indices:
    """The places below `count` that are not among these, which ascend."""
    found = np.empty(count - places.size, np.int64)
    taken = 0
    for i in range(count):
        if taken < places.size and places[taken] == i:
            taken += 1
        else:
            found[i - taken] = i
    return found


@compiled
def _compared(words: Words, hashes: Hashes, ties: Hashes, i: int, j: int) -> int:
    """Whether row i comes after row j (1), before it (−1), or is the same (0), by hash, tie and then words."""
    if hashes[i] != hashes[j]:
        return 1 if hashes[i] > hashes[j] else -1
    if ties[i] != ties[j]:
        return 1 if ties[i] > ties[j] else -1
    for c in range(words.shape[1]):
        if words[i, c] != words[j, c]:
            return 1 if words[i, c] > words[j, c] else -1
    return 0


@compiled
def consolidated(words: Words, weights: Indices, hashes: Hashes, ties: Hashes) -> tuple[Indices, Words, Indices, Hashes, bool]:
    """Few rows in order, those of the same words as one with the sum of their weights (vectors), zeros gone.

    The places of the rows kept, their lines, weights and hashes, and whether any rows were merged.
    """
    order = np.arange(hashes.size)
    for i in range(1, order.size):
        k = i
        while k > 0 and _compared(words, hashes, ties, order[k - 1], i) > 0:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i
    sums, merged = np.empty_like(weights), False
    kept = at = 0
    while at < order.size:
        first = order[at]
        sums[kept] = weights[first]
        at += 1
        while at < order.size and _compared(words, hashes, ties, first, order[at]) == 0:
            sums[kept] += weights[order[at]]
            merged = True
            at += 1
        if sums[kept].any():
            order[kept] = first
            kept += 1
    lines, sorted_hashes = np.empty((kept, words.shape[1]), np.uint64), np.empty(kept, np.uint64)
    for i in range(kept):
        lines[i] = words[order[i]]
        sorted_hashes[i] = hashes[order[i]]
    return order[:kept], lines, sums[:kept], sorted_hashes, merged


# -- sums


@compiled
def add_at(sums: Indices, ids: Indices, weights: Indices) -> None:
    """sums[ids[i]] += weights[i], modulo 2⁶⁴."""
    for i in range(ids.size):
        sums[ids[i]] += weights[i]


@compiled
def add_lines_at(sums: Indices, ids: Indices, weights: Indices) -> None:
    """sums[ids[i]] += weights[i], where weights are vectors."""
    for i in range(ids.size):
        for k in range(weights.shape[1]):
            sums[ids[i], k] += weights[i, k]
