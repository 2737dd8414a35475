"""Logic and choice. Spark skips what it need not evaluate; DuckDB may evaluate it, which can raise but not change a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import Typed, same_types, translates

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]


@translates("And", "Or")
def junction(call: Call, arguments: Arguments) -> Typed:
    return Typed(f"({arguments[0].sql} {call.function.upper()} {arguments[1].sql})", pa.bool_())


@translates("Not")
def negation(_call: Call, arguments: Arguments) -> Typed:
    return Typed(f"(NOT {arguments[0].sql})", pa.bool_())


@translates("If")
def if_else(_call: Call, arguments: Arguments) -> Typed:
    condition, chosen, otherwise = arguments
    kind = same_types((chosen, otherwise), "If")
    return Typed(f"CASE WHEN {condition.sql} THEN {chosen.sql} ELSE {otherwise.sql} END", kind)


@translates("CaseWhen")
def case_when(_call: Call, arguments: Arguments) -> Typed:
    """The arguments are conditions and values in turn, and at the end the value for all other rows, if there is one."""
    otherwise = arguments[-1:] if len(arguments) % 2 else ()
    pairs = list(zip(arguments[0::2], arguments[1::2], strict=False))
    kind = same_types((*(value for _, value in pairs), *otherwise), "CaseWhen")
    branches = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in pairs)
    last = f" ELSE {otherwise[0].sql}" if otherwise else ""
    return Typed(f"CASE {branches}{last} END", kind)


@translates("Coalesce")
def coalesce(_call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, "Coalesce")
    return Typed(f"coalesce({', '.join(argument.sql for argument in arguments)})", kind)
