"""Groups of a fixpoint in one table while compiled rounds last: rows of a set, or keys of best values, with their derivations.

Of a group that is met for the first time, its mark is read from the arrangement of its relation, by which it believes a value:
a derivation at a negative round, as in `settling`. All others are read when something happens that may change what it believes,
which for most groups is never; until then, a derivation is known by its change alone. Values are such that less is better: of a
greatest value, the bits are turned round.

Of millions of derivations, those of a group are in a place that no cache holds. So the places of many groups are searched for
at once, a step for all of them before the next one: then the processor waits for many places at a time.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import uint64

from headwater.compiled import compiled, inner
from headwater.operators.settling import ruled
from headwater.state.hashing import SEED
from headwater.state.loops import NULL, mix
from headwater.state.stored import (
    Stored,
    fetch,
    fetch_lines,
    fetch_post,
    line_of,
    lines_with,
    near,
    nulls_of,
    read,
    weight_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    # Rank and value of what is dropped, and of what is believed (rank −1: nothing); the round to wait for, for what holds no
    # more, and for what may be believed (−1: none); the value that contends, if there is one.
    Judged = tuple[int, int, int, int, int, int, int, bool]

# A row that was derived: relation, NULL bits, weight, round, then its columns.
RELATION, NULLS, TIMES, DUE, FIRST = range(5)
# A group: relation, NULL bits, then its hash, first derivation, whether it changed, the group that changed before it, the value
# that contends, the rank and the value of what it believes (rank −1: nothing), whether it is all here, and its key.
HASH, HEAD, CHANGED, BEFORE_IT, CONTENDS, BEST, RANK, BELIEVED, WHOLE, KEY = range(2, 12)
# A derivation: value, round, weight now and before, the next one of its group.
VALUE, ROUND, WEIGHT, BEFORE, NEXT = range(5)
# Of a relation: columns of its key, 1 or −1 if it has the least or the greatest value, columns in all.
KEYS, ORDER, COLUMNS = range(3)
# Counters: groups, derivations, the group that changed last, how many have changed, what went wrong.
GROUPS, ENTRIES, LAST_CHANGED, CHANGES, STATUS = range(5)
FINE, STRANGE, ENDLESS, LARGE = range(4)
# More derivations, or later rounds, are not for this.
_MOST, _FAR = 1 << 26, 1 << 40
# So many rows, and what surrounds their derivations, stay in the cache until they are counted.
_AT_ONCE = 256


class Known(NamedTuple):
    """Groups by hash, their derivations, and counters."""

    slots: Int64s
    groups: Int64s
    entries: Int64s
    sizes: Int64s


@compiled
def roomy(rows: Int64s, count: int) -> Int64s:
    """The rows, with room for so many."""
    if count <= rows.shape[0]:
        return rows
    more = np.empty((max(count, 2 * rows.shape[0]), rows.shape[1]), np.int64)
    copy_rows(rows, rows.shape[0], more)
    return more


@inner
def copy_rows(rows: Int64s, count: int, others: Int64s) -> None:
    """Has others begin with so many of the rows. A loop: what NumPy has for it takes long to compile."""
    for i in range(count):
        for c in range(rows.shape[1]):
            others[i, c] = rows[i, c]


@compiled
def none_known(width: int, count: int) -> Known:
    """No groups yet, and room for what so many rows are likely to lead to."""
    sizes, room = np.zeros(5, np.int64), 256
    sizes[LAST_CHANGED] = -1
    while room < 2 * count:
        room *= 2
    return Known(
        np.full(2 * room, -1, np.int64), np.empty((room, KEY + width), np.int64), np.empty((4 * room, 5), np.int64), sizes
    )


class Ahead(NamedTuple):
    """Of rows that are next: their hashes and groups; groups that are read, and from where to where runs may have each."""

    hashes: NDArray[np.uint64]
    groups: Int64s
    chosen: Int64s
    starts: Int64s
    ends: Int64s


@compiled
def counted(known: Known, derived: Int64s, count: int, relations: Int64s, stored: Stored) -> Known:
    """Adds rows that were derived to the derivations of their groups, which have changed then."""
    slots, groups, entries, sizes = known
    room = min(count, _AT_ONCE)
    ahead = Ahead(
        np.empty(room, np.uint64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty((stored.runs.shape[0], room), np.int64),
        np.empty((stored.runs.shape[0], room), np.int64),
    )
    for first in range(0, count, _AT_ONCE):
        rows = derived[first : min(first + _AT_ONCE, count)]
        status = _looked_over(rows, relations, sizes)
        if status != FINE:
            sizes[STATUS] = status
            break
        if 2 * (sizes[GROUPS] + len(rows)) > slots.size:
            slots, groups = _spread(slots, groups, sizes[GROUPS], len(rows))
        chosen = _meet(slots, groups, sizes, rows, relations, ahead)
        needed = sizes[ENTRIES] + _searched(groups, chosen, stored, ahead) + len(rows)
        if needed > entries.shape[0]:
            entries = roomy(entries, needed)
        _read(entries, sizes, groups, chosen, relations, stored, ahead, True)  # noqa: FBT003
        chosen = _add_all(entries, sizes, groups, rows, relations, ahead)
        needed = sizes[ENTRIES] + _searched(groups, chosen, stored, ahead)
        if needed > entries.shape[0]:
            entries = roomy(entries, needed)
        _read(entries, sizes, groups, chosen, relations, stored, ahead, False)  # noqa: FBT003
    return Known(slots, groups, entries, sizes)


@inner
def _looked_over(rows: Int64s, relations: Int64s, sizes: Int64s) -> int:
    """Whether rows are for this."""
    status = LARGE if sizes[ENTRIES] >= _MOST else FINE
    for i in range(len(rows)):
        relation = rows[i, RELATION]
        if rows[i, DUE] >= _FAR:
            status = LARGE
        if relations[relation, ORDER] != 0 and (rows[i, NULLS] >> relations[relation, KEYS]) & 1:
            status = STRANGE
    return status


@inner
def _meet(slots: Int64s, groups: Int64s, sizes: Int64s, rows: Int64s, relations: Int64s, ahead: Ahead) -> int:
    """The groups of rows; those that are met for the first time are begun, and chosen. There must be room for them."""
    new = 0
    for k in range(len(rows)):
        relation = rows[k, RELATION]
        ahead.hashes[k] = _hash_of(rows, k, relations[relation, KEYS])
        fetch(slots.ctypes.data + 8 * _slot(slots.size, relation, ahead.hashes[k]))  # type: ignore[call-arg]
    for k in range(len(rows)):
        group = slots[_slot(slots.size, rows[k, RELATION], ahead.hashes[k])]
        fetch(groups.ctypes.data + 8 * groups.shape[1] * max(group, 0))  # type: ignore[call-arg]
    for k in range(len(rows)):
        keys = relations[rows[k, RELATION], KEYS]
        slot = _slot_of(slots, groups, rows, k, keys, ahead.hashes[k])
        if slots[slot] < 0:
            slots[slot] = sizes[GROUPS]
            _begin(groups, sizes[GROUPS], rows, k, keys, ahead.hashes[k])
            ahead.chosen[new] = sizes[GROUPS]
            sizes[GROUPS] += 1
            new += 1
        ahead.groups[k] = slots[slot]
    return new


@inner
def _searched(groups: Int64s, count: int, stored: Stored, ahead: Ahead) -> int:
    """Finds the lines of runs with the hashes of chosen groups, and how many these are; they are on their way then."""
    runs, spans, _, _ = stored
    lines = 0
    for k in range(count):
        ahead.hashes[k] = np.uint64(groups[ahead.chosen[k], HASH])
    for relation in range(spans.shape[0]):
        for run in range(spans[relation, 0], spans[relation, 1]):
            for step in range(3):
                for k in range(count):
                    if groups[ahead.chosen[k], RELATION] != relation:
                        continue
                    if step == 0:
                        fetch_post(runs, run, ahead.hashes[k])
                    elif step == 1:
                        ahead.starts[run, k], ahead.ends[run, k] = near(runs, run, ahead.hashes[k])
                    else:
                        start, end = lines_with(runs, run, ahead.hashes[k], ahead.starts[run, k], ahead.ends[run, k])
                        ahead.starts[run, k], ahead.ends[run, k] = start, end
                        if end > start:
                            fetch_lines(runs, run, start, end - start)
                            lines += end - start
    return lines


@inner
def _read(
    entries: Int64s,
    sizes: Int64s,
    groups: Int64s,
    count: int,
    relations: Int64s,
    stored: Stored,
    ahead: Ahead,
    marks: bool,  # noqa: FBT001
) -> None:
    """Reads the marks of chosen groups, or all the rest that arrangements have of them. There must be room for it."""
    runs, spans, _, places = stored
    for k in range(count):
        group = ahead.chosen[k]
        relation, nulls = groups[group, RELATION], groups[group, NULLS]
        keys, order = relations[relation, KEYS], relations[relation, ORDER]
        groups[group, WHOLE] = not marks
        for run in range(spans[relation, 0], spans[relation, 1]):
            # Lines of one run differ.
            others = groups[group, HEAD]
            for at in range(ahead.starts[run, k], ahead.ends[run, k]):
                line = line_of(runs, run, at)
                due = read(line, places, relation, keys + (order != 0))
                same = (due < 0) == marks and nulls_of(line) & ((1 << keys) - 1) == nulls
                for c in range(keys if same else 0):
                    same &= read(line, places, relation, c) == groups[group, KEY + c]
                if same:
                    best = 0 if order == 0 else read(line, places, relation, keys)
                    entry = place_of(entries, sizes, groups, group, others, best if order >= 0 else ~best, due)
                    entries[entry, WEIGHT] += weight_of(runs, run, at)
                    entries[entry, BEFORE] += weight_of(runs, run, at)
                    if marks:
                        mark(groups, group, entries, entry)


@inner
def _add_all(entries: Int64s, sizes: Int64s, groups: Int64s, rows: Int64s, relations: Int64s, ahead: Ahead) -> int:
    """Adds rows to the derivations of their groups; those of which all is to be known now are chosen."""
    wanted = 0
    for k in range(len(rows)):
        group = ahead.groups[k]
        keys, order = relations[rows[k, RELATION], KEYS], relations[rows[k, RELATION], ORDER]
        best = 0 if order == 0 else rows[k, FIRST + keys] if order > 0 else ~rows[k, FIRST + keys]
        due, weight = rows[k, DUE], rows[k, TIMES]
        add(entries, sizes, groups, group, best, due, weight)
        if not groups[group, CHANGED] and _matters(groups, group, best, due, weight):
            groups[group, CHANGED] = 1
            groups[group, BEFORE_IT] = sizes[LAST_CHANGED]
            sizes[LAST_CHANGED] = group
            sizes[CHANGES] += 1
            if not groups[group, WHOLE]:
                ahead.chosen[wanted] = group
                wanted += 1
    return wanted


@inner
def _matters(groups: Int64s, group: int, value: int, due: int, weight: int) -> bool:
    """Whether a change of derivations may change what a group believes.

    More of them do so by a better value, fewer of them by no longer holding what is believed. What waits or contends already is
    looked at again when its time has come.
    """
    if groups[group, RANK] < 0:
        return True
    return value < groups[group, BELIEVED] if weight > 0 else value == groups[group, BELIEVED] and due <= groups[group, RANK]


@inner
def _hash_of(derived: Int64s, i: int, keys: int) -> np.uint64:
    """The hash by which the arrangement has the key."""
    h = SEED
    for c in range(keys):
        h = mix(h + (NULL if (derived[i, NULLS] >> c) & 1 else np.uint64(derived[i, FIRST + c])))
    return h


@inner
def _slot_of(slots: Int64s, groups: Int64s, derived: Int64s, i: int, keys: int, h: np.uint64) -> int:
    """The slot of the group of a row, or the free one where it belongs."""
    slot = _slot(slots.size, derived[i, RELATION], h)
    nulls = derived[i, NULLS] & ((1 << keys) - 1)
    while slots[slot] >= 0:
        at = slots[slot]
        if groups[at, HASH] == np.int64(h):
            same = groups[at, RELATION] == derived[i, RELATION] and groups[at, NULLS] == nulls
            for c in range(keys):
                same &= groups[at, KEY + c] == derived[i, FIRST + c]
            if same:
                break
        slot = (slot + 1) & (slots.size - 1)
    return slot


@inner
def _slot(size: int, relation: int, h: np.uint64) -> int:
    return np.int64(mix(h + np.uint64(relation)) & uint64(size - 1))  # type: ignore[return-value]


@compiled
def _spread(slots: Int64s, groups: Int64s, count: int, more: int) -> tuple[Int64s, Int64s]:
    """Four times the slots, or as many as more groups take, and as many groups as these take."""
    size = 4 * slots.size
    while size < 2 * (count + more):
        size *= 2
    spread = np.full(size, -1, np.int64)
    for group in range(count):
        slot = _slot(spread.size, groups[group, RELATION], np.uint64(groups[group, HASH]))
        while spread[slot] >= 0:
            slot = (slot + 1) & (spread.size - 1)
        spread[slot] = group
    return spread, roomy(groups, spread.size // 2)


@inner
def _begin(groups: Int64s, group: int, derived: Int64s, i: int, keys: int, h: np.uint64) -> None:
    groups[group, RELATION], groups[group, HASH] = derived[i, RELATION], np.int64(h)
    groups[group, NULLS] = derived[i, NULLS] & ((1 << keys) - 1)
    groups[group, HEAD], groups[group, CHANGED], groups[group, CONTENDS], groups[group, RANK] = -1, 0, 0, -1
    for c in range(keys):
        groups[group, KEY + c] = derived[i, FIRST + c]


@inner
def add(entries: Int64s, sizes: Int64s, groups: Int64s, group: int, best: int, due: int, weight: int) -> int:
    """Adds to a derivation of a group; the place of that. There must be room for one more."""
    at = place_of(entries, sizes, groups, group, groups[group, HEAD], best, due)
    entries[at, WEIGHT] += weight
    return at


@inner
def mark(groups: Int64s, group: int, entries: Int64s, at: int) -> None:
    """Has a group believe what a mark says, or no longer."""
    value, rank = entries[at, VALUE], -entries[at, ROUND]
    if entries[at, WEIGHT] != 0:
        groups[group, RANK], groups[group, BELIEVED] = rank, value
    elif groups[group, RANK] == rank and groups[group, BELIEVED] == value:
        groups[group, RANK] = -1


@inner
def place_of(entries: Int64s, sizes: Int64s, groups: Int64s, group: int, at: int, best: int, due: int) -> int:
    """The place of a derivation of a group, searched for from the place `at` on, and there from now on.

    One that came and went takes up no room, so that groups stay as small as they are.
    """
    free = -1
    while at >= 0 and not (entries[at, ROUND] == due and entries[at, VALUE] == best):
        if entries[at, WEIGHT] == 0 and entries[at, BEFORE] == 0:
            free = at
        at = entries[at, NEXT]
    if at < 0 and free >= 0:
        at = free
        entries[at, VALUE], entries[at, ROUND] = best, due
    elif at < 0:
        at = sizes[ENTRIES]
        sizes[ENTRIES] += 1
        entries[at, VALUE], entries[at, ROUND], entries[at, WEIGHT], entries[at, BEFORE] = best, due, 0, 0
        entries[at, NEXT] = groups[group, HEAD]
        groups[group, HEAD] = at
    return at


@inner
def judged(groups: Int64s, group: int, entries: Int64s, now: int, valued: bool, eager: bool) -> Judged:  # noqa: FBT001
    """What a group drops and believes in round `now`, and what it waits for, by the rule of `settling`."""
    rank, believed = groups[group, RANK], groups[group, BELIEVED]
    held, best, at = 0, -1, groups[group, HEAD]
    while at >= 0:
        due = entries[at, ROUND]
        if due >= 0 and entries[at, WEIGHT] != 0:
            if best < 0 or _is_before(entries, at, best):
                best = at
            if due <= rank and entries[at, VALUE] == believed:
                held += entries[at, WEIGHT]
        at = entries[at, NEXT]
    first, value = (entries[best, ROUND], entries[best, VALUE]) if best >= 0 else (0, 0)
    dropped, losing, follows, contends, waits = ruled(
        rank >= 0, believed, rank, held, best >= 0, value, first, now, valued, eager
    )
    return (
        rank if dropped else -1,
        believed,
        first if follows else -1,
        value,
        rank if losing else -1,
        first if waits else -1,
        value,
        contends,
    )


@inner
def _is_before(entries: Int64s, at: int, other: int) -> bool:
    if entries[at, VALUE] != entries[other, VALUE]:
        return entries[at, VALUE] < entries[other, VALUE]
    return entries[at, ROUND] < entries[other, ROUND]
