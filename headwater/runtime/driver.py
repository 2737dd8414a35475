"""One epoch in the driver process: deltas go through the dataflow, step by step, and every step gives its new state.

Nothing is written in place: the states that come out stand beside the ones that went in, and the caller decides which count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.operators.arrange import Arrange
from headwater.operators.operator import Input
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.outside import Content

    States = Mapping[Step, State]
    Outer = Mapping[Step, Content]

_NONE: States = MappingProxyType({})
NOTHING_OUTSIDE: Outer = MappingProxyType({})
_NOTHING_LOST: Mapping[Step, Exception] = MappingProxyType({})


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


def run_epoch(order: Iterable[Step], states: States, changes: Mapping[Step, Delta], advanced: States = _NONE) -> Outcome:
    """Propagates the changes that some steps gave; steps that nothing reaches are not touched.

    `advanced` holds new states that are known already; an arrangement among them gives on what reaches it. Steps whose states
    were lost are left out.
    """
    outcome = Outcome(dict(advanced), {step: delta for step, delta in changes.items() if len(delta)})
    for step in order:
        if not any(child in outcome.outputs for child in step.inputs) or step not in states:
            continue
        if step in advanced:
            outcome.outputs[step] = outcome.outputs[step.inputs[0]]
        else:
            _advance(step, states, outcome)
    return outcome


def _advance(step: Step, states: States, outcome: Outcome) -> None:
    started = perf_counter()
    inputs = [_input(child, states, outcome) for child in step.inputs]
    state, output = step.operator.step(states[step], inputs)
    outcome.states[step] = state
    if len(output):
        outcome.outputs[step] = output
    outcome.work[step] = Work(sum(len(i.delta) for i in inputs), len(output), perf_counter() - started)


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
    ) -> None:
        """`readers` maps a step to an arrangement of its output, if there is one.

        `lost` are tables whose rows are gone, `outer` those of which some are outside.
        """
        self.outer = outer
        self.built: dict[Step, State] = {}
        self.work: dict[Step, Work] = {}
        self._existing = states
        self._readers = readers
        self._lost = lost
        self._contents: dict[Step, Delta] = {}

    def build(self, steps: Sequence[Step]) -> None:
        """Gives new steps, each after its inputs, their states; what they give is kept only as long as one of them reads it."""
        last = {child: step for step in steps for child in step.inputs}
        for step in steps:
            self._build(step)
            for child in step.inputs:
                if last[child] is step:
                    self._contents.pop(child, None)

    def content(self, step: Step) -> Delta:
        """All rows that a step gives now."""
        if step not in self._contents:
            keeper = self._state(step if isinstance(step.operator, Arrange) else self._readers.get(step))
            if keeper is not None:
                self._contents[step] = keeper[0].contents()
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
