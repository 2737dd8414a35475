"""All rounds of an epoch in one compiled loop, for bodies that have a program (`bodies`).

What `going_round` does a round at a time, over batches of rows, this does over a table of groups (`groups`), and the rules of
the program (`rules`) take the place of the operators. The rounds and what is done in them are the same:

    waiting     groups by the round that they wait for; the first round is next, or all of them if nothing can be lost any more
    contending  groups by their best value: once nothing waits, the best ones are believed, as Dijkstra does

At the end, what differs from the arrangements is one delta for each relation. The loop gives up, and nothing has changed, where
a number would overflow or a best value is NULL: the operators know what is to be said of that.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.compiled import compiled, inner
from headwater.operators.agenda import CONTENDING, DUE, GROUP, WAITING, Agenda, next_due, noted, nothing_due, pop, push
from headwater.operators.groups import (
    BEFORE_IT,
    BEST,
    CHANGED,
    CHANGES,
    COLUMNS,
    CONTENDS,
    ENDLESS,
    ENTRIES,
    FINE,
    FIRST,
    GROUPS,
    LAST_CHANGED,
    NULLS,
    ORDER,
    RELATION,
    STATUS,
    TIMES,
    Known,
    add,
    counted,
    judged,
    mark,
    none_known,
    roomy,
)
from headwater.operators.outcomes import outcome, row_of
from headwater.operators.rules import Code, followed
from headwater.state import layout, slicing
from headwater.state.stored import Stored, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.delta import Delta
    from headwater.operators.bodies import Program
    from headwater.operators.fixpoint import Fixpoint
    from headwater.state.arrangement import Arrangement

    Int64s = NDArray[np.int64]

# Figures of an epoch: rounds done, ranks reached, the latest rank, rows emitted, and batches: rounds and best values.
_DONE, _DEPTH, _LATEST, _ROWS, _BATCHES = range(5)
# More batches than this, to a round or a group, lead nowhere.
_MANY = 100


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
    known, figures, last = _epoch(
        first, relations, code, tables, program.registers, fixpoint.rounds, fixpoint.rows, slicing.PAIRS
    )
    # Until here the loop read what these own.
    del held
    status = known.sizes[STATUS]
    if status == ENDLESS:
        which, row = row_of(fixpoint, known, relations, *last[:2].tolist())
        raise fixpoint.endless(which, row, of_rows=bool(figures[_ROWS] > fixpoint.rows))
    if status != FINE:
        return None
    return Epoch(*outcome(fixpoint, known, relations), int(figures[_DONE]), int(figures[_LATEST]))


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


# -- the loop


@compiled
def _epoch(
    first: Int64s, relations: Int64s, program: Code, stored: Stored, registers: int, rounds: int, rows: int, most: int
) -> tuple[Known, Int64s, Int64s]:
    """The groups as they are then, and figures; of an epoch without end, the group and the value it was about to add."""
    width = first.shape[1] - FIRST
    figures = np.zeros(5, np.int64)
    agenda = nothing_due()
    emitted = np.empty((256, 4), np.int64)
    derived = np.empty((256, FIRST + width), np.int64)
    lines, others = np.empty((256, 2 + registers), np.int64), np.empty((256, 2 + registers), np.int64)
    known = counted(none_known(width, first.shape[0]), first, first.shape[0], relations, stored)
    agenda = _classified(known, agenda, relations)
    batch = np.empty((256, 3), np.int64)
    at_once = most
    while known.sizes[STATUS] == FINE and (agenda.sizes[WAITING] > 0 or agenda.sizes[CONTENDING] > 0):
        eager = agenda.sizes[WAITING] == 0
        batch, count, now = _best(known, agenda, relations, batch) if eager else next_due(agenda, batch)
        emitted = roomy(emitted, 2 * count)
        known, agenda, made = _settled(known, agenda, relations, batch, count, now, eager, emitted)
        figures[_DONE] += not eager
        figures[_BATCHES] += 1
        if made == 0:
            continue
        if not _is_bounded(emitted, made, figures, rounds, rows, known.sizes[GROUPS]):
            known.sizes[STATUS] = ENDLESS
            return known, figures, emitted[made - 1]
        done = 0
        while done < made and known.sizes[STATUS] == FINE:
            end = min(made, done + at_once)
            derived, found, lines, others = followed(
                emitted, done, end, most, known.groups, known.sizes, relations, program, stored, derived, lines, others
            )
            if found < 0:
                at_once = max(1, (end - done) // 4)
                continue
            known = counted(known, derived, found, relations, stored)
            done, at_once = end, min(2 * at_once, most)
        agenda = _classified(known, agenda, relations)
    return known, figures, emitted[0]


@inner
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
    changes = known.sizes[CHANGES]
    waiting, contending = roomy(waiting, sizes[WAITING] + 2 * changes), roomy(contending, sizes[CONTENDING] + changes)
    _classify(known.groups, known.entries, known.sizes, relations, waiting, contending, sizes)
    return Agenda(waiting, contending, sizes)


@inner
def _classify(
    groups: Int64s, entries: Int64s, counts: Int64s, relations: Int64s, waiting: Int64s, contending: Int64s, sizes: Int64s
) -> None:
    group = counts[LAST_CHANGED]
    while group >= 0:
        valued = relations[groups[group, RELATION], ORDER] != 0
        found = judged(groups, group, entries, 0, valued, False)  # noqa: FBT003
        noted(groups, group, found[4], found[5], found[6], found[7], waiting, contending, sizes)
        groups[group, CHANGED] = 0
        group = groups[group, BEFORE_IT]
    counts[LAST_CHANGED], counts[CHANGES] = -1, 0


@compiled
def _best(known: Known, agenda: Agenda, relations: Int64s, batch: Int64s) -> tuple[Int64s, int, int]:
    """The groups in which the best of all values contends."""
    batch = roomy(batch, agenda.sizes[CONTENDING])
    return batch, _best_of(known.groups, known.entries, relations, agenda.contending, agenda.sizes, batch), 0


@inner
def _best_of(groups: Int64s, entries: Int64s, relations: Int64s, contending: Int64s, sizes: Int64s, batch: Int64s) -> int:
    value, count = contending[0, DUE], 0
    while sizes[CONTENDING] > 0 and contending[0, DUE] == value:
        group = contending[0, GROUP]
        pop(contending, sizes, CONTENDING)
        if not (groups[group, CONTENDS] and groups[group, BEST] == value):
            continue
        groups[group, CONTENDS] = 0
        found = judged(groups, group, entries, 0, relations[groups[group, RELATION], ORDER] != 0, False)  # noqa: FBT003
        if found[7] and found[6] > value:
            # What contended is gone, and something worse does now.
            groups[group, CONTENDS], groups[group, BEST] = 1, found[6]
            push(contending, sizes, CONTENDING, found[6], group, 0)
            continue
        batch[count, GROUP] = group
        count += 1
    return count


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
    waiting, contending = roomy(waiting, sizes[WAITING] + 2 * count), roomy(contending, sizes[CONTENDING] + count)
    slots, groups, _, counts = known
    entries = roomy(known.entries, counts[ENTRIES] + 2 * count)
    made = _settle(groups, entries, counts, waiting, contending, sizes, relations, batch, count, now, eager, emitted)
    return Known(slots, groups, entries, counts), Agenda(waiting, contending, sizes), made


@inner
def _settle(
    groups: Int64s,
    entries: Int64s,
    counts: Int64s,
    waiting: Int64s,
    contending: Int64s,
    sizes: Int64s,
    relations: Int64s,
    batch: Int64s,
    count: int,
    now: int,
    eager: bool,  # noqa: FBT001
    emitted: Int64s,
) -> int:
    made = 0
    for i in range(count):
        group = batch[i, GROUP]
        valued = relations[groups[group, RELATION], ORDER] != 0
        gone, old, rank, new, losing, first, value, contends = judged(groups, group, entries, now, valued, eager)
        if gone >= 0:
            mark(groups, group, entries, add(entries, counts, groups, group, old, -gone, -1))
            emitted[made, 0], emitted[made, 1], emitted[made, 2], emitted[made, 3] = group, old, gone, -1
            made += 1
        if rank >= 0:
            mark(groups, group, entries, add(entries, counts, groups, group, new, -rank, 1))
            emitted[made, 0], emitted[made, 1], emitted[made, 2], emitted[made, 3] = group, new, rank, 1
            made += 1
        noted(groups, group, losing, first, value, contends, waiting, contending, sizes)
    return made
