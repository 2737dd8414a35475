"""What a row follows from, where that is kept: the functions of absorption provenance, as vertices.

    f  =  f₀ ∨ (x ∧ f₁)       any of (f₀, all of (x, f₁)),   for functions are monotone

A diagram becomes a graph of its own size. Only eager absorption has every derivation at hand; a lazy one holds some of them
back where they were found, so that its rows are explained by asking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.errors import NotExplained
from headwater.operators.recursive.absorption import Absorption
from headwater.operators.recursive.derived import Derived
from headwater.operators.recursive.network import batch_of, rows_of
from headwater.operators.recursive.strategy import EAGER
from headwater.provenance.annotated import Annotated
from headwater.provenance.derivations import TRUE
from headwater.provenance.goals import Goal

if TYPE_CHECKING:
    from headwater.algebra import plan
    from headwater.operators.recursive.network import Row
    from headwater.provenance.evaluation import Evaluator


def found(evaluator: Evaluator, node: plan.Fixpoint, goal: Goal) -> Annotated | None:
    """The rows that a goal asks for, each with its function; None if the annotations are not complete, or not at hand."""
    if not node.strategy.startswith(EAGER) or node.selection is not None:
        return None
    for step, state in evaluator.snapshot.states.items():
        operator = step.operator
        if isinstance(operator, Derived) and operator.identity == node.identity:
            with operator.lock:
                live = operator.live(state)
                return _read(evaluator, operator, live, node, goal) if isinstance(live, Absorption) else None
    return None


def _read(evaluator: Evaluator, operator: Derived, live: Absorption, node: plan.Fixpoint, goal: Goal) -> Annotated:
    annotations = live.relations[node.result].rows.kept
    rows = _candidates(annotations, node, goal)
    batch = batch_of(rows, node.types)
    chosen = goal.among(batch)
    reading = _Reading(evaluator, operator, live)
    why = np.full(len(rows), TRUE)
    for i in chosen.tolist():
        why[i] = reading.vertex(annotations[rows[i]])
    return Annotated(batch, why).take(chosen)


def _candidates(annotations: dict[Row, Any], node: plan.Fixpoint, goal: Goal) -> list[Row]:
    """The rows that a goal may ask for: where it knows all their values, those alone."""
    if set(goal.columns) != set(range(len(node.types))):
        return list(annotations)
    asked = goal.values.select([goal.columns.index(i) for i in range(len(node.types))])
    return [row for row in dict.fromkeys(rows_of(asked)) if row in annotations]


class _Reading:
    """Diagrams as vertices, each node once."""

    def __init__(self, evaluator: Evaluator, operator: Derived, live: Absorption) -> None:
        self._evaluator = evaluator
        self._operator = operator
        self._live = live
        true: Any = live.functions.true
        self._known: dict[int, int] = {int(true): TRUE}

    def vertex(self, function: Any) -> int:  # noqa: ANN401  (a function)
        """The vertex of a function that is not false."""
        builder, false = self._evaluator.builder, self._live.functions.false
        stack = [function]
        while stack:
            f = stack[-1]
            if int(f) in self._known:
                stack.pop()
                continue
            low, high = (~f.low, ~f.high) if f.negated else (f.low, f.high)
            missing = [part for part in (low, high) if part != false and int(part) not in self._known]
            if missing:
                stack += missing
                continue
            ways = [builder.all((self._leaf(int(f.var[1:])), self._known[int(high)]))]
            if low != false:
                ways.append(self._known[int(low)])
            self._known[int(f)] = builder.any(ways)
        return self._known[int(function)]

    def _leaf(self, variable: int) -> int:
        """What a row of an input follows from: itself, where the input is a table."""
        number, row = self._live.owners[variable]
        source = self._operator.sources[number]
        ways = self._evaluator.evaluate(source, _goal(row, source)).why.tolist()
        if not ways:
            raise NotExplained(f"the derivation of the row {row!r} was not found; please report this query")
        return self._evaluator.builder.any(ways)


def _goal(row: Row, source: plan.Node) -> Goal:
    batch = batch_of([row], source.types)
    return Goal.of(range(len(source.types)), batch.columns, 1)
