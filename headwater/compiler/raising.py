"""Semi and anti joins after the joins that leave fewer rows to ask about.

    (A ⋉ S) ⋈ B   =   (A ⋈ B) ⋉ S        the same for ▷

Who asks must be kept, by what is asked for: A, or A ⋈ B if that is much smaller. The trap: a condition that may fail would not
be asked of the rows that the join drops, so it stays where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Column, columns_of, moved, never_fails
from headwater.compiler.orders import Shape

if TYPE_CHECKING:
    from headwater.compiler.estimates import Estimator

_FEWER = 0.5


def raised(node: plan.Node, estimator: Estimator) -> plan.Node:
    """The plan with semi and anti joins above the joins that make them cheaper."""
    if isinstance(node, plan.MultiJoin):
        for number, child in enumerate(node.inputs):
            found = _opened(child)
            if found is None:
                continue
            join, columns = found
            below = _below(node, number, join, columns)
            if _leaves_few(below, number, estimator):
                return raised(_above(node, number, join, below), estimator)
    return plan.rewritten(node, lambda child: raised(child, estimator))


def _opened(node: plan.Node) -> tuple[plan.Join, list[int]] | None:
    """A semi or anti join that may be moved, and which of its columns the node gives."""
    columns = list(range(len(node.types)))
    while isinstance(node, plan.Project):
        if not all(isinstance(part, Column) for part in node.expressions):
            return None
        columns = [node.expressions[i].index for i in columns]  # type: ignore[union-attr]
        node = node.child
    if not isinstance(node, plan.Join) or node.kind not in ("semi", "anti"):
        return None
    return (node, columns) if node.condition is not None and never_fails(node.condition) else None


def _below(node: plan.MultiJoin, number: int, join: plan.Join, columns: list[int]) -> plan.MultiJoin:
    """The join of all rows, whether the semi or anti join has them or not; it gives, too, what that one asks about."""

    def place(at: tuple[int, int]) -> tuple[int, int]:
        return (number, columns[at[1]]) if at[0] == number else at

    assert join.condition is not None
    equal = tuple(replace(part, columns=tuple(map(place, part.columns))) for part in node.equal)
    shown = [place(at) for at in node.outputs]
    read = sorted(i for i in columns_of(join.condition) if i < len(join.left.types))
    asked = [(number, i) for i in read if (number, i) not in shown]
    types = node.types + tuple(join.left.types[i] for _, i in asked)
    inputs = (*node.inputs[:number], join.left, *node.inputs[number + 1 :])
    return replace(node, types=types, inputs=inputs, equal=equal, outputs=(*shown, *asked))


def _leaves_few(below: plan.MultiJoin, number: int, estimator: Estimator) -> bool:
    shape = Shape(below, [estimator.estimate(child) for child in below.inputs])
    return shape.known and shape.result(number) < _FEWER * shape.rows[number]


def _above(node: plan.MultiJoin, number: int, join: plan.Join, below: plan.MultiJoin) -> plan.Node:
    assert join.condition is not None
    width = len(join.left.types)
    places = {
        i: below.outputs.index((number, i)) if i < width else i - width + len(below.outputs) for i in columns_of(join.condition)
    }
    asking = replace(join, types=below.types, left=below, condition=moved(join.condition, places))
    return plan.picked(asking, range(len(node.outputs)))
