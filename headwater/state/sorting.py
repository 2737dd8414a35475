"""Hashes in order, and the places they come from.

Hashes are spread evenly, and that is worth a sort of its own: the highest bits of one tell where it will be, so after two
rounds of putting each where its bits say, what is left to sort is a handful of neighbours. Hashes of many equal keys are not
spread: what lands in one place is sorted as any numbers are.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numba import uint64

from headwater.compiled import compiled
from headwater.state.parallel import in_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

# More hashes are sorted in parts, by their highest bits first, on all cores; parts are of about this size.
_MANY = 1 << 16
_PART_BITS, _MOST_BITS = 15, 9
# So many numbers are expected in a place when they are sorted by their bits.
_TOGETHER = 4
# Sequences up to this length are sorted by insertion.
_SHORT = 24
# An order is finished in parts of about this size.
_PART = 1 << 18


def roughly_sorted(hashes: Hashes) -> Indices:
    """The order in which hashes ascend but for their lowest bits, as many as the number of hashes has."""
    bits = len(hashes).bit_length()
    numbers = ascending(numbered(hashes, bits))
    numbers &= np.uint64((1 << bits) - 1)
    return numbers.view(np.int64)


def ascending(numbers: Hashes) -> Hashes:
    """Hashes in order; these, sorted in place, or if they are many a copy, which is sorted on all cores."""
    if len(numbers) <= _MANY:
        numbers.sort()
        return numbers
    bits = min(len(numbers).bit_length() - _PART_BITS, _MOST_BITS)
    found, ends = parted(numbers, bits)
    in_parts([partial(sort_part, found[start:end], bits) for start, end in pairwise([0, *ends.tolist()])])
    return found


@compiled
def numbered(hashes: Hashes, bits: int) -> Hashes:
    """The hashes with their lowest bits replaced by their places."""
    found = np.empty(hashes.size, np.uint64)
    for i in range(hashes.size):
        found[i] = ((hashes[i] >> uint64(bits)) << uint64(bits)) | uint64(i)
    return found


@compiled
def parted(hashes: Hashes, bits: int) -> tuple[Hashes, Indices]:
    """The hashes, those with the same highest bits together, in ascending order of these; and where each part ends."""
    shift = uint64(64 - bits)
    ends = np.zeros(1 << bits, np.int64)
    for i in range(hashes.size):
        ends[hashes[i] >> shift] += 1
    total = 0
    for part in range(ends.size):
        total, ends[part] = total + ends[part], total
    found = np.empty(hashes.size, np.uint64)
    for i in range(hashes.size):
        part = hashes[i] >> shift
        found[ends[part]] = hashes[i]
        ends[part] += 1
    return found, ends


@compiled
def sort_part(numbers: Hashes, bits: int) -> None:
    """Sorts numbers that have the same highest bits, and are spread evenly otherwise: by the next bits, then one by one."""
    finer = 0
    while numbers.size >> finer > _TOGETHER:
        finer += 1
    if not finer:
        numbers.sort()
        return
    shift, mask = uint64(64 - bits - finer), uint64((1 << finer) - 1)
    ends = np.zeros(1 << finer, np.int64)
    for i in range(numbers.size):
        ends[(numbers[i] >> shift) & mask] += 1
    total = 0
    for place in range(ends.size):
        total, ends[place] = total + ends[place], total
    found = np.empty(numbers.size, np.uint64)
    for i in range(numbers.size):
        place = (numbers[i] >> shift) & mask
        found[ends[place]] = numbers[i]
        ends[place] += 1
    start = 0
    for place in range(ends.size):
        end = ends[place]
        if end - start > _SHORT:
            found[start:end].sort()
        else:
            for i in range(start + 1, end):
                number, k = found[i], i
                while k > start and found[k - 1] > number:
                    found[k] = found[k - 1]
                    k -= 1
                found[k] = number
        start = end
    numbers[:] = found


@compiled
def _insertion(order: Indices, hashes: Hashes, ties: Hashes, start: int, end: int) -> None:
    """Sorts the places from start to end by hash and tie, all three together."""
    for i in range(start + 1, end):
        moved, h, tie = order[i], hashes[i], ties[i]
        k = i
        while k > start and (hashes[k - 1] > h or (hashes[k - 1] == h and ties[k - 1] > tie)):
            order[k], hashes[k], ties[k] = order[k - 1], hashes[k - 1], ties[k - 1]
            k -= 1
        order[k], hashes[k], ties[k] = moved, h, tie


def settled(order: Indices, hashes: Hashes, ties: Hashes, shift: int) -> None:
    """Finishes an order, with its hashes and ties, that ascends by the hash but for its lowest `shift` bits; on all cores."""
    if len(hashes) <= _PART:
        settle(order, hashes, ties, shift)
        return
    cuts = [0, *(_border(hashes, shift, start) for start in range(_PART, len(hashes), _PART)), len(hashes)]
    parts = [slice(start, end) for start, end in pairwise(cuts) if start < end]
    in_parts([partial(settle, order[part], hashes[part], ties[part], shift) for part in parts])


@compiled
def _border(hashes: Hashes, shift: int, place: int) -> int:
    """The first place from this one on where other hashes begin."""
    while place < hashes.size and hashes[place] >> uint64(shift) == hashes[place - 1] >> uint64(shift):
        place += 1
    return place


@compiled
def settle(order: Indices, hashes: Hashes, ties: Hashes, shift: int) -> None:
    """The same, on one core."""
    n = order.size
    start = 0
    while start < n:
        leading = hashes[start] >> uint64(shift)
        end = start + 1
        while end < n and hashes[end] >> uint64(shift) == leading:
            end += 1
        if end - start > _SHORT:
            inner = np.argsort(ties[start:end])
            order[start:end] = order[start:end][inner]
            # Both are read before either is written: they may be one array.
            inner_hashes, inner_ties = hashes[start:end][inner], ties[start:end][inner]
            hashes[start:end] = inner_hashes
            ties[start:end] = inner_ties
        if end - start > 1:
            _insertion(order, hashes, ties, start, end)
        start = end


@compiled
def repeated(hashes: Hashes, shift: int) -> bool:
    """Whether any hash comes twice, where they ascend but for their lowest `shift` bits."""
    for i in range(1, hashes.size):
        k = i - 1
        while k >= 0 and hashes[k] >> uint64(shift) == hashes[i] >> uint64(shift):
            if hashes[k] == hashes[i]:
                return True
            k -= 1
    return False
