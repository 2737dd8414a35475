"""JSON of Arrow columns: valid JSON only, in the forms of Spark's `to_json` where these tell the value.

NaN, ±Infinity     "NaN", "Infinity", "-Infinity"
decimals           numbers with all their digits
binary             base64
timestamps         2024-02-29T12:00:00.000Z, with six digits after the second if three do not tell the value;
                   without Z if the type has no time zone
dates, times       2024-02-29, 12:30:45.5
intervals          INTERVAL '1 02:03:04.5' DAY TO SECOND
structs, maps      objects; a key that is not text is the JSON of the key
NULL               null, where `to_json` leaves a field out
"""

from __future__ import annotations

import json
from base64 import b64encode
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_NULL = "null"
_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


def objects(rows: pa.Table) -> list[str]:
    """Each row as an object."""
    return _objects(rows.column_names, [texts(column) for column in rows.columns], rows.num_rows)


def texts(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """Each value as JSON."""
    array = _whole(column)
    kind = array.type
    if pa.types.is_null(kind):
        return [_NULL] * len(array)
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        found = _objects(names, [texts(child) for child in array.flatten()], len(array))
        return [text if valid else _NULL for text, valid in zip(found, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        return _enclosed(array, _pairs(array), "{}")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        start, end = _ends(array)
        return _enclosed(array, texts(array.values.slice(start, end - start)), "[]")
    values, form = _plain(array)
    return [_NULL if value is None else form(value) for value in values]


def unquoted(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """The same without the quotes around texts; NULL is None."""
    return [None if text == _NULL else json.loads(text) if text.startswith('"') else text for text in texts(column)]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def _objects(names: Sequence[str], columns: Sequence[list[str]], count: int) -> list[str]:
    if not columns:
        return ["{}"] * count
    heads = [_quoted(name) + ":" for name in names]
    return ["{" + ",".join(map(str.__add__, heads, row)) + "}" for row in zip(*columns, strict=True)]


def _pairs(array: pa.MapArray) -> list[str]:
    start, end = _ends(array)
    keys = unquoted(array.keys.slice(start, end - start))
    values = texts(array.items.slice(start, end - start))
    return [f"{_quoted(str(key))}:{value}" for key, value in zip(keys, values, strict=True)]


def _ends(array: pa.Array) -> tuple[int, int]:
    """Where the elements of all lists begin and end among the values that these share with others."""
    return array.offsets[0].as_py(), array.offsets[-1].as_py()


def _enclosed(array: pa.Array, elements: list[str], brackets: str) -> list[str]:
    offsets = array.offsets.to_numpy()
    starts = (offsets - offsets[0]).tolist()
    valid = array.is_valid().to_pylist()
    return [
        f"{brackets[0]}{','.join(elements[start:end])}{brackets[1]}" if there else _NULL
        for start, end, there in zip(starts, starts[1:], valid, strict=False)
    ]


def _plain(array: pa.Array) -> tuple[list[Any] | Iterator[Any], Callable[[Any], str]]:  # noqa: C901, PLR0911  (one case a kind)
    """The values of a column that has no values within its values, and what makes JSON of one."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return array.to_pylist(), lambda value: "true" if value else "false"
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return array.to_pylist(), str
    if pa.types.is_float32(kind):
        return (None if value is None else np.float32(value) for value in array.to_pylist()), _number
    if pa.types.is_floating(kind):
        return array.to_pylist(), _number
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.to_pylist(), _quoted
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array.to_pylist(), lambda value: f'"{b64encode(value).decode()}"'
    if pa.types.is_timestamp(kind):
        return _moments(array), lambda text: _moment(text, zone="Z" if kind.tz else "")
    if pa.types.is_duration(kind):
        return pc.cast(pc.cast(array, pa.duration("us")), pa.int64()).to_pylist(), _interval
    if pa.types.is_time(kind):
        return pc.cast(array, pa.string()).to_pylist(), lambda text: f'"{_trimmed(text)}"'
    if pa.types.is_date(kind):
        return pc.cast(array, pa.string()).to_pylist(), lambda text: f'"{text}"'
    raise NotSupported(
        f"a value of the type {kind} has no form in JSON; leave its column out of the view, or cast it to STRING"
    )


def _number(value: float) -> str:
    if isfinite(value):
        return str(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'  # noqa: PLR0124


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _moments(array: pa.Array) -> list[str | None]:
    """Times of the clock in UTC, with six digits after the second."""
    utc = pc.cast(pc.cast(array, pa.int64()), pa.timestamp(array.type.unit))
    found: list[str | None] = pc.cast(pc.cast(utc, pa.timestamp("us")), pa.string()).to_pylist()
    return found


def _moment(text: str, zone: str) -> str:
    return f'"{text.removesuffix("000").replace(" ", "T")}{zone}"'


def _interval(microseconds: int) -> str:
    sign, rest = "-" if microseconds < 0 else "", abs(microseconds)
    days, rest = divmod(rest, _DAY)
    hours, rest = divmod(rest, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds = _trimmed(f"{rest // _SECOND:02}.{rest % _SECOND:06}")
    return f"\"INTERVAL '{sign}{days} {hours:02}:{minutes:02}:{seconds}' DAY TO SECOND\""


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
