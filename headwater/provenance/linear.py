"""Filters, projections, explode: a row follows from the one it is made of.

A goal goes through where a column is passed on as it is. The stages that run are the engine's own: a row's number travels in
the place of its weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.compiler.linear import stage_for
from headwater.delta import Delta, beside
from headwater.errors import NotExplained
from headwater.evaluation.stages import typed
from headwater.provenance.annotated import Annotated
from headwater.provenance.naming import label_of

if TYPE_CHECKING:
    from headwater.provenance.evaluation import Evaluator
    from headwater.provenance.goals import Goal


def evaluated(evaluator: Evaluator, node: plan.Node, goal: Goal) -> Annotated:
    """The rows that a linear node makes of those that the goal needs."""
    (child,) = node.children
    below = evaluator.evaluate(child, goal.through(_passed(node)))
    if _is_replicating(node):
        return _replicated(node, below)
    numbered = run(evaluator, node, Delta(below.rows, np.arange(len(below))))
    return Annotated(numbered.rows, below.why[numbered.weights])


def run(evaluator: Evaluator, node: plan.Node, numbered: Delta) -> Delta:
    """What the node makes of numbered rows; each row keeps the number of the one it is made of."""
    stage = stage_for([plan.cut(node)], evaluator.engines)
    if not len(numbered):
        return Delta.empty(pa.schema([(f"c{i}", kind) for i, kind in enumerate(node.types)]))
    if stage.engine != "spark":
        return stage.run(numbered)
    width = numbered.rows.num_columns
    beside_number = beside([*numbered.rows.columns, pa.array(numbered.weights)], len(numbered))
    spark = evaluator.engines.spark
    match node:
        case plan.Project(expressions=expressions):
            found = spark.project((*expressions, Column(width, pa.int64())), beside_number)
        case plan.Filter(condition=condition):
            found = spark.filter(condition, beside_number)
        case _:
            raise NotExplained(f"{label_of(node)} is evaluated by Spark alone: nothing is known of where its rows come from")
    return Delta(typed(found.columns[:-1], node.types, found.num_rows), found.columns[-1].to_numpy())


def _passed(node: plan.Node) -> dict[int, int]:
    """Which columns of the output are columns of the input, and which."""
    match node:
        case plan.Filter():
            return {i: i for i in range(len(node.types))}
        case plan.Project(expressions=expressions):
            return {i: part.index for i, part in enumerate(expressions) if isinstance(part, Column)}
        case plan.Generate(kept=kept):
            return dict(enumerate(kept))
        case plan.Expand(projections=projections):
            first, *others = projections
            shared = {i: part.index for i, part in enumerate(first) if isinstance(part, Column)}
            return {i: c for i, c in shared.items() if all(p[i] == first[i] for p in others)}
    return {}


def _is_replicating(node: plan.Node) -> bool:
    return isinstance(node, plan.Generate) and node.generator.function == "ReplicateRows"


def _replicated(node: plan.Node, below: Annotated) -> Annotated:
    """Each row as often as its first generated value says (EXCEPT ALL, INTERSECT ALL)."""
    assert isinstance(node, plan.Generate)
    count, *columns = (part.index for part in node.generator.arguments if isinstance(part, Column))
    times = below.rows.column(count).to_numpy(zero_copy_only=False).astype(np.int64)
    made = below.take(np.repeat(np.arange(len(below)), np.maximum(times, 0)))
    kept = [made.rows.column(i) for i in (*node.kept, *columns)]
    return Annotated(typed(kept, node.types, len(made)), made.why)
