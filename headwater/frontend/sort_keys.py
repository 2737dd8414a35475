"""The order of an answer that Spark computes: what a top-level ORDER BY sorts by comes along as further columns.

A view keeps a bag, and sorts it when someone looks. So what it is sorted by must be in the bag:

    π[a] ∘ sort[a, b, f(c)] ∘ R     becomes     π[a, k₀, k₁] ∘ sort[a, b, f(c)] ∘ π[*, b AS k₀, f(c) AS k₁] ∘ R

A string with a collation comes as its collation key, and an interval of years and months, which Arrow does not have, as its
years and its months.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.errors import NotSupported
from headwater.operators.ordering import Order
from headwater.schema import arrow_type, is_collated

if TYPE_CHECKING:
    from headwater.algebra.plan import Types
    from headwater.evaluation.spark import SparkEvaluator

    Jvm = Any

YEARS_AND_MONTHS = ("interval year", "interval month")
# Nodes that give the rows of their child, or some of them, in its order.
_IN_ORDER = ("Project", "Filter", "SubqueryAlias", "GlobalLimit", "LocalLimit", "Offset", "PipeOperator", "WithCTE")


@dataclass(frozen=True)
class Sorted:
    """A plan with columns that only serve to order its rows, their types, and the order."""

    logical: Jvm
    keys: Types
    order: tuple[Order, ...]


def with_sort_keys(spark: SparkEvaluator, analysed: Jvm) -> Sorted:
    """The plan of a query with the columns by which its answer is sorted; the plan itself, if it is not."""
    above: list[Jvm] = []
    node = analysed
    while node.nodeName() in _IN_ORDER:
        above.append(node)
        node = _last(node.children())
    if node.nodeName() != "Sort":
        return Sorted(analysed, (), ())
    shown = analysed.output()
    visible = [int(shown.apply(i).exprId().id()) for i in range(shown.size())]
    hidden: list[Jvm] = []
    types = []
    order = []
    for key in _items(node.order()):
        descending, nulls_first = key.direction().sql() == "DESC", key.nullOrdering().sql() == "NULLS FIRST"
        for value in _compared(spark, key.child()):
            column = _place(visible, value)
            if column is None:
                column = len(visible) + len(hidden)
                hidden.append(spark.alias(value, f"k{len(hidden)}"))
                types.append(arrow_type(json.loads(value.dataType().json())))
            order.append(Order(column, descending, nulls_first))
    if not hidden:
        return Sorted(analysed, (), tuple(order))
    return Sorted(_carried(spark, above, node, hidden), tuple(types), tuple(order))


def _carried(spark: SparkEvaluator, above: list[Jvm], sort: Jvm, hidden: list[Jvm]) -> Jvm:
    """The nodes above a sort, and the sort, with further columns computed below it."""
    below = sort.child()
    made = sort.withNewChildren(spark.seq([spark.plans.Project(spark.seq([*_items(below.output()), *hidden]), below)]))
    carried = [each.toAttribute() for each in hidden]
    for node in reversed(above):
        if node.nodeName() == "Project":
            made = spark.plans.Project(spark.seq([*_items(node.projectList()), *carried]), made)
        else:
            made = node.withNewChildren(spark.seq([*_items(node.children())[:-1], made]))
    return made


def _compared(spark: SparkEvaluator, key: Jvm) -> list[Jvm]:
    """Values that compare, one after the other, as the key does, and have types that Arrow knows."""
    kind = key.dataType()
    stated = kind.json()
    if kind.typeName().startswith(YEARS_AND_MONTHS):
        return [spark.expressions.ExtractANSIIntervalYears(key), spark.expressions.ExtractANSIIntervalMonths(key)]
    if not is_collated(stated):
        return [key]
    if not kind.typeName().startswith("string"):
        raise NotSupported(
            "ORDER BY nested values with strings inside that have a collation of their own is not supported at the top of a "
            "query; order by a field of it"
        )
    return [spark.expressions.CollationKey(key)]


def _place(visible: list[int], value: Jvm) -> int | None:
    """Which of the visible columns a value is; None if it is none."""
    if value.nodeName() != "AttributeReference":
        return None
    known = int(value.exprId().id())
    return visible.index(known) if known in visible else None


def _items(sequence: Jvm) -> list[Jvm]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _last(sequence: Jvm) -> Jvm:
    return sequence.apply(sequence.size() - 1)
