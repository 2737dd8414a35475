"""JSON of values: always valid, as Spark's `to_json` where that tells the value, and stated where it does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.sinks.json_forms import objects, texts, unquoted
from tests.sinks.receiver import receiving, strict

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.postgres_server import Server

AS_SPARK = [
    "double('NaN')",
    "double('Infinity')",
    "float('-Infinity')",
    "float(0.1)",
    "double(0.1)",
    "-0.0D",
    "double(1e300)",
    "CAST(1.5 AS DECIMAL(12, 3))",
    "CAST(0.0000000001 AS DECIMAL(38, 18))",
    "CAST(-99999999999999999999999999999999999999 AS DECIMAL(38, 0))",
    "9223372036854775807L",
    "X'00ff'",
    "X''",
    "TIMESTAMP '2024-02-29 12:00:00Z'",
    "TIMESTAMP '1969-12-31 23:59:59.999Z'",
    "TIMESTAMP_NTZ '2024-02-29 12:00:00.5'",
    "DATE '2024-02-29'",
    "DATE '0001-01-01'",
    "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "INTERVAL '-1 02:03:04' DAY TO SECOND",
    "INTERVAL '0 00:00:00.000001' DAY TO SECOND",
    "map(1, 'a', 2, null)",
    "map(1.5D, true)",
    "map('a\"b', array(1, null))",
    "map(true, 1)",
    "array(double('NaN'), 1)",
    "array(named_struct('a', 1, 'b', array(X'00')))",
    "CAST(array() AS ARRAY<INT>)",
    "'é \"quoted\" \\u0001 / ☃ 😀'",
    "true",
]
OTHERWISE = {
    "TIMESTAMP '2024-02-29 12:00:00.123456Z'": '"2024-02-29T12:00:00.123456Z"',
    "TIMESTAMP_NTZ '2024-02-29 12:00:00.000001'": '"2024-02-29T12:00:00.000001"',
    "named_struct('a', CAST(null AS INT), 'b', 2)": '{"a":null,"b":2}',
    "CAST(null AS STRING)": "null",
    "map(DATE '2024-02-29', 1)": '{"2024-02-29":1}',
    "map(X'00ff', 1)": '{"AP8=":1}',
    "map(named_struct('a', 'x'), 1)": r'{"{\"a\":\"x\"}":1}',
    "map(double('NaN'), 1)": '{"NaN":1}',
}


def test_the_forms_are_those_of_spark(spark: SparkSession) -> None:
    columns = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(AS_SPARK))
    frame = spark.sql(f"SELECT {columns}")
    said = frame.selectExpr(*(f"to_json(named_struct('x', c{i}))" for i in range(len(AS_SPARK)))).collect()[0]
    table = frame.toArrow()
    for expression, column, expected in zip(AS_SPARK, table.columns, said, strict=True):
        (text,) = texts(column)
        assert strict(text) == strict(expected)["x"], expression
    exact = [AS_SPARK.index(each) for each in AS_SPARK if "DECIMAL" in each or "9223" in each]
    for i in exact:
        assert f'{{"x":{texts(table.column(i))[0]}}}' == said[i], "all digits are there"


def test_forms_that_spark_has_not(spark: SparkSession) -> None:
    columns = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(OTHERWISE))
    table = spark.sql(f"SELECT {columns}").toArrow()
    assert {each: texts(column)[0] for each, column in zip(OTHERWISE, table.columns, strict=True)} == OTHERWISE


def test_slices_and_empty_values() -> None:
    lists = pa.array([[1], None, [2, None], [], [3]]).slice(1, 3)
    assert texts(lists) == ["null", "[2,null]", "[]"]
    maps = pa.array([[(1, "a")], None, [(2, None), (3, "c")]], pa.map_(pa.int8(), pa.string())).slice(1)
    assert texts(maps) == ["null", '{"2":null,"3":"c"}']
    structs = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())])).slice(1)
    assert texts(structs) == ["null", '{"a":null}']
    assert texts(pa.chunked_array([], pa.list_(pa.int32()))) == []
    assert texts(pa.nulls(2)) == ["null", "null"]
    assert texts(pa.array([45_000_500_000, 0], pa.time64("us"))) == ['"12:30:00.5"', '"00:00:00"']
    assert unquoted(pa.array(["null", None, '"'])) == ["null", None, '"']
    assert objects(pa.table({'a"b': [1], "c": [None]})) == [r'{"a\"b":1,"c":null}']


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(hw.NotSupported, match="has no form in JSON; leave its column out of the view"):
        texts(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))


COLUMNS = """id BIGINT, f DOUBLE, b BINARY, d DECIMAL(20, 4), at TIMESTAMP, day DATE, span INTERVAL DAY TO SECOND,
    m MAP<INT, DOUBLE>, s STRUCT<b: BINARY, l: ARRAY<TIMESTAMP>>"""
ROW = """1, double('NaN'), X'00ff', 1.5, TIMESTAMP '2024-02-29 12:00:00.000001Z', DATE '2024-02-29',
    INTERVAL '1 02:03:04.5' DAY TO SECOND, map(1, double('-Infinity')),
    named_struct('b', X'01', 'l', array(TIMESTAMP '2024-02-29 12:00:00Z'))"""
EXPECTED: dict[str, Any] = {
    "id": 1,
    "f": "NaN",
    "b": "AP8=",
    "d": 1.5,
    "at": "2024-02-29T12:00:00.000001Z",
    "day": "2024-02-29",
    "span": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "m": {"1": "-Infinity"},
    "s": {"b": "AQ==", "l": ["2024-02-29T12:00:00.000Z"]},
}


def test_every_target_that_has_json_has_these_forms(spark: SparkSession, tmp_path: Path, postgres: Server) -> None:
    psycopg = pytest.importorskip("psycopg")
    with hw.connect(spark=spark) as session, receiving() as receiver:
        session.create_table("t", COLUMNS, key="id")
        session.sql(f"INSERT INTO t VALUES ({ROW}), (2{', null' * 8})")
        view = session.create_view("v", "SELECT * FROM t")
        exports = [
            view.write_to(receiver.address, name="web"),
            view.write_to(tmp_path / "json", format="json", name="json", of="content"),
            view.write_to(tmp_path / "csv", format="csv", name="csv", of="content"),
            view.write_to(postgres.address, table=tmp_path.name, key="id", name="server"),
        ]
        for export in exports:
            export.await_idle()
        posted = {change["id"]: change for _, body in receiver.taken for change in body["changes"]}
    nothing = {**dict.fromkeys(EXPECTED), "id": 2}
    assert posted == {1: {**EXPECTED, "_weight": 1}, 2: {**nothing, "_weight": 1}}
    (lines,) = (file.read_text("utf-8").splitlines() for file in (tmp_path / "json").glob("epoch-*"))
    assert {row["id"]: row for row in map(strict, lines)} == {1: EXPECTED, 2: nothing}
    (text,) = (file.read_text("utf-8") for file in (tmp_path / "csv").glob("epoch-*"))
    assert '"AP8="' in text
    assert json.dumps(EXPECTED["m"]).replace(" ", "").replace('"', '""') in text
    with psycopg.connect(postgres.address) as connection:
        found = connection.execute(f'SELECT m, s, extract(epoch FROM span) FROM "{tmp_path.name}" WHERE id = 1').fetchone()
        connection.execute(f'DROP TABLE "{tmp_path.name}"')
    assert found == (EXPECTED["m"], EXPECTED["s"], 93784.5)
