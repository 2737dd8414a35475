"""Values on their way into a table: the table of docs/reference.md holds, cell by cell, for every kind of value and every type.

The documentation says which values a type takes. Whether a type *has* a value is computed here from the value alone, with
fractions, so that what was stored can be compared with what was given.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row

import headwater as hw
from headwater.rows import Columns, batch_of

if TYPE_CHECKING:
    from collections.abc import Callable

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"
ZONE = "Europe/Berlin"
BERLIN = ZoneInfo(ZONE)
UTC = dt.UTC
PAIR = pa.struct([("p", pa.int32()), ("q", pa.string())])

TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(5, 2)": pa.decimal128(5, 2),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "INTERVAL DAY TO SECOND": pa.duration("us"),
    "TIME": pa.time64("ns"),
    "ARRAY": pa.list_(pa.int32()),
    "MAP": pa.map_(pa.string(), pa.int32()),
    "STRUCT": PAIR,
}

Point = namedtuple("Point", ["q", "p"])  # noqa: PYI024  (as users write them)

INTEGERS = [0, 1, -1, 127, 128, 2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**63 - 1]
FLOATS = [0.0, 1.0, -2.0, 0.5, 0.1, 999.75, 1e5, 1e39, 1e-50, 2.0**63, math.inf]
DECIMALS = [Decimal(text) for text in ("0", "1", "-2.00", "0.5", "0.1", "999.75", "1.005", "100000", "128", "16777217")]
DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
NAIVE = [dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(1800, 1, 1), dt.datetime(9999, 12, 31, 23)]
GAP, TWICE = dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 10, 27, 2, 30)
AWARE = [
    dt.datetime(2024, 1, 1, 5, tzinfo=UTC),
    TWICE.replace(tzinfo=BERLIN),
    TWICE.replace(tzinfo=BERLIN, fold=1),
    dt.datetime(1969, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, seconds=7))),
]
BEYOND = dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-12)))
SPANS = [dt.timedelta(0), dt.timedelta(days=-3, microseconds=1), dt.timedelta(days=99999)]
NANOS = 1_704_085_200_000_000_001


class Refused(NamedTuple):
    """A value, or a column, of a class that is taken, which no type has."""

    value: Any


def damaged(kind: pa.DataType = pa.string()) -> pa.Array:  # noqa: B008  (it never changes)
    offsets = np.array([0, 1], np.int32)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xff")])


def same(stored: Any, given: Any) -> bool:  # noqa: PLR0911  (one case a kind)
    """Whether two values are the same, down to the last digit."""
    if stored is None or given is None:
        return stored is given
    if isinstance(given, float | np.floating) and math.isnan(given):
        return math.isnan(stored)
    if isinstance(given, float | np.floating) and math.isinf(given):
        return bool(stored == given)
    if isinstance(given, bool | np.bool_):
        return isinstance(stored, bool) and stored == bool(given)
    if isinstance(given, int | float | Decimal | np.integer | np.floating):
        exact = given if isinstance(given, Decimal | int) else given.item() if isinstance(given, np.generic) else given
        if not isinstance(stored, int | float | Decimal) or isinstance(stored, bool) or not math.isfinite(stored):
            return False
        return Fraction(stored) == Fraction(exact)
    if isinstance(given, dt.datetime) and given.tzinfo is not None:
        # Within one zone, Python compares what clocks show.
        return stored.tzinfo is not None and bool(stored.astimezone(UTC) == given.astimezone(UTC))
    if isinstance(given, list | tuple | np.ndarray) and isinstance(stored, list):
        return len(stored) == len(given) and all(map(same, stored, given))
    return bool(stored == given)


def arrow(values: list[Any], *kinds: pa.DataType) -> list[Any]:
    """Columns of one value each, in each of the types that have it."""
    found = []
    for value in values:
        for kind in kinds:
            try:
                column = pa.array([value], kind)
            except (pa.ArrowException, OverflowError):
                continue
            if same(column[0].as_py(), value):
                found.append(column)
    return found


def encoded(column: pa.Array) -> list[pa.Array]:
    import pyarrow.compute as pc

    return [column, column.dictionary_encode(), pc.run_end_encode(column)]


SAMPLES: dict[str, list[Any]] = {
    "`None`, `pandas.NA`": [None, pd.NA],
    "`pandas.NaT`": [pd.NaT],
    "`bool`, `numpy.bool`": [True, False, np.True_, np.bool_(0)],
    "`int`, NumPy's integers": [*INTEGERS, 2**70, np.int8(1), np.int64(-5), np.uint8(200), np.uint64(2**64 - 1), np.uint64(7)],
    "`float`, NumPy's floats": [*FLOATS, math.nan, np.float16(0.5), np.float32(1.5), np.float32(0.1), np.float64(3.0)],
    "`Decimal`": [*DECIMALS, Refused(Decimal("NaN")), Refused(Decimal("Infinity")), Refused(Decimal("1e300"))],
    "`str`": ["", "1", "2024-01-01", "true", "ä𝄞\0", np.str_("x"), Refused("\ud800")],
    "`bytes`, `bytearray`, `memoryview`": [b"", b"1", b"\xff", bytearray(b"ab"), memoryview(b"ab"), np.bytes_(b"x")],
    "`date`": DAYS,
    "`datetime`, `pandas.Timestamp` with a zone": [
        *AWARE,
        pd.Timestamp("2024-01-01 05:00", tz=ZONE),
        Refused(BEYOND),
        Refused(pd.Timestamp(NANOS, tz=ZONE)),
        Refused(dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1)))),
    ],
    "`datetime`, `pandas.Timestamp` without": [*NAIVE, pd.Timestamp("2024-01-01 05:00"), Refused(pd.Timestamp(NANOS))],
    "`numpy.datetime64` in days": [np.datetime64("2024-02-29"), Refused(np.datetime64("12024-01-01"))],
    "`numpy.datetime64` in hours to nanoseconds": [
        np.datetime64("2024-02-29T05", "h"),
        np.datetime64("2024-02-29T05:00:00.000001", "us"),
        np.datetime64(NANOS - 1, "ns"),
        Refused(np.datetime64(NANOS, "ns")),
        Refused(np.datetime64("12024-02-29T05", "s")),
    ],
    "`timedelta`, `pandas.Timedelta`, `numpy.timedelta64`": [
        *SPANS,
        pd.Timedelta(5, "s"),
        np.timedelta64(5, "ms"),
        np.timedelta64(3, "D"),
        Refused(pd.Timedelta(1, "ns")),
        Refused(np.timedelta64(1, "ns")),
        Refused(np.timedelta64(1, "M")),
    ],
    "`time` without a zone": [dt.time(0), dt.time(23, 59, 59, 999999)],
    "`list`, `tuple`, `numpy.ndarray`": [
        [],
        [1, None],
        (1, 2),
        (1, "x"),
        np.array([1, 2]),
        np.array([1.0, 2.0], np.float32),
        [("k", 1)],
    ],
    "`dict`": [{"p": 1, "q": "x"}, {"q": "x", "P": 1}, {"k": 1}],
    "`Row`, named tuples": [Row(q="x", p=1), Point(q="x", p=1), Row(Q="x", p=None)],
    "`complex`, `Fraction`, `UUID`, `set`, all others": [
        *(1j, Fraction(7, 2), Fraction(2), UUID(int=5), {1}, np.longdouble(1), range(3), object()),
        *(pa.scalar(1), np.array(1), np.complex64(1), Path("x"), UTC, frozenset(), dt.time(1, tzinfo=dt.UTC)),
        *(np.array("xy"), np.array({"k": 1}), np.array(None), np.ma.masked),
    ],
    "Arrow `bool`": encoded(pa.array([True])),
    "Arrow `int8` to `uint64`": [
        *arrow(INTEGERS, pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()),
        *arrow([2**64 - 1], pa.uint64()),
        *encoded(pa.array([7])),
    ],
    "Arrow `float16` to `float64`": arrow([*FLOATS, math.nan], pa.float16(), pa.float32(), pa.float64()),
    "Arrow `decimal`": [
        *arrow(
            DECIMALS, pa.decimal128(10, 3), pa.decimal128(38, 10), pa.decimal256(60, 3), pa.decimal32(9, 3), pa.decimal64(9, 0)
        ),
    ],
    "Arrow `string`": [
        *arrow(["", "1", "true"], pa.string(), pa.large_string(), pa.string_view()),
        *encoded(pa.array(["ä"])),
        Refused(damaged()),
        Refused(pa.DictionaryArray.from_arrays([0], damaged())),
    ],
    "Arrow `binary`": arrow([b"1", b"\xff"], pa.binary(), pa.large_binary(), pa.binary(1), pa.binary_view()),
    "Arrow `date32`, `date64`": [
        *arrow(DAYS, pa.date32(), pa.date64()),
        Refused(pa.array([2**24], pa.date32())),
        Refused(pa.array([1], pa.date64())),
    ],
    "Arrow `timestamp` with a zone": [
        *arrow(AWARE, pa.timestamp("us", "UTC"), pa.timestamp("us", ZONE), pa.timestamp("ns", "UTC"), pa.timestamp("s", "UTC")),
        Refused(pa.array([NANOS], pa.timestamp("ns", "UTC"))),
        Refused(pa.array([2**62], pa.timestamp("us", "UTC"))),
        Refused(pa.array([2**62], pa.timestamp("s", "UTC"))),
    ],
    "Arrow `timestamp` without": [
        *arrow([*NAIVE, GAP, TWICE], pa.timestamp("us"), pa.timestamp("s"), pa.timestamp("ms")),
        Refused(pa.array([NANOS], pa.timestamp("ns"))),
        Refused(pa.array([-(2**62)], pa.timestamp("us"))),
    ],
    "Arrow `duration`": [*arrow(SPANS, pa.duration("us"), pa.duration("s")), Refused(pa.array([1], pa.duration("ns")))],
    "Arrow `time32`, `time64`": arrow([dt.time(0), dt.time(23, 59, 59)], pa.time32("s"), pa.time64("us"), pa.time64("ns")),
    "Arrow `list`": [
        *arrow([[], [1, None]], pa.list_(pa.int64()), pa.large_list(pa.int8()), pa.list_(pa.float64())),
        *arrow([[], [1, None]], pa.list_view(pa.int32()), pa.large_list_view(pa.int32())),
        pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
    ],
    "Arrow `map`": arrow([[("k", 1)]], pa.map_(pa.string(), pa.int64()), pa.map_(pa.large_string(), pa.decimal128(3, 1))),
    "Arrow `struct`": [
        pa.array([{"q": "x", "P": 1}], pa.struct([("q", pa.large_string()), ("P", pa.int64())])),
        pa.array([{"p": 1, "q": "x"}], PAIR),
    ],
}


def cells() -> dict[str, dict[str, str]]:
    """By what is given and by type, what the documentation says of it."""
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| given |"))
    names = [part.strip().strip("`") for part in lines[start].split("|")[2:-1]]
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        label, *marks = [part.strip() for part in line.split("|")[1:-1]]
        found[label] = dict(zip(names, marks, strict=True))
    return found


CELLS = cells()


def test_the_documentation_has_every_kind_of_value_and_every_type() -> None:
    assert list(CELLS) == list(SAMPLES)
    assert all(list(marks) == list(TYPES) for marks in CELLS.values())


# -- the same value within others

WRAPS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "plain": (lambda kind: kind, lambda value: value, lambda stored: stored),
    "array": (pa.list_, lambda value: [None, value], lambda stored: stored[1]),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: {"k": value}, lambda stored: stored[0][1]),
    "struct": (lambda kind: pa.struct([("f", kind)]), lambda value: {"F": value}, lambda stored: stored["f"]),
    "deep": (
        lambda kind: pa.struct([("f", pa.list_(pa.map_(pa.int32(), kind)))]),
        lambda value: ([{1: value}],),
        lambda stored: stored["f"][0][0][1],
    ),
}


def wrapped(column: pa.Array, wrap: str) -> pa.Array:
    """A column of one value, within arrays, maps or structs."""
    match wrap:
        case "plain":
            return column
        case "array":
            values = pa.concat_arrays([column if is_encoded(column) else pa.nulls(1, column.type), column])
            return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        case "map":
            return pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), column)
        case "struct":
            return pa.StructArray.from_arrays([column], names=["F"])
    inner = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([1]), column)
    return pa.StructArray.from_arrays([pa.LargeListArray.from_arrays(pa.array([0, 1]), inner)], names=["f"])


def is_encoded(column: pa.Array) -> bool:
    return pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type)


# -- what a type has


def has(kind: pa.DataType, value: Any) -> bool:
    """Whether the type has this number."""
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return pa.types.is_floating(kind)
    number = Fraction(value.item() if isinstance(value, np.generic) else value)
    if pa.types.is_decimal(kind):
        return (number * 10**kind.scale).denominator == 1 and abs(number) < 10 ** (kind.precision - kind.scale)
    if pa.types.is_integer(kind):
        return number.denominator == 1 and -(2 ** (kind.bit_width - 1)) <= number < 2 ** (kind.bit_width - 1)
    if isinstance(value, int | np.integer):
        return abs(number) <= (2**24 if pa.types.is_float32(kind) else 2**53)
    return same(float(np.float32(float(value)) if pa.types.is_float32(kind) else float(value)), value)


def expectation(mark: str, kind: pa.DataType, value: Any) -> Any:
    """What is stored of a value, by what the documentation says; `Refused` if it is refused."""
    if isinstance(value, Refused) or not mark:
        return Refused(value)
    if mark == "NULL":
        return None
    if mark == "nearest":
        with np.errstate(over="ignore"):
            nearest = float(np.float32(value))
        lost = math.isinf(nearest) != math.isinf(value) or (nearest == 0) != (value == 0)
        return Refused(value) if lost and not math.isnan(value) else nearest
    if mark == "exact" and isinstance(value, int | float | Decimal | np.integer | np.floating) and not np_span(value):
        return value if has(kind, value) else Refused(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{type(value).__name__}[us]").item() if not pa.types.is_date(kind) else value.item()
    if pa.types.is_timestamp(kind) and kind.tz and value.tzinfo is None:
        return value.replace(tzinfo=BERLIN)
    return value


def np_span(value: Any) -> bool:
    return isinstance(value, np.timedelta64)


PLACED: tuple[Any, ...] = ([1, None], (1, "x"))
NESTED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("ARRAY", "yes"): lambda value: Refused(value) if any(isinstance(item, tuple | str) for item in value) else list(value),
    ("MAP", "pairs"): lambda value: list(value) if all(isinstance(item, tuple) for item in value) else Refused(value),
    ("MAP", "yes"): lambda value: list(dict(value).items()) if list(dict(value)) == ["k"] else Refused(value),
    ("STRUCT", "places"): lambda value: (
        {"p": 1, "q": value[1]} if not isinstance(value, np.ndarray) and value in PLACED else Refused(value)
    ),
    ("STRUCT", "names"): lambda value: (
        {name.lower(): part for name, part in as_dict(value).items()} if len(value) == 2 else Refused(value)
    ),
}


def as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Row):
        return value.asDict()
    return value._asdict() if isinstance(value, tuple) else dict(value)


def expected(name: str, mark: str, value: Any) -> Any:
    if (name, mark) in NESTED and not isinstance(value, Refused):
        return NESTED[name, mark](value)
    return expectation(mark, TYPES[name], value)


def stored(kind: pa.DataType, rows: Any) -> Any:
    """What becomes of the one value in the rows."""
    batch = batch_of(rows, Columns("t", pa.schema([("x", kind)])), ZONE)
    batch.validate(full=True)
    assert batch.schema.types == [kind]
    return batch.column(0)[0].as_py()


def sample_of(sample: Any) -> Any:
    return sample.value if isinstance(sample, Refused) else sample


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("label", SAMPLES)
def test_values_are_exact_or_refused(label: str, name: str, wrap: str) -> None:
    kind, mark = TYPES[name], CELLS[label][name]
    within, put, taken = WRAPS[wrap]
    for sample in SAMPLES[label]:
        given = sample_of(sample)
        if isinstance(given, pa.Array):
            value = None if isinstance(sample, Refused) else given[0].as_py()
            if pa.types.is_map(given.type) and mark == "yes":
                value = dict(value)
            wanted = expected(name, mark, Refused(given) if isinstance(sample, Refused) else value)
            rows: Any = pa.table({"x": wrapped(given, wrap)})
        else:
            wanted = expected(name, mark, sample)
            rows = [(put(given),)]
        if isinstance(wanted, Refused):
            with pytest.raises(hw.InvalidRows):
                stored(within(kind), rows)
        else:
            assert same(found := taken(stored(within(kind), rows)), wanted), (given, found, wanted)


@pytest.mark.parametrize("label", [label for label in SAMPLES if not label.startswith("Arrow")])
def test_columns_of_objects_in_pandas_go_by_the_same_table(label: str) -> None:
    for name, kind in TYPES.items():
        for sample in SAMPLES[label]:
            given = sample_of(sample)
            series = pd.Series([given], dtype=object)
            wanted = None if series.isna()[0] else expected(name, CELLS[label][name], sample)
            if isinstance(wanted, Refused):
                with pytest.raises(hw.InvalidRows):
                    stored(kind, pd.DataFrame({"x": series}))
            else:
                assert same(stored(kind, pd.DataFrame({"x": series})), wanted), (given, name)


# -- times

BOTH = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize("name", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_times_with_and_without_a_zone_are_not_mixed(name: str) -> None:
    for rows in ([(value,) for value in BOTH], [(np.datetime64("2024-01-01T00"),), (BOTH[1],)]):
        with pytest.raises(hw.InvalidRows, match=r"time zone"):
            stored(TYPES[name], rows)


@pytest.mark.parametrize("when", [GAP, TWICE])
def test_times_that_a_clock_showed_never_or_twice_are_refused(when: dt.datetime) -> None:
    for rows in ([(when,)], pd.DataFrame({"x": [when]}), pd.DataFrame({"x": pd.Series([when], dtype=object)})):
        with pytest.raises(hw.InvalidRows, match="give the times with their time zone"):
            stored(TYPES["TIMESTAMP"], rows)
    assert stored(TYPES["TIMESTAMP_NTZ"], [(when,)]) == when


def test_not_a_time_of_numpy_is_null() -> None:
    for name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        assert stored(TYPES[name], [(np.datetime64("NaT", "ns"),)]) is None
    assert stored(TYPES["INTERVAL DAY TO SECOND"], [(np.timedelta64("NaT"),)]) is None
    for name in ("BOOLEAN", "BIGINT", "STRING"):
        with pytest.raises(hw.InvalidRows):
            stored(TYPES[name], [(np.datetime64("NaT"),)])


def test_columns_of_pandas() -> None:
    frame = pd.DataFrame({"x": pd.to_datetime(["2024-07-01 12:00", None])})
    assert stored(TYPES["TIMESTAMP"], frame) == dt.datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert stored(TYPES["TIMESTAMP_NTZ"], frame) == dt.datetime(2024, 7, 1, 12)
    with pytest.raises(hw.InvalidRows):
        stored(TYPES["DATE"], frame)
    with pytest.raises(hw.InvalidRows):
        stored(TYPES["TIMESTAMP_NTZ"], pd.DataFrame({"x": frame["x"].dt.tz_localize("UTC")}))
    assert stored(TYPES["BIGINT"], pd.DataFrame({"x": [1.0, math.nan]})) == 1
    assert stored(TYPES["DOUBLE"], pd.DataFrame({"x": [math.nan]})) is None
    assert stored(TYPES["STRING"], pd.DataFrame({"x": pd.Categorical(["a"])})) == "a"
    assert stored(TYPES["BIGINT"], pd.DataFrame({"x": pd.array([7, None], "Int64")})) == 7
    for series in (
        pd.Series([1j]),
        pd.Series(pd.period_range("2024", periods=1)),
        pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1])),
    ):
        for kind in TYPES.values():
            with pytest.raises(hw.InvalidRows):
                stored(kind, pd.DataFrame({"x": series}))


# -- names

TWO = Columns("t", pa.schema([("a", pa.int32()), ("B", pa.int32())]))


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2)],
        [[1, 2]],
        [{"b": 2, "A": 1}],
        [Row(b=2, a=1)],
        [Point(q=2, p=1)._replace(), Point(2, 1)],
        [{"a": 1, "B": 2}] * 2,
    ],
    ids=["tuple", "list", "dict", "row", "named tuple", "dicts"],
)
def test_rows_with_names_go_by_name(rows: list[Any]) -> None:
    target = Columns("t", pa.schema([("p", pa.int32()), ("q", pa.int32())])) if isinstance(rows[0], Point) else TWO
    assert batch_of(rows, target, ZONE).slice(0, 1).to_pydict() == {"c0": [1], "c1": [2]}


@pytest.mark.parametrize(
    "rows",
    [[Row(a=1, c=2)], [Row(a=1)], [{"a": 1, "b": 2}, (1, 2)], [Row(a=1, b=2), Row(a=1, c=2)], [{"a": 1, "A": 1, "b": 2}]],
)
def test_rows_with_other_names_are_refused(rows: list[Any]) -> None:
    with pytest.raises(hw.InvalidRows):
        batch_of(rows, TWO, ZONE)


def test_fields_that_differ_in_case_alone_are_told_apart() -> None:
    kind = pa.struct([("a", pa.int32()), ("A", pa.int32())])
    assert stored(kind, [({"A": 2, "a": 1},)]) == {"a": 1, "A": 2}
    for value in ({"a": 1}, {"a": 1, "b": 2}):
        with pytest.raises(hw.InvalidRows):
            stored(kind, [(value,)])


def test_values_of_several_classes_in_one_column() -> None:
    values = [1, None, 2.0, Decimal("3.00"), np.int16(4), pd.NA]
    batch = batch_of([(value,) for value in values], Columns("t", pa.schema([("x", pa.int32())])), ZONE)
    assert batch.column(0).to_pylist() == [1, None, 2, 3, 4, None]


def test_slices_and_chunks_are_what_they_show() -> None:
    column = pa.chunked_array([pa.array([[300], [1], None, [2, 3]], pa.list_(pa.int64())).slice(1), pa.array([[4]])])
    assert batch_of(pa.table({"x": column}), Columns("t", pa.schema([("x", pa.list_(pa.int8()))])), ZONE).column(
        0
    ).to_pylist() == [
        [1],
        None,
        [2, 3],
        [4],
    ]
    maps = pa.array([[("a", 300)], [("b", 1)], None], pa.map_(pa.string(), pa.int64())).slice(1)
    target = Columns("t", pa.schema([("x", pa.map_(pa.string(), pa.int8()))]))
    assert batch_of(pa.table({"x": maps}), target, ZONE).column(0).to_pylist() == [[("b", 1)], None]
