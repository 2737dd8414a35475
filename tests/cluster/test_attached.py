"""Attached tables: rows that stay outside, and changes beside them. All of it must be what Spark makes of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from oracle import Oracle, bag_difference, rows_of
from test_loading import EVERYTHING

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SALES = "SELECT id, id % 11 AS brand, id * 2 AS price FROM range(0, 4000, 1, 3)"
QUERY = "SELECT brand, COUNT(*) AS n, SUM(price) AS p, MAX(id) AS last FROM sales GROUP BY brand"


@pytest.fixture(params=["cluster", "driver"])
def s(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark, placement=request.param) as session:
        yield session


@pytest.fixture
def sales(spark: SparkSession, tmp_path: Path) -> Path:
    return written(spark.sql(SALES), tmp_path / "sales")


def written(frame: DataFrame, path: Path) -> Path:
    frame.write.parquet(str(path))
    return path


def assert_same(found: pa.Table, frame: DataFrame) -> None:
    wanted = frame.toArrow()
    assert found.column_names == wanted.column_names
    assert [str(kind) for kind in found.schema.types] == [str(kind) for kind in wanted.schema.types]
    assert bag_difference(rows_of(found), rows_of(wanted)) == ([], [])


def kept(session: hw.Session, name: str) -> int:
    return len(session.snapshot.kept(session.snapshot.tables[name]))


def test_rows_are_read_where_they_are(s: hw.Session, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(EVERYTHING)
    table = s.create_table("t", source=written(frame, tmp_path / "t"))
    assert_same(table.arrow(), frame)
    assert_same(table.dataframe().toArrow(), frame)
    assert len(table) == frame.count()
    assert kept(s, "t") == 0
    assert s.sql("SELECT COUNT(*), SUM(b) FROM t WHERE i > 10").rows() == [
        tuple(row) for row in frame.filter("i > 10").selectExpr("COUNT(*)", "SUM(b)").collect()
    ]


def test_equal_rows_outside_are_taken_away_one_by_one(s: hw.Session, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(EVERYTHING)
    table = s.create_table("t", source=written(frame.union(frame), tmp_path / "t"))
    few = frame.filter("b < 20 OR b IS NULL")
    s.delete("t", few)
    s.insert("t", frame.filter("b = 5"))
    wanted = frame.union(frame.filter("NOT (b < 20) OR b = 5"))
    assert_same(table.arrow(), wanted)
    assert_same(table.dataframe().toArrow(), wanted)
    assert len(table) == wanted.count()
    assert kept(s, "t") <= 22


def test_views_follow_changes_of_what_is_outside(s: hw.Session, sales: Path) -> None:
    s.create_table("sales", source=sales, key="id")
    s.create_table("brands", "brand BIGINT, name STRING", key="brand")
    s.insert("brands", [(i, f"brand {i}") for i in range(9)])
    joined = "SELECT name, price FROM sales JOIN brands USING (brand) WHERE price % 10 = 0"
    views = {QUERY: s.create_view("v", QUERY), joined: s.create_view("j", joined)}
    oracle = Oracle(s)

    def check() -> None:
        for query, view in views.items():
            oracle.check(view, query)

    check()
    s.insert("sales", [(4000, 3, 1), (4001, 99, 2)])
    check()
    s.delete("sales", [(3999, 3999 % 11, 2 * 3999), (4001, 99, 2)])
    check()
    s.upsert("sales", [(7, 1, 70), (8000, 1, 0), (4000, 3, 5)])
    check()
    s.upsert("brands", [(3, "other")])
    check()
    late = "SELECT price, COUNT(*) AS n FROM sales WHERE brand = 1 GROUP BY price HAVING n = 1"
    views[late] = s.create_view("late", late)
    check()
    assert s.table("sales").at(4).arrow().num_rows == 4000
    assert kept(s, "sales") < 10


def test_statements_see_rows_and_changes(s: hw.Session, sales: Path) -> None:
    s.create_table("sales", source=sales, key="id")
    view = s.create_view("v", QUERY)
    oracle = Oracle(s)
    s.sql("UPDATE sales SET price = price + 1 WHERE brand = 4 AND id < 100")
    oracle.check(view, QUERY)
    s.sql("DELETE FROM sales WHERE id % 100 = 3")
    oracle.check(view, QUERY)
    s.sql("INSERT INTO sales SELECT id + 10000, brand, price FROM sales WHERE id < 50")
    oracle.check(view, QUERY)
    with s.transaction() as tx:
        tx.insert("sales", [(20000, 1, 1)])
        tx.sql("UPDATE sales SET price = 0 WHERE id >= 20000 OR id = 1")
        tx.sql("DELETE FROM sales WHERE price = 0 AND id = 1")
    oracle.check(view, QUERY)
    assert s.sql("SELECT id, price FROM sales WHERE id >= 20000 OR id IN (1, 3, 4) ORDER BY id DESC").rows() == [
        (20000, 0),
        (4, 9),
    ]
    assert s.at(s.epoch - 1).sql("SELECT id FROM sales WHERE id = 1").rows() == [(1,)]


def test_a_directory_goes_on_with_what_is_outside(spark: SparkSession, sales: Path, tmp_path: Path) -> None:
    with hw.connect(tmp_path / "d", spark=spark, placement="cluster") as s:
        s.create_table("sales", source=str(sales))
        s.create_view("v", QUERY)
        s.delete("sales", [(1, 1, 2)])
    with hw.connect(tmp_path / "d", spark=spark) as s:
        assert len(s.table("sales")) == 3999
        Oracle(s).check(s.view("v"), QUERY)
        s.insert("sales", [(1, 1, 2), (1, 1, 3)])
        Oracle(s).check(s.view("v"), QUERY)
        with hw.connect(tmp_path / "d", spark=spark, mode="r") as reader:
            assert_same(reader.table("sales").arrow(), spark.sql(f"{SALES} UNION ALL VALUES (1, 1, 3)"))
            assert reader.sql("SELECT COUNT(*) FROM sales").rows() == [(4001,)]


def test_tables_of_the_catalog_are_attached_by_name(s: hw.Session, spark: SparkSession) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW passing AS {SALES}")
    spark.sql("DROP TABLE IF EXISTS headwater_sales")
    spark.sql(SALES).write.saveAsTable("headwater_sales")
    try:
        s.create_table("sales", source="default.headwater_sales", key="id")
        Oracle(s).check(s.create_view("v", QUERY), QUERY)
        with pytest.raises(hw.NotSupported, match="temporary view"):
            s.create_table("t", source="passing")
        with pytest.raises(hw.UnknownName, match="a path has a slash in it"):
            s.create_table("t", source="nowhere")
    finally:
        spark.sql("DROP TABLE headwater_sales")
        spark.catalog.dropTempView("passing")


def test_a_key_is_looked_at_where_the_rows_are(s: hw.Session, spark: SparkSession, sales: Path, tmp_path: Path) -> None:
    with pytest.raises(hw.DuplicateKey, match="comes more than once"):
        s.create_table("sales", source=sales, key="brand")
    with pytest.raises(hw.UnknownName, match="Spark cannot read parquet at"):
        s.create_table("sales", source=tmp_path / "nothing")
    with pytest.raises(hw.InvalidRows, match="no column 'brand' in the table"):
        s.create_table("sales", "id BIGINT, price BIGINT", source=sales)
    with pytest.raises(hw.InvalidRows, match=r"column 'price' of table 'sales' is int8: .* not in range"):
        s.create_table("sales", "price TINYINT, id INT, brand DOUBLE", source=sales)
    assert s.epoch == 0
    s.create_table("sales", "price DECIMAL(22, 2), id INT, brand DOUBLE", source=sales, key="id")
    wanted = spark.sql(SALES).selectExpr("CAST(price AS DECIMAL(22, 2)) price", "INT(id) id", "DOUBLE(brand) brand")
    assert_same(s.table("sales").arrow(), wanted)
    assert s.sql("SELECT brand FROM sales WHERE id = 12").rows() == [(1.0,)]
    s.delete("sales", [(24, 12, 1.0)])
    assert_same(s.table("sales").dataframe().toArrow(), wanted.filter("id <> 12"))


def test_other_formats_are_read_by_spark(s: hw.Session, spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.json(str(tmp_path / "j"))
    assert len(s.create_table("t", source=f"{tmp_path}/j", format="json")) == 10
    with pytest.raises(hw.InvalidOption, match="format is for files"):
        s.create_table("u", source=spark.range(3), format="json")
