"""Queries are analysed in the session that was given, under its settings of the moment, whatever other sessions do."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from oracle import rows_of
from pyspark.sql import SparkSession

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# What functions look up while they run, or what changes the answer of a plan that looks the same.
SETTINGS = {
    "spark.sql.legacy.timeParserPolicy": (
        "LEGACY",
        "SELECT id, date_format(at, 'EEE u') AS x, to_date(s, 'yyyy-MM-dd') AS y FROM t",
    ),
    "spark.sql.ansi.enabled": (
        "false",
        "SELECT id, id / 0 AS x, CAST(s AS INT) AS y, sum(id) OVER (PARTITION BY id) AS z FROM t",
    ),
    "spark.sql.legacy.sizeOfNull": (
        "true",
        "SELECT id, size(split(CAST(NULLIF(s, '2020-01-02x') AS STRING), '-')) AS x FROM t",
    ),
    "spark.sql.legacy.statisticalAggregate": ("true", "SELECT id, var_samp(id) AS x, corr(id, id) AS y FROM t GROUP BY id"),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("true", "SELECT CAST(array(id, NULL) AS STRING) AS x FROM t"),
    "spark.sql.mapKeyDedupPolicy": ("LAST_WIN", "SELECT id, map(s, 1, s, 2) AS x FROM t WHERE s IS NOT NULL"),
    "spark.sql.caseSensitive": ("true", "SELECT id, s AS S, at AS s FROM t"),
    "spark.sql.decimalOperations.allowPrecisionLoss": (
        "false",
        "SELECT CAST(id AS DECIMAL(38, 10)) * CAST(id AS DECIMAL(38, 10)) AS x FROM t",
    ),
}
ROWS = [(1, "2020-01-02", "2020-01-02 03:04:05"), (2, None, None), (3, "2020-01-02x", "1582-10-01 00:00:00")]


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in wanted:
            spark.conf.unset(name)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[Any]:
    with closing(hw.connect(spark=spark)) as made:
        made.create_table("t", "id INT, s STRING, at TIMESTAMP_NTZ")
        yield made


def insert(session: Any, rows: list[tuple[Any, ...]]) -> None:
    values = ", ".join(f"({i}, {_text(s)}, CAST({_text(at)} AS TIMESTAMP_NTZ))" for i, s, at in rows)
    session.sql(f"INSERT INTO t VALUES {values}")


def _text(value: str | None) -> str:
    return "NULL" if value is None else f"'{value}'"


def answer(session: Any, query: str) -> list[Any]:
    """What Spark says now, in the session that was given."""
    session.table("t").dataframe().createOrReplaceTempView("t")
    return rows_of(session.spark.sql(query).toArrow())


def same(found: Any, expected: list[Any]) -> None:
    assert sorted(map(repr, rows_of(found))) == sorted(map(repr, expected))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_view_means_what_its_query_meant_when_it_was_created(session: Any, setting: str) -> None:
    value, query = SETTINGS[setting]
    with settings(session.spark, {setting: value}):
        view = session.create_view("v", query)
        insert(session, ROWS[:1])
        same(view.arrow(), answer(session, query))
    insert(session, ROWS[1:])
    with settings(session.spark, {setting: value}):
        expected = answer(session, query)
    same(view.arrow(), expected)


def test_views_of_one_text_under_different_settings_are_kept_apart(session: Any) -> None:
    query = "SELECT id, CAST(array(id, NULL) AS STRING) AS x FROM t"
    usual = session.create_view("usual", query)
    with settings(session.spark, {"spark.sql.legacy.castComplexTypesToString.enabled": "true"}):
        old = session.create_view("old", query)
    full = session.create_view("whole", query, refresh="full")
    insert(session, ROWS)
    assert sorted(x for _, x in usual.rows()) == sorted(x for _, x in full.rows()) == ["[1, null]", "[2, null]", "[3, null]"]
    assert sorted(x for _, x in old.rows()) == ["[1,]", "[2,]", "[3,]"]


def test_a_setting_at_creation_is_that_of_a_later_process_too(spark: SparkSession, tmp_path: Path) -> None:
    setting = {"spark.sql.legacy.castComplexTypesToString.enabled": "true"}
    with closing(hw.connect(tmp_path / "d", spark=spark)) as session:
        session.create_table("t", "id INT, s STRING, at TIMESTAMP_NTZ")
        with settings(spark, setting):
            session.create_view("old", "SELECT id, CAST(array(id, NULL) AS STRING) AS x FROM t")
    with closing(hw.connect(tmp_path / "d", spark=spark)) as session:
        insert(session, ROWS[:1])
        assert session.view("old").rows() == [(1, "[1,]")]


def test_another_active_session_changes_nothing(session: Any, spark: SparkSession) -> None:
    other = spark.newSession()
    for name, value in {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    }.items():
        other.conf.set(name, value)
    other.sql("SELECT 'theirs' AS id, 1 AS s, 2 AS at").createOrReplaceTempView("t")
    other.createDataFrame([(1,)], "x INT").count()
    assert SparkSession.getActiveSession() is other
    session.create_table("z", "At TIMESTAMP, id INT")
    assert session.table("z").schema["At"].dataType.simpleString() == "timestamp"
    query = "SELECT T.ID AS id, CAST(array(id, NULL) AS STRING) AS x, CAST(at AS TIMESTAMP) AS y, hour(at) AS h FROM t"
    views = {
        session.create_view("linear", query): query,
        session.create_view("whole", query, refresh="full"): query,
        session.create_view("all", "SELECT count(*) AS n FROM t", refresh="full"): "SELECT count(*) AS n FROM t",
    }
    insert(session, ROWS)
    with pytest.raises(hw.HeadwaterError, match="DIVIDE_BY_ZERO"):
        session.sql("SELECT id / 0 AS x FROM t").rows()
    found = session.sql("SELECT id, s FROM t WHERE id = 1").rows()
    assert SparkSession.getActiveSession() is other
    assert found == [(1, "2020-01-02")]
    for view, text in views.items():
        same(view.arrow(), answer(session, text))


@pytest.fixture
def lettered(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    with closing(hw.connect(spark=spark)) as made:
        spark.sql(f"CREATE TABLE letters (id INT, c CHAR(4), v VARCHAR(3)) USING parquet LOCATION '{tmp_path}/letters'")
        try:
            spark.sql("INSERT INTO letters VALUES (1, 'a', 'b'), (2, 'ab', NULL), (3, NULL, 'x ')")
            made.create_table("letters", source=spark.table("letters"))
            yield made
        finally:
            spark.sql("DROP TABLE letters")


def test_char_columns_are_filled_up_and_compared_as_in_spark(lettered: Any) -> None:
    queries = [
        "SELECT * FROM letters WHERE c = 'a' OR v = 'x '",
        "SELECT id, c = 'ab' AS x, c IN ('a', 'zz') AS y, length(c) AS n FROM letters",
        "SELECT l.id FROM letters l JOIN letters r ON l.c = r.c",
        "SELECT c, count(*) AS n FROM letters GROUP BY c HAVING c <> 'ab'",
    ]
    views = [lettered.create_view(f"v{i}", query) for i, query in enumerate(queries)]
    above = lettered.create_view("above", "SELECT id FROM v0 WHERE c = 'a'")
    lettered.insert("letters", [(4, "a", "abc"), (5, "abcd  ", "abc ")])
    lettered.spark.sql("INSERT INTO letters VALUES (4, 'a', 'abc'), (5, 'abcd  ', 'abc ')")
    for view, query in zip(views, queries, strict=True):
        same(view.arrow(), rows_of(lettered.spark.sql(query).toArrow()))
    assert sorted(above.rows()) == [(1,), (4,)]
    lettered.delete("letters", [(4, "a", "abc")])
    assert above.rows() == [(1,)]


def test_what_is_longer_than_its_column_is_refused(lettered: Any) -> None:
    for row in [(6, "abcde", "x"), (6, "x", "abcd")]:
        with pytest.raises(hw.InvalidRows, match="characters"):
            lettered.insert("letters", [row])
    lettered.create_table("own", "c CHAR(2), v VARCHAR(2)")
    lettered.sql("INSERT INTO own VALUES ('a', 'b')")
    assert lettered.table("own").rows() == [("a ", "b")]
    with pytest.raises(hw.InvalidRows, match="'c' of table 'own' holds 2 characters"):
        lettered.sql("INSERT INTO own VALUES ('abc', 'b')")
    assert lettered.sql("SELECT c FROM own WHERE c = 'a'").rows() == [("a ",)]
