"""What the JSON of a plan leaves out is read from the plan itself: two expressions are equal only if they are the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.algebra.origin import Handle
from headwater.frontend.expressions import read_expression
from headwater.schema import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = "i INT, s STRING, b BINARY, t TIMESTAMP, a ARRAY<INT>, r STRUCT<x: INT, y: INT>, c STRING COLLATE UTF8_LCASE, d DATE"


@pytest.fixture(scope="module")
def reading(spark: SparkSession) -> Any:
    spark.createDataFrame([], "x INT").createOrReplaceTempView("nothing")
    columns = ", ".join(f"CAST(NULL AS {part.split(' ', 1)[1]}) AS {part.split(' ', 1)[0]}" for part in _split(_SCHEMA))
    frame = spark.sql(f"SELECT {columns} FROM nothing")
    relation = spark._jsparkSession.internalCreateDataFrame(frame._jdf.queryExecution().toRdd(), frame._jdf.schema(), False)  # noqa: FBT003
    relation.createOrReplaceTempView("leaf")

    def read(text: str) -> Expression:
        plan = spark.sql(f"SELECT {text} AS x FROM leaf")._jdf.queryExecution().optimizedPlan()
        node = json.loads(plan.toJSON())[0]
        return read_expression(
            node["projectList"][0], lambda a: Column(0, arrow_type(a["dataType"])), None, Handle(plan).then("projectList", 0)
        )

    return read


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("cast(s as int)", "try_cast(s as int)"),
        ("i + 1", "try_add(i, 1)"),
        ("s like 'a/%b%c'", "s like 'a/%b%c' escape '/'"),
        ("i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)", "i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)"),
        (
            "s in ('1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'null')",
            "s in ('1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', null)",
        ),
        ("b = X'00FF'", "b = X'01FF'"),
        ("array_contains(array('a,b', 'c'), s)", "array_contains(array('a', 'b,c'), s)"),
        ("r.x", "r.y"),
        ("zip_with(a, a, (x, y) -> x - y)", "zip_with(a, a, (x, y) -> y - x)"),
        ("s like any ('%a%b', 'c%d_')", "s like any ('%a%b', 'c%d_e')"),
        ("c = 'a'", "s = 'a'"),
        ("s collate UTF8_LCASE = 'a'", "s collate UNICODE_CI = 'a'"),
        ("d + interval '1' month", "d + interval '2' month"),
        ("t = timestamp'2020-01-01 00:00:00'", "t = timestamp'2020-01-01 00:00:01'"),
        ("case when i = 1 then 2 end", "case when i = 1 then 2 else 3 end"),
        ("trim(leading 'x' from s)", "trim(leading 'y' from s)"),
    ],
)
def test_different_expressions_are_read_differently(reading: Any, left: str, right: str) -> None:
    assert reading(left) != reading(right)
    assert reading(left) == reading(left)


def test_children_are_not_repeated_as_options(reading: Any) -> None:
    read = reading("case when i = 1 then ltrim('x', s) else s end")
    assert isinstance(read, Call)
    assert read.options == ()
    assert [part.options for part in read.arguments if isinstance(part, Call)] == [(), ()]


def test_an_instant_is_read_as_its_microseconds(reading: Any) -> None:
    read = reading("t = timestamp'2020-01-01 00:00:00.000001'")
    assert read.arguments[1] == Literal("1577836800000001", pa.timestamp("us", tz="UTC"))


def test_sets_are_read_with_their_null(reading: Any) -> None:
    read = reading("i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, null)")
    assert json.loads(read.option("hset")) == [*sorted(str(i) for i in range(1, 12)), None]


def test_a_collation_shows(reading: Any) -> None:
    assert reading("c = 'a'").option("collation") is not None
    assert reading("upper(c)").option("collation") is not None
    assert reading("s = 'a'").option("collation") is None


def _split(schema: str) -> list[str]:
    parts: list[str] = []
    for part in schema.split(", "):
        if parts and parts[-1].count("<") > parts[-1].count(">"):
            parts[-1] += f", {part}"
        else:
            parts.append(part)
    return parts
