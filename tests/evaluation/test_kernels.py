"""Kernels without Spark: three-valued logic, what is refused, what is spared, and what lies under NULLs and before offsets."""

from __future__ import annotations

import itertools
import math
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.evaluation.functions.rule import Untranslatable
from headwater.evaluation.kernels import Unusual, compile_kernel

_LONG, _INT, _DOUBLE, _TEXT, _BOOLEAN = pa.int64(), pa.int32(), pa.float64(), pa.string(), pa.bool_()
_PRICE = pa.decimal128(15, 2)
_ANSI = (("evalMode", '"ANSI"'),)
_NAN, _INF = float("nan"), float("inf")
_LARGEST = 2**63 - 1
_SHORT = st.text("ab", max_size=3)


def call(function: str, *arguments: Expression, kind: pa.DataType | None = None) -> Call:
    return Call(function, arguments, kind, _ANSI)


def batch(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])


def values(expression: Expression, *columns: pa.Array) -> list[Any]:
    found = compile_kernel(expression).array(batch(*columns))
    found.validate(full=True)
    listed: list[Any] = found.to_pylist()
    return listed


@pytest.mark.parametrize(("function", "deciding"), [("And", False), ("Or", True)])
def test_logic_has_three_values(function: str, deciding: bool) -> None:  # noqa: FBT001
    pairs = list(itertools.product([True, False, None], repeat=2))
    left, right = (pa.array(side, _BOOLEAN) for side in zip(*pairs, strict=True))
    expected = [deciding if deciding in pair else None if None in pair else not deciding for pair in pairs]
    assert values(call(function, Column(0, _BOOLEAN), Column(1, _BOOLEAN)), left, right) == expected


@pytest.mark.parametrize("function", ["LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo"])
def test_nan_is_above_all_numbers_and_zero_has_no_sign(function: str) -> None:
    numbers = [-_INF, -1.0, -0.0, 0.0, 2.5, _INF, _NAN]
    ranks = [0, 1, 2, 2, 3, 4, 5]
    compared = {
        "LessThan": int.__lt__,
        "LessThanOrEqual": int.__le__,
        "GreaterThan": int.__gt__,
        "GreaterThanOrEqual": int.__ge__,
        "EqualTo": int.__eq__,
    }[function]
    pairs = list(itertools.product(range(len(numbers)), repeat=2))
    left, right = (pa.array([numbers[i] for i in side], _DOUBLE) for side in zip(*pairs, strict=True))
    found = values(call(function, Column(0, _DOUBLE), Column(1, _DOUBLE)), left, right)
    assert found == [compared(ranks[i], ranks[j]) for i, j in pairs]
    for rank, number in zip(ranks, numbers, strict=True):
        text = {_INF: "Infinity", -_INF: "-Infinity"}.get(number, str(number).replace("nan", "NaN"))
        constant = call(function, Column(0, _DOUBLE), Literal(text, _DOUBLE))
        assert values(constant, pa.array(numbers, _DOUBLE)) == [compared(other, rank) for other in ranks]


@pytest.mark.parametrize("kind", [pa.float32(), _DOUBLE])
def test_a_nan_that_signals_is_a_nan(kind: pa.DataType) -> None:
    bits = struct.pack("<I", 0x7FA00000) if kind == pa.float32() else struct.pack("<Q", 0x7FF4000000000000)
    signalling = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bits)])
    number, one = Column(0, kind), Literal("1.0", kind)
    for function in ("EqualTo", "LessThan", "LessThanOrEqual"):
        assert values(call(function, number, one), signalling) == [False]
    for function in ("GreaterThan", "GreaterThanOrEqual"):
        assert values(call(function, number, one), signalling) == [True]
        assert values(call(function, number, number), signalling) == [function != "GreaterThan"]
    assert values(call("In", number, one), signalling) == [False]
    assert values(call("IsNaN", number), signalling) == [True]
    other = pa.float32() if kind == _DOUBLE else _DOUBLE
    for function in ("Add", "Multiply", "Remainder"):
        assert math.isnan(values(call(function, number, one), signalling)[0])
    for function in ("UnaryMinus", "Abs", "NormalizeNaNAndZero"):
        assert math.isnan(values(call(function, number), signalling)[0])
    assert math.isnan(values(call("Cast", number, kind=other), signalling)[0])
    with pytest.raises(Unusual):
        values(call("Cast", number, kind=_INT), signalling)


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        ("Add", [_LARGEST], [1]),
        ("Subtract", [-_LARGEST], [2]),
        ("Multiply", [2**32], [2**31]),
        ("Remainder", [1], [0]),
        ("IntegralDivide", [1], [0]),
    ],
)
def test_what_spark_would_raise_on_is_refused(function: str, left: list[int], right: list[int]) -> None:
    kernel = compile_kernel(call(function, Column(0, _LONG), Column(1, _LONG)))
    with pytest.raises(Unusual):
        kernel.array(batch(pa.array(left), pa.array(right)))
    # Under a NULL, on either side, the same values do no harm.
    missing = pa.Array.from_buffers(_LONG, 1, [pa.py_buffer(b"\x00"), pa.array(right).buffers()[1]])
    assert kernel.array(batch(pa.array(left), missing)).to_pylist() == [None]


def test_a_branch_that_is_not_taken_is_spared() -> None:
    numbers, divisors = Column(0, _DOUBLE), Column(1, _DOUBLE)
    zero = Literal("0.0", _DOUBLE)
    guarded = call("If", call("EqualTo", divisors, zero), Literal(None, _DOUBLE), call("Divide", numbers, divisors))
    rows = pa.array([6.0, 1.0, None]), pa.array([2.0, 0.0, 5.0])
    assert values(guarded, *rows) == [3.0, None, None]
    large = call("GreaterThan", call("Divide", numbers, divisors), Literal("2.0", _DOUBLE))
    assert values(call("And", call("Not", call("EqualTo", divisors, zero)), large), *rows) == [True, False, None]
    assert values(call("Or", call("EqualTo", divisors, zero), large), *rows) == [True, True, None]
    assert values(call("Coalesce", divisors, call("Divide", numbers, zero)), *rows) == [2.0, 0.0, 5.0]
    with pytest.raises(Unusual):
        values(call("Or", call("EqualTo", divisors, Literal("9.0", _DOUBLE)), large), *rows)


def test_a_text_of_a_branch_that_is_not_taken_is_spared() -> None:
    texts = Column(0, _TEXT)
    plain = call("EqualTo", texts, Literal("ß", _TEXT))
    chosen = call("CaseWhen", plain, Literal("sharp", _TEXT), call("Upper", texts))
    assert values(chosen, pa.array(["a", "ß", None])) == ["A", "sharp", None]


def test_slices_are_read_where_they_begin() -> None:
    rows = batch(
        pa.array([None, 1, None, 3, 4] * 5, _LONG),
        pa.array([None, True, False, None, True] * 5),
        pa.array(["a", None, "bc", "", "ä"] * 5),
        pa.array([None, Decimal("1.50"), Decimal("-2.25"), None, Decimal(7)] * 5, _PRICE),
    )
    kernels = [
        compile_kernel(call("Add", Column(0, _LONG), Literal("1", _LONG))),
        compile_kernel(call("Not", Column(1, _BOOLEAN))),
        compile_kernel(call("EqualTo", Column(2, _TEXT), Literal("bc", _TEXT))),
        compile_kernel(call("Multiply", Column(3, _PRICE), Column(3, _PRICE))),
    ]
    for kernel in kernels:
        whole = kernel.array(rows)
        for start in range(12):
            assert kernel.array(rows.slice(start, 9)).equals(whole.slice(start, 9))


def test_decimals_beyond_64_bits_are_refused() -> None:
    wide = pa.decimal128(38, 2)
    kernel = compile_kernel(call("LessThan", Column(0, wide), Literal("1.00", wide)))
    assert kernel.array(batch(pa.array([Decimal("0.99"), None], wide))).to_pylist() == [True, None]
    with pytest.raises(Unusual):
        kernel.array(batch(pa.array([Decimal(10) ** 20], wide)))


@given(st.lists(st.tuples(st.integers(-(10**12), 10**12), st.integers(-(10**9), 10**9).filter(bool)), min_size=1))
def test_quotients_of_decimals_are_rounded_once(pairs: list[tuple[int, int]]) -> None:
    left, right = (pa.array([Decimal(n).scaleb(-2) for n in side], _PRICE) for side in zip(*pairs, strict=True))
    kernel = compile_kernel(call("Divide", Column(0, _PRICE), Column(1, _PRICE)))
    scale = kernel.type.scale
    expected = [_half_up(abs(a) * 10**scale, abs(b)) * (-1 if (a < 0) != (b < 0) else 1) for a, b in pairs]
    try:
        found = kernel.array(batch(left, right)).to_pylist()
    except Unusual:
        assert any(abs(n) > 10**18 for n in expected)
        return
    assert [int(n.scaleb(scale)) for n in found] == expected


def _half_up(dividend: int, divisor: int) -> int:
    return (2 * dividend + divisor) // (2 * divisor)


@given(st.lists(st.none() | st.text("ab%_é", max_size=6), min_size=1), st.text("ab%é\\", max_size=5))
def test_patterns_match_as_in_duckdb(texts: list[str | None], pattern: str) -> None:
    like = Call("Like", (Column(0, _TEXT), Literal(pattern, _TEXT)), None, (("escapeChar", '"\\\\"'),))
    try:
        found = values(like, pa.array(texts, _TEXT))
    except Untranslatable:
        return
    connection = duckdb.connect(":memory:")
    asked = [connection.execute("SELECT $s LIKE $p ESCAPE '\\'", {"s": s, "p": pattern}).fetchone() for s in texts]
    assert found == [answer[0] for answer in asked if answer is not None]


@given(
    st.lists(st.none() | st.text("ab", max_size=3), min_size=1), st.lists(st.text("ab", max_size=3), min_size=1), st.booleans()
)
def test_membership_among_texts(texts: list[str | None], members: list[str], null: bool) -> None:  # noqa: FBT001
    listed = [*(Literal(member, _TEXT) for member in members), *([Literal(None, _TEXT)] if null else [])]
    found = values(call("In", Column(0, _TEXT), *listed), pa.array(texts, _TEXT))
    assert found == [None if t is None else True if t in members else None if null else False for t in texts]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (call("Exp", Column(0, _DOUBLE)), "no kernel for Exp"),
        (call("Add", Column(0, _LONG), Column(1, _INT)), "Add of different types"),
        (call("Add", Literal("1", _LONG), Literal("2", _LONG)), "Add of constants alone"),
        (call("Add", Column(0, _LONG), Literal(None, _LONG)), "Add of NULL"),
        (call("Add", Column(0, _TEXT), Column(1, _TEXT)), "Add of string"),
        (call("EqualTo", Column(0, pa.list_(_LONG)), Column(1, pa.list_(_LONG))), f"EqualTo of {pa.list_(_LONG)}"),
        (Column(0, pa.null()), "a column of nothing but NULL"),
        (
            Call("EqualTo", (Column(0, _TEXT), Column(1, _TEXT)), None, (("collation", '"string collate UTF8_LCASE"'),)),
            "EqualTo under a collation",
        ),
    ],
)
def test_says_why_there_is_no_kernel(expression: Expression, reason: str) -> None:
    with pytest.raises(Untranslatable) as refusal:
        compile_kernel(expression)
    assert refusal.value.reason == reason


def test_what_is_nested_too_deep_for_the_stack_has_no_kernel() -> None:
    total: Expression = Column(0, _LONG)
    for _ in range(900):
        total = call("Add", total, Column(0, _LONG))
    with pytest.raises(Untranslatable, match="too deep"):
        compile_kernel(total)


@pytest.mark.parametrize("function", ["Upper", "Lower"])
def test_nulls_do_not_hide_letters_that_are_not_ascii(function: str) -> None:
    """Under a NULL stands an empty text, which is ASCII."""
    for texts in (["Böhm", None], [None, "ß", None, "a"]):
        with pytest.raises(Unusual):
            values(call(function, Column(0, _TEXT)), pa.array(texts, _TEXT))
    changed = {"Upper": "A", "Lower": "a"}[function]
    assert values(call(function, Column(0, _TEXT)), pa.array(["a", None, "A", None], _TEXT)) == [changed, None, changed, None]
    hidden = pa.Array.from_buffers(
        _TEXT, 2, [pa.py_buffer(b"\1"), pa.py_buffer(struct.pack("<3i", 0, 1, 3)), pa.py_buffer("aß".encode())]
    )
    assert values(call(function, Column(0, _TEXT)), hidden) == [changed, None]
