"""Tables of edge values: every value of a column meets every value of its partner."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

_INF, _NAN = float("inf"), float("nan")
_FLOATS = [None, _NAN, _INF, -_INF, 0.0, -0.0, 1.0, -2.5, 0.5, 3.4028234663852886e38, 1.401298464324817e-45]
_DOUBLES = [None, _NAN, _INF, -_INF, 0.0, -0.0, 1.0, -2.5, 0.1, 1.7976931348623157e308, 5e-324]
_WHOLE_DOUBLES = [2147483647.9, 2147483648.0, -2147483648.9, -2147483649.0, 9.223372036854776e18, 9.2233720368547748e18]
_WHOLE_DOUBLES += [
    127.99,
    128.0,
    -128.99,
    -129.0,
    32767.5,
    32768.0,
    -9.223372036854776e18,
    1e300,
    0.9999999999999999,
    1.5,
    2.5,
    3.5,
]
_DECIMALS = [None, "0", "1", "-1", "0.01", "-0.05", "0.5", "-2.5", "33.33", "MAX", "MIN", "LONG"]
_STRINGS = [
    None,
    "",
    " ",
    "a",
    "abc",
    "aXbXc",
    " a b ",
    "%_\\",
    "ß",
    "éa",
    "e\u0301a",
    "😀b😀",
    "İstanbul",
    "ÀéÎõÜŽж₤",
    "ΑΣ",
    "a\r\nb",
    "null",
    "xx\x00y",
]
_TEXTS = [
    None,
    "",
    " ",
    "0",
    "1",
    "-1",
    "+1",
    "007",
    " 12 ",
    "\t12\n",
    "1_000",
    "1,000",
    "12.5",
    "-0.5",
    ".5",
    "5.",
    "1e3",
    "1E-3",
    "-1.5e+2",
    "1e400",
]
_TEXTS += [
    "NaN",
    "Infinity",
    "-inf",
    "0x1F",
    "1f",
    "1d",
    "1L",
    "127",
    "128",
    "-128",
    "-129",
    "32768",
    "2147483647",
    "2147483648",
    "9223372036854775807",
]
_TEXTS += [
    "9223372036854775808",
    "99999999999999999999",
    "0.125",
    "0.135",
    "1234567.891",
    "true",
    "TRUE",
    "t",
    "yes",
    "No",
    "f",
    " false",
    "maybe",
    "１",
]
_TEXTS += [
    "2020-01-01",
    "2020-1-5",
    "2020-02-30",
    "2020-02-29",
    "0000-01-01",
    "0001-01-01",
    "1582-10-10",
    "9999-12-31",
    "12020-01-01",
    "-0044-03-15",
]
_TEXTS += [
    "2020",
    "2020-06",
    "2020-01-01 ",
    " 2020-01-01",
    "2020-01-01T00:00:00",
    "2020/01/01",
    "20200101",
    "epoch",
    "2020-13-01",
    "today",
]
_TEXTS += [
    "2020-01-01 01:02:03",
    "2020-01-01T01:02:03.5",
    "2020-01-01 01:02:03.123456",
    "2020-01-01 01:02:03.1234567",
    "2020-01-01 24:00:00",
]
_TEXTS += [
    "2020-01-01 01:02:03Z",
    "2020-01-01 01:02:03+01:00",
    "2020-03-08 02:30:00",
    "2020-11-01 01:30:00",
    "2020-07-01 12:00:00",
    "2020-01-01 23:59:60",
]
_TEXTS += [
    "1883-11-18 12:00:00",
    "1500-02-28 00:00:00",
    "2020-01-01 1:2:3",
    "2020-01-01 12:00",
    "0000-01-01 00:00:00",
    "2020-02-30 00:00:00",
]
_DATES = [
    None,
    date(1970, 1, 1),
    date(1969, 12, 31),
    date(2000, 2, 29),
    date(1900, 2, 28),
    date(2020, 1, 31),
    date(2019, 12, 30),
]
_DATES += [date(1582, 10, 4), date(1582, 10, 15), date(1, 1, 1), date(9999, 12, 31), date(2021, 1, 3), date(2024, 5, 31)]
# Days since 1970 for years before 1 and after 9999, and the two that DuckDB calls infinite.
_FAR_DAYS = [-719163, -1000000, 2932897, 20000000, 106751991, 2**31 - 1, -(2**31) + 1, -(2**31)]
_SHIFTS = [None, 0, 1, -1, 12, -13, 1200, 2**31 - 1, -(2**31)]
_TIMES = [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2020, 2, 29, 12, 34, 56, 789000)]
_TIMES += [
    datetime(1582, 10, 10, 1),
    datetime(1500, 3, 1, 0, 0, 0, 1),
    datetime(1, 1, 1, 5),
    datetime(9999, 12, 31, 18, 59, 59, 999999),
]
_TIMES += [datetime(1883, 11, 18, 16, 59, 59), datetime(1883, 11, 18, 17, 0, 1), datetime(1900, 1, 1), datetime(1918, 3, 31, 7)]
# Around the changes of New York's clocks: 2020-03-08 07:00 and 2020-11-01 06:00 UTC, 2024-11-03 06:00 UTC.
_TIMES += [
    datetime(2020, 3, 8, 6, 59, 59, 999999),
    datetime(2020, 3, 8, 7),
    datetime(2020, 3, 8, 2, 30),
    datetime(2020, 3, 7, 7, 30),
]
_TIMES += [
    datetime(2020, 11, 1, 5, 30),
    datetime(2020, 11, 1, 6, 30),
    datetime(2020, 11, 1, 1, 30),
    datetime(2020, 10, 31, 5, 30),
]
_TIMES += [
    datetime(2020, 12, 31, 23, 59, 59, 500000),
    datetime(2020, 1, 31, 4, 59, 59),
    datetime(2021, 7, 4, 4),
    datetime(2038, 1, 19, 3, 14, 8),
]
_FAR_TIMES = [-(2**63), -(2**63) + 1, 2**63 - 1, 2**62, -(2**60), 253402300800000000, -62135596800000001]
_BYTES = [None, b"", b"\x00", b"a", b"\x00\xff\xab", "é".encode()]
_ARRAYS = [None, [], [1], [None], [3, 1, 2], [1, None, 2**31 - 1], [-(2**31), 0]]
_INDICES = [None, 0, 1, 2, -1, -3, 5, 2**31 - 1, -(2**31)]


def integers() -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, bits in (("y", 8), ("h", 16), ("i", 32), ("l", 64)):
        largest = 2 ** (bits - 1) - 1
        columns |= _pairs(name, [None, 0, 1, -1, 3, -7, largest, -largest - 1], getattr(pa, f"int{bits}")())
    return pa.table(columns)


def floats() -> pa.Table:
    return pa.table(_pairs("f", _FLOATS, pa.float32()) | _pairs("d", _DOUBLES, pa.float64()))


def whole_floats() -> pa.Table:
    values = [*_WHOLE_DOUBLES, *_DOUBLES]
    return pa.table({"d": pa.array(values, pa.float64()), "f": pa.array(values, pa.float64()).cast(pa.float32())})


def decimals() -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, precision, scale in (
        ("a", 10, 2),
        ("p", 15, 2),
        ("k", 5, 0),
        ("s", 18, 6),
        ("w", 38, 10),
        ("z", 38, 0),
        ("u", 7, 7),
        ("q", 2, 2),
    ):
        columns |= _pairs(name, [_decimal(text, precision, scale) for text in _DECIMALS], pa.decimal128(precision, scale))
    columns["i"] = pa.array([i % 7 - 3 if i % 5 else None for i in range(len(_DECIMALS) ** 2)], pa.int32())
    return pa.table(columns)


def booleans() -> pa.Table:
    rows = list(itertools.product([None, True, False], [None, True, False], [None, 0, 5]))
    return pa.table(
        list(map(list, zip(*rows, strict=True))), schema=pa.schema([("p", pa.bool_()), ("q", pa.bool_()), ("i", pa.int32())])
    )


def strings() -> pa.Table:
    columns = _pairs("s", [s for s in _STRINGS if s != "xx\x00y"], pa.string())
    columns["n"] = pa.array([(i * 7) % 13 - 5 if i % 11 else None for i in range(len(columns["s1"]))], pa.int32())
    return pa.table(columns)


def strings_with_nul() -> pa.Table:
    return pa.table({"s": pa.array(["a\x00b", "\x00", "ab"]), "t": pa.array(["\x00", "b", "a\x00"])})


def texts() -> pa.Table:
    return pa.table({"s": pa.array(_TEXTS, pa.string())})


def zoned_texts() -> pa.Table:
    return pa.table({"s": pa.array([None, *(text for text in _TEXTS if text and ":" in text)], pa.string())})


def dates() -> pa.Table:
    days = [*pa.array(_DATES, pa.date32()).cast(pa.int32()).to_pylist(), *_FAR_DAYS]
    rows = list(itertools.product(days, _SHIFTS))
    left, shifts = zip(*rows, strict=True)
    partner = [days[(i * 5) % len(days)] for i in range(len(rows))]
    made = {"d": pa.array(left, pa.int32()).cast(pa.date32()), "e": pa.array(partner, pa.int32()).cast(pa.date32())}
    return pa.table(made | {"n": pa.array(shifts, pa.int32())})


def times() -> pa.Table:
    near = [int((time - datetime(1970, 1, 1)) / timedelta(microseconds=1)) for time in _TIMES]
    micros = [None, *near, *_FAR_TIMES]
    partner = [micros[(i * 5 + 1) % len(micros)] for i in range(len(micros))]
    numbers = pa.array(micros, pa.int64())
    others = pa.array(partner, pa.int64())
    return pa.table(
        {
            "t": numbers.cast(pa.timestamp("us", tz="UTC")),
            "u": others.cast(pa.timestamp("us", tz="UTC")),
            "l": numbers.cast(pa.timestamp("us")),
            "m": others.cast(pa.timestamp("us")),
            "n": numbers,
            "v": pa.array([None if m is None else m // (1 + i % 3) for i, m in enumerate(micros)], pa.int64()).cast(
                pa.duration("us")
            ),
            "d": pa.array([None if m is None else max(m // 86_400_000_000, -(2**31)) for m in micros], pa.int32()).cast(
                pa.date32()
            ),
        }
    )


def binaries() -> pa.Table:
    return pa.table(_pairs("b", _BYTES, pa.binary()))


def collections() -> pa.Table:
    rows = list(itertools.product(range(len(_ARRAYS)), _INDICES))
    arrays = [_ARRAYS[i] for i, _ in rows]
    texts = [None if array is None else [None if x is None else str(x) for x in array] for array in arrays]
    maps = [None if array is None else [(str(x), x) for x in array if x is not None] for array in arrays]
    structs = [None if i is None else {"x": i, "Y y": str(i), "z": {"w": None if i == 0 else i}} for _, i in rows]
    kind = pa.struct([("x", pa.int32()), ("Y y", pa.string()), ("z", pa.struct([("w", pa.int32())]))])
    return pa.table(
        {
            "a": pa.array(arrays, pa.list_(pa.int32())),
            "t": pa.array(texts, pa.list_(pa.string())),
            "m": pa.array(maps, pa.map_(pa.string(), pa.int32())),
            "r": pa.array(structs, kind),
            "i": pa.array([i for _, i in rows], pa.int32()),
            "s": pa.array([None if i is None else str(i) for _, i in rows], pa.string()),
        }
    )


def _pairs(name: str, values: list[Any], kind: pa.DataType) -> dict[str, pa.Array]:
    left, right = zip(*itertools.product(values, values), strict=True)
    return {f"{name}1": pa.array(left, kind), f"{name}2": pa.array(right, kind)}


def _decimal(text: str | None, precision: int, scale: int) -> Decimal | None:
    largest = Decimal(f"{10**precision - 1}E-{scale}")
    if text == "LONG":
        return Decimal(f"-{'12345678901234567890123456789012345678'[:precision]}E-{scale}")
    if text is None or text in ("MAX", "MIN"):
        return None if text is None else largest if text == "MAX" else largest.copy_negate()
    value = Decimal(text)
    while abs(value) > largest:
        value = value.scaleb(-1)
    return value.quantize(Decimal(f"1E-{scale}"), context=Context(prec=76))


TABLES = {
    made.__name__: made
    for made in (
        integers,
        floats,
        whole_floats,
        decimals,
        booleans,
        strings,
        strings_with_nul,
        texts,
        dates,
        times,
        zoned_texts,
        binaries,
        collections,
    )
}
ZONED = {"times", "zoned_texts"}
ZONES = ("UTC", "America/New_York")
