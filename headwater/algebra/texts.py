"""Expressions as people write them, with names for columns: for what is told to users, never to be parsed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.algebra.expressions import Call, Column, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.expressions import Expression

_INFIX = {
    "And": "AND",
    "Or": "OR",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "Like": "LIKE",
}
_AFTER = {"IsNull": "IS NULL", "IsNotNull": "IS NOT NULL"}
# What says nothing to people: the value, not how it is computed.
_SILENT = {"Cast", "AggregateExpression", "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "PromotePrecision"}


def text_of(expression: Expression, names: Sequence[str]) -> str:  # noqa: PLR0911  (one case a kind)
    """The expression over columns of these names."""
    match expression:
        case Column(index):
            return names[index]
        case Literal(value=None):
            return "NULL"
        case Literal(value=value, type=kind):
            return f"'{value}'" if str(kind) in {"string", "large_string"} else str(value)
        case Call(function=function, arguments=arguments):
            parts = [text_of(part, names) for part in arguments]
            if function in _SILENT and parts:
                return parts[0]
            if function in _AFTER:
                return f"{parts[0]} {_AFTER[function]}"
            if function == "Not":
                return f"NOT ({parts[0]})"
            if function in _INFIX and len(parts) > 1:
                sign = _INFIX[function]
                grouped = [
                    f"({part})" if _is_weaker(inner, function) else part for inner, part in zip(arguments, parts, strict=True)
                ]
                return f" {sign} ".join(grouped)
            return f"{function.lower()}({', '.join(parts)})"


def _is_weaker(inner: Expression, outer: str) -> bool:
    """Whether an argument needs brackets: all that is infix itself, but for chains of one connective."""
    return isinstance(inner, Call) and inner.function in _INFIX and not (inner.function == outer and outer in {"And", "Or"})
