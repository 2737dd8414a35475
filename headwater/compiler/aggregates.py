"""Aggregates to operators: a projection below that computes keys and arguments, the aggregate, a projection above.

    SELECT g(k), f(sum(x + 1))    becomes    π g(#0), f(#1)  ∘  γ #0; sum(#1)  ∘  π k, x + 1

A function with a FILTER sees no other rows, and its arguments may fail on those. So they are NULL there:

    sum(1 / x) FILTER (WHERE x > 0)    becomes    γ sum(#0) FILTER (WHERE #1)  ∘  π if(x > 0, 1 / x, NULL), x > 0

Functions with an exact sum (`accumulators`), and least and greatest values, are maintained; if one function of the aggregate
has neither, the touched groups are evaluated again, all functions at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal, never_fails, rewrite, walk
from headwater.evaluation.settings import only_spark_knows
from headwater.operators.accumulators import accumulator
from headwater.operators.aggregate import Extreme, Measure
from headwater.operators.ordering import is_ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    TypeOf = Callable[[Expression], pa.DataType]

EXTREMES = {"Min": False, "Max": True}


@dataclass(frozen=True)
class Lowered:
    """An aggregate in three parts: `calls` are functions over the columns of `below`, `above` reads keys and their values."""

    below: plan.Node
    keys: int
    calls: tuple[Call, ...]
    above: tuple[Expression, ...]
    scalars: tuple[plan.Node, ...]


def lower(node: plan.Aggregate, type_of: TypeOf) -> Lowered:
    """Takes an aggregate apart."""
    written = dict.fromkeys(call for output in node.outputs for call in walk(output) if _is_aggregate(call))
    guarded = {call: _guarded(call, type_of) for call in written}
    calls = list(dict.fromkeys(guarded.values()))
    inner = [part for call in calls for part in _arguments(call)]
    columns: list[Expression] = [*node.keys, *(part for part in dict.fromkeys(inner) if part not in node.keys)]
    types = tuple(type_of(column) for column in columns)
    below: plan.Node = plan.Project(types=types, child=node.child, expressions=tuple(columns))
    if _is_identity(columns, node.child):
        below = node.child
    places = {column: Column(i, types[i]) for i, column in reversed(list(enumerate(columns)))}
    over = tuple(_over(call, places) for call in calls)
    results: dict[Expression, Column] = {
        call: Column(len(node.keys) + calls.index(made), type_of(call)) for call, made in guarded.items()
    }
    return Lowered(below, len(node.keys), over, *_above(node, results, places, len(calls)))


def separated(node: plan.Node, type_of: TypeOf) -> plan.Node:
    """The plan with aggregates that give keys and results as they are, and projections above them for the rest.

    Then the rest is computed with what else is above, and aggregates that differ only in it are one.
    """
    node = plan.rewritten(node, lambda child: separated(child, type_of))
    if not isinstance(node, plan.Aggregate):
        return node
    lowered = lower(node, type_of)
    types = lowered.below.types[: lowered.keys] + tuple(map(type_of, lowered.calls))
    keys = tuple(Column(i, kind) for i, kind in enumerate(types[: lowered.keys]))
    plain = replace(node, types=types, child=lowered.below, keys=keys, outputs=(*keys, *lowered.calls), origin=None)
    if lowered.scalars or _is_identity(lowered.above, plain):
        return node
    return plan.Project(types=node.types, child=plain, expressions=lowered.above)


def _is_identity(expressions: Sequence[Expression], child: plan.Node) -> bool:
    return tuple(expressions) == tuple(Column(i, kind) for i, kind in enumerate(child.types))


def _above(
    node: plan.Aggregate, results: dict[Expression, Column], places: dict[Expression, Column], count: int
) -> tuple[tuple[Expression, ...], tuple[plan.Node, ...]]:
    """The outputs over keys and results; a value of a scalar subquery is joined on after the aggregate."""
    scalars: list[plan.Node] = []
    keys = set(node.keys)

    def place(part: Expression) -> Expression | None:
        if part in results:
            return results[part]
        if part in keys:
            return places[part]
        if isinstance(part, Column):
            scalar = _scalar_at(node.child, part.index)
            if scalar not in scalars:
                scalars.append(scalar)
            return Column(len(node.keys) + count + scalars.index(scalar), part.type)
        return None

    return tuple(rewrite(output, place) for output in node.outputs), tuple(scalars)


def _scalar_at(node: plan.Node, index: int) -> plan.Node:
    """The scalar subquery whose value is the column."""
    while isinstance(node, plan.Join) and index < len(node.left.types):
        node = node.left
    assert isinstance(node, plan.Join)
    return node.right


def _is_aggregate(part: Expression) -> TypeGuard[Call]:
    return isinstance(part, Call) and part.function == "AggregateExpression"


def functions_for(lowered: Lowered, node: plan.Aggregate) -> tuple[tuple[Measure | Extreme, ...], str | None]:
    """The maintained functions; or the name of one that cannot be maintained."""
    found = []
    for call in lowered.calls:
        function = _maintained(call, node)
        if function is None:
            return (), call.arguments[0].function  # type: ignore[union-attr]
        found.append(function)
    return tuple(found), None


def _maintained(call: Call, node: plan.Aggregate) -> Measure | Extreme | None:
    function = call.arguments[0]
    assert isinstance(function, Call)
    if only_spark_knows(call) is not None:
        return None
    condition = call.arguments[1].index if len(call.arguments) > 1 else None  # type: ignore[union-attr]
    inputs = [part for part in function.arguments if isinstance(part, Column)]
    rest = [part for part in function.arguments if not isinstance(part, Column)]
    if rest and not (function.function == "Count" and all(isinstance(part, Literal) and part.value for part in rest)):
        return None
    name = "Max" if _is_single_value(function, condition, node) else function.function
    if name in EXTREMES and is_ordered(inputs[0].type):
        return Extreme(inputs[0].index, EXTREMES[name], inputs[0].type, condition, counted=True, best=node.best)
    found = accumulator(name, [part.type for part in inputs], dict(function.options))
    if found is None:
        return None
    distinct = call.option("isDistinct") == "true"
    return Measure(found, tuple(part.index for part in inputs), condition, distinct)


def _is_single_value(function: Call, condition: int | None, node: plan.Aggregate) -> bool:
    """Catalyst splits several distinct aggregates by an Expand, and takes what was one value all along by `first`."""
    if function.function != "First" or function.option("ignoreNulls") != "true" or condition is None:
        return False
    below = _without_projections(node.child)
    return isinstance(below, plan.Aggregate) and isinstance(_without_projections(below.child), plan.Expand)


def _without_projections(node: plan.Node) -> plan.Node:
    while isinstance(node, plan.Project):
        node = node.child
    return node


def _guarded(call: Call, type_of: TypeOf) -> Call:
    """The call with arguments that have a value for every row, also for those that its filter drops."""
    if len(call.arguments) == 1:
        return call
    function, condition = call.arguments
    assert isinstance(function, Call)

    def guard(part: Expression) -> Expression:
        if _is_order(part):
            assert isinstance(part, Call)
            return replace(part, arguments=(guard(part.arguments[0]), *part.arguments[1:]))
        if never_fails(part):
            return part
        kind = type_of(part)
        return Call("If", (condition, part, Literal(None, kind)), kind)

    return replace(call, arguments=(replace(function, arguments=tuple(map(guard, function.arguments))), condition))


def _arguments(call: Call) -> list[Expression]:
    """What an aggregate call reads: the arguments of its function that vary, and its filter.

    An argument that is a cast of what the rows are ordered by is read as that: Spark checks that they are the same.
    """
    function = call.arguments[0]
    assert isinstance(function, Call)
    order = [part.arguments[0] for part in function.arguments if _is_order(part)]  # type: ignore[union-attr]
    varying = [part for part in function.arguments if not isinstance(part, Literal) and not _is_order(part)]
    read = [part for part in varying if not _is_cast_of(part, order)]
    return [*read, *order, *call.arguments[1:]]


def _is_cast_of(part: Expression, order: list[Expression]) -> bool:
    return isinstance(part, Call) and part.function == "Cast" and part.arguments[0] in order and part not in order


def _is_order(part: Expression) -> bool:
    return isinstance(part, Call) and part.function == "SortOrder"


def _over(call: Call, places: dict[Expression, Column]) -> Call:
    """The call with its arguments read from the projection below."""
    function = call.arguments[0]
    assert isinstance(function, Call)
    own = {part: places[part] for part in _arguments(call)}
    # A constant stays one: Spark wants the delimiter of listagg to be, also where a key or an order has the same value.
    arguments = tuple(rewrite(part, lambda p: None if isinstance(p, Literal) else own.get(p)) for part in function.arguments)
    return replace(call, arguments=(replace(function, arguments=arguments), *(places[part] for part in call.arguments[1:])))
