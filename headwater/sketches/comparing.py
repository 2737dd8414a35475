"""How a value over part of the data compares with the same value over all of it.

    equal     the same                       less      not greater, or NULL
    greater   not less, or NULL              unknown   anything

For a group of which only some rows are there, a count is less and a least value greater. What is computed from such values is
told by rules: less + less is less, −less is greater, and less · c is less if c ≥ 0. A NULL over part of the data may be a value
over all of it, but never the other way round; no comparison is true of it, so it is on the safe side of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, Expression, Literal, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    Number = Fraction | float
    Lookup = Callable[[Expression], "Value | None"]

EQUAL, LESS, GREATER, UNKNOWN = "equal", "less", "greater", "unknown"
_FLIPPED = {LESS: GREATER, GREATER: LESS}
_ABOVE = ("GreaterThan", "GreaterThanOrEqual")
_BELOW = ("LessThan", "LessThanOrEqual")
_SAME_VALUE = ("PromotePrecision", "KnownNotNull", "KnownFloatingPointNormalized", "NormalizeNaNAndZero")


@dataclass(frozen=True)
class Value:
    """What is known of a value: how it compares, between which numbers it is over all data, whether it may be NULL."""

    relation: str = EQUAL
    low: Number = -inf
    high: Number = inf
    nullable: bool = True

    @property
    def flipped(self) -> Value:
        return Value(_FLIPPED.get(self.relation, self.relation), -self.high, -self.low, self.nullable)


ANYTHING = Value()


def combined(one: str, other: str) -> str:
    """The relation of what grows with both, or is one of both."""
    if UNKNOWN in (one, other):
        return UNKNOWN
    stated = {one, other} - {EQUAL}
    return EQUAL if not stated else stated.pop() if len(stated) == 1 else UNKNOWN


def either(one: Value, other: Value) -> Value:
    """What is known of a value that is one of two."""
    low, high = min(one.low, other.low), max(one.high, other.high)
    return Value(combined(one.relation, other.relation), low, high, one.nullable or other.nullable)


def value_of(expression: Expression, lookup: Lookup) -> Value:
    """What is known of an expression, from what is known of its parts."""
    known = lookup(expression)
    if known is not None:
        return known
    if isinstance(expression, Literal):
        return _constant(expression)
    assert isinstance(expression, Call)
    inner = [value_of(part, lookup) for part in expression.arguments]
    computed = _computed(expression, inner)
    if all(part.relation == EQUAL for part in inner):
        return replace(computed, relation=EQUAL)
    return computed


def _constant(literal: Literal) -> Value:
    if literal.value is None:
        return Value()
    if is_number(literal.type):
        try:
            number = Fraction(Decimal(literal.value))
        except (InvalidOperation, ValueError, OverflowError):
            return Value(nullable=False)
        return Value(EQUAL, number, number, nullable=False)
    return Value(nullable=False)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _computed(call: Call, inner: list[Value]) -> Value:
    nullable = any(part.nullable for part in inner)
    if call.function in _SAME_VALUE or (call.function == "Cast" and _keeps_order(call)):
        return inner[0]
    if call.function in ("Add", "Subtract", "Multiply", "UnaryMinus") and is_exact(call):
        match call.function:
            case "UnaryMinus":
                return inner[0].flipped
            case "Multiply":
                return _product(*inner, same=call.arguments[0] == call.arguments[1])
        other = inner[1] if call.function == "Add" else inner[1].flipped
        relation = combined(inner[0].relation, other.relation)
        return Value(relation, inner[0].low + other.low, inner[0].high + other.high, nullable)
    return Value(UNKNOWN)


def is_exact(call: Call) -> bool:
    """Whether arithmetic raises where a value has no room: what wraps round or becomes NULL does not grow with its parts."""
    return call.option("evalMode") in (None, '"ANSI"')


def _keeps_order(call: Call) -> bool:
    """Whether a cast gives each number an equal one."""
    source, target = _type(call.arguments[0]), call.type
    if source is None or target is None or not (is_number(source) and is_number(target)):
        return False
    if pa.types.is_integer(source):
        wider = pa.types.is_integer(target) and source.bit_width <= target.bit_width
        return wider or pa.types.is_decimal(target)
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        return bool(target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale)
    return bool(pa.types.is_floating(source) and pa.types.is_float64(target))


def _type(expression: Expression) -> pa.DataType | None:
    return expression.type


def _product(one: Value, other: Value, *, same: bool) -> Value:
    nullable = one.nullable or other.nullable
    corners = [_times(a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
    low, high = (max(0, min(corners)) if same else min(corners)), max(corners)
    for steady, moving in ((one, other), (other, one)):
        if steady.relation == EQUAL and steady.low >= 0:
            return Value(moving.relation, low, high, nullable)
        if steady.relation == EQUAL and steady.high <= 0:
            return Value(moving.flipped.relation, low, high, nullable)
    return Value(UNKNOWN, low, high, nullable)


def _times(a: Number, b: Number) -> Number:
    return 0.0 if 0 in (a, b) else a * b


def unsteady(condition: Expression, lookup: Lookup) -> Expression | None:
    """The first part of a condition that might be true over part of the data and not over all of it; None if there is none."""
    if isinstance(condition, Call) and condition.function in ("And", "Or"):
        found = (unsteady(part, lookup) for part in condition.arguments)
        return next((part for part in found if part is not None), None)
    if all(value_of(part, lookup).relation == EQUAL for part in _leaves(condition, lookup)):
        return None
    if isinstance(condition, Call) and len(condition.arguments) == 2:
        left, right = (value_of(part, lookup).relation for part in condition.arguments)
        if condition.function in _ABOVE and left in (EQUAL, LESS) and right in (EQUAL, GREATER):
            return None
        if condition.function in _BELOW and left in (EQUAL, GREATER) and right in (EQUAL, LESS):
            return None
    if isinstance(condition, Call) and condition.function == "IsNotNull":
        return condition if value_of(condition.arguments[0], lookup).relation == UNKNOWN else None
    return condition


def _leaves(expression: Expression, lookup: Lookup) -> list[Expression]:
    return [part for part in walk(expression) if lookup(part) is not None]


def tightened(values: list[Value], parts: list[Expression]) -> list[Value]:
    """What is known of columns once each of the conditions is true."""
    values = list(values)
    for part in parts:
        if not isinstance(part, Call):
            continue
        for one, other, above, below in _readings(part):
            column = _column(one)
            if column is None:
                continue
            known = values[column]
            limit = value_of(other, lambda e: ANYTHING if isinstance(e, Column) else None) if other is not None else ANYTHING
            constant = isinstance(other, Literal) and limit.low == limit.high
            low = max(known.low, limit.low) if above and constant else known.low
            high = min(known.high, limit.high) if below and constant else known.high
            values[column] = Value(known.relation, low, high, nullable=False)
    return values


def _readings(call: Call) -> list[tuple[Expression, Expression | None, bool, bool]]:
    """Whose value is bounded by what, from below and from above."""
    if call.function == "IsNotNull":
        return [(call.arguments[0], None, False, False)]
    if call.function not in (*_ABOVE, *_BELOW, "EqualTo"):
        return []
    above, below = call.function not in _BELOW, call.function not in _ABOVE
    one, other = call.arguments
    return [(one, other, above, below), (other, one, below, above)]


def _column(expression: Expression) -> int | None:
    if isinstance(expression, Call) and expression.function == "Cast" and _keeps_order(expression):
        expression = expression.arguments[0]
    return expression.index if isinstance(expression, Column) else None
