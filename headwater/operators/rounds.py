"""All rounds of an epoch in one compiled loop, for bodies that have a program (`bodies`).

What `fixpoint` does a round at a time, over batches of rows, this does over a table of groups (`groups`), and the rules of the
program (`rules`) take the place of the operators. The rounds and what is done in them are the same:

    waiting     groups by the round that they wait for; the first round is next, or all of them if nothing can be lost any more
    contending  groups by their best value: once nothing waits, the best ones are believed, as Dijkstra does

At the end, what differs from the arrangements is one delta for each relation. The loop gives up, and nothing has changed, where
a number would overflow or a best value is NULL: the operators know what is to be said of that.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.delta import Delta
from headwater.operators.groups import (
    BEFORE,
    BEFORE_IT,
    BEST,
    CHANGED,
    COLUMNS,
    CONTENDS,
    ENDLESS,
    ENTRIES,
    FINE,
    FIRST,
    GROUPS,
    HEAD,
    KEY,
    KEYS,
    LAST_CHANGED,
    NEXT,
    NULLS,
    ORDER,
    RELATION,
    ROUND,
    STATUS,
    TIMES,
    VALUE,
    WEIGHT,
    Known,
    add,
    counted,
    judged,
    none_known,
    roomy,
)
from headwater.operators.rules import Code, followed
from headwater.state import layout
from headwater.state.stored import Stored, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.operators.bodies import Program
    from headwater.operators.fixpoint import Fixpoint
    from headwater.state.arrangement import Arrangement

    Int64s = NDArray[np.int64]

_LAST = (1 << 62) - 1
# What waits: the round or the value, the group, whether it may be lost.
_DUE, _GROUP, _LOSING = range(3)
# Counters of an agenda: groups that wait, those of them that may be lost, and groups in which values contend.
_WAITING, _LOST, _CONTENDING = range(3)
# Figures of an epoch: rounds done, ranks reached, the latest rank, rows emitted, and batches: rounds and best values.
_DONE, _DEPTH, _LATEST, _ROWS, _BATCHES = range(5)
# More batches than this, to a round or a group, lead nowhere.
_MANY = 100


class Agenda(NamedTuple):
    """Two heaps, by round and by value, and how long they are."""

    waiting: Int64s
    contending: Int64s
    sizes: Int64s


class Epoch(NamedTuple):
    """What an epoch did: for each relation the change of its derivations and of its rows, both with rounds; and figures."""

    derivations: list[Delta | None]
    rows: list[Delta | None]
    done: int
    latest: int


def run(
    fixpoint: Fixpoint,
    program: Program,
    derived: Sequence[Delta | None],
    kept: Sequence[Arrangement],
    inputs: Sequence[Arrangement | None],
) -> Epoch | None:
    """What follows from rows that were derived of each relation; None if this loop is not for it."""
    relations = np.array(
        [(relation.keys, {"min": 1, "max": -1}.get(relation.kind, 0), len(relation.types)) for relation in fixpoint.relations],
        np.int64,
    )
    # Arrangements of relations come first, then those of the inputs that are looked up.
    looked_up = [inputs[i] for i in program.meetings[:, 0].tolist()]
    arrangements = [*kept, *(each for each in looked_up if each is not None)]
    if len(arrangements) < len(kept) + len(looked_up):
        return None
    meetings = program.meetings.copy()
    meetings[:, 0] = np.arange(len(looked_up)) + len(kept)
    width = int(relations[:, COLUMNS].max())
    code = Code(program.code, program.rules, program.outputs, meetings, program.probes, program.found)
    first = _lines(derived, fixpoint, width)
    tables, held = stored(arrangements)
    status, changes, beliefs, figures = _epoch(
        first, relations, code, tables, program.registers, fixpoint.rounds, fixpoint.rows
    )
    # Until here the loop read what these own.
    del held
    if status == ENDLESS:
        which = int(changes[0, RELATION])
        sample = _delta(fixpoint, which, changes)
        assert sample is not None
        row = tuple(sample.rows.to_pylist()[0].values())[:-1]
        raise fixpoint.endless(which, row, of_rows=bool(figures[_ROWS] > fixpoint.rows))
    if status != FINE:
        return None
    return Epoch(
        [_delta(fixpoint, i, changes) for i in range(len(kept))],
        [_delta(fixpoint, i, beliefs) for i in range(len(kept))],
        int(figures[_DONE]),
        int(figures[_LATEST]),
    )


def _lines(derived: Sequence[Delta | None], fixpoint: Fixpoint, width: int) -> Int64s:
    """Rows with ranks as lines that the loop counts: derived in the round after their rank."""
    parts = []
    for number, delta in enumerate(derived):
        if delta is None or not len(delta):
            continue
        lines = np.zeros((len(delta), FIRST + width), np.int64)
        lines[:, RELATION], lines[:, TIMES] = number, delta.weights
        *columns, ranks = delta.rows.columns
        lines[:, FIRST - 1] = ranks.to_numpy() + 1
        for i, column in enumerate(columns[: len(fixpoint.relations[number].types)]):
            values = layout.words(column)[0].view(np.int64)
            valid = layout.validity(column)
            if valid is not None:
                values = np.where(valid, values, 0)
                lines[:, NULLS] |= np.where(valid, 0, 1 << i)
            lines[:, FIRST + i] = values
        parts.append(lines)
    if not parts:
        return np.zeros((0, FIRST + width), np.int64)
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _delta(fixpoint: Fixpoint, relation: int, lines: Int64s) -> Delta | None:
    """Lines of a relation as rows with rounds."""
    mine = lines[:, RELATION] == relation
    found = lines if mine.all() else lines[mine]
    if not len(found):
        return None
    types = fixpoint.relations[relation].types
    columns = []
    for i, kind in enumerate(types):
        made = layout.kind_of(kind)
        assert made is not None
        values = made.empty(len(found))
        values[:] = found[:, FIRST + i]
        missing = (found[:, NULLS] >> i) & 1
        columns.append(made.column(kind, values, missing.astype(bool) if missing.any() else None))
    rounds = pa.array(np.ascontiguousarray(found[:, FIRST - 1]))
    rows = pa.RecordBatch.from_arrays([*columns, rounds], schema=fixpoint.schemas[relation])
    return Delta(rows, np.ascontiguousarray(found[:, TIMES]))


# -- the loop


@compiled
def _epoch(
    first: Int64s, relations: Int64s, program: Code, stored: Stored, registers: int, rounds: int, rows: int
) -> tuple[int, Int64s, Int64s, Int64s]:
    """The status, changes of derivations and of rows, and figures; of an epoch without end, the row it was about to add."""
    width = first.shape[1] - FIRST
    figures = np.zeros(5, np.int64)
    agenda = Agenda(np.empty((256, 3), np.int64), np.empty((256, 3), np.int64), np.zeros(3, np.int64))
    emitted = np.empty((256, 4), np.int64)
    derived = np.empty((256, FIRST + width), np.int64)
    lines, others = np.empty((256, 2 + registers), np.int64), np.empty((256, 2 + registers), np.int64)
    known = counted(none_known(width), first, first.shape[0], relations, stored)
    agenda = _classified(known, agenda, relations)
    batch = np.empty((256, 3), np.int64)
    while known.sizes[STATUS] == FINE and (agenda.sizes[_WAITING] > 0 or agenda.sizes[_CONTENDING] > 0):
        eager = agenda.sizes[_WAITING] == 0
        batch, count, now = _best(known, agenda, relations, batch) if eager else _due(agenda, batch)
        emitted = roomy(emitted, 2 * count)
        known, agenda, made = _settled(known, agenda, relations, batch, count, now, eager, emitted)
        figures[_DONE] += not eager
        figures[_BATCHES] += 1
        if made == 0:
            continue
        if not _is_bounded(emitted, made, figures, rounds, rows, known.sizes[GROUPS]):
            last = np.zeros((1, FIRST + width), np.int64)
            _written(last[0], known.groups[emitted[made - 1, 0]], relations, emitted[made - 1, 1], emitted[made - 1, 2], 1)
            return ENDLESS, last, last, figures
        derived, found, lines, others = followed(
            emitted, made, known.groups, known.sizes, relations, program, stored, derived, lines, others
        )
        known = counted(known, derived, found, relations, stored)
        agenda = _classified(known, agenda, relations)
    if known.sizes[STATUS] != FINE:
        return known.sizes[STATUS], derived, derived, figures
    return FINE, _changes(known, relations, width), _beliefs(known, relations, width), figures


@compiled
def _is_bounded(emitted: Int64s, count: int, figures: Int64s, rounds: int, rows: int, groups: int) -> bool:
    """Counts the ranks that are later than any before, and the rows; whether they are no more than they may be."""
    latest = figures[_LATEST]
    for i in range(count):
        latest = max(latest, emitted[i, 2])
    figures[_DEPTH] += latest > figures[_LATEST]
    figures[_LATEST] = latest
    figures[_ROWS] += count
    return figures[_DEPTH] <= rounds and figures[_ROWS] <= rows and figures[_BATCHES] <= _MANY * (rounds + groups)


@compiled
def _classified(known: Known, agenda: Agenda, relations: Int64s) -> Agenda:
    """What the groups that changed have to wait for."""
    waiting, contending, sizes = agenda
    _, groups, entries, counts = known
    group = counts[LAST_CHANGED]
    while group >= 0:
        if sizes[_WAITING] + 2 > waiting.shape[0]:
            waiting = roomy(waiting, sizes[_WAITING] + 2)
        if sizes[_CONTENDING] + 1 > contending.shape[0]:
            contending = roomy(contending, sizes[_CONTENDING] + 1)
        valued = relations[groups[group, RELATION], ORDER] != 0
        found = judged(entries, groups[group, HEAD], 0, valued, False)  # noqa: FBT003
        _noted(groups, group, found[4], found[5], found[6], found[7], waiting, contending, sizes)
        groups[group, CHANGED] = 0
        group = groups[group, BEFORE_IT]
    counts[LAST_CHANGED] = -1
    return Agenda(waiting, contending, sizes)


@compiled
def _noted(
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
        _push(waiting, sizes, _WAITING, losing, group, 1)
        sizes[_LOST] += 1
    if first >= 0:
        _push(waiting, sizes, _WAITING, first, group, 0)
    if contends and not (groups[group, CONTENDS] and groups[group, BEST] <= value):
        groups[group, CONTENDS], groups[group, BEST] = 1, value
        _push(contending, sizes, _CONTENDING, value, group, 0)


@compiled
def _push(heap: Int64s, sizes: Int64s, which: int, due: int, group: int, losing: int) -> None:
    at = sizes[which]
    sizes[which] += 1
    while at > 0 and heap[(at - 1) >> 1, _DUE] > due:
        _copy(heap, (at - 1) >> 1, heap, at)
        at = (at - 1) >> 1
    heap[at, _DUE], heap[at, _GROUP], heap[at, _LOSING] = due, group, losing


@compiled
def _copy(heap: Int64s, at: int, other: Int64s, to: int) -> None:
    for c in range(3):
        other[to, c] = heap[at, c]


@compiled
def _pop(heap: Int64s, sizes: Int64s, which: int) -> None:
    """Takes the first off a heap."""
    sizes[which] -= 1
    count = sizes[which]
    if count == 0:
        return
    due, group, losing = heap[count, _DUE], heap[count, _GROUP], heap[count, _LOSING]
    at, below = 0, 1
    while below < count:
        if below + 1 < count and heap[below + 1, _DUE] < heap[below, _DUE]:
            below += 1
        if heap[below, _DUE] >= due:
            break
        _copy(heap, below, heap, at)
        at, below = below, 2 * below + 1
    heap[at, _DUE], heap[at, _GROUP], heap[at, _LOSING] = due, group, losing


@compiled
def _due(agenda: Agenda, batch: Int64s) -> tuple[Int64s, int, int]:
    """The groups of the next round, and which that is; all that wait, in the last round, if none can be lost any more."""
    waiting, _, sizes = agenda
    if sizes[_LOST] == 0:
        count = sizes[_WAITING]
        batch = roomy(batch, count)
        batch[:count] = waiting[:count]
        sizes[_WAITING] = 0
        return batch, count, _LAST
    now, count = waiting[0, _DUE], 0
    while sizes[_WAITING] > 0 and waiting[0, _DUE] == now:
        if count == batch.shape[0]:
            batch = roomy(batch, count + 1)
        _copy(waiting, 0, batch, count)
        sizes[_LOST] -= waiting[0, _LOSING]
        count += 1
        _pop(waiting, sizes, _WAITING)
    return batch, count, now


@compiled
def _best(known: Known, agenda: Agenda, relations: Int64s, batch: Int64s) -> tuple[Int64s, int, int]:
    """The groups in which the best of all values contends."""
    _, contending, sizes = agenda
    _, groups, entries, _ = known
    value, count = contending[0, _DUE], 0
    while sizes[_CONTENDING] > 0 and contending[0, _DUE] == value:
        group = contending[0, _GROUP]
        _pop(contending, sizes, _CONTENDING)
        if not (groups[group, CONTENDS] and groups[group, BEST] == value):
            continue
        groups[group, CONTENDS] = 0
        found = judged(entries, groups[group, HEAD], 0, relations[groups[group, RELATION], ORDER] != 0, False)  # noqa: FBT003
        if found[7] and found[6] > value:
            # What contended is gone, and something worse does now.
            groups[group, CONTENDS], groups[group, BEST] = 1, found[6]
            _push(contending, sizes, _CONTENDING, found[6], group, 0)
            continue
        if count == batch.shape[0]:
            batch = roomy(batch, count + 1)
        batch[count, _GROUP] = group
        count += 1
    return batch, count, 0


@compiled
def _settled(
    known: Known,
    agenda: Agenda,
    relations: Int64s,
    batch: Int64s,
    count: int,
    now: int,
    eager: bool,  # noqa: FBT001
    emitted: Int64s,
) -> tuple[Known, Agenda, int]:
    """Has groups drop and believe what they must now; these rows are emitted, and the marks set."""
    waiting, contending, sizes = agenda
    waiting, contending = roomy(waiting, sizes[_WAITING] + 2 * count), roomy(contending, sizes[_CONTENDING] + count)
    slots, groups, _, counts = known
    entries = roomy(known.entries, counts[ENTRIES] + 2 * count)
    made = 0
    for i in range(count):
        group = batch[i, _GROUP]
        valued = relations[groups[group, RELATION], ORDER] != 0
        gone, old, rank, new, losing, first, value, contends = judged(entries, groups[group, HEAD], now, valued, eager)
        if gone >= 0:
            add(entries, counts, groups, group, old, -gone, -1)
            emitted[made, 0], emitted[made, 1], emitted[made, 2], emitted[made, 3] = group, old, gone, -1
            made += 1
        if rank >= 0:
            add(entries, counts, groups, group, new, -rank, 1)
            emitted[made, 0], emitted[made, 1], emitted[made, 2], emitted[made, 3] = group, new, rank, 1
            made += 1
        _noted(groups, group, losing, first, value, contends, waiting, contending, sizes)
    return Known(slots, groups, entries, counts), Agenda(waiting, contending, sizes), made


# -- what came of it


@compiled
def _changes(known: Known, relations: Int64s, width: int) -> Int64s:
    """The derivations, marks among them, that are more or fewer than before."""
    made = 0
    lines = np.zeros((max(known.sizes[ENTRIES], 1), FIRST + width), np.int64)
    for group in range(known.sizes[GROUPS]):
        at = known.groups[group, HEAD]
        while at >= 0:
            entry = known.entries[at]
            if entry[WEIGHT] != entry[BEFORE]:
                _written(lines[made], known.groups[group], relations, entry[VALUE], entry[ROUND], entry[WEIGHT] - entry[BEFORE])
                made += 1
            at = entry[NEXT]
    return lines[:made]


@compiled
def _beliefs(known: Known, relations: Int64s, width: int) -> Int64s:
    """The rows, with their ranks, that are believed or dropped."""
    made = 0
    lines = np.zeros((2 * max(known.sizes[GROUPS], 1), FIRST + width), np.int64)
    for group in range(known.sizes[GROUPS]):
        at = known.groups[group, HEAD]
        while at >= 0:
            entry = known.entries[at]
            if entry[ROUND] < 0 and entry[WEIGHT] != entry[BEFORE]:
                weight = entry[WEIGHT] - entry[BEFORE]
                _written(lines[made], known.groups[group], relations, entry[VALUE], -entry[ROUND], weight)
                made += 1
            at = entry[NEXT]
    return lines[:made]


@compiled
def _written(line: Int64s, group: Int64s, relations: Int64s, value: int, due: int, weight: int) -> None:
    relation = relations[group[RELATION]]
    line[RELATION], line[NULLS], line[TIMES], line[FIRST - 1] = group[RELATION], group[NULLS], weight, due
    for c in range(relation[KEYS]):
        line[FIRST + c] = group[KEY + c]
    if relation[COLUMNS] > relation[KEYS]:
        line[FIRST + relation[KEYS]] = value if relation[ORDER] > 0 else ~value
