"""How a sketch is maintained, where there is a choice: each technique can be turned off, to see what it is worth.

    key filter   a join looks for partners only of keys that the other side may have  (`state.filtering`)
    push-down    σ c (L) ⋈ R  in place of  σ c (L ⋈ R);  of a sketch that rests, σ on changes before they are put together
    best m       of a limit, and of least and greatest values of groups, the best m are kept in place of all rows

None of these changes the sketch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, columns_of, moved, never_fails
from headwater.compiler.joins import all_of
from headwater.compiler.linear import conjuncts


@dataclass(frozen=True)
class Tuning:
    """Which of the techniques are used; `best` is the number of rows or values that are kept, None if all are."""

    key_filter: bool = True
    push_down: bool = True
    best: int | None = None


def tuned(node: plan.Node, tuning: Tuning) -> plan.Node:
    """The plan as it is to be maintained."""
    if not tuning.push_down:
        node = _settled(*_late(node), len(node.types))
    return _marked(node, tuning)


def _marked(node: plan.Node, tuning: Tuning) -> plan.Node:
    node = plan.rewritten(node, lambda child: _marked(child, tuning))
    if isinstance(node, plan.Join):
        return replace(node, filtered=tuning.key_filter)
    return replace(node, best=tuning.best) if isinstance(node, plan.Limit | plan.Aggregate) else node


def _late(node: plan.Node) -> tuple[plan.Node, list[Expression]]:
    """The node without conditions that may as well be asked above it, and these; there may be more columns at its end."""
    match node:
        case plan.Filter(child=child, condition=condition) if all(map(never_fails, conjuncts(condition))):
            below, waiting = _late(child)
            return below, [*waiting, *conjuncts(condition)]
        case plan.Project(child=child, expressions=expressions) if all(map(never_fails, expressions)):
            below, waiting = _late(child)
            read = sorted({column for condition in waiting for column in columns_of(condition)})
            extra = tuple(Column(column, below.types[column]) for column in read)
            types = node.types + tuple(part.type for part in extra)
            places = {column: len(node.types) + i for i, column in enumerate(read)}
            above = plan.Project(types=types, child=below, expressions=(*expressions, *extra))
            return above, [moved(condition, places) for condition in waiting]
        case plan.Join(kind="inner", condition=condition) if condition is not None and never_fails(condition):
            return _late_join(node, condition)
    children = [_settled(*_late(child), len(child.types)) for child in node.children]
    return plan.with_children(node, children), []


def _late_join(node: plan.Join, condition: Expression) -> tuple[plan.Node, list[Expression]]:
    (left, of_left), (right, of_right) = _late(node.left), _late(node.right)
    wide, width, right_width = len(left.types), len(node.left.types), len(node.right.types)
    inner = {i: i for i in range(width)} | {width + i: wide + i for i in range(right_width)}
    types = left.types + right.types
    joined = plan.Join(types=types, left=left, right=right, kind="inner", condition=moved(condition, inner))
    order = [*inner.values(), *range(width, wide), *range(wide + right_width, len(types))]
    places = {column: i for i, column in enumerate(order)}
    waiting = [moved(part, places) for part in of_left]
    waiting += [moved(part, {i: places[wide + i] for i in range(len(right.types))}) for part in of_right]
    return plan.picked(joined, order), waiting


def _settled(node: plan.Node, waiting: list[Expression], width: int) -> plan.Node:
    """The node with the conditions that wait, and the columns that it should have."""
    condition = all_of(waiting)
    found = node if condition is None else plan.Filter(types=node.types, child=node, condition=condition)
    return plan.picked(found, range(width))


def needed(root: plan.Node) -> dict[str, Expression]:
    """For each table that all accesses select from right away: what is true of the rows that concern any of them."""
    found: dict[str, list[Expression | None]] = {}
    _select(root, [], found)
    conditions: dict[str, Expression] = {}
    for source, parts in found.items():
        whole = [part for part in dict.fromkeys(parts) if part is not None]
        if None not in parts:
            conditions[source] = whole[0] if len(whole) == 1 else _any_of(whole)
    return conditions


def _select(node: plan.Node, above: list[Expression], found: dict[str, list[Expression | None]]) -> None:
    if isinstance(node, plan.Scan):
        found.setdefault(node.source.lower(), []).append(all_of(above))
    elif isinstance(node, plan.Filter):
        certain = [part for part in conjuncts(node.condition) if never_fails(part)]
        _select(node.child, [*above, *certain], found)
    else:
        for child in node.children:
            _select(child, [], found)


def _any_of(parts: list[Expression]) -> Expression:
    whole = parts[0]
    for part in parts[1:]:
        whole = Call("Or", (whole, part))
    return whole
