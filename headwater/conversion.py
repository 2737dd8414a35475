"""Arrow columns in the types of a table: exactly the values they had, or refused.

    no value changes its kind       a bool is no number, a number no text, a text no date
    numbers                         into another number type only if it holds the same number
    DOUBLE into FLOAT               the nearest one, as Python has no other way to write a FLOAT; refused out of its range
    times                           into other units only if nothing is cut off; with and without a time zone are two kinds
    arrays, maps, structs           by the same rule within; fields of structs by name

Everything is done by column. What a user sees of it is a table in docs/reference.md, and `tests/test_rows.py` tests that table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

# Python, like Spark's SQL, has the years 1 to 9999.
_RANGES: dict[int, tuple[type, int, int]] = {
    pa.date32().id: (np.int32, -719_162, 2_932_896),
    pa.timestamp("us").id: (np.int64, -62_135_596_800_000_000, 253_402_300_799_999_999),
}
_INTEGER_DIGITS = 20
"""Digits of the largest integer that Arrow has, an uint64."""


class Unfit(ValueError):
    """Values that a column cannot take; says why."""


def convertible(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the types are of one kind, so that it depends on the values whether they fit."""
    given = _decoded_type(given)
    kind = kind_of(given)
    if pa.types.is_null(given) or kind != kind_of(wanted):
        return pa.types.is_null(given)
    if kind == "list":
        return convertible(given.value_type, wanted.value_type)
    if kind == "map":
        return convertible(given.key_type, wanted.key_type) and convertible(given.item_type, wanted.item_type)
    if kind == "struct":
        try:
            order = places_of([field.name for field in wanted], [field.name for field in given])
        except Unfit:
            return False
        return all(convertible(given.field(place).type, field.type) for place, field in zip(order, wanted, strict=True))
    return True


def converted(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column in another type, or `Unfit`; Arrow's own complaints are raised as they are."""
    given = column.type
    if given.equals(wanted):
        return column
    if pa.types.is_dictionary(given):
        return converted(column.dictionary_decode(), wanted)
    if pa.types.is_run_end_encoded(given):
        return converted(pc.run_end_decode(column), wanted)
    if pa.types.is_null(given):
        return pa.nulls(len(column), wanted)
    kind = kind_of(given)
    if kind != kind_of(wanted):
        raise Unfit(f"the rows have {given}")
    return _CONVERSIONS.get(kind, pa.Array.cast)(column, wanted)


def kind_of(given: pa.DataType) -> str:
    """What a type's values are: only within a kind are they converted."""
    for kind, belongs in _KINDS.items():
        if belongs(given):
            return kind
    if pa.types.is_timestamp(given):
        return "timestamp" if given.tz else "timestamp without zone"
    return str(given)


def places_of(wanted: Sequence[str], given: Sequence[str]) -> list[int]:
    """Where the wanted names are among the given ones, which must be the same in any order and, if that is clear, any case."""
    exact = {name: place for place, name in enumerate(given)}
    if len(exact) != len(given):
        raise Unfit(f"the field {next(name for name in given if given.count(name) > 1)!r} is there twice")
    is_clear = len({name.lower() for name in wanted}) == len(wanted)
    lower = {name.lower(): place for name, place in exact.items()} if is_clear else {}
    found = [exact.get(name, lower.get(name.lower(), -1)) for name in wanted]
    missing = [name for name, place in zip(wanted, found, strict=True) if place < 0]
    unknown = [name for place, name in enumerate(given) if place not in found]
    if missing or unknown:
        said = [f"there is no field {name!r}" for name in unknown] + [f"the field {name!r} is missing" for name in missing]
        raise Unfit(", ".join(said))
    return found


def from_parts(ends: Sequence[int] | NDArray[Any], parts: Sequence[pa.Array], wanted: pa.DataType, mask: pa.Array) -> pa.Array:
    """Arrays, or maps of keys and items, each from one end to the next; NULL where the mask is true."""
    made = pa.MapArray if pa.types.is_map(wanted) else pa.ListArray
    return made.from_arrays(pa.array(ends, pa.int32()), *parts, type=wanted, mask=mask)


def require_sound(column: pa.Array) -> None:
    """Refuses years outside 1 to 9999, at any depth: Python has no others, nor do literals of Spark's SQL."""
    kind = column.type
    if kind.id in _RANGES and len(column):
        number, least, greatest = _RANGES[kind.id]
        stored: NDArray[Any] = np.frombuffer(column.buffers()[1], number)[column.offset : column.offset + len(column)]
        if stored.min() < least or stored.max() > greatest:
            # What is there beneath a NULL does not count.
            outside = ((stored < least) | (stored > greatest)) & column.is_valid().to_numpy(zero_copy_only=False)
            if outside.any():
                raise Unfit(f"a year outside 1 to 9999: {column[int(np.argmax(outside))].cast(pa.string())}")
    elif pa.types.is_nested(kind) and len(column):
        for part in _parts(column):
            require_sound(part)


def _parts(column: pa.Array) -> Sequence[pa.Array]:
    """What the values of a column consist of."""
    if pa.types.is_struct(column.type):
        return column.flatten()
    return _entries(column) if pa.types.is_map(column.type) else (column.flatten(),)


def timed(schema: pa.Schema) -> tuple[int, ...]:
    """The columns in which there are dates or timestamps."""
    return tuple(i for i, kind in enumerate(schema.types) if _has_times(kind))


def _has_times(kind: pa.DataType) -> bool:
    """Whether there are dates or timestamps in a type, at any depth."""
    if pa.types.is_nested(kind):
        return any(_has_times(kind.field(i).type) for i in range(kind.num_fields))
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


# -- numbers


def _number(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    elif pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        # Arrow finds the bounds of wider integers to be beyond these.
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    given = column.type
    if pa.types.is_decimal(wanted):
        if pa.types.is_floating(given):
            return _decimal(column, wanted)
        return (column.cast(pa.decimal128(_INTEGER_DIGITS, 0)) if pa.types.is_integer(given) else column).cast(wanted)
    if pa.types.is_floating(wanted) and pa.types.is_decimal(given):
        return _real(column, wanted)
    narrowed = column.cast(wanted)
    if pa.types.is_float64(given) and pa.types.is_float32(wanted):
        _refuse(column, _out_of_range(_numbers(column), _numbers(narrowed)), "is out of the range of a FLOAT")
    return narrowed


def _decimal(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Floats as decimals. A float is a multiple of a power of 2, so it has s decimal places iff it is a whole number of 2⁻ˢ."""
    doubles = column.cast(pa.float64())
    scaled = np.ldexp(_numbers(doubles), wanted.scale)
    _refuse(column, ~(np.isfinite(scaled) & (np.floor(scaled) == scaled)), f"is not exactly a {wanted}")
    return doubles.cast(wanted)


def _real(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Decimals as floats, if these are the same numbers."""
    real = column.cast(pa.float64()).cast(wanted)
    _refuse(column, np.isinf(_numbers(real)), f"is out of the range of a {wanted}")
    back = _decimal(real, pa.decimal256(76, column.type.scale)).cast(column.type)
    differs = pc.not_equal(column, back).fill_null(fill_value=False)
    _refuse(column, differs.to_numpy(zero_copy_only=False), f"is not exactly a {wanted}")
    return real


def _numbers(column: pa.Array) -> NDArray[Any]:
    """The numbers, with 0 for NULL."""
    return pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)


def _out_of_range(given: NDArray[np.float64], narrowed: NDArray[np.float32]) -> NDArray[np.bool_]:
    return (np.isinf(narrowed) & ~np.isinf(given)) | ((narrowed == 0) & (given != 0))


def _refuse(column: pa.Array, bad: NDArray[np.bool_], why: str) -> None:
    if bad.any():
        raise Unfit(f"{column[int(np.argmax(bad))].as_py()!r} {why}")


# -- nested values


def _list(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    return from_parts(ends, [converted(column.flatten(), wanted.value_type)], wanted, column.is_null())


def _map(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    keys, items = _entries(column)
    parts = [converted(keys, wanted.key_type), converted(items, wanted.item_type)]
    ends = column.offsets.to_numpy()
    return from_parts(ends - ends[0], parts, wanted, column.is_null())


def _entries(column: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """The keys and items of all maps of a column, which may be a slice of another."""
    start, stop = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return column.keys.slice(start, stop - start), column.items.slice(start, stop - start)


def _struct(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    order = places_of([field.name for field in wanted], [field.name for field in column.type])
    parts = column.flatten()
    fields = [converted(parts[place], field.type) for place, field in zip(order, wanted, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=column.is_null())


def _decoded_type(given: pa.DataType) -> pa.DataType:
    return given.value_type if pa.types.is_dictionary(given) or pa.types.is_run_end_encoded(given) else given


_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "bool": pa.types.is_boolean,
    "number": lambda t: pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t),
    "string": lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t),
    "binary": lambda t: (
        pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t) or pa.types.is_binary_view(t)
    ),
    "date": pa.types.is_date,
    "time": pa.types.is_time,
    "duration": pa.types.is_duration,
    "map": pa.types.is_map,
    "list": lambda t: (
        pa.types.is_list(t)
        or pa.types.is_large_list(t)
        or pa.types.is_fixed_size_list(t)
        or pa.types.is_list_view(t)
        or pa.types.is_large_list_view(t)
    ),
    "struct": pa.types.is_struct,
}
_CONVERSIONS: dict[str, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    "number": _number,
    "list": _list,
    "map": _map,
    "struct": _struct,
}
