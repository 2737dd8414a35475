"""Large closures: a fixpoint that is built over many rows is a loop of jobs, over the steps of its body.

    job 0      all that the fixpoint reads, and what follows from it alone
    job k      the rows that job k − 1 gave for the first time go through the body once;  the loop ends when there are none

The rows of a round are runs like any others: what a job gives, the next one reads from files, each task its range of hashes.
Between jobs the driver learns how many there were, and nothing else. In the end the states of the steps are that of the
fixpoint, which goes on from there with changes of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.cluster.cluster import Refused, Whole
from headwater.compiler.dataflow import Step
from headwater.delta import Delta
from headwater.operators.arrange import Arrange
from headwater.operators.closing import Closing
from headwater.operators.fixpoint import RANK, Fixpoint, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.cluster.cluster import Change, Cluster
    from headwater.cluster.yard import Yard
    from headwater.operators.operator import State
    from headwater.state.arrangement import Arrangement


@dataclass(frozen=True)
class Closed:
    """What jobs have built: states of steps, that of the fixpoint among them, and the rows that it gives."""

    states: Mapping[Step, State]
    rows: Arrangement


def is_closable(step: Step, start: Mapping[Step, State]) -> bool:
    """Whether a step is a fixpoint of sets, which only grow while it is built from nothing: constants are not in its start."""
    operator = step.operator
    if not isinstance(operator, Fixpoint) or any(relation.kind != "set" for relation in operator.relations):
        return False
    return not any(map(len, start[step]))


def closed(  # noqa: PLR0913, PLR0917  (what the jobs are)
    cluster: Cluster,
    fixpoint: Step,
    before: Sequence[Step],
    states: Mapping[Step, State],
    changes: Mapping[Step, Sequence[Change]],
    yard: Yard,
    title: str,
) -> Closed:
    """Builds a fixpoint, and the steps before it, over all rows that `changes` bring."""
    operator = fixpoint.operator
    assert isinstance(operator, Fixpoint)
    body = _Body.of(fixpoint, operator)
    known = {**states, **{step: step.operator.start()[0] for step in body.steps}}
    ran = cluster.run([*before, *body.steps], known, changes, yard, title)
    known.update(ran.outcome.states)
    # What was arranged as a whole is what the rounds look into.
    known.update(
        (step, (change.kept,))
        for step, several in changes.items()
        for change in several
        if isinstance(change, Whole) and step.operator.keeps_rows
    )
    rounds = rows = 0
    while new := body.new(ran.outcome.arranged):
        rounds, rows = rounds + 1, rows + sum(len(change.kept) for change in new.values())
        if rounds > operator.rounds or rows > operator.rows:
            raise Refused("the recursion has no end in sight")
        ran = cluster.run(body.steps, known, new, yard, f"{title}, round {rounds} of {fixpoint.label}")
        known.update(ran.outcome.states)
    figures = _figures(operator.start()[0][-1], rounds)
    built = (*(part for step in (*body.closing, *body.lines) for part in known[step]), figures)
    return Closed({**{step: known[step] for step in before}, fixpoint: built}, known[body.kept[operator.result]][0])


@dataclass(frozen=True)
class _Body:
    """A fixpoint as steps: its relations enter by `rows`, go through the `lines`, are closed, and what is new is kept."""

    rows: tuple[Step, ...]
    lines: tuple[Step, ...]
    closing: tuple[Step, ...]
    kept: tuple[Step, ...]

    @staticmethod
    def of(fixpoint: Step, operator: Fixpoint) -> _Body:
        types = [(*relation.types, RANK) for relation in operator.relations]
        rows = [Step(Rows(kind, i), (), "rows so far") for i, kind in enumerate(types)]
        numbered = list(rows)

        def at(number: int) -> Step:
            return fixpoint.inputs[-1 - number] if number < 0 else numbered[number]

        # One by one: a line reads those before it.
        for line in operator.lines:
            numbered += [Step(line.operator, tuple(map(at, line.inputs)), "body")]
        closing = [Step(Closing(kind), (at(body),), "closing") for kind, body in zip(types, operator.bodies, strict=True)]
        kept = [
            Step(Arrange(kind, step.operator.together[0] or ()), (step,), "new rows")
            for kind, step in zip(types, closing, strict=True)
        ]
        return _Body(tuple(rows), tuple(numbered[len(rows) :]), tuple(closing), tuple(kept))

    @property
    def steps(self) -> list[Step]:
        return [*self.lines, *self.closing, *self.kept]

    def new(self, arranged: Mapping[Step, Arrangement]) -> dict[Step, Whole]:
        """The rows that a job gave, as they enter the next."""
        return {rows: Whole(arranged[kept]) for rows, kept in zip(self.rows, self.kept, strict=True) if kept in arranged}


def _figures(nothing: Arrangement, rounds: int) -> Arrangement:
    """How many rounds it took, and the latest rank."""
    if not rounds:
        return nothing
    return nothing.insert(Delta.inserting(pa.RecordBatch.from_arrays([pa.array([rounds])] * 2, schema=nothing.schema)))
