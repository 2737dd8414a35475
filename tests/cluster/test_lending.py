"""Tables and views as DataFrames that Spark reads from the runs by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from oracle import Oracle, bag_difference, rows_of
from patience import wait_until
from test_loading import EVERYTHING

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def s(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark, placement="cluster") as session:
        yield session


def assert_same(found: pa.Table, wanted: pa.Table) -> None:
    assert found.schema.names == wanted.schema.names
    assert [str(kind) for kind in found.schema.types] == [str(kind) for kind in wanted.schema.types]
    assert bag_difference(rows_of(found), rows_of(wanted)) == ([], [])


def lent(session: hw.Session) -> list[Any]:
    return session._lending._lent


def test_all_types_and_weights_are_those_of_the_content(s: hw.Session, spark: SparkSession) -> None:
    frame = spark.sql(EVERYTHING)
    s.create_table("t", source=frame.union(frame))
    s.delete("t", frame.limit(500))
    found = s.table("t").dataframe()
    assert len(lent(s)) == 1
    assert found.schema.names == frame.schema.names
    assert_same(found.toArrow(), s.table("t").arrow())
    assert found.count() == 2 * 3002 - 500


def test_a_dataframe_stays_what_it_was(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("t", source=spark.range(1000).selectExpr("id", "id % 10 AS k"), key="id")
    s.create_view("v", "SELECT k, SUM(id) AS total FROM t GROUP BY k")
    before = s.view("v").dataframe()
    rows = s.view("v").arrow()
    for start in range(1000, 4000, 1000):
        s.insert("t", spark.range(start, start + 1000).selectExpr("id", "id % 10 AS k"))
    assert_same(before.toArrow(), rows)
    assert s.view("v").dataframe().toArrow().num_rows == 10
    query = "SELECT k, SUM(id) AS total FROM t GROUP BY k"
    Oracle(s).check(s.view("v"), query)


def test_files_go_when_no_plan_needs_them(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("t", source=spark.range(1000))
    derived = s.table("t").dataframe().filter("id > 500")
    s.table("t").drop()
    assert derived.count() == 499
    s._lending._recall()
    assert len(lent(s)) == 1
    held = [name for yard, _, _ in lent(s) for name in yard.names]
    disk = lent(s)[0][0].disk
    assert held
    assert all(disk.size(name) for name in held)
    del derived
    wait_until_gone(s, spark)
    assert [name for name in held if disk.size(name) is not None] == []


def wait_until_gone(s: hw.Session, spark: SparkSession) -> None:
    import gc

    def is_gone() -> bool:
        gc.collect()
        spark.sparkContext._jvm.System.gc()
        s._lending._recall()
        return not lent(s)

    wait_until(is_gone, pause=0.2)


def test_an_ordered_view_is_sorted_by_spark(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("t", source=spark.sql("SELECT id, IF(id % 5 = 0, NULL, id % 17) AS k, -id AS n FROM range(2000)"))
    query = "SELECT id, k FROM t ORDER BY k DESC NULLS LAST, n"
    view = s.create_view("v", query)
    found = view.dataframe()
    assert found.columns == ["id", "k"]
    spark.createDataFrame(s.table("t").arrow(), s.table("t").schema).createOrReplaceTempView("plain")
    try:
        wanted = spark.sql(query.replace("FROM t", "FROM plain")).collect()
    finally:
        spark.catalog.dropTempView("plain")
    assert found.collect() == wanted


def test_views_are_built_on_dataframes_over_runs(s: hw.Session, spark: SparkSession) -> None:
    from pyspark.sql import functions

    s.create_table("t", source=spark.range(3000).selectExpr("id", "id % 7 AS k"), key="id")
    frame: DataFrame = s.dataframe("t")
    assert len(lent(s)) == 1
    view = s.create_view("v", frame.filter("id % 2 = 0").groupBy("k").agg(functions.count("*").alias("n")))
    oracle = Oracle(s)
    query = "SELECT k, COUNT(*) AS n FROM t WHERE id % 2 = 0 GROUP BY k"
    oracle.check(view, query)
    s.insert("t", [(3000, 1), (3002, 2)])
    s.delete("t", [(0, 0)])
    oracle.check(view, query)


def test_in_a_directory_the_files_stay_beside_folds(spark: SparkSession, tmp_path: Path) -> None:
    with hw.connect(tmp_path / "d", spark=spark, placement="cluster") as s:
        s.create_table("t", source=spark.range(2000).selectExpr("id", "concat('x', id) AS x"))
        frame = s.table("t").dataframe()
        rows = s.table("t").arrow()
        s.delete("t", rows.slice(0, 1900))
        assert s._store is not None
        for _ in range(3):
            s.insert("t", [(5000, "y")])
            s._store.fold()
        assert_same(frame.toArrow(), rows)
        assert s.table("t").dataframe().count() == 103


def test_few_rows_are_sent_by_the_driver(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as s:
        s.create_table("t", "id BIGINT")
        s.insert("t", [(1,), (2,)])
        assert sorted(row.id for row in s.dataframe("t").collect()) == [1, 2]
        assert not lent(s)
        s.create_table("empty", "id BIGINT")
        s.executors.mode = "cluster"
        assert s.dataframe("empty").collect() == []
