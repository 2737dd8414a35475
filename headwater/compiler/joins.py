"""Joins to operators.

inner                    Join on the equal columns, then a filter for the rest of the condition
semi, anti, existence    Match
left                     inner ⊎ (anti, padded with NULLs);  right: the mirror image;  full: both
NOT IN (null-aware)      rows without a partner, if the other side has no NULL; every row, if it is empty
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal, columns_of, rewrite
from headwater.compiler.linear import conjuncts

if TYPE_CHECKING:
    from headwater.algebra.plan import Types

_EQUALITIES = {"EqualTo": False, "EqualNullSafe": True}


@dataclass(frozen=True)
class Condition:
    """A join condition taken apart: expressions that must be equal, left and right, and what else must hold."""

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    null_safe: tuple[bool, ...]
    rest: Expression | None
    equalities: Expression | None


def analyse(join: plan.Join) -> Condition:
    """Which parts of the condition make a key."""
    width = len(join.left.types)
    left, right, safe, keys, rest = [], [], [], [], []
    for part in conjuncts(join.condition):
        pair = sides(part, width)
        if pair is None:
            rest.append(part)
            continue
        left.append(pair[0])
        right.append(_shifted(pair[1], -width))
        safe.append(_EQUALITIES[part.function])  # type: ignore[union-attr]
        keys.append(part)
    return Condition(tuple(left), tuple(right), tuple(safe), all_of(rest), all_of(keys))


def expand_outer(join: plan.Join) -> plan.Node:
    """Left, right, full and single joins in terms of inner and anti joins; a single join has a check beside them."""
    if join.kind == "right":
        return _swapped_back(replace(_mirrored(join), kind="left"), join)
    inner = replace(join, kind="inner")
    inputs: list[plan.Node] = [inner, _unmatched(join, inner.types)]
    if join.kind == "full":
        mirror = _mirrored(join)
        lonely = _unmatched(mirror, mirror.types)
        inputs.append(_reordered(lonely, len(join.right.types), join.types))
    if join.kind == "single":
        inputs.append(replace(join, kind="check"))
    return plan.Union(types=join.types, inputs=tuple(inputs))


def null_aware(join: plan.Join) -> plan.Node | None:
    """`a NOT IN (SELECT b …)` as counts and an existence join; None if the join is not of that form."""
    found = _not_in(join)
    if found is None:
        return None
    a, b = found
    left, right = join.left, join.right
    counts = plan.Aggregate(
        types=(pa.int64(), pa.int64()), child=right, keys=(), outputs=(_count(), _count(_shifted(b, -len(left.types))))
    )
    exists = replace(join, kind="existence", types=(*left.types, pa.bool_()), condition=Call("EqualTo", (a, b)))
    types = (*exists.types, *counts.types)
    together = plan.Join(types=types, left=exists, right=counts, kind="inner", condition=None)
    flag, every, known = (Column(len(left.types) + i, kind) for i, kind in enumerate((pa.bool_(), pa.int64(), pa.int64())))
    none_like_it = all_of([Call("IsNotNull", (a,)), Call("Not", (flag,)), Call("EqualTo", (every, known))])
    empty = Call("EqualTo", (every, Literal("0", pa.int64())))
    assert none_like_it is not None
    kept = plan.Filter(types=types, child=together, condition=Call("Or", (empty, none_like_it)))
    return _reordered(kept, 0, left.types)


def _not_in(join: plan.Join) -> tuple[Expression, Expression] | None:
    condition = join.condition
    if join.kind != "anti" or not (isinstance(condition, Call) and condition.function == "Or"):
        return None
    equal, unknown = condition.arguments
    if unknown != Call("IsNull", (equal,)) or not isinstance(equal, Call) or equal.function != "EqualTo":
        return None
    return sides(equal, len(join.left.types))


def _count(*arguments: Expression) -> Call:
    return Call("AggregateExpression", (Call("Count", arguments),), None, (("isDistinct", "false"),))


def sides(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    """The left and the right expression of an equality between the two inputs."""
    if not (isinstance(part, Call) and part.function in _EQUALITIES):
        return None
    first, second = part.arguments
    for a, b in ((first, second), (second, first)):
        reads_a, reads_b = columns_of(a), columns_of(b)
        if reads_a and reads_b and max(reads_a) < width <= min(reads_b):
            return a, b
    return None


def _unmatched(join: plan.Join, types: Types) -> plan.Node:
    """The left rows without a partner, padded with NULLs."""
    left = join.left.types
    anti = replace(join, kind="anti", types=left)
    padding = tuple(Literal(None, kind) for kind in types[len(left) :])
    kept = tuple(Column(i, kind) for i, kind in enumerate(left))
    return plan.Project(types=types, child=anti, expressions=kept + padding)


def _mirrored(join: plan.Join) -> plan.Join:
    """The same join with its sides exchanged."""
    left, right = len(join.left.types), len(join.right.types)

    def exchange(part: Expression) -> Expression | None:
        if isinstance(part, Column):
            return Column(part.index + right if part.index < left else part.index - left, part.type)
        return None

    condition = None if join.condition is None else rewrite(join.condition, exchange)
    types = join.types[left:] + join.types[:left]
    return replace(join, left=join.right, right=join.left, condition=condition, types=types)


def _swapped_back(mirrored: plan.Join, join: plan.Join) -> plan.Node:
    return _reordered(mirrored, len(join.right.types), join.types)


def _reordered(node: plan.Node, first: int, types: Types) -> plan.Node:
    """The columns from `first` on, then those before it, as many as there are types."""
    places = [*range(first, len(node.types)), *range(first)][: len(types)]
    return plan.Project(types=types, child=node, expressions=tuple(Column(i, t) for i, t in zip(places, types, strict=True)))


def _shifted(expression: Expression, by: int) -> Expression:
    return rewrite(expression, lambda part: Column(part.index + by, part.type) if isinstance(part, Column) else None)


def all_of(parts: list[Expression]) -> Expression | None:
    """The conjunction of the parts."""
    if not parts:
        return None
    whole = parts[0]
    for part in parts[1:]:
        whole = Call("And", (whole, part))
    return whole
