"""What a reader of a view sees: a top-level ORDER BY is no part of the dataflow, but says how to sort when someone looks.

SELECT brand FROM sales ORDER BY price     keeps (brand, price), sorts by the second, and shows the first
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Column, Expression, rewrite
from headwater.operators.ordering import Order

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


@dataclass(frozen=True)
class Presentation:
    """The node to keep, how many of its columns are shown, and the order."""

    node: plan.Node
    visible: int
    order: tuple[Order, ...]


def presented(root: plan.Node, type_of: Callable[[Expression], pa.DataType]) -> Presentation:
    """Takes the order off the top of a query."""
    above: list[plan.Project] = []
    node = root
    while isinstance(node, plan.Project):
        above.append(node)
        node = node.child
    if not isinstance(node, plan.Sort | plan.Limit) or not node.order:
        return Presentation(root, len(root.types), ())
    below = node.child if isinstance(node, plan.Sort) else node
    shown: tuple[Expression, ...] = tuple(Column(i, kind) for i, kind in enumerate(below.types))
    for project in reversed(above):
        shown = tuple(_substituted(expression, shown) for expression in project.expressions)
    columns = list(shown)
    types = list(root.types)
    order = []
    for key in node.order:
        if key.expression not in columns:
            columns.append(key.expression)
            types.append(type_of(key.expression))
        order.append(Order(columns.index(key.expression), key.descending, key.nulls_first))
    if not above and len(columns) == len(below.types):
        return Presentation(below, len(root.types), tuple(order))
    kept = plan.Project(types=tuple(types), child=below, expressions=tuple(columns))
    return Presentation(kept, len(root.types), tuple(order))


def _substituted(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    return rewrite(expression, lambda part: columns[part.index] if isinstance(part, Column) else None)
