"""Python's and NumPy's values as an Arrow column of a table's type: exactly the values they are, or refused. And back.

Arrow itself is generous: to it 7/2 is the integer 3, a bool a number and NaT a date. So the classes of the values are looked at
first. Where all are of the class that is natural for the type, Arrow takes them as they are. All others become a column of
their own kind, which is converted by the rule for columns (see `conversion`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import accumulate, chain
from operator import itemgetter
from reprlib import repr as brief
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.conversion import Unfit, converted, from_parts, kind_of, places_of, require_sound
from headwater.errors import UnrepresentableValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Values = list[Any]

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_NATURAL: dict[int, type] = {
    pa.bool_().id: bool,
    **{integer.id: int for integer in _INTEGERS},
    pa.float64().id: float,
    pa.decimal128(1).id: Decimal,
    pa.string().id: str,
    pa.binary().id: bytes,
    pa.date32().id: date,
    pa.duration("us").id: timedelta,
}
"""By the id of a type, the class whose values Arrow takes exactly or refuses."""

NOT_IN_PYTHON = (ArithmeticError, ValueError)
"""What is raised for dates that Python does not have, and for text that is no UTF-8."""

_CLOCK_UNITS = ("h", "m", "s", "ms", "us", "ns")


def column_of(values: Sequence[Any], wanted: pa.DataType, time_zone: str) -> pa.Array:
    """The values as a column; `Unfit`, or one of Arrow's or Python's own complaints, if one of them does not fit.

    None is NULL, as are pandas' NA, and NaT where a time is wanted. A datetime without a zone is in the given one.
    """
    classes = set(map(type, values))
    classes.discard(NoneType)
    if not classes or (len(classes) == 1 and _NATURAL.get(wanted.id) in classes):
        return pa.array(values, wanted)
    kind = kind_of(wanted)
    readers: dict[type, _Reader] = {}
    for each in classes:
        reader = _reader(each, kind)
        if reader is None:
            value = next(value for value in values if type(value) is each)
            raise Unfit(f"it takes no {each.__name__}, and this is one: {brief(value)}")
        readers[each] = reader
    builds = {reader.build for reader in readers.values()}
    columns = [build(_chosen(values, readers, build), wanted, time_zone) for build in builds if build is not _nothing]
    if not columns:
        return pa.nulls(len(values), wanted)
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


def python_values(column: pa.Array | pa.ChunkedArray, name: str | None = None) -> Values:
    """The values of a column, called so in the error if Python does not have one of them."""
    try:
        return column.to_pylist()
    except NOT_IN_PYTHON as error:
        where = f"a {column.type}" if name is None else f"a {column.type} in column {name!r}"
        raise UnrepresentableValue(f"{where} that Python does not have: {error}; use arrow() or dataframe()") from error


def shown(value: pa.Scalar) -> object:
    """A value for a message; where Python does not have it, its bytes or a text."""
    try:
        return value.as_py()
    except NOT_IN_PYTHON:
        if pa.types.is_string(value.type):
            return value.as_buffer().to_pybytes()
    try:
        return value.cast(pa.string()).as_py()
    except pa.ArrowException:
        return f"a {value.type} that Python does not have"


class _Reader(NamedTuple):
    """How values of a class are read: as plain ones, of which a column is built."""

    build: Callable[[Values, pa.DataType, str], pa.Array]
    plain: Callable[[Any], Any] | None = None


def _chosen(values: Sequence[Any], readers: Mapping[type, _Reader], build: Callable[..., pa.Array]) -> Values:
    """The values of which a column is built in this way, as plain ones, with None in the place of the others."""
    if len(readers) == 1:
        (reader,) = readers.values()
        if reader.plain is None:
            return list(values)
    plain = {each: reader.plain or _same for each, reader in readers.items() if reader.build is build}
    return [plain[type(value)](value) if type(value) in plain else None for value in values]


@cache
def _reader(given: type, kind: str) -> _Reader | None:
    """How values of a class become values of a kind; None if they never do."""
    if given.__module__.startswith("pandas.") and given.__name__ in ("NAType", "NaTType"):
        return _Reader(_nothing) if given.__name__ == "NAType" or kind in _TIMES else None
    accepted = _ACCEPTED.get(kind, {})
    if kind == "list" and is_named(given):
        return None
    return next((accepted[base] for base in given.__mro__ if base in accepted), None)


def is_named(given: type) -> bool:
    """Whether a tuple of this class may have names: a Row of Spark's or a named tuple."""
    return issubclass(given, tuple) and (hasattr(given, "_fields") or hasattr(given, "asDict"))


def names_in(value: Any) -> tuple[str, ...] | None:  # noqa: ANN401  (a user's value)
    """The names that a dict, a Row or a named tuple gives its values; None if there are none."""
    if isinstance(value, Mapping):
        return tuple(value)
    found = getattr(value, "__fields__", None) or getattr(value, "_fields", None) if is_named(type(value)) else None
    return None if found is None else tuple(found)


def _same(value: Any) -> Any:  # noqa: ANN401  (a user's value)
    return value


def _nothing(values: Values, wanted: pa.DataType, _time_zone: str) -> pa.Array:
    return pa.nulls(len(values), wanted)


# -- values that have no parts


def _direct(values: Values, wanted: pa.DataType, _time_zone: str) -> pa.Array:
    return pa.array(values, wanted)


def _integers(values: Values, wanted: pa.DataType, _time_zone: str) -> pa.Array:
    return converted(pa.array(values, pa.int64()), wanted) if pa.types.is_floating(wanted) else pa.array(values, wanted)


def _floats(values: Values, wanted: pa.DataType, _time_zone: str) -> pa.Array:
    return converted(pa.array(values, pa.float64()), wanted)


def _decimals(values: Values, wanted: pa.DataType, _time_zone: str) -> pa.Array:
    return pa.array(values, wanted) if pa.types.is_decimal(wanted) else converted(pa.array(values), wanted)


def _timestamps(values: Values, wanted: pa.DataType, time_zone: str) -> pa.Array:
    zones = {type(value.tzinfo) for value in values if value is not None}
    is_naive = NoneType in zones
    if is_naive and len(zones) > 1:
        raise Unfit("some of the times have a time zone and some have none; give all of them one, or none")
    if zones and not is_naive and wanted.tz is None:
        raise Unfit("it takes times without a time zone, and these have one")
    if zones - {NoneType, ZoneInfo}:
        offsets = [value.utcoffset() for value in values if value is not None]
        if any(offset is None or offset.microseconds for offset in offsets):
            raise Unfit("the offset of a time zone is a whole number of seconds")
    if is_naive and wanted.tz is not None:
        found = in_zone(pa.array(values, pa.timestamp("us")), time_zone).cast(wanted)
    else:
        found = pa.array(values, wanted)
    # The first and the last hours of all time are in other years elsewhere.
    require_sound(found)
    return found


def in_zone(times: pa.Array, time_zone: str) -> pa.Array:
    """Times without a zone as what the clocks of a zone showed; refused where they showed it never, or twice."""
    try:
        return pc.assume_timezone(times, time_zone)
    except pa.ArrowInvalid as error:
        raise Unfit(f"{' '.join(str(error).split())}; give the times with their time zone") from error


def _plain_datetime(value: Any) -> datetime:  # noqa: ANN401  (a datetime, or a Timestamp of pandas')
    if getattr(value, "nanosecond", 0):
        raise Unfit(f"{value!r} has nanoseconds, and times here have microseconds")
    plain: datetime = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    return plain


def _plain_timedelta(value: Any) -> timedelta:  # noqa: ANN401  (a timedelta, or a Timedelta of pandas')
    if getattr(value, "nanoseconds", 0):
        raise Unfit(f"{value!r} has nanoseconds, and intervals here have microseconds")
    plain: timedelta = value.to_pytimedelta() if hasattr(value, "to_pytimedelta") else value
    return plain


def _plain_time(value: time) -> time:
    if value.tzinfo is not None:
        raise Unfit(f"it takes times of day without a time zone, and this has one: {value!r}")
    return value


def _in_microseconds(value: Any, kind: str) -> Any:  # noqa: ANN401  (NumPy's times, and Python's)
    """A time or span of NumPy's as Python has it; None for NaT."""
    if np.isnat(value):
        return None
    if np.datetime_data(value.dtype)[0] not in (*_CLOCK_UNITS, *(("D", "W") if kind == "timedelta64" else ())):
        raise Unfit(f"{value!r} is a date, or in a unit that is not taken: {', '.join(_CLOCK_UNITS)} are")
    exact = value.astype(f"{kind}[us]")
    plain = exact.item()
    if exact != value or isinstance(plain, int):
        raise Unfit(f"{value!r} is outside the years 1 to 9999, or has more than microseconds")
    return plain


def _plain_datetime64(value: np.datetime64) -> datetime | None:
    found: datetime | None = _in_microseconds(value, "datetime64")
    return found


def _plain_timedelta64(value: np.timedelta64) -> timedelta | None:
    found: timedelta | None = _in_microseconds(value, "timedelta64")
    return found


def _plain_date64(value: np.datetime64) -> date | None:
    if np.isnat(value):
        return None
    plain: object = value.item()
    if np.datetime_data(value.dtype)[0] != "D" or not isinstance(plain, date):
        raise Unfit(f"{value!r} is not a day, in datetime64[D], of the years 1 to 9999")
    return plain


# -- values that have parts


def _lists(values: Values, wanted: pa.DataType, time_zone: str) -> pa.Array:
    items = column_of(list(chain.from_iterable(value or () for value in values)), wanted.value_type, time_zone)
    return from_parts(_ends(values), [items], wanted, _missing(values))


def _plain_array(value: np.ndarray[Any, Any]) -> Values:
    if value.ndim == 0:
        raise Unfit(f"an array without dimensions is no list: {value!r}")
    # Times would become numbers, if they are in nanoseconds.
    return list(value) if value.dtype.kind in "mM" else value.tolist()


def _maps(values: Values, wanted: pa.DataType, time_zone: str) -> pa.Array:
    pairs = list(chain.from_iterable(value.items() if isinstance(value, Mapping) else value or () for value in values))
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise Unfit(f"a map is a dict, or a list of pairs, and this is no pair: {brief(pair)}")
    keys = column_of([key for key, _ in pairs], wanted.key_type, time_zone)
    items = column_of([item for _, item in pairs], wanted.item_type, time_zone)
    return from_parts(_ends(values), [keys, items], wanted, _missing(values))


def _structs(values: Values, wanted: pa.DataType, time_zone: str) -> pa.Array:
    names = [field.name for field in wanted]
    orders: dict[tuple[str, ...], list[str]] = {}
    rows = []
    for value in values:
        given = None if value is None else names_in(value)
        if value is None:
            rows.append((None,) * len(names))
        elif given is not None:
            if given not in orders:
                orders[given] = [given[place] for place in places_of(names, _texts(given))]
            row = value if isinstance(value, Mapping) else dict(zip(given, value, strict=True))
            rows.append(tuple(row[name] for name in orders[given]))
        elif len(value) == len(names):
            rows.append(tuple(value))
        else:
            raise Unfit(f"a struct of {len(names)} fields, and this has {len(value)}: {brief(value)}")
    fields = [column_of(list(map(itemgetter(i), rows)), field.type, time_zone) for i, field in enumerate(wanted)]
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=_missing(values))


def _texts(names: Sequence[Any]) -> Sequence[str]:
    for name in names:
        if not isinstance(name, str):
            raise Unfit(f"the names of fields are text, not {brief(name)}")
    return names


def _ends(values: Values) -> Sequence[int]:
    return [0, *accumulate(0 if value is None else len(value) for value in values)]


def _missing(values: Values) -> pa.Array:
    return pa.array([value is None for value in values])


_TIMES = ("date", "timestamp", "timestamp without zone", "duration", "time")
_DATETIMES: dict[type, _Reader | None] = {
    datetime: _Reader(_timestamps, _plain_datetime),
    np.datetime64: _Reader(_timestamps, _plain_datetime64),
}
_ACCEPTED: dict[str, dict[type, _Reader | None]] = {
    "bool": {bool: _Reader(_direct), np.bool_: _Reader(_direct, bool)},
    "number": {
        bool: None,
        int: _Reader(_integers, int),
        # To NumPy, a span of time is an integer.
        np.timedelta64: None,
        np.integer: _Reader(_integers, int),
        float: _Reader(_floats, float),
        np.longdouble: None,
        np.floating: _Reader(_floats, float),
        Decimal: _Reader(_decimals),
    },
    "string": {str: _Reader(_direct)},
    "binary": {bytes: _Reader(_direct), bytearray: _Reader(_direct, bytes), memoryview: _Reader(_direct, bytes)},
    "date": {datetime: None, date: _Reader(_direct), np.datetime64: _Reader(_direct, _plain_date64)},
    "time": {time: _Reader(_direct, _plain_time)},
    "timestamp": _DATETIMES,
    "timestamp without zone": _DATETIMES,
    "duration": {timedelta: _Reader(_direct, _plain_timedelta), np.timedelta64: _Reader(_direct, _plain_timedelta64)},
    "list": {list: _Reader(_lists), tuple: _Reader(_lists), np.ndarray: _Reader(_lists, _plain_array)},
    "map": {dict: _Reader(_maps), Mapping: _Reader(_maps), list: _Reader(_maps), tuple: _Reader(_maps)},
    "struct": {dict: _Reader(_structs), Mapping: _Reader(_structs), list: _Reader(_structs), tuple: _Reader(_structs)},
}
"""By kind of type, the classes it takes, each with how; the first of a value's bases that is here counts, and None refuses."""
