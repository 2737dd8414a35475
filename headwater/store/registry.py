"""The classes whose values can be stored, each by a name of its own. What is not listed here is neither written nor read."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from headwater.algebra import expressions, origin, plan
from headwater.annotations import fragments
from headwater.compiler import recipes
from headwater.evaluation import stages
from headwater.frontend import catalyst, recompute
from headwater.operators import (
    aggregate,
    annotate,
    arrange,
    closing,
    extremes,
    fixpoint,
    join,
    linear,
    match,
    multijoin,
    operator,
    ordering,
    regroup,
    scalar,
    topk,
    values,
)
from headwater.operators.accumulators import averages, comoments, counts, moments, sums
from headwater.operators.recursive import derived, network, strategy
from headwater.sketches import captured, facts, tuning

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUPS: Mapping[str, tuple[type, ...]] = {
    "query": (origin.Reading, catalyst.Query),
    "expression": (expressions.Column, expressions.Literal, expressions.Call),
    "node": (
        *(plan.Node, plan.Scan, plan.Values, plan.Project, plan.Filter, plan.Expand, plan.Generate, plan.Union, plan.Join),
        plan.Annotate,
        *(plan.Equal, plan.MultiJoin, plan.Aggregate, plan.SortKey, plan.Window, plan.Sort, plan.Limit, plan.Scalar),
        *(plan.Opaque, plan.Recursive, plan.Relation, plan.Limits, plan.Fixpoint, plan.Explained),
    ),
    "sketch": (fragments.Partition, facts.Guard, captured.Covered, captured.Estimate, captured.Captured, tuning.Tuning),
    "stage": (stages.Columns,),
    "recipe": (
        *(recipes.Fused, recipes.Mask, recipes.OfNode, recipes.OfGroups, recipes.OfWindows),
        recompute.Recomputed,
    ),
    "operator": (
        *(aggregate.Aggregate, aggregate.Measure, extremes.Extreme, arrange.Arrange, join.Join, join.JoinKey),
        annotate.Annotate,
        *(linear.Linear, linear.Union, match.Match, multijoin.MultiJoin, multijoin.Lookup, multijoin.Path, operator.Choice),
        *(ordering.Order, regroup.Regroup, scalar.Scalar, topk.TopK, values.Values, values.Source),
        *(fixpoint.Rows, fixpoint.Believed, fixpoint.Line, fixpoint.Fixpoint, closing.Closing),
        *(network.Read, network.Apply, network.Gather, network.Meet, network.Network),
        *(strategy.Selection, strategy.Settings, derived.Derived),
    ),
    "accumulator": (
        *(averages.FloatAverage, averages.IntegerAverage, averages.ExactAverage, comoments.CoMoments),
        *(counts.Count, counts.BitXor, moments.Moments, sums.ExactSum, sums.FloatSum),
    ),
}
CLASSES: Mapping[str, type] = {f"{group}.{each.__name__}": each for group, classes in _GROUPS.items() for each in classes}
NAMES: Mapping[type, str] = {each: name for name, each in CLASSES.items()}
# All but those that only the session in which they were made can use.
FIELDS: Mapping[type, list[str]] = {
    kind: [each.name for each in fields(kind) if each.metadata.get("stored", True)] for kind in NAMES
}
# Fields that came after the first release that stored the class: what it has stored without them means their defaults.
LATER: Mapping[type, frozenset[str]] = {
    kind: frozenset(each.name for each in fields(kind) if each.metadata.get("later", False)) for kind in NAMES
}
