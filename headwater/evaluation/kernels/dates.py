"""Dates: days since 1970 in the proleptic Gregorian calendar, which is NumPy's as it is Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.dates import UNITS
from headwater.evaluation.functions.rule import constant, is_whole, require
from headwater.evaluation.kernels.frames import refuse
from headwater.evaluation.kernels.rule import Kernel, computes, elementwise, mapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Validity

    Arguments = tuple[Kernel, ...]
    Days = NDArray[np.int64]

_DATE = pa.date32()
_EPOCH_YEAR = 1970
# 1970-01-01 was a Thursday.
_THURSDAY = 3


def _years(days: Days) -> Days:
    return days.view("M8[D]").astype("M8[Y]").view(np.int64)


def _months(days: Days) -> Days:
    return days.view("M8[D]").astype("M8[M]").view(np.int64)


def _first(periods: Days, unit: str) -> Days:
    """The first day of years or months since 1970."""
    return periods.view(f"M8[{unit}]").astype("M8[D]").view(np.int64)


_PARTS: dict[str, Callable[[Days], Days]] = {
    "Year": lambda days: _years(days) + _EPOCH_YEAR,
    "Quarter": lambda days: _months(days) % 12 // 3 + 1,
    "Month": lambda days: _months(days) % 12 + 1,
    "DayOfMonth": lambda days: days - _first(_months(days), "M") + 1,
    "DayOfYear": lambda days: days - _first(_years(days), "Y") + 1,
    "WeekDay": lambda days: (days + _THURSDAY) % 7,
    "DayOfWeek": lambda days: (days + _THURSDAY + 1) % 7 + 1,
    "UnixDate": lambda days: days,
}
STARTS: dict[str, Callable[[Days], Days]] = {
    "year": lambda days: _first(_years(days), "Y"),
    "quarter": lambda days: _first(_months(days) // 3 * 3, "M"),
    "month": lambda days: _first(_months(days), "M"),
    "week": lambda days: days - (days + _THURSDAY) % 7,
}


@computes(*_PARTS)
def part(call: Call, arguments: Arguments) -> Kernel:
    _require_date(call, arguments[0])
    return _of_days(pa.int32(), arguments[0], _PARTS[call.function])


@computes("TruncDate")
def truncate(call: Call, arguments: Arguments) -> Kernel:
    unit = constant(call, 1).lower()
    _require_date(call, arguments[0])
    require(unit in UNITS, f"TruncDate to {unit}")
    return _of_days(_DATE, arguments[0], STARTS[UNITS[unit]])


@computes("LastDay")
def last_day(call: Call, arguments: Arguments) -> Kernel:
    _require_date(call, arguments[0])
    return _of_days(_DATE, arguments[0], lambda days: _first(_months(days) + 1, "M") - 1)


@computes("DateFromUnixDate")
def from_days(call: Call, arguments: Arguments) -> Kernel:
    require(arguments[0].type == pa.int32(), f"{call.function} of {arguments[0].type}")
    return Kernel(_DATE, arguments[0].evaluate)


@computes("DateAdd", "DateSub")
def shift(call: Call, arguments: Arguments) -> Kernel:
    _require_date(call, arguments[0])
    require(is_whole(arguments[1].type), f"{call.function} of {arguments[1].type}")
    return elementwise(_DATE, _in_days(np.add if call.function == "DateAdd" else np.subtract), *arguments)


@computes("DateDiff")
def difference(call: Call, arguments: Arguments) -> Kernel:
    for argument in arguments:
        _require_date(call, argument)
    return elementwise(pa.int32(), _in_days(np.subtract), *arguments)


def _of_days(kind: pa.DataType, argument: Kernel, function: Callable[[Days], Days]) -> Kernel:
    def operate(values: NDArray[Any], valid: Validity) -> NDArray[Any]:
        return _short(function(values.astype(np.int64)), valid)

    return mapped(kind, argument, operate)


def _in_days(ufunc: Callable[..., Any]) -> Callable[[NDArray[Any], NDArray[Any], Validity], NDArray[Any]]:
    return lambda a, b, valid: _short(ufunc(a, b, dtype=np.int64), valid)


def _short(wide: Days, valid: Validity) -> NDArray[np.int32]:
    found = wide.astype(np.int32)
    refuse(found != wide, valid)
    return found


def _require_date(call: Call, argument: Kernel) -> None:
    require(argument.type == _DATE, f"{call.function} of {argument.type}")
