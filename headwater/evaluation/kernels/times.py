"""Times: microseconds since 1970. Instants only where the session's clocks show UTC; elsewhere, clocks are DuckDB's business.

Within a day's reach of the ends of 64 bits everything is refused, so that no time can leave them unnoticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.dates import UNITS
from headwater.evaluation.functions.rule import DURATION, INSTANT, LOCAL, constant, option, require
from headwater.evaluation.functions.timestamps import NO_OFFSET
from headwater.evaluation.kernels.dates import STARTS
from headwater.evaluation.kernels.frames import refuse
from headwater.evaluation.kernels.integers import added, subtracted
from headwater.evaluation.kernels.rule import Kernel, computes, elementwise, mapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Validity

    Arguments = tuple[Kernel, ...]
    Micros = NDArray[np.int64]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FAR = 9_200_000_000_000_000_000
_CLOCK = {"Hour": (3600 * _SECOND, 24), "Minute": (60 * _SECOND, 60), "Second": (_SECOND, 60)}
_UNITS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND}
_LONG_UNITS = {"minute": 60 * _SECOND, "hour": 3600 * _SECOND, "day": _DAY, "dd": _DAY}
_NUMBERS = {"UnixSeconds": _SECOND, "UnixMillis": 1000, "UnixMicros": 1}
_DATE = pa.date32()


def converted(call: Call, argument: Kernel, to: pa.DataType) -> Kernel:
    """Casts between dates, times and the seconds since 1970."""
    source = argument.type
    if INSTANT in (source, to) and to != pa.int64():
        _require_no_offset(call)
    if source == _DATE and to in (INSTANT, LOCAL):
        return mapped(to, argument, _midnight)
    require(source in (INSTANT, LOCAL), f"a cast from {source} to {to}")
    if to == _DATE:
        return mapped(to, argument, _day)
    if to == pa.int64() and source == INSTANT:
        return mapped(to, argument, lambda values, _: values // _SECOND)
    require(to in (INSTANT, LOCAL), f"a cast from {source} to {to}")
    return Kernel(to, argument.evaluate)


@computes(*_CLOCK)
def clock(call: Call, arguments: Arguments) -> Kernel:
    _require_readable(call, arguments[0])
    unit, most = _CLOCK[call.function]
    return mapped(pa.int32(), arguments[0], lambda values, _: (values // unit % most).astype(np.int32))


@computes("TruncTimestamp")
def truncate(call: Call, arguments: Arguments) -> Kernel:
    unit, argument = constant(call, 0).lower(), arguments[1]
    require(argument.type == INSTANT, f"TruncTimestamp of {argument.type}")
    if unit in _UNITS:
        return mapped(INSTANT, argument, _cut(_UNITS[unit]))
    _require_no_offset(call)
    if unit in _LONG_UNITS:
        return mapped(INSTANT, argument, _cut(_LONG_UNITS[unit]))
    require(unit in UNITS, f"TruncTimestamp to {unit}")
    start = STARTS[UNITS[unit]]

    def operate(values: Micros, valid: Validity) -> Micros:
        refuse((values > _FAR) | (values < -_FAR), valid)
        return start(values // _DAY) * _DAY

    return mapped(INSTANT, argument, operate)


@computes("TimestampAddInterval")
def add_interval(call: Call, arguments: Arguments) -> Kernel:
    _require_readable(call, arguments[0])
    require(arguments[1].type == DURATION, "an interval of the calendar")
    return elementwise(arguments[0].type, added, *arguments)


@computes("SubtractTimestamps")
def elapsed(call: Call, arguments: Arguments) -> Kernel:
    require(call.option("legacyInterval") == "false", "an interval of the calendar")
    for argument in arguments:
        _require_readable(call, argument)
    return elementwise(DURATION, subtracted, *arguments)


@computes(*_NUMBERS)
def to_number(call: Call, arguments: Arguments) -> Kernel:
    require(arguments[0].type == INSTANT, f"{call.function} of {arguments[0].type}")
    unit = _NUMBERS[call.function]
    return mapped(pa.int64(), arguments[0], lambda values, _: values // unit)


@computes("MicrosToTimestamp")
def from_number(call: Call, arguments: Arguments) -> Kernel:
    require(arguments[0].type == pa.int64(), f"{call.function} of {arguments[0].type}")
    return Kernel(INSTANT, arguments[0].evaluate)


@computes("PreciseTimestampConversion")
def reinterpret(call: Call, arguments: Arguments) -> Kernel:
    """The microseconds of an instant and back, as `window` needs them."""
    (argument,) = arguments
    if argument.type == INSTANT:
        return Kernel(pa.int64(), argument.evaluate)
    require(argument.type == pa.int64() and option(call, "toType") == "timestamp", f"{call.function} of {argument.type}")
    return Kernel(INSTANT, argument.evaluate)


def _cut(unit: int) -> Callable[[Micros, Validity], Micros]:
    def operate(values: Micros, valid: Validity) -> Micros:
        refuse(values < -_FAR, valid)
        return values - values % unit

    return operate


def _midnight(days: NDArray[Any], valid: Validity) -> Micros:
    wide = days.astype(np.int64)
    refuse(np.abs(wide) > _FAR // _DAY, valid)
    return wide * _DAY


def _day(values: Micros, _valid: Validity) -> NDArray[np.int32]:
    return (values // _DAY).astype(np.int32)


def _require_readable(call: Call, argument: Kernel) -> None:
    require(argument.type in (INSTANT, LOCAL), f"{call.function} of {argument.type}")
    if argument.type == INSTANT:
        _require_no_offset(call)


def _require_no_offset(call: Call) -> None:
    zone = option(call, "timeZoneId")
    require(zone in NO_OFFSET, f"the clocks of time zone {zone}")
