"""Comparison. In both engines NaN equals itself and is above all numbers, −0.0 equals 0.0, strings compare by their bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.literals import element
from headwater.evaluation.functions.rule import (
    Typed,
    Untranslatable,
    cast,
    is_plain,
    macro,
    require,
    run,
    same_types,
    translates,
)

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

_SYMBOLS = {"EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}
_SYMBOLS |= {"EqualNullSafe": "IS NOT DISTINCT FROM"}

macro("hw_unless_nan(x, y)", "CASE WHEN isnan(x) THEN y ELSE x END")


@translates(*_SYMBOLS)
def compare(call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, call.function)
    require(is_plain(kind), f"{call.function} of {kind}")
    return Typed(f"({arguments[0].sql} {_SYMBOLS[call.function]} {arguments[1].sql})", pa.bool_())


@translates("In")
def among(_call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, "In")
    require(is_plain(kind), f"In of {kind}")
    return _among(arguments[0], [argument.sql for argument in arguments[1:]])


@translates("InSet")
def among_constants(call: Call, arguments: Arguments) -> Typed:
    members = call.option("hset")
    if members is None:
        raise Untranslatable("an InSet whose values are not known")
    require(is_plain(arguments[0].type), f"InSet of {arguments[0].type}")
    return _among(arguments[0], [element(member, arguments[0].type) for member in json.loads(members)])


def _among(value: Typed, members: list[str]) -> Typed:
    # DuckDB may turn IN into a hash lookup, in which −0.0 is not 0.0.
    if pa.types.is_floating(value.type):
        return Typed("(" + " OR ".join(f"{value.sql} = {member}" for member in members) + ")", pa.bool_())
    return Typed(f"({value.sql} IN ({', '.join(members)}))", pa.bool_())


@translates("Greatest", "Least")
def extreme(call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, call.function)
    require(is_plain(kind), f"{call.function} of {kind}")
    # Of FLOAT, DuckDB loses the sign of zero.
    compared = pa.float64() if kind == pa.float32() else kind
    parts = ", ".join(cast(argument.sql, compared) if kind != compared else argument.sql for argument in arguments)
    chosen = f"{call.function.lower()}({parts})"
    return Typed(cast(chosen, kind) if kind != compared else chosen, kind)


@translates("IsNull")
def is_null(_call: Call, arguments: Arguments) -> Typed:
    return Typed(f"({arguments[0].sql} IS NULL)", pa.bool_())


@translates("IsNotNull")
def is_not_null(_call: Call, arguments: Arguments) -> Typed:
    return Typed(f"({arguments[0].sql} IS NOT NULL)", pa.bool_())


@translates("AtLeastNNonNulls")
def at_least(call: Call, arguments: Arguments) -> Typed:
    """NaN counts as missing."""
    wanted = call.option("n")
    if wanted is None:
        raise Untranslatable("AtLeastNNonNulls without its number")
    there = [f"isnan({a.sql}) IS FALSE" if pa.types.is_floating(a.type) else f"{a.sql} IS NOT NULL" for a in arguments]
    count = " + ".join(["0", *(f"CAST(({part}) AS INTEGER)" for part in there)])
    return Typed(f"({count} >= {int(wanted)})", pa.bool_())


@translates("IsNaN")
def is_nan(_call: Call, arguments: Arguments) -> Typed:
    require(pa.types.is_floating(arguments[0].type), f"IsNaN of {arguments[0].type}")
    return Typed(f"coalesce(isnan({arguments[0].sql}), false)", pa.bool_())


@translates("NaNvl")
def unless_nan(_call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, "NaNvl")
    require(pa.types.is_floating(kind), f"NaNvl of {kind}")
    return Typed(run("hw_unless_nan", *(argument.sql for argument in arguments)), kind)
