"""Spark expressions as DuckDB SQL, for the functions that the tests have shown equal on edge values.

    the value of translate(e) = Spark's value of e,   or DuckDB raises,   or there is no translation

Nothing else is allowed. Where DuckDB raises, the caller runs the same rows on Spark, which has the right answer or error.
The SQL holds on connections made here, which define the macros it calls and make division by zero an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.evaluation.functions import arithmetic, casts, collections, comparison, conditions, dates, strings, timestamps
from headwater.evaluation.functions.literals import literal
from headwater.evaluation.functions.rule import DURATION, MACROS, RULES, Typed, Untranslatable, sql_type

if TYPE_CHECKING:
    import duckdb

__all__ = ["Typed", "Untranslatable", "connection", "functions", "translate"]

FAMILIES = (arithmetic, casts, collections, comparison, conditions, dates, strings, timestamps)
# Guards name their arguments more than once, so nesting multiplies; beyond this, Spark is the better place.
_LONGEST = 50_000
_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    # A delta is small, and its rows must come out in the order in which they went in.
    "threads": "1",
    "preserve_insertion_order": "true",
    "error_on_division_by_zero": "true",
    "ieee_floating_point_ops": "false",
    "integer_division": "false",
    # It solves `x + 1 > 5` for x, and so hides that x + 1 overflows.
    "disabled_optimizers": "expression_rewriter",
}


def translate(expression: Expression) -> Typed:
    """SQL over the columns c0, c1, … for a whole expression."""
    translated = _translate(expression)
    if translated.type == DURATION:
        raise Untranslatable("an interval as a result")
    return translated


def functions() -> list[str]:
    """The Catalyst classes that have a rule."""
    return sorted(RULES)


def connection(time_zone: str) -> duckdb.DuckDBPyConnection:
    """A database in memory, set up as the translations assume, that can reach nothing outside."""
    import duckdb

    made = duckdb.connect(":memory:", config=_CONFIGURATION)
    made.execute("SET TimeZone = $zone", {"zone": time_zone})
    for definition in MACROS.values():
        made.execute(definition)
    return made


def _translate(expression: Expression) -> Typed:
    match expression:
        case Column(index, kind):
            sql_type(kind)
            if "duration" in str(kind):
                raise Untranslatable("a column of intervals")
            return Typed(f"c{index}", kind)
        case Literal():
            return literal(expression)
        case Call():
            return _call(expression)


def _call(call: Call) -> Typed:
    rule = RULES.get(call.function)
    if rule is None:
        raise Untranslatable(f"no rule for {call.function}")
    if call.option("collation") is not None:
        raise Untranslatable(f"{call.function} under a collation")
    translated = rule(call, tuple(_argument(call, part) for part in call.arguments))
    if len(translated.sql) > _LONGEST:
        raise Untranslatable("too long")
    return translated


def _argument(call: Call, part: Expression) -> Typed:
    """An argument; a constant that Arrow has no type for has no SQL either, and it is for the rule to read it."""
    if (
        isinstance(part, Call)
        and part.function == "Literal"
        and call.function in ("DateAddYMInterval", "TimestampAddYMInterval")
    ):
        return Typed("NULL", pa.null())
    return _translate(part)
