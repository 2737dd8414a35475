"""Rules at work: what rows that are believed or dropped derive, by the instructions of a program (`bodies`).

A row on its way is a line: its weight, one bit a register for NULL, then the registers. An instruction is done for all lines
before the next one; a lookup makes other lines of them, one for each row that is met.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.compiled import compiled, inner
from headwater.operators.bodies import ADD, COMPARE, LESS, LESS_OR_EQUAL, LITERAL, LOOKUP, NOT_NULL, SAME
from headwater.operators.groups import COLUMNS, DUE, FIRST, KEY, KEYS, NULLS, ORDER, RELATION, STATUS, STRANGE, TIMES, roomy
from headwater.state.hashing import SEED
from headwater.state.loops import NULL, mix
from headwater.state.probing import UNBOUNDED
from headwater.state.stored import Stored, is_null, line_of, lines_with, near, read, weight_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

# A row that is emitted: its group, its value, its rank, its weight.
GROUP, BEST, RANK, SIGN = range(4)
# A line: weight, NULL bits, then registers.
_TIMES, _NULLS, _FIRST = range(3)
# A rule: from which relation to which, its instructions, the register of the rank, columns.
_SOURCE, _TARGET, _START, _END, _RANK, _COLUMNS = range(6)


class Code(NamedTuple):
    """A program; inputs are numbers of arrangements."""

    code: Int64s
    rules: Int64s
    outputs: Int64s
    meetings: Int64s
    probes: Int64s
    found: Int64s


@compiled
def followed(
    emitted: Int64s,
    first: int,
    end: int,
    most: int,
    groups: Int64s,
    sizes: Int64s,
    relations: Int64s,
    program: Code,
    stored: Stored,
    derived: Int64s,
    lines: Int64s,
    others: Int64s,
) -> tuple[Int64s, int, Int64s, Int64s]:
    """What some of the rows derive, and how much that is; and the room for lines, to be used again.

    Where several rows would be more than `most` lines on their way, it is −1: fewer rows are to be followed at a time.
    """
    made = 0
    limit = most if end - first > 1 else UNBOUNDED
    for rule in range(program.rules.shape[0]):
        lines = roomy(lines, end - first)
        n = _entering(emitted, first, end, groups, relations, program.rules[rule, _SOURCE], lines)
        for step in range(program.rules[rule, _START], program.rules[rule, _END]):
            if n == 0:
                break
            if program.code[step, 0] == LOOKUP:
                others, n = _met(lines, n, others, program.code[step, 4], program, stored, limit)
                if n < 0:
                    return derived, -1, lines, others
                lines, others = others, lines
            elif not _done(lines, n, program.code, step):
                sizes[STATUS] = STRANGE
                return derived, made, lines, others
        derived = roomy(derived, made + n)
        made = _leaving(lines, n, program.rules, rule, program.outputs, derived, made)
    return derived, made, lines, others


@inner
def _entering(emitted: Int64s, first: int, end: int, groups: Int64s, relations: Int64s, source: int, lines: Int64s) -> int:
    """Those of the rows that are of a relation as lines."""
    n = 0
    keys, order, columns = relations[source, KEYS], relations[source, ORDER], relations[source, COLUMNS]
    for i in range(first, end):
        group = emitted[i, GROUP]
        if groups[group, RELATION] == source:
            lines[n, _TIMES], lines[n, _NULLS] = emitted[i, SIGN], groups[group, NULLS]
            for c in range(keys):
                lines[n, _FIRST + c] = groups[group, KEY + c]
            if order != 0:
                lines[n, _FIRST + keys] = emitted[i, BEST] if order > 0 else ~emitted[i, BEST]
            lines[n, _FIRST + columns] = emitted[i, RANK]
            n += 1
    return n


@inner
def _leaving(lines: Int64s, n: int, rules: Int64s, rule: int, outputs: Int64s, derived: Int64s, made: int) -> int:
    """The lines as rows that are derived, in the round after their rank."""
    target, rank, columns = rules[rule, _TARGET], _FIRST + rules[rule, _RANK], rules[rule, _COLUMNS]
    for i in range(n):
        if lines[i, _TIMES] == 0:
            continue
        derived[made, RELATION], derived[made, TIMES], derived[made, DUE] = target, lines[i, _TIMES], lines[i, rank] + 1
        nulls = 0
        for c in range(columns):
            missing = (lines[i, _NULLS] >> outputs[rule, c]) & 1
            nulls |= missing << c
            derived[made, FIRST + c] = 0 if missing else lines[i, _FIRST + outputs[rule, c]]
        derived[made, NULLS] = nulls
        made += 1
    return made


@inner
def _done(lines: Int64s, n: int, code: Int64s, step: int) -> bool:  # noqa: C901  (one case an instruction)
    """Does an instruction for all lines; false if a number would overflow. Lines that end have the weight zero."""
    operation, a, b, into, number = code[step, 0], code[step, 1], code[step, 2], code[step, 3], code[step, 4]
    for i in range(n):
        if lines[i, _TIMES] == 0:
            continue
        null_a, null_b = (lines[i, _NULLS] >> a) & 1, (lines[i, _NULLS] >> b) & 1
        x, y = lines[i, _FIRST + a], lines[i, _FIRST + b]
        if operation == NOT_NULL:
            if null_a:
                lines[i, _TIMES] = 0
        elif operation == SAME:
            if null_a != null_b or (not null_a and x != y):
                lines[i, _TIMES] = 0
        elif operation == COMPARE:
            holds = x < y if number == LESS else x <= y if number == LESS_OR_EQUAL else x == y
            if null_a or null_b or not holds:
                lines[i, _TIMES] = 0
        elif operation == LITERAL:
            lines[i, _FIRST + into] = number
            lines[i, _NULLS] = (lines[i, _NULLS] & ~(1 << into)) | (a << into)
        else:
            missing = null_a | null_b
            other = y if operation == ADD else -y
            total = x + other
            wrapped = (x >= 0) == (other >= 0) and (total >= 0) != (x >= 0)
            negated = operation == ADD or y != other or y == 0
            if not missing and (wrapped or not negated or total > number or total < -number - 1):
                return False
            lines[i, _FIRST + into] = 0 if missing else total
            lines[i, _NULLS] = (lines[i, _NULLS] & ~(1 << into)) | (missing << into)
    return True


@compiled
def _met(lines: Int64s, n: int, others: Int64s, number: int, program: Code, stored: Stored, most: int) -> tuple[Int64s, int]:
    """A line for each row that a line meets, and how many there are; −1 if they are more than `most`."""
    others = roomy(others, n)
    done = made = 0
    while True:
        done, made = _meet(lines, done, n, others, made, number, program, stored)
        if done == n:
            return others, made
        if others.shape[0] >= most:
            return others, -1
        others = roomy(others, others.shape[0] + 1)


@inner
def _meet(  # noqa: C901  (one pass)
    lines: Int64s, first: int, n: int, others: Int64s, made: int, number: int, program: Code, stored: Stored
) -> tuple[int, int]:
    """The same from a line on, as far as there is room: up to which line, and how many there are then."""
    _, _, _, meetings, probes, found = program
    runs, spans, keys, places = stored
    source, probed, wanted = meetings[number, 0], meetings[number, 1], meetings[number, 2]
    for i in range(first, n):
        if lines[i, _TIMES] == 0:
            continue
        before, h = made, SEED
        for c in range(probed):
            register = probes[number, c]
            h = mix(h + (NULL if (lines[i, _NULLS] >> register) & 1 else np.uint64(lines[i, _FIRST + register])))
        for run in range(spans[source, 0], spans[source, 1]):
            start, end = near(runs, run, h)
            start, end = lines_with(runs, run, h, start, end)
            for at in range(start, end):
                line, same = line_of(runs, run, at), True
                for c in range(probed):
                    register, column = probes[number, c], keys[source, c]
                    missing = is_null(line, places, source, column)
                    same &= missing == ((lines[i, _NULLS] >> register) & 1 != 0)
                    same &= missing or read(line, places, source, column) == lines[i, _FIRST + register]
                if same:
                    if made == others.shape[0]:
                        return i, before
                    for c in range(lines.shape[1]):
                        others[made, c] = lines[i, c]
                    others[made, _TIMES] *= weight_of(runs, run, at)
                    for k in range(wanted):
                        column, register = found[number, k, 0], found[number, k, 1]
                        missing = is_null(line, places, source, column)
                        others[made, _FIRST + register] = 0 if missing else read(line, places, source, column)
                        others[made, _NULLS] = (others[made, _NULLS] & ~(1 << register)) | (np.int64(missing) << register)
                    made += 1
    return n, made
