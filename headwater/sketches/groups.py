"""Aggregates of a group of which only some rows are there: how their values compare with those of the whole group.

    count, max, sum of what is never negative     less          min, sum of what is never positive     greater

All others may be anything, as may sums of doubles: these are added in any order, so that more of them is not always more.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Call, Expression, walk
from headwater.sketches.comparing import EQUAL, GREATER, LESS, UNKNOWN, Value, is_exact, value_of
from headwater.sketches.facts import Unsafe

if TYPE_CHECKING:
    from headwater.sketches.facts import State

# What depends on the order in which rows come.
_ARBITRARY = {"First", "Last", "AnyValue", "CollectList", "ListAgg", "MaxBy", "MinBy"}
_ARBITRARY |= {"ApproximatePercentile", "HyperLogLogPlusPlus", "PythonUDAF"}


def of_group(call: Call, child: State, *, sketched: bool, grouped: bool) -> Value:
    """What is known of an aggregate of a group of which rows may be missing."""
    function, *conditions = call.arguments
    assert isinstance(function, Call)
    if sketched and function.function in _ARBITRARY:
        raise Unsafe("Aggregate", f"{function.function.lower()} depends on the order in which rows come")
    inner = [value_of(part, child.lookup) for part in function.arguments]
    distinct = call.option("isDistinct") == "true"
    steady = all(value_of(part, child.lookup).relation == EQUAL for part in conditions)
    of_equals = all(part.relation == EQUAL for part in inner)
    if function.function == "Count":
        known = steady and (not distinct or of_equals) and all(part.relation != UNKNOWN for part in inner)
        return Value(LESS if known else UNKNOWN, 0, inf, nullable=False)
    if not inner or not steady or (distinct and not of_equals):
        return Value(UNKNOWN)
    (only, *_), nullable = inner, not grouped or inner[0].nullable or bool(conditions)
    match function.function:
        case "Max":
            return Value(LESS if only.relation in (EQUAL, LESS) else UNKNOWN, only.low, only.high, nullable)
        case "Min":
            return Value(GREATER if only.relation in (EQUAL, GREATER) else UNKNOWN, only.low, only.high, nullable)
        case "Sum":
            return replace(_sum(function, only), nullable=nullable)
    return Value(UNKNOWN)


def _sum(function: Call, only: Value) -> Value:
    low, high = (0.0 if only.low >= 0 else -inf), (0.0 if only.high <= 0 else inf)
    # Doubles are added in any order, so a sum of more of them is not always the larger one.
    if not is_exact(function) or _may_round(function.arguments[0]):
        return Value(UNKNOWN, low, high)
    if only.low >= 0 and only.relation in (EQUAL, LESS):
        return Value(LESS, low, high)
    if only.high <= 0 and only.relation in (EQUAL, GREATER):
        return Value(GREATER, low, high)
    return Value(UNKNOWN, low, high)


def _may_round(expression: Expression) -> bool:
    return any(part.type is not None and pa.types.is_floating(part.type) for part in walk(expression))
