"""Pruning: of every relation that is kept as state, only the columns that something above reads.

    γ sum(b.y)  ∘  ⋈(A(k, x, …), B(k, y, z, …); a.k = b.k)      keeps   A(k)  and  B(k, y)

Needs go from the top down. What treats rows one by one passes them on; what keeps rows gets exactly the columns it needs, in
the order they have below, so that views which need the same columns share the state. Tables are not cut where they are read,
but where they are kept. Whatever looks at whole rows (a limit breaks ties by them, Spark binds them by position) gets them all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import columns_of, moved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.algebra.expressions import Expression

    # Where the columns that are left are now.
    Places = dict[int, int]


def pruned(node: plan.Node) -> plan.Node:
    """The same relation from no more columns than it needs."""
    return _exactly(node, range(len(node.types)))


def _exactly(node: plan.Node, needed: Iterable[int]) -> plan.Node:
    """The columns needed, in the order of the node."""
    wanted = sorted(set(needed))
    cut, places = _cut(node, set(wanted))
    return plan.picked(cut, [places[i] for i in wanted])


def _cut(node: plan.Node, needed: set[int]) -> tuple[plan.Node, Places]:  # noqa: PLR0911  (one case a kind)
    """The node with the columns needed, and perhaps some more."""
    match node:
        case plan.Project():
            return _project(node, sorted(needed))
        case plan.Filter(condition=condition):
            child, places = _cut(node.child, needed | columns_of(condition))
            return replace(node, types=child.types, child=child, condition=moved(condition, places)), places
        case plan.Sort():
            return _cut(node.child, needed)
        case plan.Annotate():
            return _annotate(node, sorted(needed))
        case plan.Expand():
            return _expand(node, sorted(needed))
        case plan.Aggregate():
            return _aggregate(node, sorted(needed))
        case plan.Union():
            kept = sorted(needed)
            inputs = tuple(_exactly(child, kept) for child in node.inputs)
            return replace(node, types=_at(node.types, kept), inputs=inputs), _numbered(kept)
        case plan.Join():
            return _join(node, needed)
        case plan.MultiJoin():
            return _multijoin(node, sorted(needed))
    return plan.rewritten(node, pruned), _numbered(range(len(node.types)))


def _project(node: plan.Project, kept: list[int]) -> tuple[plan.Node, Places]:
    expressions = [node.expressions[i] for i in kept]
    child, below = _cut(node.child, _read(expressions))
    moved_expressions = tuple(moved(part, below) for part in expressions)
    return replace(node, types=_at(node.types, kept), child=child, expressions=moved_expressions), _numbered(kept)


def _annotate(node: plan.Annotate, kept: list[int]) -> tuple[plan.Node, Places]:
    last = len(node.child.types)
    child, places = _cut(node.child, {i for i in kept if i < last} | {node.column})
    marked = replace(node, types=(*child.types, node.types[-1]), child=child, column=places[node.column])
    return marked, {**places, last: len(child.types)}


def _expand(node: plan.Expand, kept: list[int]) -> tuple[plan.Node, Places]:
    child, below = _cut(node.child, _read(row[i] for row in node.projections for i in kept))
    projections = tuple(tuple(moved(row[i], below) for i in kept) for row in node.projections)
    return replace(node, types=_at(node.types, kept), child=child, projections=projections), _numbered(kept)


def _aggregate(node: plan.Aggregate, kept: list[int]) -> tuple[plan.Node, Places]:
    if _is_scalar_join(node.child):
        # The values of scalar subqueries are found by their place in the joins below.
        return replace(node, child=pruned(node.child)), _numbered(range(len(node.types)))
    outputs = [node.outputs[i] for i in kept]
    child, below = _cut(node.child, _read([*node.keys, *outputs]))
    keys = tuple(moved(part, below) for part in node.keys)
    moved_outputs = tuple(moved(part, below) for part in outputs)
    return replace(node, types=_at(node.types, kept), child=child, keys=keys, outputs=moved_outputs), _numbered(kept)


def _is_scalar_join(node: plan.Node) -> bool:
    return isinstance(node, plan.Join) and isinstance(node.right, plan.Scalar)


def _join(node: plan.Join, needed: set[int]) -> tuple[plan.Node, Places]:
    width = len(node.left.types)
    read = set() if node.condition is None else columns_of(node.condition)
    flag = {i for i in needed if node.kind == "existence" and i == width}
    used = sorted((needed - flag) | read)
    left = _exactly(node.left, [i for i in used if i < width])
    right = _exactly(node.right, [i - width for i in used if i >= width])
    condition = None if node.condition is None else moved(node.condition, _numbered(used))
    one_sided = node.kind in ("semi", "anti", "existence")
    kept = [i for i in used if i < width or not one_sided]
    kept += [width] if node.kind == "existence" else []
    return replace(node, types=_at(node.types, kept), left=left, right=right, condition=condition), _numbered(kept)


def _multijoin(node: plan.MultiJoin, kept: list[int]) -> tuple[plan.Node, Places]:
    outputs = [node.outputs[i] for i in kept]
    used = {*outputs, *(place for equal in node.equal for place in equal.columns)}
    places: dict[tuple[int, int], tuple[int, int]] = {}
    inputs = []
    for number, child in enumerate(node.inputs):
        columns = sorted(column for i, column in used if i == number)
        places |= {(number, column): (number, i) for i, column in enumerate(columns)}
        inputs.append(_exactly(child, columns))
    equal = tuple(replace(part, columns=tuple(places[place] for place in part.columns)) for part in node.equal)
    moved_outputs = tuple(places[place] for place in outputs)
    cut = replace(node, types=_at(node.types, kept), inputs=tuple(inputs), equal=equal, outputs=moved_outputs)
    return cut, _numbered(kept)


def columns_read(node: plan.Node, needed: Iterable[int] | None = None) -> list[set[int]]:
    """The columns that are read of each scan, from the top, if these of the node are needed: all of them, unless stated."""
    wanted = set(range(len(node.types))) if needed is None else set(needed)
    if isinstance(node, plan.Scan):
        return [wanted]
    reads = zip(node.children, _below(node, wanted), strict=True)
    return [read for child, below in reads for read in columns_read(child, below)]


def _below(node: plan.Node, wanted: set[int]) -> list[set[int] | None]:  # noqa: PLR0911  (one case a kind)
    """The columns that a node reads of each child; None for all."""
    match node:
        case plan.Project(expressions=expressions):
            return [_read(expressions[i] for i in wanted)]
        case plan.Filter(condition=condition):
            return [wanted | columns_of(condition)]
        case plan.Sort(order=order):
            return [wanted | _read(key.expression for key in order)]
        case plan.Aggregate(keys=keys, outputs=outputs):
            return [_read([*keys, *outputs])]
        case plan.Union():
            return [wanted] * len(node.inputs)
        case plan.Join(condition=condition):
            width = len(node.left.types)
            used = wanted | (set() if condition is None else columns_of(condition))
            flag = {width} if node.kind == "existence" and (condition is None or width not in columns_of(condition)) else set()
            return [{i for i in used if i < width}, {i - width for i in used - flag if i >= width}]
    return [None] * len(node.children)


def _read(expressions: Iterable[Expression]) -> set[int]:
    return {i for part in expressions for i in columns_of(part)}


def _at(types: plan.Types, kept: Iterable[int]) -> plan.Types:
    return tuple(types[i] for i in kept)


def _numbered(kept: Iterable[int]) -> Places:
    return {column: place for place, column in enumerate(kept)}
