"""The translator itself: what it refuses, how deep it goes, and what its connections can reach."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.evaluation.duckdb_sql import Untranslatable, connection, functions, translate

_NUMBER = Column(0, pa.int64())


def test_columns_are_named_by_position() -> None:
    translated = translate(Column(7, pa.date32()))
    assert (translated.sql, translated.type) == ("c7", pa.date32())


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (Call("Murmur3Hash", (_NUMBER,)), "no rule for Murmur3Hash"),
        (Call("Add", (_NUMBER, Column(1, pa.int32()))), "Add of different types"),
        (Call("Upper", (_NUMBER,)), "Upper of int64"),
        (Call("InSet", (_NUMBER,)), "an InSet whose values are not known"),
        (Call("Like", (Column(0, pa.string()), Literal("a%b%c", pa.string()))), "LIKE with an unknown escape character"),
        (
            Call("EqualTo", (_NUMBER, _NUMBER), None, (("collation", '"string collate UTF8_LCASE"'),)),
            "EqualTo under a collation",
        ),
        (Column(0, pa.list_(pa.duration("us"))), "intervals inside of a column"),
        (Column(0, pa.time64("ns")), "type time64[ns]"),
        (Literal("a\x00b", pa.string()), "a constant with a NUL character"),
        (Literal("[1,2]", pa.list_(pa.int32())), "a constant of type list<item: int32>: [1,2]"),
        (Call("Hour", (Column(0, pa.timestamp("us", tz="UTC")),)), "the clocks of time zone None"),
        (Call("Cast", (Call("Literal", (), None, (("value", '"3"'),)),), pa.string()), "Cast of a constant without a type"),
    ],
)
def test_says_why_there_is_no_translation(expression: Expression, reason: str) -> None:
    with pytest.raises(Untranslatable) as refusal:
        translate(expression)
    assert refusal.value.reason == reason


def test_a_long_sum_needs_no_deep_stack() -> None:
    total: Expression = _NUMBER
    for _ in range(900):
        total = Call("Add", (total, _NUMBER))
    assert translate(total).sql.count("c0") == 901


def test_what_multiplies_is_refused_before_it_explodes() -> None:
    total: Expression = Column(0, pa.float64())
    for _ in range(40):
        total = Call("NaNvl", (total, total))
    with pytest.raises(Untranslatable, match="too long"):
        translate(total)


def test_constants_cannot_leave_their_quotes() -> None:
    hostile = "'); DROP TABLE t; --"
    made = connection("UTC")
    assert made.sql(f"SELECT {translate(Literal(hostile, pa.string())).sql}").fetchall() == [(hostile,)]


def test_connections_reach_nothing_outside() -> None:
    made = connection("Europe/Berlin")
    for statement in (
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH 'elsewhere.db'",
        "INSTALL httpfs",
        "COPY (SELECT 1) TO 'x'",
    ):
        with pytest.raises(duckdb.Error):
            made.execute(statement)


def test_connections_know_time_zones_that_duckdb_does_not() -> None:
    connection("GMT+01:00")


def test_functions_are_listed_by_name() -> None:
    assert functions() == sorted(functions())
    assert {"Add", "Cast", "Like", "DateAddYMInterval"} <= set(functions())
