"""Instants (`TIMESTAMP`), read in the session's time zone, and local times (`TIMESTAMP_NTZ`).

From an instant to local time there is one answer. Back there is not: around a change of the clocks a local time can name no
instant or two, and the engines choose differently. So within a day of a change the translation raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.dates import UNITS
from headwater.evaluation.functions.literals import months
from headwater.evaluation.functions.rule import (
    DURATION,
    INSTANT,
    LOCAL,
    Typed,
    Untranslatable,
    cast,
    constant,
    is_whole,
    macro,
    option,
    require,
    run,
    text,
    translates,
)
from headwater.evaluation.functions.zones import FIRST, LAST, agree

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

NO_OFFSET = {"UTC", "Etc/UTC", "GMT", "Z"}
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
        return run("hw_time", argument.sql)
    require(argument.type == INSTANT, f"{call.function} of {argument.type}")
    zone = time_zone(call)
    if zone in NO_OFFSET:
        return f"make_timestamp({micros(argument)})"
    return f"timezone({text(zone)}, {run('hw_known', argument.sql)})"


def instant(time: str, call: Call) -> str:
    """The instant at which the clocks of the call's time zone show a time; raises if that could be doubted."""
    zone = time_zone(call)
    if zone in NO_OFFSET:
        return f"make_timestamptz(epoch_us({time}))"
    return run("hw_certain", f"timezone({text(zone)}, {time})", text(zone))


def time_zone(call: Call) -> str:
    zone = option(call, "timeZoneId")
    if zone is None or not (zone in NO_OFFSET or agree(zone)):
        raise Untranslatable(f"the clocks of time zone {zone}")
    return zone


def micros(argument: Typed) -> str:
    return f"epoch_us({run('hw_time', argument.sql)})"


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
    require(interval.type == DURATION, "an interval of the calendar")
    if start.type == LOCAL:
        return Typed(run("hw_time", f"make_timestamp({micros(start)} + {interval.sql})"), LOCAL)
    require(start.type == INSTANT, f"TimestampAddInterval of {start.type}")
    if time_zone(call) in NO_OFFSET:
        return Typed(run("hw_time", f"make_timestamptz({micros(start)} + {interval.sql})"), INSTANT)
    total = int(constant(call, 1))
    days = abs(total) // _DAY * (1 if total > 0 else -1)
    if days == 0:
        return Typed(run("hw_time", f"make_timestamptz({micros(start)} + {total})"), INSTANT)
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


@translates("MultiplyDTInterval")
def multiple(_call: Call, arguments: Arguments) -> Typed:
    interval, times = arguments
    require(interval.type == DURATION and is_whole(times.type), f"MultiplyDTInterval by {times.type}")
    return Typed(f"({interval.sql} * CAST({times.sql} AS BIGINT))", DURATION)


@translates("ExtractANSIIntervalDays", "ExtractANSIIntervalHours", "ExtractANSIIntervalMinutes", "ExtractANSIIntervalSeconds")
def part_of_interval(call: Call, arguments: Arguments) -> Typed:
    (interval,) = arguments
    require(interval.type == DURATION, f"{call.function} of {interval.type}")
    name = call.function.removeprefix("ExtractANSIInterval")
    if name == "Seconds":
        kind = pa.decimal128(8, 6)
        return Typed(f"CAST(CAST({interval.sql} % 60000000 AS DECIMAL(9,0)) * 0.000001 AS DECIMAL(8,6))", kind)
    whole, unit, kind = {
        "Days": (None, _DAY, pa.int32()),
        "Hours": (_DAY, 3_600_000_000, pa.int8()),
        "Minutes": (3_600_000_000, 60_000_000, pa.int8()),
    }[name]
    rest = f"{interval.sql} % {whole}" if whole else interval.sql
    return Typed(cast(f"(({rest}) // {unit})", kind), kind)


@translates("UnixSeconds", "UnixMillis", "UnixMicros")
def to_number(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == INSTANT, call.function)
    unit = {"UnixSeconds": 1_000_000, "UnixMillis": 1000, "UnixMicros": 1}[call.function]
    number = micros(arguments[0])
    return Typed(number if unit == 1 else run("hw_floor_divide", number, str(unit)), pa.int64())


@translates("MillisToTimestamp", "MicrosToTimestamp")
def from_number(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type == pa.int64(), f"{call.function} of {arguments[0].type}")
    unit = {"MillisToTimestamp": 1000, "MicrosToTimestamp": 1}[call.function]
    return Typed(run("hw_time", f"make_timestamptz({arguments[0].sql} * {unit})"), INSTANT)


@translates("SecondsToTimestamp")
def from_seconds(call: Call, arguments: Arguments) -> Typed:
    require(arguments[0].type in (pa.int32(), pa.int64()), f"{call.function} of {arguments[0].type}")
    return Typed(run("hw_time", f"make_timestamptz(CAST({arguments[0].sql} AS BIGINT) * 1000000)"), INSTANT)


@translates("PreciseTimestampConversion")
def reinterpret(call: Call, arguments: Arguments) -> Typed:
    """The microseconds of an instant and back, as `window` needs them."""
    (argument,) = arguments
    if argument.type == INSTANT:
        return Typed(micros(argument), pa.int64())
    require(
        argument.type == pa.int64() and option(call, "toType") == "timestamp", f"PreciseTimestampConversion of {argument.type}"
    )
    return Typed(run("hw_time", f"make_timestamptz({argument.sql})"), INSTANT)
