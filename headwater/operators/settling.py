"""Settling: which groups believe what in a round, from all the derivations there are of them.

    held      Σ derivations of the value that is believed, of rounds up to its rank
    best      the best value that has derivations, and the first round of these
    dropped   what is believed, if its rank has come and nothing holds it, or if something better is there by now
    believed  the best, where nothing is believed or was just dropped, if its first round has come; else the group waits

A mark is a derivation at a negative round −ρ: the group believes that value, with the rank ρ. A group comes with a handful of
derivations, so these are put in order by insertion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    # Places among the derivations, with ranks and weights; then groups that wait, with the rounds they wait for.
    Settled = tuple[Int64s, Int64s, Int64s, Int64s, Int64s]


class Found(NamedTuple):
    """Derivations and marks: of which group, of which value (less is better), in which round, and how many."""

    groups: Int64s
    values: Int64s
    rounds: Int64s
    weights: Int64s


def settled(found: Found, count: int, now: int, *, valued: bool) -> Settled:
    """What `count` groups believe and drop in round `now`; without values, all derivations are of one."""
    values = found.values if valued else np.zeros(0, np.int64)
    return _settled(found.groups, values, found.rounds, found.weights, count, now)


@compiled
def _settled(  # noqa: C901, PLR0913, PLR0917  (one pass)
    groups: Int64s, values: Int64s, rounds: Int64s, weights: Int64s, count: int, now: int
) -> Settled:
    order, ends = _by_group(groups, count)
    at, ranks, signs = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    later, wait = np.empty(count, np.int64), np.empty(count, np.int64)
    emitted = waiting = 0
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
            if mark >= 0 and rounds[place] <= rank and (len(values) == 0 or values[place] == values[mark]):
                held += weight
        better = best >= 0 and (mark < 0 or (len(values) > 0 and values[best] < values[mark]))
        dropped = mark >= 0 and ((better and first <= now) or (rank <= now and held == 0))
        if dropped:
            at[emitted], ranks[emitted], signs[emitted] = mark, rank, -1
            emitted += 1
        if best >= 0 and first <= now and (dropped or mark < 0):
            at[emitted], ranks[emitted], signs[emitted] = best, first, 1
            emitted += 1
            continue
        due = now
        if best >= 0 and first > now and (dropped or better):
            due = first
        if mark >= 0 and not dropped and rank > now and held == 0 and (due == now or rank < due):
            due = rank
        if due > now:
            later[waiting], wait[waiting] = group, due
            waiting += 1
    return at[:emitted], ranks[:emitted], signs[:emitted], later[:waiting], wait[:waiting]


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


@compiled
def _sort(order: Int64s, start: int, end: int, values: Int64s, rounds: Int64s) -> None:
    """Puts the derivations of a group in order, by value and round; marks, of negative rounds, come first of their value."""
    for i in range(start + 1, end):
        place = order[i]
        j = i - 1
        while j >= start and _compared(order[j], place, values, rounds) > 0:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = place


@compiled
def _compared(left: int, right: int, values: Int64s, rounds: Int64s) -> int:
    if len(values) > 0 and values[left] != values[right]:
        return -1 if values[left] < values[right] else 1
    return 0 if rounds[left] == rounds[right] else -1 if rounds[left] < rounds[right] else 1
