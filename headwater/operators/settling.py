"""Settling: which groups believe what in a round, from all the derivations there are of them.

    held      Σ derivations of the value that is believed, of rounds up to its rank
    best      the best value that has derivations, and the first round of these
    dropped   what is believed, if its rank has come and nothing holds it; until then the group waits for its rank
    believed  the best, where nothing is believed, if its first round has come; else the group waits for that

Of values, only the one that was just dropped comes back so. Another best value *contends*: it is believed, in place of what is,
when nothing waits to be dropped any more, and the best ones first, so that few are believed that a better one will replace.

A mark is a derivation at a negative round −ρ: the group believes that value, with the rank ρ. Groups come with a handful of
derivations each, which are put in order one group after the other.
"""

# ruff: noqa: FBT001, PLR0913, PLR0917  (a compiled loop takes its arrays and numbers one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.compiled import compiled, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    # Places among the derivations, with ranks and weights; groups that wait, with the rounds they wait for, −ρ to be dropped
    # perhaps; places of values that contend.
    Settled = tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]


class Found(NamedTuple):
    """Derivations and marks: of which group, of which value (less is better), in which round, and how many."""

    groups: Int64s
    values: Int64s
    rounds: Int64s
    weights: Int64s


def normal(column: pa.Array) -> pa.Array:
    """Values as Spark groups them: −0.0 becomes 0.0."""
    return pc.add(column, 0.0).cast(column.type) if pa.types.is_floating(column.type) else column


def settled(found: Found, count: int, now: int, *, valued: bool, eager: bool) -> Settled:
    """What `count` groups believe and drop in round `now`; without values, all derivations are of one.

    With `eager`, values that contend are believed at once.
    """
    values = found.values if valued else np.zeros(0, np.int64)
    return _settled(found.groups, values, found.rounds, found.weights, count, now, eager)


@inner
def ruled(
    marked: bool,
    believed: int,
    rank: int,
    held: int,
    derived: bool,
    best: int,
    first: int,
    now: int,
    valued: bool,
    eager: bool,
) -> tuple[bool, bool, bool, bool, bool]:
    """For one group: whether what it believes is dropped, or waits for that; whether its best is believed, contends, waits."""
    other = derived and valued and (not marked or best != believed)
    better = other and (not marked or best < believed)
    dropped = marked and ((better and eager) or (rank <= now and held == 0 and not better))
    losing = marked and not dropped and held == 0 and not better
    if not derived or (marked and not dropped and not better):
        return dropped, losing, False, False, False
    follows = (eager and other) or (first <= now and not (other and marked))
    return dropped, losing, follows, other and not follows, not other and not follows


@compiled
def _settled(  # noqa: C901  (one pass)
    groups: Int64s,
    values: Int64s,
    rounds: Int64s,
    weights: Int64s,
    count: int,
    now: int,
    eager: bool,
) -> Settled:
    order, ends = _by_group(groups, count)
    at, ranks, signs = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    later, wait, contending = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    emitted = waiting = contenders = 0
    valued = len(values) > 0
    for group in range(count):
        end = ends[group]
        i = ends[group - 1] if group else 0
        _sort(order, i, end, values, rounds)
        mark = best = -1
        rank = first = held = 0
        while i < end:
            place = order[i]
            weight = 0
            while i < end and _compared(order[i], place, values, rounds) == 0:
                weight += weights[order[i]]
                i += 1
            if weight == 0:
                continue
            if rounds[place] < 0:
                mark, rank = place, -rounds[place]
                continue
            if best < 0:
                best, first = place, rounds[place]
            if mark >= 0 and rounds[place] <= rank and (not valued or values[place] == values[mark]):
                held += weight
        believed = values[mark] if valued and mark >= 0 else 0
        derived = values[best] if valued and best >= 0 else 0
        dropped, losing, follows, contends, waits = ruled(
            mark >= 0, believed, rank, held, best >= 0, derived, first, now, valued, eager
        )
        if dropped:
            at[emitted], ranks[emitted], signs[emitted] = mark, rank, -1
            emitted += 1
        if losing:
            later[waiting], wait[waiting] = group, -rank
            waiting += 1
        if follows:
            at[emitted], ranks[emitted], signs[emitted] = best, first, 1
            emitted += 1
        if contends:
            contending[contenders] = best
            contenders += 1
        if waits:
            later[waiting], wait[waiting] = group, first
            waiting += 1
    return at[:emitted], ranks[:emitted], signs[:emitted], later[:waiting], wait[:waiting], contending[:contenders]


@compiled
def _by_group(groups: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Places in the order of their groups, and where each group ends."""
    ends = np.zeros(count + 1, np.int64)
    for i in range(len(groups)):
        ends[groups[i] + 1] += 1
    for group in range(count):
        ends[group + 1] += ends[group]
    order = np.empty(len(groups), np.int64)
    for i in range(len(groups)):
        order[ends[groups[i]]] = i
        ends[groups[i]] += 1
    return order, ends


@inner
def _sort(order: Int64s, start: int, end: int, values: Int64s, rounds: Int64s) -> None:
    """Puts the derivations of a group in order, by value and round; marks, of negative rounds, come first of their value.

    Shell's sort: by insertion for a handful, and no worse than n^1.5 for the many of a hub.
    """
    gap = 1
    while gap < (end - start) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, end):
            place = order[i]
            j = i - gap
            while j >= start and _compared(order[j], place, values, rounds) > 0:
                order[j + gap] = order[j]
                j -= gap
            order[j + gap] = place
        gap //= 3


@inner
def _compared(left: int, right: int, values: Int64s, rounds: Int64s) -> int:
    if len(values) > 0 and values[left] != values[right]:
        return -1 if values[left] < values[right] else 1
    return 0 if rounds[left] == rounds[right] else -1 if rounds[left] < rounds[right] else 1
