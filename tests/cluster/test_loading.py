"""Tables that begin with the rows of a DataFrame, which Spark brings in: the same rows and refusals as with an insert."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from oracle import Oracle, bag_difference, collected, rows_of

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

EVERYTHING = """
    SELECT CAST(id AS INT) AS i, id AS b, CAST(id % 7 AS SMALLINT) AS s, id % 3 = 0 AS yes,
           CAST(id AS DOUBLE) / 3 AS d, CAST(id AS FLOAT) / 7 AS f,
           CAST(id * 1.25 AS DECIMAL(12, 3)) AS dec, CAST(id AS STRING) AS t, CAST(CAST(id AS STRING) AS BINARY) AS bin,
           DATE '2024-02-28' + CAST(id % 5 AS INT) AS day,
           TIMESTAMP '2024-03-31 01:59:59.123456' + make_dt_interval(0, id) AS at,
           CAST(TIMESTAMP '2024-03-31 01:59:59' + make_dt_interval(0, id) AS TIMESTAMP_NTZ) AS local,
           IF(id % 4 = 0, NULL, ARRAY(id, NULL, id + 1)) AS list,
           NAMED_STRUCT('a', NULLIF(id, 5), 'when', IF(id = 6, NULL, TIMESTAMP '2024-01-01 00:00:00'),
                        'l', IF(id = 7, NULL, ARRAY(CAST(id AS STRING), NULL))) AS st,
           MAP('k', id, 'l', id + 1) AS m, IF(id % 2 = 0, NULL, id) AS maybe
    FROM range(0, 3000, 1, 3)
    UNION ALL SELECT * FROM VALUES
        (NULL, NULL, NULL, NULL, DOUBLE('NaN'), FLOAT('-0.0'), NULL, '', X'', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (NULL, NULL, NULL, NULL, DOUBLE('-0.0'), FLOAT('NaN'), NULL, 'ü', X'00', NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@pytest.fixture(params=["cluster", "driver", "auto"])
def s(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark, placement=request.param) as session:
        yield session


@pytest.fixture
def on_executors(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark, placement="cluster") as session:
        yield session


def assert_same(found: pa.Table, frame: DataFrame) -> None:
    wanted = collected(frame)
    assert found.column_names == wanted.column_names
    assert [str(kind) for kind in found.schema.types] == [str(kind) for kind in wanted.schema.types]
    assert bag_difference(rows_of(found), rows_of(wanted)) == ([], [])


def test_all_types_come_as_spark_has_them(s: hw.Session, spark: SparkSession) -> None:
    frame = spark.sql(EVERYTHING)
    table = s.create_table("t", source=frame)
    assert_same(table.arrow(), frame)
    assert len(table) == frame.count()
    assert [field.dataType for field in table.schema] == [field.dataType for field in frame.schema.toNullable()]
    assert s.epoch == 1


def test_equal_rows_are_there_as_often_as_they_come(s: hw.Session, spark: SparkSession) -> None:
    frame = spark.range(1000).selectExpr("id % 10 AS k", "id % 2 AS parity")
    s.create_table("t", source=frame)
    assert_same(s.table("t").arrow(), frame)


def test_views_go_on_from_loaded_rows(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("sales", source=spark.range(5000).selectExpr("id", "id % 13 AS brand", "id * 3 AS price"), key="id")
    s.create_table("brands", source=spark.range(13).selectExpr("id AS brand", "concat('b', id) AS name"), key="brand")
    query = (
        "SELECT name, COUNT(*) AS n, SUM(price) AS p FROM sales JOIN brands USING (brand) GROUP BY name HAVING COUNT(*) > 380"
    )
    view = s.create_view("v", query)
    oracle = Oracle(s)
    oracle.check(view, query)
    s.insert("sales", [(5000, 1, 10), (5001, 12, 10), (5002, 12, 1)])
    oracle.check(view, query)
    s.upsert("sales", [(1, 2, 7)])
    s.delete("brands", [(3, "b3")])
    oracle.check(view, query)
    assert s.table("sales").key == ("id",)


def test_a_schema_orders_and_types_the_columns(s: hw.Session, spark: SparkSession) -> None:
    frame = spark.range(100).selectExpr("CAST(id AS INT) AS small", "CAST(id AS DECIMAL(5, 1)) AS D", "'x' AS extra_text")
    s.create_table("t", "extra_text STRING, d DECIMAL(10, 2), SMALL BIGINT", source=frame)
    wanted = spark.range(100).selectExpr("'x' AS extra_text", "CAST(id AS DECIMAL(10, 2)) AS d", "id AS SMALL")
    assert_same(s.table("t").arrow(), wanted)


def test_time_zones_do_not_move_instants(s: hw.Session, spark: SparkSession) -> None:
    frame = spark.sql("SELECT TIMESTAMP '2024-07-01 12:00:00+02:00' AS at, ARRAY(TIMESTAMP '1890-01-01 00:00:00 UTC') AS l")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        s.create_table("t", source=frame)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert_same(s.table("t").arrow(), frame)


@pytest.mark.parametrize(
    ("rows", "schema", "error"),
    [
        ("SELECT id % 50 AS k, id AS v FROM range(100)", None, hw.DuplicateKey),
        ("SELECT IF(id = 7, NULL, id) AS k, id AS v FROM range(100)", None, hw.NullKey),
        ("SELECT id AS k, IF(id = 7, NULL, id) AS v FROM range(100)", "k BIGINT, v BIGINT NOT NULL", hw.InvalidRows),
        ("SELECT id AS k, CAST(id AS STRING) AS v FROM range(100)", "k BIGINT, v BIGINT", hw.InvalidRows),
        ("SELECT id AS k, id * 1000 AS v FROM range(100)", "k BIGINT, v SMALLINT", hw.InvalidRows),
        ("SELECT id AS k FROM range(100)", "k BIGINT, v BIGINT", hw.InvalidRows),
        ("SELECT id AS k, id AS v, id AS w FROM range(100)", "k BIGINT, v BIGINT", hw.InvalidRows),
        ("SELECT CAST(16777216 + id AS DOUBLE) AS k, id AS v FROM range(2)", "k FLOAT, v BIGINT", hw.DuplicateKey),
        ("SELECT IF(id = 0, DOUBLE('0.0'), DOUBLE('-0.0')) AS k, id AS v FROM range(2)", None, hw.DuplicateKey),
        ("SELECT rand() AS k, id AS v FROM range(2)", None, hw.NonDeterministic),
        ("SELECT id AS k, 1 / (id - 5) AS v FROM range(10)", None, hw.EvaluationFailed),
    ],
)
def test_what_an_insert_refuses_is_refused(
    s: hw.Session, spark: SparkSession, rows: str, schema: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        s.create_table("t", schema, source=spark.sql(rows), key="k")
    assert s.epoch == 0
    assert "t" not in s.tables()
    s.create_table("t", "k BIGINT")


def test_refusals_tell_the_table_and_the_column(on_executors: hw.Session, spark: SparkSession) -> None:
    s = on_executors
    with pytest.raises(hw.InvalidRows, match=r"column 'v' of table 't' is int16: .*100000"):
        s.create_table("t", "k BIGINT, v SMALLINT", source=spark.sql("SELECT id AS k, 100000 AS v FROM range(3)"))
    with pytest.raises(hw.DuplicateKey, match=r"the key \(k=1, v='x'\) of table 't' comes more than once"):
        s.create_table("t", source=spark.sql("SELECT 1 AS k, 'x' AS v FROM range(3)"), key=["k", "v"])
    with pytest.raises(hw.InvalidSchema, match="give a schema, or a source"):
        s.create_table("t")
    with pytest.raises(hw.InvalidOption, match="a source is a DataFrame"):
        s.create_table("t", source=[(1,)])  # type: ignore[arg-type]


def test_loaded_rows_stay_in_the_directory(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(EVERYTHING)
    with hw.connect(tmp_path / "d", spark=spark, placement="cluster") as s:
        s.create_table("t", source=frame)
        s.create_view("v", "SELECT s, COUNT(*) AS n, MAX(at) AS at FROM t GROUP BY s")
        s.insert("t", frame.limit(3))
    with hw.connect(tmp_path / "d", spark=spark, placement="driver") as s:
        assert_same(s.table("t").arrow(), frame.union(frame.limit(3)))
        assert_same(s.table("t").at(1).arrow(), frame)
        Oracle(s).check(s.view("v"), "SELECT s, COUNT(*) AS n, MAX(at) AS at FROM t GROUP BY s")


def test_no_row_passes_through_the_driver(
    on_executors: hw.Session, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    brought: list[int] = []
    original = Classic.toArrow

    def counting(self: Any) -> pa.Table:
        found = original(self)
        brought.append(found.nbytes)
        return found

    monkeypatch.setattr(Classic, "toArrow", counting)
    on_executors.create_table("t", source=spark.range(300_000).selectExpr("id", "concat('name ', id) AS name"), key="id")
    assert sum(brought) < 50_000
    assert len(on_executors.table("t")) == 300_000
