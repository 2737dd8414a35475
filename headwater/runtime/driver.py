"""One epoch in the driver process: deltas go through the dataflow, step by step, and every step gives its new state.

Nothing is written in place: the states that come out stand beside the ones that went in, and the caller decides which count.

The pairs of a join may be far more than its inputs and than what is left of them above. So many pairs are a *stream*: parts of
a bounded number of rows, made when they are read. Linear steps and unions pass parts on, a sum takes them in one by one, and
whoever needs all rows at once collects what has come through:

    Σ f(L ⋈ R)  =  Σ over parts p of L ⋈ R of  Σ f(p)

Arrangements are values, so a stream may be read later, and once more: what has several readers, and is large, is made again for
each of them.

New steps are built over existing content as if that had come in one epoch, and there, too, rows come in parts: neither the rows
of a table nor the pairs of a join are in memory as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.interrupts import check, uninterrupted
from headwater.operators.operator import Exhausted, Input, Joining, Summing, schema_of
from headwater.runtime.streams import (
    SHARED,
    Clock,
    Flow,
    Reading,
    Work,
    absorbs,
    gathered,
    readers_of,
    streams_on,
    up_to,
)
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate
from headwater.state.slicing import collected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.outside import Content

    States = Mapping[Step, State]
    Contents = Callable[[States], "Backfill"]
    Outer = Mapping[Step, Content]

_NONE: States = MappingProxyType({})
NOTHING_OUTSIDE: Outer = MappingProxyType({})
_NOTHING_LOST: Mapping[Step, Exception] = MappingProxyType({})
_NOTHING_GIVEN: Mapping[Step, Delta] = MappingProxyType({})
# So many rows are in memory at a time where a step takes them in part by part.
_SLICE = 1 << 18
# If there is a group for so few rows, sums are made of more rows at a time.
_ROWS_A_GROUP = 8
_GATHERED = 1 << 20


@dataclass
class Outcome:
    """States and outputs of the steps that an epoch touched."""

    states: dict[Step, State] = field(default_factory=dict)
    outputs: dict[Step, Delta] = field(default_factory=dict)
    arranged: dict[Step, Arrangement] = field(default_factory=dict)
    """Where outputs are in files: what each arrangement got, which is what its input gave."""
    work: dict[Step, Work] = field(default_factory=dict)


def run_epoch(  # noqa: PLR0913  (each says something else of the epoch)
    order: Iterable[Step],
    states: States,
    changes: Mapping[Step, Delta],
    advanced: States = _NONE,
    *,
    wanted: Collection[Step] = (),
    contents: Contents | None = None,
) -> Outcome:
    """Propagates the changes that some steps gave; steps that nothing reaches are not touched.

    `advanced` holds new states that are known already; an arrangement among them gives on what reaches it. Steps whose states
    were lost are left out. Rows of a join that are only summed up are not among the outputs, unless the step is `wanted`.
    `contents` says what steps give in all, with the new states given: buffers that run empty are filled from that.
    """
    outcome = Outcome(dict(advanced), {step: delta for step, delta in changes.items() if len(delta)})
    steps = list(order)
    readers = cache(lambda: readers_of(steps))
    flow = Flow(
        outcome.outputs,
        outcome.work,
        lambda step: [step not in wanted and streams_on(reader) for reader in readers().get(step, ())],
    )
    for step in steps:
        if step not in states or not flow.reaches(step):
            continue
        check()
        if step in advanced:
            outcome.outputs[step] = flow.delta(step.inputs[0])
        elif isinstance(step.operator, Joining):
            outcome.states[step] = states[step]
            flow.join(step, [_input(child, states, outcome) for child in step.inputs])
        elif not flow.has_stream_for(step):
            _advance(step, states, outcome, contents)
        elif step.operator.passes_slices:
            outcome.states[step] = states[step]
            flow.pass_on(step)
        elif absorbs(step):
            outcome.states[step] = flow.sum_up(step, states[step])
        else:
            flow.collect_for(step)
            _advance(step, states, outcome, contents)
    return outcome


def _advance(step: Step, states: States, outcome: Outcome, contents: Contents | None = None) -> None:
    started = perf_counter()
    inputs = [_input(child, states, outcome) for child in step.inputs]
    try:
        state, output = step.operator.step(states[step], inputs)
    except Exhausted:
        if contents is None:
            raise
        inputs = [_whole_input(step, inputs[0].delta, contents(outcome.states))]
        state, output = step.operator.step(states[step], inputs)
    outcome.states[step] = state
    if len(output):
        outcome.outputs[step] = output
    outcome.work[step] = Work(sum(len(i.delta) for i in inputs), len(output), perf_counter() - started)


def _whole_input(step: Step, delta: Delta, content: Backfill) -> Input:
    """The only input of a step with all its rows, arranged as the step asks."""
    (child,), key = step.inputs, step.operator.refilled_by()
    assert key is not None
    return Input(delta, after=Arrangement.empty(schema_of(child.types), key).insert(content.content(child)))


def _input(child: Step, states: States, outcome: Outcome) -> Input:
    delta = outcome.outputs.get(child)
    if delta is None:
        delta = child.nothing
    if not child.operator.keeps_rows:
        return Input(delta)
    before = states[child][0]
    after = outcome.states.get(child, states[child])[0]
    return Input(delta, before, after)


class Backfill:
    """Builds new steps over existing content: their states, and what they give, as if they had been there from the start."""

    def __init__(
        self,
        states: States,
        readers: Mapping[Step, Step],
        lost: Mapping[Step, Exception] = _NOTHING_LOST,
        outer: Outer = NOTHING_OUTSIDE,
        given: Mapping[Step, Delta] = _NOTHING_GIVEN,
    ) -> None:
        """`readers` maps a step to an arrangement of its output, if there is one.

        `lost` are tables whose rows are gone, `outer` those of which some are outside, `given` what steps are said to give.
        """
        self.outer = outer
        self.built: dict[Step, State] = {}
        self.work: dict[Step, Work] = {}
        self._existing = states
        self._readers = readers
        self._lost = lost
        self._contents: dict[Step, Delta] = dict(given)
        self._passing: set[Step] = set()

    @uninterrupted
    def build(self, steps: Sequence[Step]) -> None:
        """Gives new steps, each after its inputs, their states; what they give is kept only as long as one of them reads it."""
        readers = readers_of(steps)
        self._passing = {step for step in steps if _is_passed_on(step, readers.get(step, ()))}
        # A step that passes on what it reads does so when it is read itself, and that is later.
        reading: dict[Step, int] = {}
        for place, step in reversed(list(enumerate(steps))):
            reading[step] = max(reading[reader] for reader in readers[step]) if step in self._passing else place
        done: dict[Step, list[Step]] = {step: [] for step in steps}
        for child, by in readers.items():
            done[steps[max(reading[reader] for reader in by)]].append(child)
        for step in steps:
            check()
            self._build(step)
            if step in self._passing and len(readers[step]) > 1:
                self._share(step)
            for child in done[step]:
                self._contents.pop(child, None)

    @uninterrupted
    def content(self, step: Step) -> Delta:
        """All rows that a step gives now."""
        if step not in self._contents:
            keeper = self._state(step if step.operator.keeps_rows else self._readers.get(step))
            if keeper is not None:
                self._contents[step] = keeper[0].contents()
            elif step in self._existing and absorbs(step):
                assert isinstance(step.operator, Summing)
                self._contents[step] = step.operator.present(self._existing[step])
            elif step in self._existing:
                self._run(step)
            else:
                self._build(step)
        return self._contents[step]

    def _state(self, step: Step | None) -> State | None:
        if step is None:
            return None
        return self._existing[step] if step in self._existing else self.built.get(step)

    def _build(self, step: Step) -> State:
        state = self._state(step)
        if state is None:
            state = self.built[step] = self._run(step)
        return state

    def _run(self, step: Step) -> State:
        if step in self._lost:
            raise self._lost[step]
        started = perf_counter()
        state, first = step.operator.start()
        if step in self.outer:
            self._contents[step] = self.outer[step].delta()
            self.work[step] = Work(0, len(self._contents[step]), perf_counter() - started, rebuilt=True)
            return state
        if step in self._passing:
            # What it gives is asked for by the one that absorbs it.
            return state
        if absorbs(step):
            return self._absorb(step, state, first)
        if _passes_on(step):
            found = collected(self._passed(step))
            self._contents[step] = step.nothing if found is None else found
            return state
        inputs = [self._whole(child) for child in step.inputs]
        output = first
        if any(len(i.delta) for i in inputs):
            state, change = step.operator.step(state, inputs)
            output = consolidate(Delta.concat([first, change])) if len(first) else change
        self._contents[step] = output
        rows_in = sum(len(i.delta) for i in inputs)
        self.work[step] = Work(rows_in, len(output), perf_counter() - started, rebuilt=True)
        return state

    def _whole(self, child: Step) -> Input:
        if not child.operator.keeps_rows:
            return Input(self.content(child))
        after = self._build(child)[0]
        return Input(self.content(child), Arrangement.empty(after.schema, after.key), after)

    # -- sums of what passes by

    def _absorb(self, step: Step, state: State, first: Delta) -> State:
        """Builds a step that sums up its input, slice by slice."""
        assert isinstance(step.operator, Summing)
        started, grouped = perf_counter(), True
        parts = Reading(self._slices(step.inputs[0]))
        slices = iter(parts)
        while (part := next(slices, None)) is not None:
            check()
            state = step.operator.absorb(state, part)
            if grouped and len(state[0]) * _ROWS_A_GROUP > parts.rows:
                grouped, slices = False, gathered(_GATHERED, slices)
        output = self._contents[step] = step.operator.present(state) if parts.rows else first
        self.work[step] = Work(parts.rows, len(output), perf_counter() - started - parts.seconds, rebuilt=True)
        return state

    def _slices(self, step: Step) -> Iterator[Delta]:
        """What a step gives, in slices."""
        if step in self._passing and step not in self._contents:
            yield from self._passed(step)
            return
        keeper = self._state(step if step.operator.keeps_rows else self._readers.get(step))
        slices = keeper[0].in_slices(_SLICE) if keeper is not None and step not in self._contents else None
        for part in self.content(step).in_slices(_SLICE) if slices is None else slices:
            if len(part):
                yield part

    def _share(self, step: Step) -> None:
        """Keeps what a step gives to several others, if it is not too much."""
        parts = self._passed(step)
        few = up_to(SHARED, parts)
        if next(parts, None) is None:
            found = collected(few)
            self._contents[step] = step.nothing if found is None else found

    def _passed(self, step: Step) -> Iterator[Delta]:
        """The slices that a step gives through which they pass: those of one input of a join, while all others stay."""
        operator = step.operator
        self.work[step] = Work(0, 0, 0.0, rebuilt=True)
        clock = Clock(self.work, rebuilt=True)
        if operator.passes_slices:
            yield from clock.through(step, [self._slices(child) for child in step.inputs])
            return
        assert isinstance(operator, Joining)
        driving = operator.driving
        inputs = [self._standing(child) for child in step.inputs]
        for part in self._slices(step.inputs[driving]):
            inputs[driving] = Input(part, inputs[driving].before, inputs[driving].after)
            yield from clock.timed(step, operator.slices(inputs), len(part))

    def _standing(self, child: Step) -> Input:
        """An input of which nothing changes."""
        if not child.operator.keeps_rows:
            return Input(child.nothing)
        kept = self._build(child)[0]
        return Input(child.nothing, kept, kept)


def _is_passed_on(step: Step, readers: Sequence[Step]) -> bool:
    """Whether what a step gives need not be kept: all who read it take it slice by slice; a join is made for each of them."""
    shared = len(readers) == 1 or (len(readers) > 1 and isinstance(step.operator, Joining))
    return _passes_on(step) and shared and all(map(streams_on, readers))


def _passes_on(step: Step) -> bool:
    """Whether what a step gives for all rows is the sum of what it gives for slices, of one input if it is a join."""
    return step.operator.passes_slices or isinstance(step.operator, Joining)
