"""Monotony: a recursion through MIN or MAX has one answer only if a better value below never makes a worse one above.

Every column of a relation is plain (0), a value of which less is better (MIN, +1), or one of which more is better (MAX, −1):

    min(x) over x of 0 or +1   is +1          x + y       joins the signs of both, which may not be opposite
    x < y                      for x of 0 or +1 and y of 0 or −1: what passes goes on passing when it gets better
    x − y, −x                  turn signs     keys of joins and groups, and all other functions, are of plain columns

`10 − cost` under MIN, or `cost > 5`, would make the answer depend on the order in which it is found; so they are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal, keeps_order
from headwater.compiler.joins import analyse
from headwater.compiler.linear import conjuncts
from headwater.errors import NotStratified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.operators.fixpoint import Believed

    Signs = tuple[int, ...]

_JOINING = {"Add", "Greatest", "Least"}
_KEEPING = {"Cast", "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "CheckOverflow", "PromotePrecision", "KnownNotNull"}
_LESS = {"LessThan", "LessThanOrEqual"}
_GREATER = {"GreaterThan", "GreaterThanOrEqual"}
_OF_KIND = {"min": 1, "max": -1}


def require_monotone(relations: Sequence[Believed], bodies: Sequence[plan.Node]) -> None:
    """Refuses bodies in which the best values of groups are used in a way that is not monotone."""
    if all(relation.kind in ("set", "bag") for relation in relations):
        return
    signs: list[Signs] = [(0,) * len(relation.types) for relation in relations]
    while True:
        found = [_relation(*each, signs) for each in zip(relations, bodies, strict=True)]
        if found == signs:
            return
        signs = found


def _relation(relation: Believed, body: plan.Node, signs: list[Signs]) -> Signs:
    derived = _of(body, signs)[:-1]
    if relation.kind not in _OF_KIND:
        return derived
    if any(derived[:-1]):
        raise _refused(relation.name, "its groups depend on a value that is itself the best of a group")
    sign = _OF_KIND[relation.kind]
    if derived[-1] == -sign:
        raise _refused(relation.name, f"{relation.kind.upper()} of a value that gets worse as the recursive one gets better")
    return (*derived[:-1], sign)


def _of(node: plan.Node, signs: list[Signs]) -> Signs:  # noqa: PLR0911  (one case a kind)
    """The signs of a node's columns."""
    match node:
        case plan.Recursive(relation=number):
            return (*signs[number], 0)
        case plan.Project(child=child, expressions=expressions):
            below = _of(child, signs)
            return tuple(_sign(part, below) for part in expressions)
        case plan.Filter(child=child, condition=condition):
            below = _of(child, signs)
            _require_passing(condition, below)
            return below
        case plan.Union(inputs=inputs):
            columns = zip(*(_of(child, signs) for child in inputs), strict=True)
            return tuple(_joined(column) for column in columns)
        case plan.Join():
            return _join(node, signs)
        case plan.MultiJoin():
            inputs_below = [_of(child, signs) for child in node.inputs]
            if any(inputs_below[i][column] for equal in node.equal for i, column in equal.columns):
                raise _refused(None, "a join by a value that is the best of a group")
            return tuple(inputs_below[i][column] for i, column in node.outputs)
        case plan.Expand(child=child, projections=projections):
            below = _of(child, signs)
            return tuple(_joined([_sign(part, below) for part in column]) for column in zip(*projections, strict=True))
        case plan.Generate(child=child, generator=generator, kept=kept):
            below = _of(child, signs)
            _require_plain(generator, below)
            return (*(below[i] for i in kept), *(0 for _ in node.types[len(kept) :]))
    return (0,) * len(node.types)


def _join(node: plan.Join, signs: list[Signs]) -> Signs:
    left, right = _of(node.left, signs), _of(node.right, signs)
    both = (*left, *right)
    keys = analyse(node)
    for part in keys.left:
        _require_plain(part, left)
    for part in keys.right:
        _require_plain(part, right)
    if keys.rest is not None:
        (_require_plain if node.kind != "inner" else _require_passing)(keys.rest, both)
    return both if node.kind == "inner" else (*left, *(0 for _ in node.types[len(left) :]))


def _sign(part: Expression, below: Signs) -> int:  # noqa: PLR0911  (one case a kind)
    match part:
        case Column(index=index):
            return below[index]
        case Literal():
            return 0
    assert isinstance(part, Call)
    arguments = [_sign(argument, below) for argument in part.arguments]
    if not any(arguments):
        return 0
    if part.function in _JOINING:
        return _joined(arguments)
    if part.function in _KEEPING and keeps_order(part):
        return arguments[0]
    if part.function == "Subtract":
        return _joined([arguments[0], -arguments[1]])
    if part.function == "UnaryMinus":
        return -arguments[0]
    if part.function == "Multiply":
        return _multiplied(part, arguments)
    if part.function == "If" and not arguments[0]:
        return _joined(arguments[1:])
    raise _refused(None, f"{part.function} of a value that is the best of a group")


def _multiplied(part: Call, signs: list[int]) -> int:
    """A value times a constant keeps its sign or turns it."""
    for factor, sign in zip(part.arguments, reversed(signs), strict=True):
        while isinstance(factor, Call) and factor.function in _KEEPING:
            factor = factor.arguments[0]  # noqa: PLW2901  (what is cast)
        if isinstance(factor, Literal) and factor.value is not None:
            return -sign if factor.value.startswith("-") else sign
    raise _refused(None, "a product of a value that is the best of a group")


def _require_passing(condition: Expression, below: Signs) -> None:
    """What passes the condition must pass it, too, when it gets better."""
    for part in conjuncts(condition):
        if not isinstance(part, Call):
            _require_plain(part, below)
        elif part.function == "Or":
            for argument in part.arguments:
                _require_passing(argument, below)
        elif part.function == "IsNotNull":
            _sign(part.arguments[0], below)
        elif part.function in _LESS | _GREATER:
            less, more = (_sign(argument, below) for argument in part.arguments)
            if part.function in _GREATER:
                less, more = more, less
            if less < 0 or more > 0:
                raise _refused(None, "a condition that a value stops meeting as it gets better")
        else:
            _require_plain(part, below)


def _require_plain(part: Expression, below: Signs) -> None:
    if isinstance(part, Column) and below[part.index]:
        raise _refused(None, "a comparison with a value that is the best of a group")
    if isinstance(part, Call):
        for argument in part.arguments:
            _require_plain(argument, below)


def _joined(signs: Sequence[int]) -> int:
    if 1 in signs and -1 in signs:
        raise _refused(None, "a mixture of least and greatest values")
    return next((sign for sign in signs if sign), 0)


def _refused(name: str | None, what: str) -> NotStratified:
    of = "the recursion" if name is None else f"the recursion of {name!r}"
    return NotStratified(
        f"{of} is not monotone: {what}. Through MIN and MAX, values may be added to, compared in the direction in which they "
        "improve, and grouped by other columns; do the rest in a query over the result"
    )
