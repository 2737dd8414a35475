"""Groups of a fixpoint in one table while compiled rounds last: rows of a set, or keys of best values, with their derivations.

A group is read from the arrangement of its relation when it is first met, and is all here then. A mark, by which a group
believes a value, is a derivation at a negative round, as in `settling`. Values are such that less is better: of a greatest
value, the bits are turned round.

Of millions of derivations, those of a group are in a place that no cache holds. So the places of many groups are searched for
at once, a step for all of them before the next one: then the processor waits for many places at a time.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import uint64

from headwater.compiled import compiled
from headwater.operators.settling import ruled
from headwater.state.hashing import SEED
from headwater.state.loops import NULL, mix
from headwater.state.searching import lower_bound
from headwater.state.stored import Stored, guessed, is_null, lines_of, nearer, read, weight_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    # Rank and value of what is dropped, and of what is believed (rank −1: nothing); the round to wait for, for what holds no
    # more, and for what may be believed (−1: none); the value that contends, if there is one.
    Judged = tuple[int, int, int, int, int, int, int, bool]

# A row that was derived: relation, NULL bits, weight, round, then its columns.
RELATION, NULLS, TIMES, DUE, FIRST = range(5)
# A group: relation, NULL bits, then its hash, first derivation, whether it changed, the group that changed before it, the value
# that contends, and its key.
HASH, HEAD, CHANGED, BEFORE_IT, CONTENDS, BEST, KEY = range(2, 9)
# A derivation: value, round, weight now and before, the next one of its group.
VALUE, ROUND, WEIGHT, BEFORE, NEXT = range(5)
# Of a relation: columns of its key, 1 or −1 if it has the least or the greatest value, columns in all.
KEYS, ORDER, COLUMNS = range(3)
# Counters: groups, derivations, the group that changed last, what went wrong.
GROUPS, ENTRIES, LAST_CHANGED, STATUS = range(4)
FINE, STRANGE, ENDLESS, LARGE = range(4)
# More derivations, or later rounds, are not for this.
_MOST, _FAR = 1 << 26, 1 << 40
# So many rows, and what surrounds their derivations, stay in the cache until they are counted.
_AT_ONCE = 128


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
    more[: rows.shape[0]] = rows
    return more


@compiled
def none_known(width: int) -> Known:
    sizes = np.zeros(4, np.int64)
    sizes[LAST_CHANGED] = -1
    return Known(np.full(512, -1, np.int64), np.empty((256, KEY + width), np.int64), np.empty((1024, 5), np.int64), sizes)


class Ahead(NamedTuple):
    """Of rows that are next: their hashes, their groups (−1: not known yet), and where runs have derivations of these."""

    hashes: NDArray[np.uint64]
    groups: Int64s
    starts: Int64s


@compiled
def counted(known: Known, derived: Int64s, count: int, relations: Int64s, stored: Stored) -> Known:
    """Adds rows that were derived to the derivations of their groups, which have changed then."""
    slots, groups, entries, sizes = known
    room = min(count, _AT_ONCE)
    ahead = Ahead(np.empty(room, np.uint64), np.empty(room, np.int64), np.empty((room, stored.runs.shape[0]), np.int64))
    for i in range(count):
        relation = derived[i, RELATION]
        keys, order = relations[relation, KEYS], relations[relation, ORDER]
        if order != 0 and (derived[i, NULLS] >> keys) & 1:
            sizes[STATUS] = STRANGE
            break
        if derived[i, DUE] >= _FAR or sizes[ENTRIES] >= _MOST:
            sizes[STATUS] = LARGE
            break
        k = i % _AT_ONCE
        if k == 0:
            _look_ahead(slots, groups, derived, i, min(count - i, room), relations, stored, ahead)
        group = ahead.groups[k]
        if group < 0:
            slots, groups, entries, group = _met(
                slots, groups, entries, sizes, derived, i, keys, order, ahead.hashes[k], ahead.starts[k], stored
            )
        if sizes[ENTRIES] == entries.shape[0]:
            entries = roomy(entries, sizes[ENTRIES] + 1)
        best = 0 if order == 0 else derived[i, FIRST + keys] if order > 0 else ~derived[i, FIRST + keys]
        add(entries, sizes, groups, group, best, derived[i, DUE], derived[i, TIMES])
        if not groups[group, CHANGED]:
            groups[group, CHANGED] = 1
            groups[group, BEFORE_IT] = sizes[LAST_CHANGED]
            sizes[LAST_CHANGED] = group
    return Known(slots, groups, entries, sizes)


@compiled
def _look_ahead(
    slots: Int64s, groups: Int64s, derived: Int64s, first: int, count: int, relations: Int64s, stored: Stored, ahead: Ahead
) -> None:
    """Finds the groups of rows, and where the arrangements have those that are not known."""
    runs, spans, _, _ = stored
    hashes, found, starts = ahead
    for k in range(count):
        hashes[k] = _hash_of(derived, first + k, relations[derived[first + k, RELATION], KEYS])
    for k in range(count):
        i = first + k
        found[k] = slots[_slot_of(slots, groups, derived, i, relations[derived[i, RELATION], KEYS], hashes[k])]
    for step in range(4):
        for k in range(count):
            if found[k] >= 0:
                continue
            relation = derived[first + k, RELATION]
            for run in range(spans[relation, 0], spans[relation, 1]):
                stored_hashes, _ = lines_of(runs, run)
                if step == 0:
                    starts[k, run] = guessed(stored_hashes, hashes[k])
                elif step < 3:
                    starts[k, run] = nearer(stored_hashes, hashes[k], starts[k, run])
                else:
                    starts[k, run] = lower_bound(stored_hashes, hashes[k], starts[k, run])


@compiled
def _met(
    slots: Int64s,
    groups: Int64s,
    entries: Int64s,
    sizes: Int64s,
    derived: Int64s,
    i: int,
    keys: int,
    order: int,
    h: np.uint64,
    starts: Int64s,
    stored: Stored,
) -> tuple[Int64s, Int64s, Int64s, int]:
    """The group of a row, which is read if it is met for the first time."""
    slot = _slot_of(slots, groups, derived, i, keys, h)
    group = slots[slot]
    if group >= 0:
        return slots, groups, entries, group
    if 2 * (sizes[GROUPS] + 1) > slots.size:
        slots, groups = _spread(slots, groups, sizes[GROUPS])
        slot = _slot_of(slots, groups, derived, i, keys, h)
    group = slots[slot] = sizes[GROUPS]
    sizes[GROUPS] += 1
    _begin(groups, group, derived, i, keys, h)
    return slots, groups, _loaded(entries, sizes, groups, group, keys, order, h, starts, stored), group


@compiled
def _hash_of(derived: Int64s, i: int, keys: int) -> np.uint64:
    """The hash by which the arrangement has the key."""
    h = SEED
    for c in range(keys):
        h = mix(h + (NULL if (derived[i, NULLS] >> c) & 1 else np.uint64(derived[i, FIRST + c])))
    return h


@compiled
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


@compiled
def _slot(size: int, relation: int, h: np.uint64) -> int:
    return np.int64(mix(h + np.uint64(relation)) & uint64(size - 1))  # type: ignore[return-value]


@compiled
def _spread(slots: Int64s, groups: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Four times the slots, and as many groups as these take."""
    spread = np.full(4 * slots.size, -1, np.int64)
    for group in range(count):
        slot = _slot(spread.size, groups[group, RELATION], np.uint64(groups[group, HASH]))
        while spread[slot] >= 0:
            slot = (slot + 1) & (spread.size - 1)
        spread[slot] = group
    return spread, roomy(groups, spread.size // 2)


@compiled
def _begin(groups: Int64s, group: int, derived: Int64s, i: int, keys: int, h: np.uint64) -> None:
    groups[group, RELATION], groups[group, HASH] = derived[i, RELATION], np.int64(h)
    groups[group, NULLS] = derived[i, NULLS] & ((1 << keys) - 1)
    groups[group, HEAD], groups[group, CHANGED], groups[group, CONTENDS] = -1, 0, 0
    for c in range(keys):
        groups[group, KEY + c] = derived[i, FIRST + c]


@compiled
def _loaded(
    entries: Int64s,
    sizes: Int64s,
    groups: Int64s,
    group: int,
    keys: int,
    order: int,
    h: np.uint64,
    starts: Int64s,
    stored: Stored,
) -> Int64s:
    """Reads what the arrangement of its relation has of a group: from where runs may have it."""
    runs, spans, _, places = stored
    relation = groups[group, RELATION]
    for run in range(spans[relation, 0], spans[relation, 1]):
        hashes, words = lines_of(runs, run)
        line = starts[run]
        while line < hashes.size and hashes[line] == h:
            same = True
            for c in range(keys):
                missing = is_null(words, line, places, relation, c)
                same &= missing == ((groups[group, NULLS] >> c) & 1 != 0)
                same &= missing or read(words, line, places, relation, c) == groups[group, KEY + c]
            if same:
                if sizes[ENTRIES] == entries.shape[0]:
                    entries = roomy(entries, sizes[ENTRIES] + 1)
                best = 0 if order == 0 else read(words, line, places, relation, keys)
                due = read(words, line, places, relation, keys + (order != 0))
                weight = weight_of(runs, run, line)
                at = add(entries, sizes, groups, group, best if order >= 0 else ~best, due, weight)
                entries[at, BEFORE] += weight
            line += 1
    return entries


@compiled
def add(entries: Int64s, sizes: Int64s, groups: Int64s, group: int, best: int, due: int, weight: int) -> int:
    """Adds to a derivation of a group; the place of that. There must be room for one more.

    One that came and went takes up no room, so that groups stay as small as they are.
    """
    at, free = groups[group, HEAD], -1
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
    entries[at, WEIGHT] += weight
    return at


@compiled
def _mark_and_best(entries: Int64s, head: int) -> tuple[int, int]:
    """Where the mark of a group is, and the first derivation of its best value; −1 if there is none."""
    mark, best, at = -1, -1, head
    while at >= 0:
        if entries[at, WEIGHT] != 0:
            if entries[at, ROUND] < 0:
                mark = at
            elif best < 0 or _is_before(entries, at, best):
                best = at
        at = entries[at, NEXT]
    return mark, best


@compiled
def _is_before(entries: Int64s, at: int, other: int) -> bool:
    if entries[at, VALUE] != entries[other, VALUE]:
        return entries[at, VALUE] < entries[other, VALUE]
    return entries[at, ROUND] < entries[other, ROUND]


@compiled
def _held(entries: Int64s, head: int, value: int, rank: int) -> int:
    """How many derivations hold a value that is believed."""
    held, at = 0, head
    while at >= 0:
        if 0 <= entries[at, ROUND] <= rank and entries[at, VALUE] == value:
            held += entries[at, WEIGHT]
        at = entries[at, NEXT]
    return held


@compiled
def judged(entries: Int64s, head: int, now: int, valued: bool, eager: bool) -> Judged:  # noqa: FBT001
    """What a group drops and believes in round `now`, and what it waits for, by the rule of `settling`."""
    mark, best = _mark_and_best(entries, head)
    rank, believed = (-entries[mark, ROUND], entries[mark, VALUE]) if mark >= 0 else (0, 0)
    first, value = (entries[best, ROUND], entries[best, VALUE]) if best >= 0 else (0, 0)
    held = _held(entries, head, believed, rank) if mark >= 0 else 0
    dropped, losing, follows, contends, waits = ruled(
        mark >= 0, believed, rank, held, best >= 0, value, first, now, valued, eager
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
