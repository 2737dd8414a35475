"""Casts. Whether Spark raises, gives NULL or wraps around on what does not fit, the translation raises: it never has to know.

DuckDB rounds where Spark cuts off, and takes more texts for numbers and dates than Spark does; both are guarded against. What
depends on how Java writes a floating-point number stays with Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import (
    INSTANT,
    LOCAL,
    Typed,
    Untranslatable,
    cast,
    is_whole,
    macro,
    option,
    require,
    run,
    sql_type,
    text,
    translates,
)
from headwater.evaluation.functions.timestamps import instant, local, micros

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

_STRING = pa.string()
_DATE = pa.date32()
# Texts that both engines read alike.
_WHOLE = r"[+-]?[0-9]{1,18}"
_FLOATING = r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?"
_FIXED = r"[+-]?[0-9]{1,38}(\.[0-9]{1,38})?"
_DAY = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
# Below this many digits, a decimal is a quotient of two doubles without error, and DuckDB divides them.
_EXACT_DIGITS = 15

macro("hw_text(s, pattern)", "CASE WHEN NOT regexp_full_match(s, pattern) THEN hw_raise('not such a text') ELSE s END")
macro("hw_common_time(t)", "CASE WHEN year(t) NOT BETWEEN 1 AND 9999 THEN hw_raise('a far time') ELSE t END")
macro("hw_year(s)", "CASE WHEN starts_with(s, '0000') THEN hw_raise('the year zero') ELSE s END")
macro(
    "hw_boolean(s)",
    "CASE WHEN lower(s) IN ('t', 'true', 'y', 'yes', '1') THEN true "
    "WHEN lower(s) IN ('f', 'false', 'n', 'no', '0') THEN false WHEN s IS NULL THEN NULL ELSE hw_raise('not a boolean') END",
)


@translates("Cast")
def convert(call: Call, arguments: tuple[Typed, ...]) -> Typed:
    (argument,) = arguments
    if call.type is None:
        raise Untranslatable("a cast to a type that Arrow does not know")
    if argument.type == call.type:
        return argument
    return Typed(_converted(call, argument, call.type), call.type)


def _converted(call: Call, argument: Typed, to: pa.DataType) -> str:
    source = argument.type
    if source == pa.null():
        return f"CAST(NULL AS {sql_type(to)})"
    if _is_number(to) or to == pa.bool_():
        return _number(argument, to)
    if to == _STRING:
        return _text(call, argument)
    if to in (_DATE, INSTANT, LOCAL):
        return _time(call, argument, to)
    if source == _STRING and to == pa.binary():
        return f"encode({argument.sql})"
    raise Untranslatable(f"a cast from {source} to {to}")


def _number(argument: Typed, to: pa.DataType) -> str:  # noqa: PLR0911  (one for each way to make a number)
    source, sql = argument.type, argument.sql
    if to == pa.bool_() and _is_number(source):
        return f"({sql} <> 0)"
    if source == pa.bool_():
        return cast(cast(sql, pa.int8()), to)
    if source == _STRING:
        return _parsed(sql, to)
    if source == INSTANT and to == pa.int64():
        return run("hw_floor_divide", micros(argument), "1000000")
    require(_is_number(source), f"a cast from {source} to {to}")
    if is_whole(to) and not is_whole(source):
        return cast(f"trunc({sql})", to)
    if pa.types.is_decimal(to):
        require(not pa.types.is_floating(source), f"a cast from {source} to {to}")
    elif pa.types.is_decimal(source) and (source.precision > _EXACT_DIGITS or to == pa.float32()):
        return cast(cast(sql, _STRING), to)
    return cast(sql, to)


def _parsed(sql: str, to: pa.DataType) -> str:
    if to == pa.bool_():
        return run("hw_boolean", sql)
    pattern = _WHOLE if is_whole(to) else _FLOATING if pa.types.is_floating(to) else _FIXED
    return cast(run("hw_text", sql, text(pattern)), to)


def _text(call: Call, argument: Typed) -> str:
    source, sql = argument.type, argument.sql
    if is_whole(source) or source == pa.bool_():
        return cast(sql, _STRING)
    if pa.types.is_decimal(source):
        # With more places Java writes small numbers with an exponent, but not in ANSI mode.
        require(source.scale <= 6 or option(call, "evalMode") == "ANSI", f"the text of {source}")
        require(source.precision < 38 or source.scale < 38, f"the text of {source}")
        # Without a digit to spare DuckDB writes .5 for 0.5.
        wider = pa.decimal128(source.precision + 1, source.scale) if source.precision == source.scale else source
        return cast(cast(sql, wider), _STRING)
    if source == _DATE:
        return cast(run("hw_common", sql), _STRING)
    if source in (INSTANT, LOCAL):
        return cast(run("hw_common_time", local(argument, call)), _STRING)
    raise Untranslatable(f"the text of {source}")


def _time(call: Call, argument: Typed, to: pa.DataType) -> str:
    source, sql = argument.type, argument.sql
    if source == _STRING:
        pattern = _DAY if to == _DATE else _TIME
        parsed = cast(run("hw_year", run("hw_text", sql, text(pattern))), _DATE if to == _DATE else LOCAL)
        return instant(parsed, call) if to == INSTANT else parsed
    if source == _DATE:
        midnight = cast(run("hw_finite", sql), LOCAL)
        return instant(midnight, call) if to == INSTANT else midnight
    if source == INSTANT:
        return cast(local(argument, call), to)
    if source == LOCAL and to == INSTANT:
        return instant(run("hw_time", sql), call)
    if source == LOCAL:
        return cast(run("hw_time", sql), to)
    if is_whole(source) and to == INSTANT:
        return run("hw_time", f"make_timestamptz(CAST({sql} AS BIGINT) * 1000000)")
    raise Untranslatable(f"a cast from {source} to {to}")


def _is_number(kind: pa.DataType) -> bool:
    return is_whole(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
