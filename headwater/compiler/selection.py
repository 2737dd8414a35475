"""A strategy for a query: that of its recursions, or of annotations beside a query that has none.

Aggregate selection: MIN and MAX over the groups of a recursion, pushed into it.

    γ k; min(c), max(d)  ∘  μX.body(X)      →      … ∘ μX.body(X) of which only the best rows of each group go on

Right where a row that is not the best of its group, by any of the aggregates, cannot derive one that is:

    conditions, keys of joins and the group itself     depend, of a recursive row, on its group alone
    an aggregated column                               is that column of the recursive row, or it and something added
    other columns                                      may be anything, for nobody looks at them

So `min(cost)` of paths ends on cycles, though there are paths without end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xxhash import xxh3_64_hexdigest

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, columns_of, keeps_order
from headwater.compiler import aggregates
from headwater.compiler.recursion import is_recursive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    TypeOf = Callable[[Expression], pa.DataType]

_KEEPING = {"Cast", "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "CheckOverflow", "PromotePrecision", "KnownNotNull"}


def with_strategy(node: plan.Node, strategy: str, type_of: TypeOf) -> plan.Node:
    """The plan with its fixpoints kept by a strategy, and those under MIN and MAX selecting."""
    if isinstance(node, plan.Aggregate) and strategy.startswith("absorption"):
        selecting = _selecting(node, type_of)
        if selecting is not None:
            node = selecting
    if isinstance(node, plan.Fixpoint):
        node = replace(node, strategy=strategy, identity=xxh3_64_hexdigest(repr((strategy, node)).encode()))
    return plan.rewritten(node, lambda child: with_strategy(child, strategy, type_of))


def annotated(root: plan.Node, strategy: str) -> plan.Node:
    """The plan of a query that is not recursive, with annotations of its rows beside it; an order stays at the top."""
    below = root
    while isinstance(below, plan.Project):
        below = below.child
    if isinstance(below, plan.Sort):
        return plan.rewritten(root, lambda child: annotated(child, strategy))
    relation = plan.Relation(name="the view", body=root, duplicates=False)
    identity = xxh3_64_hexdigest(repr((strategy, root)).encode())
    annotation = plan.Fixpoint(types=root.types, relations=(relation,), result=0, strategy=strategy, identity=identity)
    return plan.Explained(types=root.types, child=root, annotation=annotation)


def _selecting(node: plan.Aggregate, type_of: TypeOf) -> plan.Aggregate | None:
    """The aggregate over a fixpoint that selects, if it may."""
    below, chain = node.child, list[plan.Project]()
    lowered = aggregates.lower(node, type_of)
    while isinstance(below, plan.Project) and all(isinstance(part, Column) for part in below.expressions):
        chain.append(below)
        below = below.child
    inner = _plain(lowered, node)
    if not isinstance(below, plan.Fixpoint) or lowered.scalars or not lowered.calls or inner is None:
        return None
    places = list(range(len(below.types)))
    for project in reversed(chain):
        places = [places[part.index] for part in project.expressions if isinstance(part, Column)]
    keys = tuple(places[part.index] for part in node.keys if isinstance(part, Column))
    best = tuple(_extreme(call, inner, places) for call in lowered.calls)
    if len(keys) < len(node.keys) or any(each is None for each in best):
        return None
    chosen = tuple(each for each in best if each is not None)
    if not _is_selectable(below, keys, tuple(column for column, _ in chosen)):
        return None
    child: plan.Node = replace(below, selection=(keys, chosen))
    for project in reversed(chain):
        child = plan.with_children(project, [child])
    return replace(node, child=child)


def _plain(lowered: aggregates.Lowered, node: plan.Aggregate) -> list[int] | None:
    """The columns of the aggregate's input that are below its calls; None if something is computed there."""
    if lowered.below is node.child:
        return list(range(len(node.child.types)))
    assert isinstance(lowered.below, plan.Project)
    columns = [part.index for part in lowered.below.expressions if isinstance(part, Column)]
    return columns if len(columns) == len(lowered.below.types) else None


def _extreme(call: Call, inner: list[int], places: list[int]) -> tuple[int, bool] | None:
    """The column of the fixpoint that a call takes the least or greatest of, and which of both.

    `inner` are columns of the aggregate's input, by what the call reads; `places` are columns of the fixpoint, by those.
    """
    function = call.arguments[0]
    if len(call.arguments) > 1 or not isinstance(function, Call) or function.function not in aggregates.EXTREMES:
        return None
    (argument,) = function.arguments
    if not isinstance(argument, Column):
        return None
    return places[inner[argument.index]], aggregates.EXTREMES[function.function]


@dataclass(frozen=True)
class _Trace:
    """Of a column: the recursive columns that it depends on, and the one that it is, or is with something added."""

    reads: frozenset[int]
    sum_of: int | None = None


_NOTHING = _Trace(frozenset())


class _NotSelectable(Exception):
    """A better row might be derived from one that is not the best."""


def _is_selectable(fixpoint: plan.Fixpoint, keys: tuple[int, ...], best: tuple[int, ...]) -> bool:
    if len(fixpoint.relations) > 1 or set(keys) & set(best):
        return False
    try:
        traces = _traced(fixpoint.relations[0].body, frozenset(keys))
    except _NotSelectable:
        return False
    return all(traces[key].reads <= set(keys) for key in keys) and all(
        traces[column].reads <= {column} and (not traces[column].reads or traces[column].sum_of == column) for column in best
    )


def _traced(node: plan.Node, keys: frozenset[int]) -> list[_Trace]:
    """What each column of a node depends on; conditions may depend on keys only."""
    if not is_recursive(node):
        return [_NOTHING] * len(node.types)
    match node:
        case plan.Recursive():
            return [_Trace(frozenset([i]), i) for i in range(len(node.types))]
        case plan.Project(child=child, expressions=expressions):
            below = _traced(child, keys)
            return [_of(expression, below) for expression in expressions]
        case plan.Filter(child=child, condition=condition):
            below = _traced(child, keys)
            _require_keys(condition, below, keys)
            return below
        case plan.Union(inputs=inputs):
            parts = [_traced(child, keys) for child in inputs]
            return [_merged(column) for column in zip(*parts, strict=True)]
        case plan.Join(left=left, right=right, kind="inner", condition=condition):
            both = [*_traced(left, keys), *_traced(right, keys)]
            if condition is not None:
                _require_keys(condition, both, keys)
            return both
    raise _NotSelectable


def _merged(traces: Sequence[_Trace]) -> _Trace:
    """A column of a union: what any branch depends on; a sum only where every branch that depends on anything is the same."""
    reads = frozenset[int]().union(*(trace.reads for trace in traces))
    sums = {trace.sum_of for trace in traces if trace.reads}
    return _Trace(reads, sums.pop() if len(sums) == 1 else None)


def _of(expression: Expression, below: list[_Trace]) -> _Trace:
    reads = frozenset[int]().union(*(below[column].reads for column in columns_of(expression)))
    return _Trace(reads, _sum_of(expression, below) if reads else None)


def _sum_of(expression: Expression, below: list[_Trace]) -> int | None:
    """The recursive column that an expression adds something to; None if it does something else."""
    match expression:
        case Column(index):
            return below[index].sum_of
        case Call(function=function, arguments=(argument, *_)) if function in _KEEPING and keeps_order(expression):
            return _sum_of(argument, below)
        case Call(function="Add", arguments=(first, second)):
            recursive = [part for part in (first, second) if any(below[c].reads for c in columns_of(part))]
            return _sum_of(recursive[0], below) if len(recursive) == 1 else None
    return None


def _require_keys(condition: Expression, below: list[_Trace], keys: frozenset[int]) -> None:
    for column in columns_of(condition):
        if not below[column].reads <= keys:
            raise _NotSelectable
