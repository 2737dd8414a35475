"""One epoch in the driver process: deltas go through the dataflow, step by step, and every step gives its new state.

Nothing is written in place: the states that come out stand beside the ones that went in, and the caller decides which count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from headwater.operators.arrange import Arrange
from headwater.operators.operator import Input
from headwater.operators.values import Source
from headwater.state.arrangement import Arrangement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State

    States = Mapping[Step, State]


@dataclass(frozen=True)
class Work:
    """What a step did last: rows in, rows out, seconds."""

    rows_in: int
    rows_out: int
    seconds: float


@dataclass
class Outcome:
    """States and outputs of the steps that an epoch touched."""

    states: dict[Step, State] = field(default_factory=dict)
    outputs: dict[Step, Delta] = field(default_factory=dict)
    work: dict[Step, Work] = field(default_factory=dict)


def run_epoch(order: Iterable[Step], states: States, changes: Mapping[Step, Delta]) -> Outcome:
    """Propagates the changes of sources; steps that nothing reaches are not touched."""
    outcome = Outcome(outputs={step: delta for step, delta in changes.items() if len(delta)})
    for step in order:
        if any(child in outcome.outputs for child in step.inputs):
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
    delta = outcome.outputs.get(child) or child.operator.nothing()
    if not isinstance(child.operator, Arrange):
        return Input(delta)
    before = states[child][0]
    after = outcome.states.get(child, states[child])[0]
    return Input(delta, before, after)


class Backfill:
    """Builds new steps over existing content: their states, and what they give, as if they had been there from the start."""

    def __init__(self, states: States, readers: Mapping[Step, Step], contents: Mapping[Step, Delta]) -> None:
        """`readers` maps a step to an arrangement of its output, if there is one; `contents` gives what sources hold."""
        self.states: dict[Step, State] = dict(states)
        self.work: dict[Step, Work] = {}
        self._existing = states
        self._readers = readers
        self._contents = dict(contents)

    def build(self, step: Step) -> None:
        """Gives a new step its state."""
        if step not in self.states:
            self.states[step] = self._run(step)

    def content(self, step: Step) -> Delta:
        """All rows that a step gives now."""
        if step not in self._contents:
            reader = self._readers.get(step)
            if isinstance(step.operator, Arrange) and step in self._existing:
                self._contents[step] = self._existing[step][0].contents()
            elif reader is not None and reader in self._existing:
                self._contents[step] = self._existing[reader][0].contents()
            else:
                self._run(step)
        return self._contents[step]

    def _run(self, step: Step) -> State:
        from headwater.delta import Delta
        from headwater.state.consolidation import consolidate

        started = perf_counter()
        state, first = step.operator.start()
        inputs = [self._whole(child) for child in step.inputs]
        output = first
        if any(len(i.delta) for i in inputs):
            state, change = step.operator.step(state, inputs)
            output = consolidate(Delta.concat([first, change])) if len(first) else change
        self._contents[step] = output
        self.work[step] = Work(sum(len(i.delta) for i in inputs), len(output), perf_counter() - started)
        return state

    def _whole(self, child: Step) -> Input:
        delta = self.content(child)
        if not isinstance(child.operator, Arrange):
            return Input(delta)
        self.build(child)
        after = self.states[child][0]
        return Input(delta, Arrangement.empty(after.schema, after.key), after)


def is_source(step: Step) -> bool:
    return isinstance(step.operator, Source)
