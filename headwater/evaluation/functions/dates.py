"""Dates. Both engines count days in the proleptic Gregorian calendar; DuckDB's two infinite dates are mere days to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.literals import months
from headwater.evaluation.functions.rule import DURATION, Typed, cast, constant, is_whole, macro, require, run, translates

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

_DATE = pa.date32()
_PARTS = {"Year": "year", "Quarter": "quarter", "Month": "month", "DayOfMonth": "day", "DayOfYear": "dayofyear"}
_PARTS |= {"WeekOfYear": "week", "YearOfWeek": "isoyear"}
_NAMES = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WEEK_DAYS = {name[:size]: day for day, name in enumerate(_NAMES, 1) for size in (2, 3, None)}
UNITS = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month"}
UNITS |= {"week": "week"}

macro("hw_finite(d)", "CASE WHEN isinf(d) THEN hw_raise('an infinite time') ELSE d END")
macro("hw_common(d)", "CASE WHEN d NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN hw_raise('a far date') ELSE d END")
macro("hw_next_day(d, wanted)", "d + CAST((wanted - isodow(d) + 6) % 7 + 1 AS INTEGER)")
macro("hw_plus_months(d, n)", "CAST(hw_finite(d) + to_months(n) AS DATE)")


@translates(*_PARTS)
def part(call: Call, arguments: Arguments) -> Typed:
    return Typed(f"CAST({_PARTS[call.function]}({_date(call, arguments[0])}) AS INTEGER)", pa.int32())


@translates("DayOfWeek")
def day_of_week(call: Call, arguments: Arguments) -> Typed:
    """Sunday is 1."""
    return Typed(f"CAST(dayofweek({_date(call, arguments[0])}) + 1 AS INTEGER)", pa.int32())


@translates("WeekDay")
def week_day(call: Call, arguments: Arguments) -> Typed:
    """Monday is 0."""
    return Typed(f"CAST(isodow({_date(call, arguments[0])}) - 1 AS INTEGER)", pa.int32())


@translates("DateAdd", "DateSub")
def shift(call: Call, arguments: Arguments) -> Typed:
    require(is_whole(arguments[1].type), f"{call.function} of {arguments[1].type}")
    symbol = "+" if call.function == "DateAdd" else "-"
    return Typed(f"({_date(call, arguments[0])} {symbol} {cast(arguments[1].sql, pa.int32())})", _DATE)


@translates("DateDiff")
def difference(call: Call, arguments: Arguments) -> Typed:
    end, start = (_date(call, argument) for argument in arguments)
    return Typed(f"CAST({end} - {start} AS INTEGER)", pa.int32())


@translates("SubtractDates")
def elapsed(call: Call, arguments: Arguments) -> Typed:
    end, start = (_date(call, argument) for argument in arguments)
    require(call.option("legacyInterval") == "false", "an interval of the calendar")
    return Typed(f"(({end} - {start}) * 86400000000)", DURATION)


@translates("AddMonths")
def add_months(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == _DATE and is_whole(arguments[1].type), f"{call.function} of {arguments[0].type}")
    return Typed(run("hw_plus_months", arguments[0].sql, cast(arguments[1].sql, pa.int32())), _DATE)


@translates("DateAddYMInterval")
def add_interval(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == _DATE, f"{call.function} of {arguments[0].type}")
    return Typed(run("hw_plus_months", arguments[0].sql, f"CAST({months(call.arguments[1])} AS INTEGER)"), _DATE)


@translates("LastDay")
def last_day(call: Call, arguments: Arguments) -> Typed:
    return Typed(f"last_day({_date(call, arguments[0])})", _DATE)


@translates("TruncDate")
def truncate(call: Call, arguments: Arguments) -> Typed:
    unit = constant(call, 1).lower()
    require(unit in UNITS, f"TruncDate to {unit}")
    return Typed(f"CAST(date_trunc('{UNITS[unit]}', {_date(call, arguments[0])}) AS DATE)", _DATE)


@translates("MakeDate")
def make_date(_call: Call, arguments: Arguments) -> Typed:
    require(all(argument.type == pa.int32() for argument in arguments), "MakeDate")
    return Typed(f"make_date({', '.join(argument.sql for argument in arguments)})", _DATE)


@translates("NextDay")
def next_day(call: Call, arguments: Arguments) -> Typed:
    """The first day after the date that is the given day of the week."""
    wanted = constant(call, 1).upper()
    require(wanted in _WEEK_DAYS, f"NextDay {wanted}")
    _date(call, arguments[0])
    return Typed(run("hw_next_day", run("hw_common", arguments[0].sql), str(_WEEK_DAYS[wanted])), _DATE)


@translates("UnixDate")
def to_days(call: Call, arguments: Arguments) -> Typed:
    return Typed(f"CAST({_date(call, arguments[0])} - DATE '1970-01-01' AS INTEGER)", pa.int32())


@translates("DateFromUnixDate")
def from_days(_call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.int32(), "DateFromUnixDate")
    return Typed(f"(DATE '1970-01-01' + {arguments[0].sql})", _DATE)


def _date(call: Call, argument: Typed) -> str:
    require(argument.type == _DATE, f"{call.function} of {argument.type}")
    return run("hw_finite", argument.sql)
