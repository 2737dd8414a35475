"""How queries are read: names that hide from the parser, what only one run of Spark knows, and plans that Spark gets wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as opened:
        opened.create_table("r", "a INT, b INT, at TIMESTAMP")
        opened.create_table("s", "a INT, b INT")
        opened.insert("r", [(1, 10, None), (2, 20, None)])
        opened.insert("s", [(1, 5)])
        yield opened


REFUSED: dict[str, tuple[type[hw.HeadwaterError], str]] = {
    "SELECT * FROM spark_catalog.default.r": (hw.UnknownName, "the name of 'r' has no schema and no catalog: write `r`"),
    "SELECT * FROM default.R": (hw.UnknownName, "the name of 'r' has no schema"),
    "SELECT a, shuffle(array(a, b)) AS l FROM r": (hw.NonDeterministic, "Shuffle"),
    "SELECT a, rand(42) AS x FROM r": (hw.NonDeterministic, "Rand"),
    "SELECT a, spark_partition_id() AS p FROM r": (hw.NonDeterministic, "SparkPartitionID"),
    "SELECT a, input_file_name() AS f FROM r": (hw.NonDeterministic, "InputFileName"),
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b > rand(1))": (hw.NonDeterministic, "Rand"),
    "SELECT a, map() AS m FROM r": (hw.NotSupported, r"map<void,void>: .* CAST\(map\(\) AS MAP<STRING, INT>\)"),
    "SELECT a, array(CAST(NULL AS GEOMETRY(4326))) AS g FROM r": (hw.EvaluationFailed, "Arrow cannot hold it"),
    "SELECT a, b, count(*) AS n FROM r GROUP BY ROLLUP(a, b) HAVING EXISTS (SELECT 1 FROM s WHERE s.a = r.a)": (
        hw.EvaluationFailed,
        "ATTRIBUTE_NOT_FOUND",
    ),
}


@pytest.mark.parametrize("query", REFUSED)
def test_queries_that_are_refused_in_one_line(session: hw.Session, query: str) -> None:
    error, part = REFUSED[query]
    epoch = session.epoch
    with pytest.raises(error, match=part):
        session.create_view("v", query)
    assert session.epoch == epoch
    assert not session.views()


def test_a_sql_function_may_read_tables(session: hw.Session, spark: SparkSession) -> None:
    for name in ("r", "s"):
        spark.createDataFrame([], session.table(name).schema).createOrReplaceTempView(name)
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION most() RETURNS INT RETURN SELECT max(b) FROM s")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION above(x INT) RETURNS TABLE(a INT) RETURN SELECT a FROM r WHERE b > x")
    try:
        view = session.create_view("v", "SELECT a, most() AS m FROM r")
        table = session.create_view("w", "SELECT count(*) AS n FROM above(15)")
        assert session.sql("SELECT most() AS m, rand() < 2 AS t").rows() == [(5, True)]
        session.insert("s", [(9, 99)])
        session.insert("r", [(3, 30, None)])
        assert sorted(view.rows()) == [(1, 99), (2, 99), (3, 99)]
        assert table.rows() == [(2,)]
        assert view.stats()["class"] == table.stats()["class"] == "stateful"
    finally:
        session.delete("r", [row for row in session.table("r").rows() if row[0] == 3])
        for name in ("v", "w"):
            session.drop_view(name)
        for name in ("r", "s"):
            spark.catalog.dropTempView(name)


def test_a_table_function_in_python_that_is_given_a_table_sees_all_of_it(session: hw.Session, spark: SparkSession) -> None:
    from pyspark.sql.functions import udtf

    @udtf(returnType="n INT")
    class Counting:
        def __init__(self) -> None:
            self.n = 0

        def eval(self, _row: object) -> None:
            self.n += 1

        def terminate(self) -> Iterator[tuple[int]]:
            yield (self.n,)

    spark.udtf.register("counting", Counting.asDeterministic())
    view = session.create_view("v", "SELECT * FROM counting(TABLE(SELECT a FROM r) WITH SINGLE PARTITION)")
    assert view.stats()["class"] == "recomputed"
    assert view.rows() == [(2,)]
    session.insert("r", [(4, 40, None)])
    assert view.rows() == [(3,)]
    session.delete("r", [(4, 40, None)])
    assert view.rows() == [(2,)]
    session.drop_view("v")


def test_a_scalar_subquery_in_the_order_that_gets_a_second_row_is_refused(session: hw.Session) -> None:
    view = session.create_view("v", "SELECT a FROM r ORDER BY (SELECT b FROM s WHERE a = 77), a")
    session.insert("s", [(77, 1)])
    epoch = session.epoch
    with pytest.raises(hw.EvaluationFailed, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        session.insert("s", [(77, 2)])
    assert session.epoch == epoch
    assert sorted(view.rows()) == [(1,), (2,)]
    session.drop_view("v")
