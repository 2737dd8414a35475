"""Instants (`TIMESTAMP`), read in the session's time zone, and local times (`TIMESTAMP_NTZ`).

From an instant to local time there is one answer. Back there is not: around a change of the clocks a local time can name no
instant or two, and the engines choose differently. So within a day of a change the translation raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.expressions import Literal
from headwater.evaluation.functions.dates import UNITS
from headwater.evaluation.functions.literals import months
from headwater.evaluation.functions.rule import (
    DURATION,
    INSTANT,
    LOCAL,
    Typed,
    Untranslatable,
    constant,
    macro,
    option,
    require,
    text,
    translates,
)
from headwater.evaluation.functions.zones import FIRST, LAST, agree

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

_NO_OFFSET = {"UTC", "Etc/UTC", "GMT", "Z"}
_CLOCK = {"hour": "hour", "minute": "minute", "second": "second", "day": "day", "dd": "day"}
_CLOCK |= {"millisecond": "milliseconds", "microsecond": "microseconds"}
_BELOW_MINUTE = {"second", "milliseconds", "microseconds"}
_DAY = 86_400_000_000
_FAR = 9_200_000_000_000_000_000

# DuckDB's infinite times are ordinary ones to Spark, and next to them DuckDB overflows unnoticed.
macro("hw_time(t)", f"CASE WHEN isinf(t) OR abs(epoch_us(t)) > {_FAR} THEN hw_raise('a far time') ELSE t END")
macro(
    "hw_known(i)",
    f"CASE WHEN isinf(i) OR epoch_us(i) NOT BETWEEN {FIRST}000000 AND {LAST}000000 THEN hw_raise('unknown clocks') ELSE i END",
)
macro("hw_offset(i, zone)", "epoch_us(timezone(zone, i)) - epoch_us(i)")
macro(
    "hw_certain(i, zone)",
    "CASE WHEN hw_offset(hw_known(i), zone) <> hw_offset(i - INTERVAL 24 HOURS, zone) "
    "OR hw_offset(i, zone) <> hw_offset(i + INTERVAL 24 HOURS, zone) THEN hw_raise('a change of the clocks') ELSE i END",
)
macro("hw_floor_divide(n, d)", "(n - ((n % d) + d) % d) // d")


def local(argument: Typed, call: Call) -> str:
    """The local time of an instant in the call's time zone."""
    if argument.type == LOCAL:
        return f"hw_time({argument.sql})"
    require(argument.type == INSTANT, f"{call.function} of {argument.type}")
    zone = time_zone(call)
    if zone in _NO_OFFSET:
        return f"make_timestamp(epoch_us(hw_time({argument.sql})))"
    return f"timezone({text(zone)}, hw_known({argument.sql}))"


def instant(time: str, call: Call) -> str:
    """The instant at which the clocks of the call's time zone show a time; raises if that could be doubted."""
    zone = time_zone(call)
    if zone in _NO_OFFSET:
        return f"make_timestamptz(epoch_us({time}))"
    return f"hw_certain(timezone({text(zone)}, {time}), {text(zone)})"


def time_zone(call: Call) -> str:
    zone = option(call, "timeZoneId")
    if zone is None or not (zone in _NO_OFFSET or agree(zone)):
        raise Untranslatable(f"the clocks of time zone {zone}")
    return zone


def micros(argument: Typed) -> str:
    return f"epoch_us(hw_time({argument.sql}))"


@translates("Hour", "Minute", "Second")
def clock(call: Call, arguments: Arguments) -> Typed:
    return Typed(f"CAST({call.function.lower()}({local(arguments[0], call)}) AS INTEGER)", pa.int32())


@translates("SecondWithFraction")
def exact_second(call: Call, arguments: Arguments) -> Typed:
    kind = pa.decimal128(8, 6)
    return Typed(f"CAST(CAST(microsecond({local(arguments[0], call)}) AS DECIMAL(9,0)) * 0.000001 AS DECIMAL(8,6))", kind)


@translates("TruncTimestamp")
def truncate(call: Call, arguments: Arguments) -> Typed:
    unit = constant(call, 0).lower()
    name = _CLOCK.get(unit) or UNITS.get(unit)
    require(name is not None and arguments[1].type == INSTANT, f"TruncTimestamp to {unit}")
    if name in _BELOW_MINUTE:
        return Typed(f"make_timestamptz(epoch_us(date_trunc('{name}', make_timestamp({micros(arguments[1])}))))", INSTANT)
    time = f"date_trunc('{name}', {local(arguments[1], call)})"
    return Typed(instant(f"CAST({time} AS TIMESTAMP)", call), INSTANT)


@translates("TimestampAddInterval")
def add_interval(call: Call, arguments: Arguments) -> Typed:
    """Days are added to the local time, and what is left of the interval to the instant."""
    start, interval = arguments
    constant_interval = call.arguments[1]
    if interval.type != DURATION or not isinstance(constant_interval, Literal) or constant_interval.value is None:
        raise Untranslatable("an interval that is not constant")
    total = int(constant_interval.value)
    days = abs(total) // _DAY * (1 if total > 0 else -1)
    if start.type == LOCAL:
        return Typed(f"make_timestamp({micros(start)} + {total})", LOCAL)
    require(start.type == INSTANT, f"TimestampAddInterval of {start.type}")
    if days == 0 or time_zone(call) in _NO_OFFSET:
        return Typed(f"make_timestamptz({micros(start)} + {total})", INSTANT)
    moved = instant(f"make_timestamp(epoch_us({local(start, call)}) + {days * _DAY})", call)
    return Typed(f"make_timestamptz(epoch_us({moved}) + {total - days * _DAY})", INSTANT)


@translates("TimestampAddYMInterval")
def add_months(call: Call, arguments: Arguments) -> Typed:
    start = arguments[0]
    moved = f"({local(start, call)} + to_months(CAST({months(call.arguments[1])} AS INTEGER)))"
    if start.type == LOCAL:
        return Typed(moved, LOCAL)
    return Typed(instant(moved, call), INSTANT)


@translates("SubtractTimestamps")
def elapsed(call: Call, arguments: Arguments) -> Typed:
    require(call.option("legacyInterval") == "false", "an interval of the calendar")
    end, start = (f"epoch_us({local(argument, call)})" for argument in arguments)
    return Typed(f"({end} - {start})", DURATION)


@translates("UnixSeconds", "UnixMillis", "UnixMicros")
def to_number(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == INSTANT, call.function)
    unit = {"UnixSeconds": 1_000_000, "UnixMillis": 1000, "UnixMicros": 1}[call.function]
    number = micros(arguments[0])
    return Typed(number if unit == 1 else f"hw_floor_divide({number}, {unit})", pa.int64())


@translates("MillisToTimestamp", "MicrosToTimestamp")
def from_number(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.int64(), f"{call.function} of {arguments[0].type}")
    unit = {"MillisToTimestamp": 1000, "MicrosToTimestamp": 1}[call.function]
    return Typed(f"hw_time(make_timestamptz({arguments[0].sql} * {unit}))", INSTANT)


@translates("SecondsToTimestamp")
def from_seconds(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type in (pa.int32(), pa.int64()), f"{call.function} of {arguments[0].type}")
    return Typed(f"hw_time(make_timestamptz(CAST({arguments[0].sql} AS BIGINT) * 1000000))", INSTANT)


@translates("PreciseTimestampConversion")
def reinterpret(call: Call, arguments: Arguments) -> Typed:
    """The microseconds of an instant and back, as `window` needs them."""
    (argument,) = arguments
    if argument.type == INSTANT:
        return Typed(micros(argument), pa.int64())
    require(
        argument.type == pa.int64() and option(call, "toType") == "timestamp", f"PreciseTimestampConversion of {argument.type}"
    )
    return Typed(f"hw_time(make_timestamptz({argument.sql}))", INSTANT)
