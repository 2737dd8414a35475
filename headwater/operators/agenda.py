"""What groups of a fixpoint have to wait for while compiled rounds last: a round, or that nothing waits for one.

    waiting     groups by the round that they wait for; the first round is next, or all of them if nothing can be lost any more
    contending  groups by their best value, the best one first

Both are heaps, whose entries may be out of date: whoever takes a group off looks at it again.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.compiled import compiled, inner
from headwater.operators.groups import BEST, CONTENDS, copy_rows, roomy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

# After all rounds.
LAST = (1 << 62) - 1
# What waits: the round or the value, the group, whether it may be lost.
DUE, GROUP, LOSING = range(3)
# Counters: groups that wait, those of them that may be lost, and groups in which values contend.
WAITING, LOST, CONTENDING = range(3)


class Agenda(NamedTuple):
    """Two heaps, by round and by value, and how long they are."""

    waiting: Int64s
    contending: Int64s
    sizes: Int64s


@compiled
def nothing_due() -> Agenda:
    return Agenda(np.empty((256, 3), np.int64), np.empty((256, 3), np.int64), np.zeros(3, np.int64))


@inner
def noted(
    groups: Int64s,
    group: int,
    losing: int,
    first: int,
    value: int,
    contends: bool,  # noqa: FBT001
    waiting: Int64s,
    contending: Int64s,
    sizes: Int64s,
) -> None:
    """Puts a group on the agenda, for what it may lose, what it may believe, or the value that contends in it."""
    if losing >= 0:
        push(waiting, sizes, WAITING, losing, group, 1)
        sizes[LOST] += 1
    if first >= 0:
        push(waiting, sizes, WAITING, first, group, 0)
    if contends and not (groups[group, CONTENDS] and groups[group, BEST] <= value):
        groups[group, CONTENDS], groups[group, BEST] = 1, value
        push(contending, sizes, CONTENDING, value, group, 0)


@inner
def push(heap: Int64s, sizes: Int64s, which: int, due: int, group: int, losing: int) -> None:
    at = sizes[which]
    sizes[which] += 1
    while at > 0 and heap[(at - 1) >> 1, DUE] > due:
        _copy(heap, (at - 1) >> 1, heap, at)
        at = (at - 1) >> 1
    heap[at, DUE], heap[at, GROUP], heap[at, LOSING] = due, group, losing


@inner
def _copy(heap: Int64s, at: int, other: Int64s, to: int) -> None:
    for c in range(3):
        other[to, c] = heap[at, c]


@inner
def pop(heap: Int64s, sizes: Int64s, which: int) -> None:
    """Takes the first off a heap."""
    sizes[which] -= 1
    count = sizes[which]
    if count == 0:
        return
    due, group, losing = heap[count, DUE], heap[count, GROUP], heap[count, LOSING]
    at, below = 0, 1
    while below < count:
        if below + 1 < count and heap[below + 1, DUE] < heap[below, DUE]:
            below += 1
        if heap[below, DUE] >= due:
            break
        _copy(heap, below, heap, at)
        at, below = below, 2 * below + 1
    heap[at, DUE], heap[at, GROUP], heap[at, LOSING] = due, group, losing


@compiled
def next_due(agenda: Agenda, batch: Int64s) -> tuple[Int64s, int, int]:
    """The groups of the next round, and which that is; all that wait, in the last round, if none can be lost any more."""
    waiting, _, sizes = agenda
    batch = roomy(batch, sizes[WAITING])
    if sizes[LOST] == 0:
        count = sizes[WAITING]
        copy_rows(waiting, count, batch)
        sizes[WAITING] = 0
        return batch, count, LAST
    now = waiting[0, DUE]
    return batch, _taken(waiting, sizes, now, batch), now


@inner
def _taken(waiting: Int64s, sizes: Int64s, now: int, batch: Int64s) -> int:
    """Takes off the groups that wait for a round, and how many these are."""
    count = 0
    while sizes[WAITING] > 0 and waiting[0, DUE] == now:
        _copy(waiting, 0, batch, count)
        sizes[LOST] -= waiting[0, LOSING]
        count += 1
        pop(waiting, sizes, WAITING)
    return count
