"""A top-level ORDER BY: whoever looks at a view sees its rows in that order, whatever keeps it up to date."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = "id INT, x INT, s STRING, a ARRAY<DOUBLE>, p STRUCT<f: INT, g: ARRAY<STRING>>"
ROWS: list[tuple[Any, ...]] = [
    (1, 5, "b", [1.0, 2.0], (1, ["x"])),
    (2, None, "A", [1.0], (1, None)),
    (3, 7, "a", None, None),
    (4, 5, "B", [], (None, ["y"])),
    (5, 2, "c", [math.nan], (1, ["x", "a"])),
    (6, 2, None, [1.0, None], (1, [None])),
    (7, -3, "", [-0.0, 1.0], (0, ["z"])),
    (8, 0, "ä", [0.0], (1, [])),
    (9, -14, "Z", [None], (1, ["w"])),
]
LATER: list[tuple[Any, ...]] = [
    (10, 6, "aa", [0.0, 0.0], (1, ["x", ""])),
    (11, 7, "bb", [], (7, [])),
    (12, None, "0", [3.0], (None, None)),
]
_DEEP = "id"
for _i in range(12):
    _DEEP = f"CASE WHEN x = {_i} THEN {_i} ELSE {_DEEP} END"
QUERIES = {
    "a column": "SELECT x, id FROM t ORDER BY x DESC NULLS LAST, id",
    "a column that is not shown": "SELECT id FROM t ORDER BY x NULLS LAST, id DESC",
    "two names of a column": "SELECT x AS y, x, id FROM t ORDER BY y DESC, id",
    "an expression": "SELECT s, id FROM t ORDER BY concat(s, cast(id AS STRING)) DESC, id",
    "an expression of Spark's alone": "SELECT id FROM t ORDER BY soundex(s) DESC, id",
    "an array": "SELECT a, id FROM t ORDER BY a DESC, id",
    "an array that is not shown": "SELECT id FROM t ORDER BY a, id DESC",
    "a struct": "SELECT id FROM t ORDER BY p, id",
    "a struct backwards": "SELECT id FROM t ORDER BY p DESC NULLS FIRST, id",
    "months": "SELECT id FROM t ORDER BY make_ym_interval(0, x) DESC, id",
    "hours": "SELECT id FROM t ORDER BY make_dt_interval(0, x) DESC, id",
    "a collation": "SELECT id FROM t ORDER BY s COLLATE UNICODE_CI DESC, id",
    "a scalar subquery": "SELECT id FROM t ORDER BY x * (SELECT min(x) FROM t), id",
    "conditions too deep to be read": f"SELECT {_DEEP} AS d, id FROM t ORDER BY x DESC, id",
    "the same, not shown": f"SELECT id FROM t ORDER BY {_DEEP} DESC, x, id DESC",
    "a limit": "SELECT id FROM t ORDER BY x DESC, id LIMIT 5",
    "a limit and an offset": "SELECT s, id FROM t ORDER BY x, id LIMIT 4 OFFSET 2",
    "a filter of a limit": "SELECT id FROM (SELECT * FROM t ORDER BY x DESC, id LIMIT 7) WHERE s > '0' ORDER BY x DESC, id",
    "groups": "SELECT count(*) AS n, x FROM t GROUP BY x ORDER BY n DESC, sum(id) DESC, x",
    "a common table expression": "WITH u AS (SELECT * FROM t WHERE id > 1) SELECT id FROM u ORDER BY x DESC, id",
    "a union": "SELECT id FROM t UNION ALL SELECT x FROM t ORDER BY id DESC",
    "pipes": "FROM t |> ORDER BY x DESC, id |> WHERE id > 2 |> EXTEND id + 1 AS next |> SELECT next",
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as opened:
        opened.create_table("t", COLUMNS)
        yield opened
    spark.catalog.dropTempView("t")


def by_spark(session: hw.Session, query: str) -> list[str]:
    table = session.table("t")
    session.spark.createDataFrame(table.arrow(), table.schema).createOrReplaceTempView("t")
    return shown(session.spark.sql(query).collect())


def shown(rows: Any) -> list[str]:
    return [repr(tuple(row)) for row in rows]


@pytest.mark.parametrize("refresh", ["auto", "full"])
@pytest.mark.parametrize("case", QUERIES)
def test_whoever_looks_sees_rows_in_order(session: hw.Session, case: str, refresh: str) -> None:
    query = QUERIES[case]
    view = session.create_view("v", query, refresh=refresh)
    try:
        first = session.insert("t", ROWS)
        before = by_spark(session, query)
        assert shown(view.rows()) == before
        session.insert("t", LATER)
        session.delete("t", ROWS[2:5])
        expected = by_spark(session, query)
        assert shown(view.rows()) == shown(zip(*map(pylist, view.arrow().columns), strict=True)) == expected
        assert shown(view.dataframe().collect()) == expected
        assert len(view.pandas()) == len(expected)
        for past in (view.at(first), session.at(first).view("v"), session.at(first).sql(query)):
            assert shown(past.rows()) == shown(past.dataframe().collect()) == before
        assert shown(session.sql(query).rows()) == expected
    finally:
        view.drop()
        session.sql("DELETE FROM t")


def pylist(column: Any) -> list[Any]:
    found: list[Any] = column.to_pylist()
    return found


@pytest.mark.parametrize("refresh", ["auto", "full"])
def test_dataframes_have_an_order_too(session: hw.Session, refresh: str) -> None:
    frame = session.dataframe("t").orderBy("x", "id", ascending=False).select("id")
    view = session.create_view("v", frame, refresh=refresh)
    session.insert("t", ROWS)
    assert [row[0] for row in view.rows()] == [3, 4, 1, 6, 5, 8, 7, 9, 2]
    view.drop()
    session.sql("DELETE FROM t")


def test_what_rows_are_ordered_by_is_seen_nowhere(session: hw.Session) -> None:
    """Neither in changes, nor by views above, nor where one asks why a row is there."""
    view = session.create_view("v", "SELECT s FROM t ORDER BY x DESC, id", refresh="full")
    above = session.create_view("w", "SELECT s, count(*) AS n FROM v GROUP BY s")
    session.insert("t", ROWS)
    since = session.epoch
    session.insert("t", [(20, 100, "b", None, None)])
    session.sql("UPDATE t SET x = -x WHERE id = 20")
    assert [(epoch, table.to_pylist()) for epoch, table in view.changes(since)] == [(since + 1, [{"s": "b", "_weight": 1}])]
    assert ("b", 2) in above.rows()
    assert view.rows()[-1] == ("A",)
    assert view.rows()[-2] == ("b",)
    assert len(view) == len(ROWS) + 1
    assert view.why(("c",)).rows()
    above.drop()
    view.drop()
    session.sql("DELETE FROM t")


def test_views_keep_their_order_when_they_are_opened_again(spark: SparkSession, tmp_path: Path) -> None:
    queries = {name: QUERIES[case] for name, case in (("a", "months"), ("b", "a limit"), ("c", "a scalar subquery"))}
    with hw.connect(tmp_path, spark=spark) as session:
        session.create_table("t", COLUMNS)
        for name, query in queries.items():
            session.create_view(name, query, refresh="full")
        session.insert("t", ROWS)
    with hw.connect(tmp_path, spark=spark) as session:
        for name, query in queries.items():
            assert shown(session.view(name).rows()) == by_spark(session, query)
        session.insert("t", LATER)
        for name, query in queries.items():
            assert shown(session.view(name).rows()) == by_spark(session, query)
    spark.catalog.dropTempView("t")


def test_nested_strings_with_a_collation_are_refused(session: hw.Session) -> None:
    with pytest.raises(hw.NotSupported, match="order by a field"):
        session.create_view("v", "SELECT id FROM t ORDER BY array(s COLLATE UNICODE_CI)")
