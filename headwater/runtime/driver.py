"""One epoch in the driver process: deltas go through the dataflow, step by step, and every step gives its new state.

Nothing is written in place: the states that come out stand beside the ones that went in, and the caller decides which count.

New steps are built over existing content as if that had come in one epoch. But a sum need not see all its input at once: it
comes in slices, through the linear steps and joins between the sum and what is kept. So neither the rows of a table nor the
pairs of a join are in memory as a whole:

    Σ f(L ⋈ R)  =  Σ over slices l of L of  Σ f(l ⋈ R)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.interrupts import check, uninterrupted
from headwater.operators.aggregate import Aggregate
from headwater.operators.arrange import Arrange
from headwater.operators.join import Join
from headwater.operators.linear import Linear
from headwater.operators.multijoin import MultiJoin
from headwater.operators.operator import Exhausted, Input, schema_of
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
# So many rows are in memory at a time where a sum takes them in.
_SLICE = 1 << 18
# Of fewer changed rows, all pairs of a join may be made at once.
_LARGE = 1 << 12
# If there is a group for so few rows, to put the sums of slices together is more work than they save.
_ROWS_A_GROUP = 8


@dataclass(frozen=True, slots=True)
class Work:
    """What a step did last: rows in, rows out, seconds; with a delta, or built from all rows of its inputs."""

    rows_in: int
    rows_out: int
    seconds: float
    rebuilt: bool = False


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
    every: bool = False,
    contents: Contents | None = None,
) -> Outcome:
    """Propagates the changes that some steps gave; steps that nothing reaches are not touched.

    `advanced` holds new states that are known already; an arrangement among them gives on what reaches it. Steps whose states
    were lost are left out. Pairs of a join that are only summed up are not all made at once, unless `every` output is wanted.
    `contents` says what steps give in all, with the new states given: buffers that run empty are filled from that.
    """
    outcome = Outcome(dict(advanced), {step: delta for step, delta in changes.items() if len(delta)})
    steps = list(order)
    large = not every and any(len(delta) > _LARGE for delta in changes.values())
    absorbing = _absorbing(steps) if large else {}
    passing = {step for chain in absorbing.values() for step in chain}
    for step in steps:
        if step in passing or step not in states:
            continue
        check()
        if step in absorbing:
            _advance_all([*reversed(absorbing[step]), step], states, outcome)
        elif any(child in outcome.outputs for child in step.inputs):
            if step in advanced:
                outcome.outputs[step] = outcome.outputs[step.inputs[0]]
            else:
                _advance(step, states, outcome, contents)
    return outcome


def _absorbing(steps: Sequence[Step]) -> dict[Step, list[Step]]:
    """The steps that sum up pairs of a join which nobody else reads, with the steps between, the join last."""
    readers = Counter(child for step in steps for child in step.inputs)
    found = {}
    for step in steps:
        if _absorbs(step):
            chain = [step.inputs[0]]
            while isinstance(chain[-1].operator, Linear):
                chain.append(chain[-1].inputs[0])
            if isinstance(chain[-1].operator, Join | MultiJoin) and all(readers[one] == 1 for one in chain):
                found[step] = chain
    return found


def _advance_all(chain: Sequence[Step], states: States, outcome: Outcome) -> None:
    """A join, linear steps, and the one that sums up what they give: part by part."""
    join, *between, last = chain
    if not any(child in outcome.outputs for child in join.inputs) or any(step not in states for step in chain):
        return
    inputs = [_input(child, states, outcome) for child in join.inputs]
    operator, summing = join.operator, last.operator
    assert isinstance(operator, Join | MultiJoin)
    assert isinstance(summing, Aggregate)
    if not operator.is_sum_of_parts(inputs):
        for step in chain:
            if step is join or any(child in outcome.outputs for child in step.inputs):
                _advance(step, states, outcome)
        return
    clock = Clock(outcome.work)
    parts = clock.timed(join, operator.parts(inputs), sum(len(i.delta) for i in inputs))
    for step in between:
        parts = clock.through(step, parts)
    started = perf_counter()
    outcome.states[last], output = summing.step_in_parts(states[last], parts)
    if len(output):
        outcome.outputs[last] = output
    before = sum(outcome.work[step].seconds for step in (join, *between))
    outcome.work[last] = Work(outcome.work[(join, *between)[-1]].rows_out, len(output), perf_counter() - started - before)


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

    def through(self, step: Step, parts: Iterator[Delta]) -> Iterator[Delta]:
        """The parts after a linear step."""
        self._add(step, 0, 0, 0.0)
        for part in parts:
            started = perf_counter()
            _, given = step.operator.step((), [Input(part)])
            self._add(step, len(part), len(given), perf_counter() - started)
            yield given

    def _add(self, step: Step, rows_in: int, rows_out: int, seconds: float) -> None:
        done = self._work.get(step, Work(0, 0, 0.0))
        self._work[step] = Work(done.rows_in + rows_in, done.rows_out + rows_out, done.seconds + seconds, self._rebuilt)


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
    if not isinstance(child.operator, Arrange):
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
        last = {child: step for step in steps for child in step.inputs}
        readers = Counter(child for step in steps for child in step.inputs)
        self._passing = {step for step in steps if _passes_on(step) and _is_absorbed(step, last, readers)}
        done: dict[Step, list[Step]] = {step: [] for step in steps}
        for child, reader in last.items():
            while reader in self._passing:
                # It reads when it is read.
                reader = last[reader]  # noqa: PLW2901
            done[reader].append(child)
        for step in steps:
            check()
            self._build(step)
            for child in done[step]:
                self._contents.pop(child, None)

    @uninterrupted
    def content(self, step: Step) -> Delta:
        """All rows that a step gives now."""
        if step not in self._contents:
            keeper = self._state(step if isinstance(step.operator, Arrange) else self._readers.get(step))
            if keeper is not None:
                self._contents[step] = keeper[0].contents()
            elif step in self._existing and _absorbs(step):
                assert isinstance(step.operator, Aggregate)
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
        if _absorbs(step):
            return self._absorb(step, state, first)
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
        if not isinstance(child.operator, Arrange):
            return Input(self.content(child))
        after = self._build(child)[0]
        return Input(self.content(child), Arrangement.empty(after.schema, after.key), after)

    # -- sums of what passes by

    def _absorb(self, step: Step, state: State, first: Delta) -> State:
        """Builds a step that sums up its input, slice by slice."""
        assert isinstance(step.operator, Aggregate)
        started, waited, count = perf_counter(), 0.0, 0
        slices = self._slices(step.inputs[0])
        while True:
            asked = perf_counter()
            part = next(slices, None)
            waited += perf_counter() - asked
            check()
            if part is None:
                break
            if len(part):
                state = step.operator.absorb(state, part)
                count += len(part)
            if len(state[0]) * _ROWS_A_GROUP > count > 0:
                slices = iter([Delta.concat(rest)] if (rest := list(slices)) else [])
        output = self._contents[step] = step.operator.present(state) if count else first
        self.work[step] = Work(count, len(output), perf_counter() - started - waited, rebuilt=True)
        return state

    def _slices(self, step: Step) -> Iterator[Delta]:
        """What a step gives, in slices."""
        if step in self._passing:
            yield from self._passed(step)
            return
        keeper = self._state(step if isinstance(step.operator, Arrange) else self._readers.get(step))
        if keeper is None or step in self._contents:
            yield from self.content(step).in_slices(_SLICE)
        else:
            yield from keeper[0].in_slices(_SLICE)

    def _passed(self, step: Step) -> Iterator[Delta]:
        """The same for a step through which slices pass: of one input, while all others stay as they are."""
        operator = step.operator
        self.work[step] = Work(0, 0, 0.0, rebuilt=True)
        driving = operator.paths[-1].input if isinstance(operator, MultiJoin) else 0
        inputs = [self._standing(child) for child in step.inputs]
        parts = self._slices(step.inputs[driving])
        clock = Clock(self.work, rebuilt=True)
        if isinstance(operator, Linear):
            yield from clock.through(step, parts)
            return
        assert isinstance(operator, Join | MultiJoin)
        for part in parts:
            inputs[driving] = Input(part, inputs[driving].before, inputs[driving].after)
            yield from clock.timed(step, operator.parts(inputs), len(part))

    def _standing(self, child: Step) -> Input:
        """An input of which nothing changes."""
        if not isinstance(child.operator, Arrange):
            return Input(child.nothing)
        kept = self._build(child)[0]
        return Input(child.nothing, kept, kept)


def _is_absorbed(step: Step, last: Mapping[Step, Step], readers: Counter[Step]) -> bool:
    """Whether what a step gives passes on to a sum, and to nobody else."""
    while _passes_on(step) and readers[step] == 1:
        step = last[step]
    return _absorbs(step)


def _passes_on(step: Step) -> bool:
    """Whether what a step gives for all rows is the sum of what it gives for slices, of one input if there are more."""
    return isinstance(step.operator, Linear | Join | MultiJoin)


def _absorbs(step: Step) -> bool:
    return isinstance(step.operator, Aggregate) and step.operator.absorbs
