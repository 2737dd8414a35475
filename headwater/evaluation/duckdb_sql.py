"""Spark expressions as DuckDB SQL, for the functions that the tests have shown equal on edge values.

    the value of translate(e) = Spark's value of e,   or DuckDB raises,   or there is no translation

Nothing else is allowed. Where DuckDB raises, the caller runs the same rows on Spark, which has the right answer or error.
The SQL holds on connections made here, which define the macros it calls and make division by zero an error.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, Expression
from headwater.evaluation.functions import (
    arithmetic,
    casts,
    collections,
    comparison,
    conditions,
    dates,
    formats,
    strings,
    timestamps,
)
from headwater.evaluation.functions.literals import INTERVALS, UNKNOWN, literal
from headwater.evaluation.functions.rule import DURATION, MACROS, RULES, Typed, Untranslatable, sql_type
from headwater.evaluation.settings import only_spark_knows

if TYPE_CHECKING:
    import duckdb

__all__ = ["Connection", "Typed", "Untranslatable", "connection", "entering", "functions", "translate"]

FAMILIES = (arithmetic, casts, collections, comparison, conditions, dates, formats, strings, timestamps)
# Guards name their arguments more than once, so nesting multiplies; beyond this, Spark is the better place.
_LONGEST = 50_000
_MANY = 100_000
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
    # The one solves `x + 1 > 5` for x, the other puts conditions first that spare the rest: both hide what would raise.
    "disabled_optimizers": "expression_rewriter,reorder_filter",
}


def translate(expression: Expression) -> Typed:
    """SQL over the columns c0, c1, … for a whole expression."""
    translated = _translate(expression)
    if translated.type == UNKNOWN:
        raise Untranslatable("a constant without a type")
    return translated


def entering(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column as the SQL expects it: the difference of two times is a BIGINT of microseconds, and comes back as one."""
    return column.cast(pa.int64()) if column.type == DURATION else column


def functions() -> list[str]:
    """The Catalyst classes that have a rule."""
    return sorted(RULES)


def connection(time_zone: str) -> duckdb.DuckDBPyConnection:
    """A database in memory, set up as the translations assume, that can reach nothing outside."""
    import duckdb

    made = duckdb.connect(":memory:", config=_CONFIGURATION)
    # The SQL names the zones it means; this one is for whoever looks at the values, and Spark knows some that DuckDB does not.
    with contextlib.suppress(duckdb.Error):
        made.execute("SET TimeZone = $zone", {"zone": time_zone})
    for definition in MACROS.values():
        made.execute(definition)
    return made


class Connection(threading.local):
    """A connection of each thread's own: a view is built in one while another commits, and DuckDB lets no two share one."""

    def __init__(self, time_zone: str) -> None:
        self._own = connection(time_zone)

    def ask(self, statement: str, delta: pa.Table) -> pa.Table:
        """The answer of a statement that reads `delta`."""
        self._own.register("delta", delta)
        try:
            return self._own.sql(statement).to_arrow_table()
        finally:
            if delta.num_rows > _MANY:
                # What is registered is held until the next one is; that takes time, but for many rows also memory.
                self._own.unregister("delta")


def _translate(expression: Expression) -> Typed:
    """From the leaves up, without recursion: a sum of a thousand terms is a thousand levels deep."""
    waiting: list[tuple[Expression, bool]] = [(expression, False)]
    done: list[Typed] = []
    while waiting:
        part, visited = waiting.pop()
        if isinstance(part, Call) and not visited:
            waiting.append((part, True))
            waiting += [(argument, False) for argument in reversed(part.arguments)]
        elif isinstance(part, Call):
            first = len(done) - len(part.arguments)
            done[first:] = [_call(part, tuple(done[first:]))]
        else:
            done.append(_column(part) if isinstance(part, Column) else literal(part))
    return done[0]


def _column(column: Column) -> Typed:
    sql_type(column.type)
    name = f"c{column.index}"
    if column.type == DURATION:
        # Should the caller have left out `entering`, this raises.
        return Typed(f"CAST({name} AS BIGINT)", column.type)
    if "duration" in str(column.type):
        raise Untranslatable("intervals inside of a column")
    return Typed(name, column.type)


def _call(call: Call, arguments: tuple[Typed, ...]) -> Typed:
    if call.function == "Literal":
        # Arrow has no type for it and DuckDB no SQL; the rules that can use it read it themselves.
        return Typed("NULL", UNKNOWN)
    rule = RULES.get(call.function)
    if rule is None:
        raise Untranslatable(f"no rule for {call.function}")
    if (reason := only_spark_knows(call)) is not None:
        raise Untranslatable(f"{call.function} {reason}")
    if any(argument.type == UNKNOWN for argument in arguments) and call.function not in INTERVALS:
        raise Untranslatable(f"{call.function} of a constant without a type")
    translated = rule(call, arguments)
    if len(translated.sql) > _LONGEST:
        raise Untranslatable("too long")
    return translated
