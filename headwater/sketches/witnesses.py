"""Witnesses: of a group whose only values are least and greatest ones, the rows that have them are all that the answer needs.

    γ G; max a (R)   is linked by G to   π G, fragment (R ⋈ G, a = max a  γ G; max a (R))

A sketch of witnesses is smaller, but serves fewer other queries: with a tighter filter below, another row has the greatest
value, and that one may not be in the sketch. So nothing may differ below such an aggregate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, walk
from headwater.compiler.joins import all_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

_EXTREME = ("Min", "Max")


def extremes(node: plan.Aggregate) -> list[Call]:
    """The aggregates of a group, if all of them are least or greatest values of all its rows, and there are any."""
    outputs = [part for output in node.outputs for part in walk(output)]
    calls = [part for part in outputs if isinstance(part, Call) and part.function == "AggregateExpression"]
    plain = [call for call in calls if len(call.arguments) == 1 and _function(call).function in _EXTREME]
    return list(dict.fromkeys(calls)) if len(plain) == len(calls) else []


def _function(call: Call) -> Call:
    function = call.arguments[0]
    assert isinstance(function, Call)
    return function


def subjects(calls: Sequence[Call]) -> list[Expression]:
    """What the aggregates are the least or greatest values of."""
    return [_function(call).arguments[0] for call in calls]


def witnessed(
    rows: plan.Node, pairs: plan.Node, node: plan.Aggregate, calls: Sequence[Call], type_of: Callable[[Expression], pa.DataType]
) -> plan.Node:
    """Keys with the fragments of witnesses; `pairs` are keys, subjects and fragment of all rows."""
    keys = len(node.keys)
    types = tuple(type_of(part) for part in (*node.keys, *calls))
    best = plan.Aggregate(types=types, child=rows, keys=node.keys, outputs=(*node.keys, *calls))
    wide = len(pairs.types)
    found = []
    for number in range(len(calls)):
        compared = [*range(keys), keys + number]
        equal: list[Expression] = [
            Call("EqualNullSafe", (Column(i, pairs.types[i]), Column(wide + i, best.types[i]))) for i in compared
        ]
        joined = plan.Join(types=pairs.types + best.types, left=pairs, right=best, kind="inner", condition=all_of(equal))
        found.append(plan.picked(joined, [*range(keys), wide - 1]))
    return found[0] if len(found) == 1 else plan.Union(types=found[0].types, inputs=tuple(found))
