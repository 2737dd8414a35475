"""Rows that are too many to be in memory at once: streams, parts of a bounded number of rows that are made when they are read.

A stream can be read again, and is then made again. Linear steps and unions pass its parts on, sums take them in one by one, and
all others have them collected.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.operators.operator import Input, Joining, Summing
from headwater.state.slicing import collected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State


# Up to so many rows are made once for several readers.
SHARED = 1 << 20


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
    return step.operator.passes_slices or absorbs(step)


def absorbs(step: Step) -> bool:
    """Whether a step is a sum of what comes to it."""
    return isinstance(step.operator, Summing) and step.operator.takes_slices


def readers_of(steps: Iterable[Step]) -> dict[Step, list[Step]]:
    """The steps that read what a step gives."""
    found: dict[Step, list[Step]] = {}
    for step in steps:
        for child in step.inputs:
            found.setdefault(child, []).append(step)
    return found


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
        self.add(step, rows_in, 0, 0.0)
        while True:
            started = perf_counter()
            part = next(parts, None)
            self.add(step, 0, 0 if part is None else len(part), perf_counter() - started)
            if part is None:
                return
            yield part

    def through(self, step: Step, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        """The parts of all inputs after a linear step or a union."""
        self.add(step, 0, 0, 0.0)
        nothing = [Input(child.nothing) for child in step.inputs]
        for i, parts in enumerate(inputs):
            for part in parts:
                if not len(part):
                    continue
                started = perf_counter()
                _, given = step.operator.step((), [*nothing[:i], Input(part), *nothing[i + 1 :]])
                self.add(step, len(part), len(given), perf_counter() - started)
                if len(given):
                    yield given

    def add(self, step: Step, rows_in: int, rows_out: int, seconds: float) -> None:
        """A step has done something."""
        done = self._work.get(step, Work(0, 0, 0.0))
        self._work[step] = Work(done.rows_in + rows_in, done.rows_out + rows_out, done.seconds + seconds, self._rebuilt)


class Flow:
    """What steps have given so far in an epoch: deltas, and streams where there is more than one part."""

    def __init__(self, outputs: dict[Step, Delta], work: dict[Step, Work], takers: Callable[[Step], Sequence[bool]]) -> None:
        """`takers` says for all who read what a step gives whether they take it part by part."""
        self._outputs = outputs
        self._streams: dict[Step, Stream] = {}
        self._work = work
        self._takers = takers

    def reaches(self, step: Step) -> bool:
        """Whether something comes to a step."""
        return any(child in self._outputs or child in self._streams for child in step.inputs)

    def has_stream_for(self, step: Step) -> bool:
        """Whether a stream comes to a step."""
        return bool(self._streams) and any(child in self._streams for child in step.inputs)

    def delta(self, step: Step) -> Delta:
        """All that a step gives."""
        if step in self._streams:
            self.keep(step, collected(self._streams.pop(step)))
        return self._outputs.get(step, step.nothing)

    def parts(self, step: Step) -> Iterable[Delta]:
        """The same part by part."""
        if step in self._streams:
            return self._streams[step]
        return [self._outputs[step]] if step in self._outputs else []

    def collect_for(self, step: Step) -> None:
        """Has all that comes to a step as deltas."""
        for child in step.inputs:
            self.delta(child)

    def join(self, step: Step, inputs: Sequence[Input]) -> None:
        """Takes the step of a join: its pairs are a delta if they are one part, as they are most often."""
        started = perf_counter()
        operator = step.operator
        assert isinstance(operator, Joining)
        parts = operator.slices(inputs)
        first = next(parts, None)
        second = None if first is None else next(parts, None)
        seconds = perf_counter() - started
        clock = Clock(self._work)
        clock.add(step, sum(len(i.delta) for i in inputs), 0 if first is None else len(first), seconds)
        if first is None:
            return
        if second is None:
            self._outputs[step] = first
            return
        begun = chain([first], clock.timed(step, chain([second], parts), 0))
        self._give(step, Stream(lambda: clock.timed(step, operator.slices(inputs), 0), begun))

    def pass_on(self, step: Step, given: Mapping[int, Delta] | None = None) -> None:
        """Takes the step of a linear operator or a union, to which a stream comes; some inputs may be `given`."""
        known = given or {}
        inputs = [[known[i]] if i in known else self.parts(child) for i, child in enumerate(step.inputs)]
        self._give(step, Stream(lambda: Clock(self._work).through(step, inputs)))

    def sum_up(self, step: Step, state: State) -> State:
        """Takes the step of a sum to which a stream comes; its new state."""
        started = perf_counter()
        operator = step.operator
        assert isinstance(operator, Summing)
        parts = Reading(iter(self.parts(step.inputs[0])))
        state, output = operator.step_in_slices(state, parts)
        Clock(self._work).add(step, parts.rows, len(output), perf_counter() - started - parts.seconds)
        self.keep(step, output)
        return state

    def _give(self, step: Step, stream: Stream) -> None:
        """Keeps what a step gives: as it is if all who read it take it part by part, else collected."""
        takers = self._takers(step)
        if not takers or not all(takers):
            self.keep(step, collected(stream))
            return
        if len(takers) > 1:
            parts = iter(stream)
            few = up_to(SHARED, parts)
            more = next(parts, None)
            if more is None:
                self.keep(step, collected(few))
                return
            stream = stream.going_on(chain(few, [more], parts))
        self._streams[step] = stream

    def keep(self, step: Step, delta: Delta | None) -> None:
        """A step gives a delta, if that is not empty."""
        if delta is not None and len(delta):
            self._outputs[step] = delta
