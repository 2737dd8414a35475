"""Recursive relations, goal by goal.

A goal for a relation asks its body, which asks the relation for other goals. Each round evaluates the bodies once for all goals
known, over the rows that the round before found for them; the end is when neither a goal nor a row is new. Rows are facts: what
a fact follows from is told at the end, and may well be the fact itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import beside, no_rows
from headwater.operators.operator import schema_of
from headwater.picking import picked
from headwater.provenance import kept
from headwater.provenance.annotated import Annotated
from headwater.provenance.derivations import frozen, tuples
from headwater.provenance.goals import Goal

if TYPE_CHECKING:
    from headwater.algebra import plan
    from headwater.provenance.evaluation import Evaluator

    Asked = tuple[int, tuple[int, ...]]


class Frame:
    """What one fixpoint was asked, and what was found: for each relation and set of columns that goals know."""

    def __init__(self, evaluator: Evaluator, node: plan.Fixpoint, scope: int) -> None:
        self._evaluator = evaluator
        self._node = node
        self._scope = scope
        self.goals: dict[Asked, Goal] = {}
        self._found: dict[Asked, Annotated] = {}
        self._keys: dict[Asked, frozenset[object]] = {}

    def facts(self, relation: int, goal: Goal) -> Annotated:
        """The facts so far that meet a goal; the goal is remembered."""
        asked = relation, goal.columns
        known = self.goals.get(asked)
        if known is None:
            self.goals[asked] = goal
        elif goal.columns:
            arrays = [[known.values.column(i), goal.values.column(i)] for i in range(len(goal.columns))]
            both = [pa.concat_arrays(pair) for pair in arrays]
            merged = Goal.of(goal.columns, both, known.values.num_rows + goal.values.num_rows)
            if merged.values.num_rows > known.values.num_rows:
                self.goals[asked] = merged
        found = self._found.get(asked)
        if found is None:
            types = self._node.relations[relation].body.types
            return Annotated(no_rows(schema_of(types)), np.empty(0, np.int64))
        return found

    def round(self) -> bool:
        """Evaluates all goals once more; whether anything is new."""
        asked = {key: goal.values.num_rows for key, goal in self.goals.items()}
        found, keys = {}, {}
        for key, goal in list(self.goals.items()):
            found[key], keys[key] = self._evaluate(key[0], goal)
        changed = keys != self._keys
        self._found, self._keys = found, keys
        return changed or asked != {key: goal.values.num_rows for key, goal in self.goals.items()}

    def _evaluate(self, relation: int, goal: Goal) -> tuple[Annotated, frozenset[object]]:
        """The facts of a relation that meet a goal, each once, with what they follow from."""
        builder = self._evaluator.builder
        definition = self._node.relations[relation]
        derived = self._evaluator.evaluate(definition.body, goal)
        ways: dict[object, tuple[int, int, list[int]]] = {}
        for place, (row, why) in enumerate(zip(tuples(derived.rows.columns, len(derived)), derived.why.tolist(), strict=True)):
            key = frozen(row)
            if key not in ways:
                ways[key] = place, builder.fact(self._scope, definition.name, row), []
            ways[key][2].append(why)
        for _, fact, derivations in ways.values():
            builder.define(fact, derivations)
        places = np.array([place for place, _, _ in ways.values()], np.int64)
        rows = beside(picked(derived.rows.columns, places), len(places))
        return Annotated(rows, np.array([fact for _, fact, _ in ways.values()], np.int64)), frozenset(ways)

    def answer(self, relation: int, goal: Goal) -> Annotated:
        return self._found[relation, goal.columns]


def solved(evaluator: Evaluator, node: plan.Fixpoint, goal: Goal) -> Annotated:
    """The rows of a fixpoint that a goal asks for: from their annotations, where these are kept and complete."""
    known = kept.found(evaluator, node, goal) if evaluator.reads_annotations else None
    if known is not None:
        return known
    frame = Frame(evaluator, node, id(node))
    evaluator.frames.append(frame)
    try:
        frame.facts(node.result, goal)
        visits = evaluator.visit.children
        while frame.round():
            # Of all rounds only the last one tells what is missing.
            del visits[:]
        return frame.answer(node.result, goal)
    finally:
        evaluator.frames.pop()
