"""Constants: from the text that Spark writes for a value to a DuckDB constant of the same type."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import DURATION, INSTANT, LOCAL, Typed, Untranslatable, cast, is_whole, sql_type, text

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call, Expression, Literal

# The type of a constant that Arrow has no type for, and the functions that can use one all the same.
UNKNOWN = pa.month_day_nano_interval()
INTERVALS = ("DateAddYMInterval", "TimestampAddYMInterval")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MICROSECONDS = re.compile(r"-?\d+")
_BINARY = re.compile(r"X'((?:[0-9A-F]{2})*)'")


def literal(constant: Literal) -> Typed:
    """SQL for a constant."""
    return Typed(value(constant.value, constant.type), constant.type)


def value(written: str | None, kind: pa.DataType) -> str:
    """SQL for Spark's text of a value."""
    name = sql_type(kind)
    if written is None:
        return f"CAST(NULL AS {name})"
    if is_whole(kind) or pa.types.is_decimal128(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return f"CAST({text(written)} AS {name})"
    if kind == pa.string():
        return text(written)
    if kind == pa.date32() and _DATE.fullmatch(written) and not written.startswith("0000"):
        return f"DATE {text(written)}"
    if kind in (INSTANT, LOCAL, DURATION) and _MICROSECONDS.fullmatch(written):
        microseconds = f"CAST({text(written)} AS BIGINT)"
        return {INSTANT: f"make_timestamptz({microseconds})", LOCAL: f"make_timestamp({microseconds})"}.get(kind, microseconds)
    if kind == pa.binary() and (found := _BINARY.fullmatch(written)):
        return f"unhex({text(found[1])})"
    raise Untranslatable(f"a constant of type {kind}: {written}")


def element(written: str | None, kind: pa.DataType) -> str:
    """SQL for a member of an `InSet`, which holds dates and times as numbers."""
    if written is not None and kind == pa.date32():
        return f"(DATE '1970-01-01' + {cast(text(written), pa.int32())})"
    if kind == pa.binary():
        raise Untranslatable("a set of binary values")
    return value(written, kind)


def months(expression: Expression) -> int:
    """The months of a constant interval of years and months, for which Arrow has no type."""
    call: Call = expression  # type: ignore[assignment]
    described = getattr(call, "function", None) == "Literal" and json.loads(call.option("dataType") or "null")
    written = getattr(call, "function", None) == "Literal" and json.loads(call.option("value") or "null")
    if not isinstance(described, str) or not re.fullmatch(r"interval (year|month)( to month)?", described) or not written:
        raise Untranslatable("an interval of months that is not constant")
    return int(written)
