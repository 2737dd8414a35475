"""Nodes that look at many rows for one: aggregates, windows, top-k, scalar subqueries.

Their values are computed by the engine's own operators over the rows below, as constants; what remains is to say which of these
rows a row follows from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.compiler import aggregates
from headwater.compiler.compiler import Compiler
from headwater.delta import Delta, beside
from headwater.picking import picked
from headwater.provenance import linear
from headwater.provenance.annotated import Annotated
from headwater.provenance.goals import Goal, pairs
from headwater.runtime.driver import Backfill
from headwater.state.consolidation import group_rows
from headwater.state.equality import equal_rows

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call
    from headwater.provenance.derivations import Builder
    from headwater.provenance.evaluation import Evaluator


def aggregate(evaluator: Evaluator, node: plan.Aggregate, goal: Goal) -> Annotated:
    """A group follows from all its rows; its least and greatest values, from any row that has them."""
    lowered = aggregates.lower(node, evaluator.engines.type_of)
    known = {i: part.index for i, part in enumerate(lowered.above) if isinstance(part, Column) and part.index < lowered.keys}
    below = evaluator.evaluate(lowered.below, goal.through(known))
    keys = tuple(Column(i, kind) for i, kind in enumerate(lowered.below.types[: lowered.keys]))
    types = tuple(part.type for part in keys) + tuple(map(evaluator.engines.type_of, lowered.calls))
    constant = plan.Values(types=lowered.below.types, rows=below.rows)
    plain = plan.Aggregate(types=types, child=constant, keys=keys, outputs=(*keys, *lowered.calls))
    groups = engine_rows(evaluator, plain)
    every = range(lowered.keys)
    owner, member = pairs(groups, every, below.rows, every)
    members: list[list[int]] = [[] for _ in range(groups.num_rows)]
    for group, row in zip(owner.tolist(), member.tolist(), strict=True):
        members[group].append(row)
    made = _Groups(lowered, groups, below, evaluator.builder)
    found = Annotated(groups, np.array([made.why(group, rows) for group, rows in enumerate(members)], np.int64))
    for scalar in lowered.scalars:
        found = _beside(evaluator, found, evaluator.evaluate(scalar, Goal.everything()))
    above = plan.Project(types=node.types, child=plan.Node(types=tuple(found.rows.schema.types)), expressions=lowered.above)
    numbered = linear.run(evaluator, above, Delta(found.rows, np.arange(len(found))))
    return Annotated(numbered.rows, found.why[numbered.weights])


def _beside(evaluator: Evaluator, left: Annotated, right: Annotated) -> Annotated:
    met, partners = pairs(left.rows, (), right.rows, ())
    rows = beside([*picked(left.rows.columns, met), *picked(right.rows.columns, partners)], len(met))
    both = zip(left.why[met].tolist(), right.why[partners].tolist(), strict=True)
    return Annotated(rows, np.array([evaluator.builder.all(pair) for pair in both], np.int64))


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups with their values, over the rows that they were made of."""

    lowered: aggregates.Lowered
    rows: pa.RecordBatch
    below: Annotated
    builder: Builder

    def why(self, group: int, members: list[int]) -> int:
        """What one group follows from."""
        if not members:
            tables = sorted({part.source for part in plan.walk(self.lowered.below) if isinstance(part, plan.Scan)})
            return self.builder.absence(f"no row of {', '.join(tables) or 'the input'} to aggregate")
        why = self.below.why[members]
        if not self.lowered.calls:
            return self.builder.any(why.tolist())
        parts: list[int] = []
        for place, call in enumerate(self.lowered.calls, self.lowered.keys):
            chosen = _witnesses(call, self.rows.column(place).slice(group, 1), self.below.rows, np.array(members))
            if chosen is None:
                return self.builder.all(why.tolist())
            parts += [self.builder.any(why[witnesses].tolist()) for witnesses in chosen]
        return self.builder.all(parts)


def _witnesses(call: Call, value: pa.Array, rows: pa.RecordBatch, members: np.ndarray) -> list[np.ndarray] | None:
    """Sets of members, of each of which one suffices; None if all members are needed.

    For MIN and MAX these are the members that have the value, for a function of distinct values those that share one.
    """
    function = call.arguments[0]
    name, arguments = function.function, function.arguments  # type: ignore[union-attr]
    if len(call.arguments) > 1 or len(arguments) != 1 or not isinstance(arguments[0], Column):
        return None
    values = beside(picked([rows.column(arguments[0].index)], members), len(members))
    if name in aggregates.EXTREMES:
        if value[0].as_py() is None:
            return [np.arange(len(members))]
        sought = beside(picked([value], np.zeros(len(members), np.int64)), len(members))
        return [np.flatnonzero(equal_rows(values, (0,), sought, (0,)))]
    if call.option("isDistinct") == "true":
        ids = group_rows(values, (0,)).ids
        known = values.column(0).is_valid().to_numpy(zero_copy_only=False)
        return [np.flatnonzero(ids == one) for one in np.unique(ids[known])] or [np.arange(len(members))]
    return None


def window(evaluator: Evaluator, node: plan.Window, goal: Goal) -> Annotated:
    """A row follows from all rows of its partition."""
    partition = [part.index for part in node.partition if isinstance(part, Column)]
    below = evaluator.evaluate(node.child, goal.through({column: column for column in partition}))
    made = engine_rows(evaluator, plan.with_children(node, [plan.Values(types=node.child.types, rows=below.rows)]))
    owner, member = pairs(made, partition, below.rows, partition)
    members: list[list[int]] = [[] for _ in range(made.num_rows)]
    for row, other in zip(owner.tolist(), below.why[member].tolist(), strict=True):
        members[row].append(other)
    return Annotated(made, np.array([evaluator.builder.all(parts) for parts in members], np.int64))


def limit(evaluator: Evaluator, node: plan.Limit, goal: Goal) -> Annotated:
    """A row that is among the first follows from itself; with an offset, also from those that are skipped."""
    if node is evaluator.certain:
        return evaluator.evaluate(node.child, goal)
    below = evaluator.evaluate(node.child, Goal.everything())
    constant = plan.Values(types=node.child.types, rows=below.rows)
    kept = engine_rows(evaluator, plan.with_children(node, [constant]))
    why = _of_copies(evaluator, kept, below)
    if node.offset:
        skipping = plan.Limit(types=node.types, child=constant, order=node.order, count=node.offset, offset=0)
        skipped = _of_copies(evaluator, engine_rows(evaluator, skipping), below)
        why = [evaluator.builder.all((own, *skipped)) for own in why]
    return Annotated(kept, np.array(why, np.int64))


def _of_copies(evaluator: Evaluator, rows: pa.RecordBatch, below: Annotated) -> list[int]:
    every = range(rows.num_columns)
    owner, member = pairs(rows, every, below.rows, every)
    copies: list[list[int]] = [[] for _ in range(rows.num_rows)]
    for row, why in zip(owner.tolist(), below.why[member].tolist(), strict=True):
        copies[row].append(why)
    return [evaluator.builder.any(parts) for parts in copies]


def scalar(evaluator: Evaluator, node: plan.Scalar) -> Annotated:
    """The value of a scalar subquery follows from its row; NULL, from there being none."""
    below = evaluator.evaluate(node.child, Goal.everything())
    if len(below):
        return below
    tables = sorted({part.source for part in plan.walk(node) if isinstance(part, plan.Scan)})
    nulls = beside([pa.nulls(1, kind) for kind in node.types], 1)
    return Annotated(nulls, np.array([evaluator.builder.absence(f"no row of the subquery over {', '.join(tables)}")]))


def engine_rows(evaluator: Evaluator, node: plan.Node) -> pa.RecordBatch:
    """The rows of a node over constants, as the engine computes them, each as often as it is there."""
    step = Compiler(evaluator.engines).compile(node)
    found = Backfill({}, {}).content(step)
    copies = np.repeat(np.arange(len(found)), found.weights)
    return beside(picked(found.rows.columns, copies), len(copies))
