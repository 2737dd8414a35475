"""Scalar expressions over the columns of a row, as Spark resolved them.

Three kinds suffice: a column by position, a literal, and a call named as Catalyst names its class (`Add`, `Cast`, `Like`).
Catalyst has put in every cast already, so the arguments of a call always have the types that the call wants.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headwater.algebra.origin import Origin

_NEVER_FAIL = {"And", "Or", "Not", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan"}
_NEVER_FAIL |= {"GreaterThanOrEqual", "IsNull", "IsNotNull", "In", "InSet", "StartsWith", "EndsWith", "Contains", "Coalesce"}
_NEVER_FAIL |= {"If", "CaseWhen"}


@dataclass(frozen=True, slots=True)
class Column:
    """The value of the input row's column at `index`."""

    index: int
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` is Spark's own text for it (None is NULL), read by `type`."""

    value: str | None
    type: pa.DataType
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments.

    `options` holds what else Catalyst knows of the call (evaluation mode, time zone, …) as sorted pairs of names and
    JSON text; `type` is set where Catalyst states it (`Cast`, …) and None elsewhere; `origin` leads to the expression in
    Spark, for whoever must evaluate it there.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType | None = None
    options: tuple[tuple[str, str], ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def option(self, name: str) -> str | None:
        """The JSON text of an option, None if there is no such option."""
        return dict(self.options).get(name)


Expression = Column | Literal | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, from the top."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from walk(argument)


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with every part for which `change` gives something replaced by it, from the top."""
    changed = change(expression)
    if changed is not None:
        return changed
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(rewrite(argument, change) for argument in expression.arguments))
    return expression


def columns_of(expression: Expression) -> set[int]:
    """Which input columns the expression reads."""
    return {part.index for part in walk(expression) if isinstance(part, Column)}


def moved(expression: Expression, places: Mapping[int, int]) -> Expression:
    """The same expression over rows in which each column has the place given for it."""
    return rewrite(expression, lambda part: Column(places[part.index], part.type) if isinstance(part, Column) else None)


def never_fails(expression: Expression) -> bool:
    """Whether the expression has a value for every row whatsoever, so that it may be evaluated also on rows of no answer."""
    return all(not isinstance(part, Call) or part.function in _NEVER_FAIL or _widens(part) for part in walk(expression))


def keeps_order(call: Call) -> bool:
    """Whether a call, if it is a cast, gives no greater value a lesser one: '10' is less than '9', and so are truth values."""
    ordered = call.type is None or not pa.types.is_boolean(call.type)
    return call.function != "Cast" or (ordered and not _is_text(call) and not _is_text(call.arguments[0]))


def _is_text(expression: Expression) -> bool:
    if isinstance(expression, Call) and expression.type is None:
        return any(map(_is_text, expression.arguments))
    kind = expression.type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def _widens(call: Call) -> bool:
    if call.function != "Cast" or call.type is None or not isinstance(call.arguments[0], Column):
        return False
    source, target = call.arguments[0].type, call.type
    integers = pa.types.is_signed_integer(source) and pa.types.is_signed_integer(target)
    return bool(integers and source.bit_width <= target.bit_width)
