"""Rows that are too many to be in memory at once: streams, parts of a bounded number of rows that are made when they are read.

A stream can be read again, and is then made again. Linear steps and unions pass its parts on, sums take them in one by one, and
all others have them collected.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.operators.aggregate import Aggregate
from headwater.operators.linear import Linear, Union
from headwater.operators.operator import Input
from headwater.state import slicing
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headwater.compiler.dataflow import Step


class Stream:
    """Parts that `make` makes; the first reader goes on where somebody has begun."""

    def __init__(self, make: Callable[[], Iterator[Delta]], begun: Iterator[Delta] | None = None) -> None:
        self._make = make
        self._begun = begun

    def __iter__(self) -> Iterator[Delta]:
        begun, self._begun = self._begun, None
        return self._make() if begun is None else begun

    def going_on(self, begun: Iterator[Delta]) -> Stream:
        """The same, whose first reader finds these parts."""
        return Stream(self._make, begun)


def streams_on(step: Step) -> bool:
    """Whether a step takes in part by part what comes to it."""
    return isinstance(step.operator, Linear | Union) or absorbs(step)


def absorbs(step: Step) -> bool:
    """Whether a step is a sum of what comes to it."""
    return isinstance(step.operator, Aggregate) and step.operator.takes_parts


def collected(parts: Iterable[Delta]) -> Delta | None:
    """The sum of all parts, None if there are none; equal rows of many parts are merged as they come, as long as that helps."""
    found: list[Delta] = []
    rows, limit = 0, 2 * slicing.PAIRS
    for part in parts:
        found.append(part)
        rows += len(part)
        if rows > limit:
            found = [consolidate(Delta.concat(found))]
            merged, rows = rows, len(found[0])
            # Where few rows are equal, the next try is far away.
            limit = (2 if 2 * rows < merged else 8) * rows + 2 * slicing.PAIRS
    return Delta.concat(found) if found else None


def up_to(rows: int, parts: Iterator[Delta]) -> list[Delta]:
    """The next parts, until they are so many rows."""
    found: list[Delta] = []
    while rows > 0 and (part := next(parts, None)) is not None:
        found.append(part)
        rows -= len(part)
    return found


def gathered(rows: int, parts: Iterator[Delta]) -> Iterator[Delta]:
    """The same in larger parts, of about so many rows."""
    while found := up_to(rows, parts):
        yield Delta.concat(found)


@dataclass(frozen=True, slots=True)
class Work:
    """What a step did last: rows in, rows out, seconds; with a delta, or built from all rows of its inputs."""

    rows_in: int
    rows_out: int
    seconds: float
    rebuilt: bool = False


class Reading:
    """Parts on their way to a step: how many rows there were, and how long it waited for them."""

    def __init__(self, parts: Iterator[Delta]) -> None:
        self.rows = 0
        self.seconds = 0.0
        self._parts = parts

    def __iter__(self) -> Iterator[Delta]:
        while True:
            started = perf_counter()
            part = next(self._parts, None)
            self.seconds += perf_counter() - started
            if part is None:
                return
            self.rows += len(part)
            yield part


class Clock:
    """Takes the time of steps that work part by part, by turns."""

    def __init__(self, work: dict[Step, Work], *, rebuilt: bool = False) -> None:
        self._work = work
        self._rebuilt = rebuilt

    def timed(self, step: Step, parts: Iterator[Delta], rows_in: int) -> Iterator[Delta]:
        """The parts that a step gives for so many rows."""
        self._add(step, rows_in, 0, 0.0)
        while True:
            started = perf_counter()
            part = next(parts, None)
            self._add(step, 0, 0 if part is None else len(part), perf_counter() - started)
            if part is None:
                return
            yield part

    def through(self, step: Step, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        """The parts of all inputs after a linear step or a union."""
        self._add(step, 0, 0, 0.0)
        nothing = [Input(child.nothing) for child in step.inputs]
        for i, parts in enumerate(inputs):
            for part in parts:
                if not len(part):
                    continue
                started = perf_counter()
                _, given = step.operator.step((), [*nothing[:i], Input(part), *nothing[i + 1 :]])
                self._add(step, len(part), len(given), perf_counter() - started)
                if len(given):
                    yield given

    def _add(self, step: Step, rows_in: int, rows_out: int, seconds: float) -> None:
        done = self._work.get(step, Work(0, 0, 0.0))
        self._work[step] = Work(done.rows_in + rows_in, done.rows_out + rows_out, done.seconds + seconds, self._rebuilt)
