"""The compiled loops that find lines in runs.

A line in ten million is a place in memory that no cache holds. The processor waits for many such places at once if it knows
them beforehand: so each loop here does one thing for all rows of a probe before the next loop begins.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import uint64

from headwater.compiled import compiled
from headwater.state.loops import same_key, same_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Offsets = NDArray[np.int32] | NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    Hashes = NDArray[np.uint64]
    Words = NDArray[np.uint64]
    Spec = NDArray[np.int64]
    Mask = NDArray[np.bool_]


# So many lines, and what surrounds them, stay in the cache until they are compared.
_AT_ONCE = 1024


@compiled
def _guesses(hashes: Hashes, wanted: Hashes) -> Indices:
    """Where each hash should be: from the first to the last they are spread evenly, and what is found there corrects it."""
    n = hashes.size
    first = np.float64(hashes[0])
    density = (n - 1) / max(np.float64(hashes[n - 1]) - first, 1.0)
    places = np.empty(wanted.size, np.int64)
    for i in range(wanted.size):
        places[i] = min(max(int((np.float64(wanted[i]) - first) * density), 0), n - 1)
    for _ in range(2):
        for i in range(wanted.size):
            off = (np.float64(wanted[i]) - np.float64(hashes[places[i]])) * density
            places[i] = min(max(places[i] + int(off), 0), n - 1)
    return places


@compiled
def lower_bound(hashes: Hashes, wanted: np.uint64, guess: int) -> int:
    """The first place of a hash that is not less, searched for from a guess on in growing strides, then by bisection."""
    n = hashes.size
    reach = 8
    if hashes[guess] < wanted:
        low, high = guess + 1, guess + 1
        while high < n and hashes[high] < wanted:
            low = high + 1
            high += reach
            reach *= 2
        high = min(high, n)
    else:
        low, high = guess, guess
        while low > 0 and hashes[low - 1] >= wanted:
            high = low - 1
            low = max(high - reach, 0)
            reach *= 2
    while low < high:
        middle = (low + high) >> 1
        if hashes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def spans(hashes: Hashes, wanted: Hashes, starts: Indices, ends: Indices) -> None:
    """Writes down from where to where the lines with each hash are."""
    n = hashes.size
    if n == 0:
        return
    places = _guesses(hashes, wanted)
    for i in range(wanted.size):
        start = lower_bound(hashes, wanted[i], places[i])
        starts[i] = end = start
        if start < n and hashes[start] == wanted[i]:
            end = n if hashes[n - 1] == wanted[i] else lower_bound(hashes, wanted[i] + uint64(1), start)
        ends[i] = end


@compiled
def _candidates(hashes: Hashes, words: Words, wanted: Hashes, most: int) -> tuple[Indices, Indices, int]:
    """Which hashes are there, the first line of each, which is in the processor's cache then, and how many lines in all.

    If these are more than `most`, not all are counted.
    """
    places = _guesses(hashes, wanted)
    asked = np.empty(wanted.size + 1, np.int64)
    found = count = 0
    for i in range(wanted.size):
        line = lower_bound(hashes, wanted[i], places[i])
        if line < hashes.size and hashes[line] == wanted[i]:
            asked[found], places[found] = i, line
            found += 1
            while line < hashes.size and hashes[line] == wanted[i] and count <= most:
                line += 1
                count += 1
    last = words.shape[1] - 1
    touched = uint64(0)
    if last >= 0:
        for k in range(found):
            touched += words[places[k], 0] ^ words[places[k], last]
    # What was read is of no use; kept where nobody looks, it is not optimised away.
    asked[wanted.size] = np.int64(touched)
    return asked[:found], places[:found], count


@compiled
def _doubled(values: Indices) -> Indices:
    """The values, with room for as many more."""
    more = np.empty(2 * values.size, np.int64)
    more[: values.size] = values
    return more


@compiled
def locate(
    hashes: Hashes,
    words: Words,
    spec: Spec,
    wanted: Hashes,
    probe: Words,
    probe_spec: Spec,
    whole: bool,  # noqa: FBT001  (compiled)
    most: int,
) -> tuple[Indices, Indices, bool]:
    """All pairs (i, line) such that the line has the hash number i, and the key of line i of the probe, or is the same line.

    And whether they are all: if more than `most` lines have the hashes, the rest is not looked for.
    """
    asked, at = np.empty(wanted.size, np.int64), np.empty(wanted.size, np.int64)
    found = 0
    for first in range(0, wanted.size, _AT_ONCE):
        candidates, lines, count = _candidates(hashes, words, wanted[first : first + _AT_ONCE], most)
        if found + count > most:
            return asked[:found], at[:found], False
        for k in range(candidates.size):
            i, line = first + candidates[k], lines[k]
            while line < hashes.size and hashes[line] == wanted[i]:
                if same_line(words, line, probe, i) if whole else same_key(words, line, spec, probe, i, probe_spec):
                    if found == asked.size:
                        asked, at = _doubled(asked), _doubled(at)
                    asked[found], at[found] = i, line
                    found += 1
                line += 1
    return asked[:found], at[:found], True


@compiled
def same_bytes(offsets: Offsets, data: Bytes, at: Indices, asked_offsets: Offsets, asked_data: Bytes, asked: Indices) -> Mask:
    """Whether the string at the place at[i] is the same as the one asked for, at the place asked[i] of others."""
    starts = np.empty(at.size, np.int64)
    same = np.empty(at.size, np.bool_)
    for i in range(at.size):
        starts[i] = offsets[at[i]]
        same[i] = offsets[at[i] + 1] - starts[i] == asked_offsets[asked[i] + 1] - asked_offsets[asked[i]]
    for i in range(at.size):
        if same[i]:
            start, other = starts[i], asked_offsets[asked[i]]
            for k in range(asked_offsets[asked[i] + 1] - other):
                if data[start + k] != asked_data[other + k]:
                    same[i] = False
                    break
    return same
