"""Bad input is refused with an error that says what is wrong, and nothing has changed. Strange input simply works."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
from oracle import Oracle

import headwater as hw
from headwater import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

NAN = math.nan
TOTALS = "SELECT x, count(*) AS n, sum(y) AS total FROM sales GROUP BY x"
COUNTS = "SELECT n, count(*) AS m FROM totals GROUP BY n"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as opened:
        opened.create_table("sales", "id BIGINT, x INT, y INT", key="id")
        opened.create_table("bag", "x INT, d DOUBLE, name STRING")
        opened.create_table(
            "typed", "a ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<p: INT, q: STRING>, t TIMESTAMP, c DECIMAL(5, 2)"
        )
        opened.create_table("strict", "x INT NOT NULL")
        opened.create_view("totals", TOTALS)
        opened.create_view("counts", COUNTS)
        opened.insert("sales", [(1, 1, 10), (2, 1, 20), (3, 2, 30)])
        opened.insert("bag", [(1, NAN, "a"), (1, NAN, "a"), (1, -0.0, None)])
        yield opened


def picture(session: hw.Session) -> Any:
    """All that a user can see."""
    relations = {**session.tables(), **session.views()}
    rows = {name: Counter(map(repr, relation.rows())) for name, relation in relations.items()}
    return session.epoch, list(session.tables()), list(session.views()), rows


@contextmanager
def refused(session: hw.Session, error: type[hw.HeadwaterError], part: str) -> Iterator[None]:
    """The block must fail in this way, with this part in the message, and leave everything as it was, down to the state."""
    before, state = picture(session), session.epochs.now
    with pytest.raises(error) as caught:
        yield
    assert type(caught.value) is error
    assert str(caught.value).startswith(f"[{error.code}] ")
    assert part in str(caught.value)
    assert session.epochs.now is state
    assert picture(session) == before


def test_codes_are_the_names_of_the_errors() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, hw.HeadwaterError)]
    assert len(kinds) > 15
    for kind in kinds[1:]:
        assert kind.code == re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper()
        assert getattr(hw, kind.__name__) is kind


def typed_row(**changed: Any) -> list[tuple[Any, ...]]:
    row = {"a": [1], "m": {"k": 1}, "s": (1, "x"), "t": dt.datetime(2024, 1, 1), "c": Decimal("1.25")}
    return [tuple({**row, **changed}.values())]


ROWS: dict[str, tuple[Callable[[hw.Session], Any], type[hw.HeadwaterError], str]] = {
    "unknown table": (lambda s: s.insert("nope", [(1,)]), hw.UnknownName, "no table 'nope'; there are: 'sales', 'bag'"),
    "a view": (lambda s: s.insert("totals", [(1, 1, 1)]), hw.UnknownName, "'totals' is a view"),
    "no name": (lambda s: s.insert(5, [(1,)]), hw.InvalidName, "5"),  # type: ignore[arg-type]
    "no rows": (lambda s: s.insert("sales", None), hw.InvalidRows, "not NoneType"),
    "a text": (lambda s: s.insert("sales", "abc"), hw.InvalidRows, "not str"),
    "one dict": (lambda s: s.insert("sales", {"id": [1], "x": [1], "y": [1]}), hw.InvalidRows, "not dict"),
    "a series": (lambda s: s.insert("sales", pd.Series([1, 2])), hw.InvalidRows, "tuple of 3 values"),
    "texts": (lambda s: s.insert("sales", ["abc"]), hw.InvalidRows, "tuple of 3 values"),
    "too short": (lambda s: s.insert("sales", [(9, 1, 1), (8, 1)]), hw.InvalidRows, "(8, 1)"),
    "too long": (lambda s: s.insert("sales", [(9, 1, 1, 1)]), hw.InvalidRows, "tuple of 3 values"),
    "dict with too little": (lambda s: s.insert("sales", [{"id": 9, "x": 1}]), hw.InvalidRows, "no 'y' in the rows"),
    "dict with too much": (
        lambda s: s.insert("sales", [{"id": 9, "x": 1, "y": 1, "z": 1}]),
        hw.InvalidRows,
        "no column 'z' in the table",
    ),
    "dicts that differ": (
        lambda s: s.insert("sales", [{"id": 9, "x": 1, "y": 1}, {"id": 8, "x": 1}]),
        hw.InvalidRows,
        "different columns",
    ),
    "dict of numbers": (lambda s: s.insert("sales", [{1: 2}]), hw.InvalidRows, "names are text"),
    "tuples and dicts": (lambda s: s.insert("sales", [(9, 1, 1), {"id": 8, "x": 1, "y": 1}]), hw.InvalidRows, "not both"),
    "text for a number": (lambda s: s.insert("sales", [("9", 1, 1)]), hw.InvalidRows, "'id' of table 'sales' is int64"),
    "fraction for a number": (lambda s: s.insert("sales", [(9.5, 1, 1)]), hw.InvalidRows, "9.5"),
    "decimal fraction": (lambda s: s.insert("sales", [(Decimal("9.5"), 1, 1)]), hw.InvalidRows, "9.5"),
    "NaN for a number": (lambda s: s.insert("sales", [(NAN, 1, 1)]), hw.InvalidRows, "'id'"),
    "truth for a number": (lambda s: s.insert("sales", [(True, 1, 1)]), hw.InvalidRows, "'id'"),
    "too large": (lambda s: s.insert("sales", [(2**70, 1, 1)]), hw.InvalidRows, "'id'"),
    "too large for an INT": (lambda s: s.insert("sales", [(9, 2**40, 1)]), hw.InvalidRows, "'x' of table 'sales' is int32"),
    "number for a text": (lambda s: s.insert("bag", [(1, 1.0, 5)]), hw.InvalidRows, "'name'"),
    "half a character": (lambda s: s.insert("bag", [(1, 1.0, "\ud800")]), hw.InvalidRows, "'name'"),
    "text for an array": (lambda s: s.insert("typed", typed_row(a="abc")), hw.InvalidRows, "'a' of table 'typed'"),
    "fraction in an array": (lambda s: s.insert("typed", typed_row(a=[1.5])), hw.InvalidRows, "1.5"),
    "number for a map": (lambda s: s.insert("typed", typed_row(m=5)), hw.InvalidRows, "'m' of table 'typed'"),
    "NULL as key of a map": (lambda s: s.insert("typed", typed_row(m={None: 1})), hw.InvalidRows, "'m' of table 'typed'"),
    "number for a struct": (lambda s: s.insert("typed", typed_row(s=5)), hw.InvalidRows, "'s' of table 'typed'"),
    "struct too short": (lambda s: s.insert("typed", typed_row(s=(1,))), hw.InvalidRows, "'s' of table 'typed'"),
    "struct of other fields": (lambda s: s.insert("typed", typed_row(s={"z": 1})), hw.InvalidRows, "'z'"),
    "number for a time": (lambda s: s.insert("typed", typed_row(t=5)), hw.InvalidRows, "it takes no int"),
    "text for a time": (lambda s: s.insert("typed", typed_row(t="2024")), hw.InvalidRows, "'t' of table 'typed'"),
    "decimal too fine": (lambda s: s.insert("typed", typed_row(c=Decimal("1.234"))), hw.InvalidRows, "'c' of table 'typed'"),
    "decimal too large": (lambda s: s.insert("typed", typed_row(c=Decimal(12345))), hw.InvalidRows, "'c' of table 'typed'"),
    "Arrow without columns": (lambda s: s.insert("sales", pa.table({"id": [9]})), hw.InvalidRows, "no 'x' in the rows"),
    "Arrow of another type": (
        lambda s: s.insert("sales", pa.table({"id": ["a"], "x": [1], "y": [1]})),
        hw.InvalidRows,
        "is int64: the rows have string",
    ),
    "Arrow with fractions": (
        lambda s: s.insert("sales", pa.table({"id": [9], "x": [1], "y": [1.5]})),
        hw.InvalidRows,
        "'y' of table 'sales'",
    ),
    "Arrow with a column twice": (
        lambda s: s.insert("sales", pa.Table.from_arrays([pa.array([9])] * 3, names=["id", "ID", "x"])),
        hw.InvalidRows,
        "'ID' twice",
    ),
    "pandas of mixed values": (
        lambda s: s.insert("sales", pd.DataFrame({"id": [9, "a"], "x": [1, 1], "y": [1, 1]})),
        hw.InvalidRows,
        "it takes no str",
    ),
    "Spark of other columns": (
        lambda s: s.insert("sales", s.spark.sql("SELECT 9L AS id, 1 AS z")),
        hw.InvalidRows,
        "no column 'z' in the table",
    ),
    "Spark that fails": (
        lambda s: s.insert("sales", s.spark.sql("SELECT 9L AS id, 1 AS x, CAST(1 / (id - id) AS INT) AS y FROM range(1)")),
        hw.EvaluationFailed,
        "DIVIDE_BY_ZERO",
    ),
    "NULL in a key": (lambda s: s.insert("sales", [(9, 1, 1), (None, 1, 1)]), hw.NullKey, "'id' is in the key"),
    "NULL in a key, upsert": (lambda s: s.upsert("sales", [(None, 1, 1)]), hw.NullKey, "'id' is in the key"),
    "NULL where there is none": (lambda s: s.insert("strict", [(None,)]), hw.InvalidRows, "NOT NULL"),
    "key there already": (lambda s: s.insert("sales", [(9, 1, 1), (3, 1, 1)]), hw.DuplicateKey, "(id=3) already"),
    "key twice": (lambda s: s.insert("sales", [(9, 1, 1), (9, 2, 2)]), hw.DuplicateKey, "(id=9)"),
    "key twice, upsert": (lambda s: s.upsert("sales", [(9, 1, 1), (9, 2, 2)]), hw.DuplicateKey, "(id=9)"),
    "upsert without a key": (lambda s: s.upsert("bag", [(1, 1.0, "a")]), hw.MissingKey, "create it with key="),
    "delete of no row": (lambda s: s.delete("sales", [(1, 1, 10), (9, 1, 1)]), hw.MissingRow, "has 0 of the row (id=9"),
    "delete of another row": (lambda s: s.delete("sales", [(1, 1, 11)]), hw.MissingRow, "(id=1, x=1, y=11)"),
    "delete of one too many": (lambda s: s.delete("bag", [(1, NAN, "a")] * 3), hw.MissingRow, "has 2 of the row"),
    "delete of the other zero": (lambda s: s.delete("bag", [(1, 0.0, None)]), hw.MissingRow, "has 0 of the row"),
    "update to one key": (lambda s: s.sql("UPDATE sales SET id = 7"), hw.DuplicateKey, "(id=7)"),
    "update to NULL": (lambda s: s.sql("UPDATE sales SET id = NULL WHERE id = 1"), hw.NullKey, "'id'"),
    "update of no column": (lambda s: s.sql("UPDATE sales SET nope = 1"), hw.UnknownName, "no column 'nope'; it has id, x, y"),
    "update that overflows": (lambda s: s.sql("UPDATE sales SET x = id + 3000000000"), hw.EvaluationFailed, "CAST_OVERFLOW"),
    "insert of other columns": (lambda s: s.sql("INSERT INTO sales (id, nope) VALUES (9, 1)"), hw.UnknownName, "'nope'"),
    "insert of too few values": (lambda s: s.sql("INSERT INTO sales VALUES (9, 1)"), hw.InvalidQuery, "columns"),
    "merge of one row twice": (
        lambda s: s.sql(
            "MERGE INTO sales USING (VALUES (1, 5), (1, 6)) AS n(id, y) ON sales.id = n.id WHEN MATCHED THEN UPDATE SET y = n.y"
        ),
        hw.InvalidRows,
        "MERGE_CARDINALITY_VIOLATION",
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_that_are_refused(session: hw.Session, case: str) -> None:
    call, error, part = ROWS[case]
    with refused(session, error, part):
        call(session)


QUERIES: dict[str, tuple[type[hw.HeadwaterError], str]] = {
    "SELECT * FROM nope": (hw.UnknownName, "`nope`"),
    "SELECT nope FROM sales": (hw.UnknownName, "`id`, `x`, `y`"),
    "SELECT nope(x) FROM sales": (hw.UnknownName, "`nope`"),
    "SELECT * FROM spark_catalog.default.sales": (hw.UnknownName, "`sales`"),
    "SELECT sum(x, y) FROM sales": (hw.InvalidQuery, "WRONG_NUM_ARGS"),
    "SELECT map(x) FROM sales": (hw.InvalidQuery, "WRONG_NUM_ARGS"),
    "SELECT explode(x) FROM sales": (hw.InvalidQuery, "DATATYPE_MISMATCH"),
    "SELECT id.z FROM sales": (hw.InvalidQuery, "INVALID_EXTRACT"),
    "SELECT x FROM sales GROUP BY y": (hw.InvalidQuery, "MISSING_AGGREGATION"),
    "SELECT x FROM sales UNION SELECT x, y FROM sales": (hw.InvalidQuery, "NUM_COLUMNS_MISMATCH"),
    "SELECT count(DISTINCT x), listagg(DISTINCT 'a', '') WITHIN GROUP (ORDER BY 'a') FROM sales GROUP BY y": (
        hw.InvalidQuery,
        "Spark itself fails to plan this query",
    ),
    "SELECT * FROM sales LIMIT -1": (hw.InvalidQuery, "IS_NEGATIVE"),
    "SELECT x FRM sales": (hw.InvalidQuery, "PARSE_SYNTAX_ERROR"),
    "SELECT 'open FROM sales": (hw.InvalidQuery, "does not end"),
    "SELEC x FROM sales": (hw.InvalidQuery, "expected a query"),
    "": (hw.InvalidQuery, "expected a query"),
    "DROP TABLE theirs": (hw.InvalidQuery, "expected a query"),
    "CREATE TEMPORARY VIEW mine AS SELECT 1": (hw.InvalidQuery, "expected a query"),
    "SELECT 1; DROP TABLE theirs": (hw.NotSupported, "one query at a time"),
    "WITH a AS (SELECT 1) INSERT INTO theirs SELECT * FROM a": (hw.NotSupported, "cannot stand within a query"),
    "SELECT rand() FROM sales": (hw.NonDeterministic, "Rand"),
    "SELECT id FROM sales ORDER BY uuid()": (hw.NonDeterministic, "Uuid"),
    "SELECT now(), x FROM sales": (hw.NonDeterministic, "Now"),
    "SELECT current_date() FROM sales": (hw.NonDeterministic, "CurrentDate"),
    "SELECT * FROM sales TABLESAMPLE (10 PERCENT)": (hw.NonDeterministic, "Sample"),
    "SELECT monotonically_increasing_id() FROM sales": (hw.NonDeterministic, "MonotonicallyIncreasingID"),
    "SELECT (SELECT max(x) FROM sales WHERE rand() < 2) AS m": (hw.NonDeterministic, "Rand"),
    "SELECT * FROM mine": (hw.UnknownName, "`mine`"),
}


@pytest.mark.parametrize("query", QUERIES)
def test_queries_that_are_refused(session: hw.Session, query: str) -> None:
    error, part = QUERIES[query]
    with refused(session, error, part):
        session.create_view("mine", query)


def test_text_that_is_no_query_is_not_run(session: hw.Session, spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("theirs")
    for text in ("DROP VIEW theirs", "CREATE OR REPLACE TEMPORARY VIEW theirs AS SELECT 1"):
        with refused(session, hw.InvalidQuery, "expected a query"):
            session.create_view("mine", text)
        with refused(session, hw.NotSupported, "not a statement of Headwater"):
            session.sql(text)
    assert spark.table("theirs").count() == 3
    spark.catalog.dropTempView("theirs")


DEFINITIONS: dict[str, tuple[Callable[[hw.Session], Any], type[hw.HeadwaterError], str]] = {
    "a table twice": (lambda s: s.create_table("SALES", "x INT"), hw.NameTaken, "a table 'sales' already"),
    "a table over a view": (lambda s: s.create_table("Totals", "x INT"), hw.NameTaken, "a view 'totals' already"),
    "a view twice": (lambda s: s.create_view("TOTALS", "SELECT 1 AS a"), hw.NameTaken, "a view 'totals' already"),
    "a view over a table": (lambda s: s.create_view("sales", "SELECT 1 AS a"), hw.NameTaken, "a table 'sales' already"),
    "a table replaced": (
        lambda s: s.sql("CREATE OR REPLACE LIVE VIEW sales AS SELECT 1 AS a"),
        hw.NameTaken,
        "a table 'sales' already",
    ),
    "no name": (lambda s: s.create_table("  ", "x INT"), hw.InvalidName, "cannot be the name"),
    "a name with a zero": (lambda s: s.create_table("a\0b", "x INT"), hw.InvalidName, "cannot be the name"),
    "a number as name": (lambda s: s.create_view(5, "SELECT 1 AS a", replace=True), hw.InvalidName, "5"),  # type: ignore[arg-type]
    "a name in two parts": (lambda s: s.sql("CREATE TABLE a.b (x INT)"), hw.InvalidName, "'a'"),
    "a view that reads itself": (
        lambda s: s.create_view("totals", "SELECT x, n, total FROM totals", replace=True),
        hw.ViewCycle,
        "'totals' would read itself",
    ),
    "views in a circle": (
        lambda s: s.create_view("totals", "SELECT CAST(n AS INT) AS x, m AS n, m AS total FROM counts", replace=True),
        hw.ViewCycle,
        "'totals' would read itself",
    ),
    "drop of a table that is read": (lambda s: s.drop_table("sales"), hw.DependentViews, "'totals' read it; drop them first"),
    "drop of a view that is read": (lambda s: s.sql("DROP LIVE VIEW totals"), hw.DependentViews, "'counts' read it"),
    "drop of nothing": (lambda s: s.drop_view("nope"), hw.UnknownName, "no view 'nope'; there are:"),
    "drop of a view as table": (lambda s: s.sql("DROP TABLE totals"), hw.UnknownName, "'totals' is a view"),
    "drop of a table as view": (lambda s: s.drop_view("sales"), hw.UnknownName, "'sales' is a table"),
    "no columns": (lambda s: s.create_table("new", ""), hw.InvalidSchema, "at least one column"),
    "no type": (lambda s: s.create_table("new", "x"), hw.InvalidSchema, "PARSE_SYNTAX_ERROR"),
    "unknown type": (lambda s: s.create_table("new", "x NOPE"), hw.InvalidSchema, "NOPE"),
    "a column twice": (lambda s: s.create_table("new", "x INT, X INT"), hw.InvalidSchema, "'X' comes twice"),
    "a schema that is none": (lambda s: s.create_table("new", 5), hw.InvalidSchema, "at least one column"),  # type: ignore[arg-type]
    "an unknown key": (lambda s: s.create_table("new", "x INT", key="z"), hw.UnknownName, "'z' is not a column"),
    "a key twice": (lambda s: s.create_table("new", "x INT", key=["x", "X"]), hw.InvalidSchema, "different columns"),
    "an empty key": (lambda s: s.create_table("new", "x INT", key=[]), hw.InvalidSchema, "different columns"),
    "a number as key": (lambda s: s.create_table("new", "x INT", key=[0]), hw.InvalidSchema, "different columns"),  # type: ignore[list-item]
    "two keys": (lambda s: s.sql("CREATE TABLE new (x INT PRIMARY KEY, y INT PRIMARY KEY)"), hw.InvalidSchema, "PRIMARY KEY"),
    "an unknown policy": (lambda s: s.create_view("new", "SELECT 1 AS a", refresh="often"), hw.NotSupported, "'often'"),
    "a view of a number": (lambda s: s.create_view("new", 5), hw.NotSupported, "not of int"),  # type: ignore[arg-type]
    "an unknown view": (lambda s: s.view("nope"), hw.UnknownName, "no view 'nope'"),
    "an unknown table": (lambda s: s.table("nope"), hw.UnknownName, "no table 'nope'"),
    "a frame of nothing": (lambda s: s.dataframe("nope"), hw.UnknownName, "no table or view 'nope'"),
    "describe nothing": (lambda s: s.sql("DESCRIBE nope"), hw.UnknownName, "'nope'"),
    "explain a table": (lambda s: s.sql("EXPLAIN LIVE VIEW sales"), hw.UnknownName, "'sales' is a table"),
    "explain as a song": (lambda s: s.view("totals").explain("song"), hw.NotSupported, "'song'"),
    "two statements": (lambda s: s.sql("DELETE FROM sales; DROP TABLE bag"), hw.NotSupported, "one statement at a time"),
    "no statement": (lambda s: s.sql("-- nothing"), hw.InvalidQuery, "no statement"),
    "a statement of Spark": (lambda s: s.sql("SET spark.sql.ansi.enabled = false"), hw.NotSupported, "not a statement"),
    "a statement within a transaction": (
        lambda s: _in_transaction(s, lambda t: t.sql("DROP TABLE bag")),
        hw.NotSupported,
        "INSERT, UPDATE, DELETE and MERGE",
    ),
    "a frame with random numbers": (
        lambda s: s.create_view("new", s.dataframe("sales").selectExpr("rand() AS r")),
        hw.NonDeterministic,
        "Rand",
    ),
}


def _in_transaction(session: hw.Session, change: Callable[[Any], Any]) -> None:
    with session.transaction() as transaction:
        transaction.delete("sales", [(1, 1, 10)])
        change(transaction)


@pytest.mark.parametrize("case", DEFINITIONS)
def test_definitions_that_are_refused(session: hw.Session, case: str) -> None:
    call, error, part = DEFINITIONS[case]
    with refused(session, error, part):
        call(session)


def test_views_over_functions_marked_as_not_deterministic_are_refused(session: hw.Session, spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    spark.udf.register("dice", udf(lambda: 4, "int").asNondeterministic())
    with refused(session, hw.NonDeterministic, "marked non-deterministic"):
        session.create_view("new", "SELECT dice() AS d FROM sales")


def test_after_all_that_the_session_works_and_is_exact(session: hw.Session) -> None:
    session.insert("sales", [(4, 2, 5), (5, None, 7)])
    session.delete("sales", [(1, 1, 10)])
    oracle = Oracle(session, {"totals": TOTALS})
    oracle.check(session.view("totals"), TOTALS)
    oracle.check(session.view("counts"), COUNTS)
    session.delete("sales", [(4, 2, 5), (5, None, 7)])
    session.insert("sales", [(1, 1, 10)])


# -- what must simply work

NAMES = ["a.b", "a b", "`", '"; DROP TABLE sales; --', "ä𝄞", "SELECT", "[x]", "a\nb", "x" * 300]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_names_of_any_kind(session: hw.Session, name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    table = session.create_table(name, f"{quoted} INT, other INT", key=name)
    view = session.create_view(
        f"{name} view", f"SELECT {quoted} + 1 AS {quoted}, count(*) AS `group` FROM {quoted} GROUP BY {quoted}"
    )
    session.insert(name.upper(), [(1, 1), (5, 5)])
    session.sql(f"UPDATE {quoted} SET {quoted} = 7 WHERE {quoted} = 5")
    session.sql(f"DELETE FROM {quoted} WHERE other = 1")
    assert (table.name, table.key, table.rows()) == (name, (name,), [(7, 5)])
    assert (view.rows(), view.arrow().column_names) == ([(8, 1)], [name, "group"])
    assert session.sql(f"SELECT * FROM {quoted} JOIN `{view.name.replace('`', '``')}` ON true").rows() == [(7, 5, 8, 1)]
    with refused(session, hw.DependentViews, "read it"):
        table.drop()
    view.drop()
    table.drop()


def test_names_are_found_in_any_case_and_shown_as_they_were_given(session: hw.Session) -> None:
    session.sql("CREATE TABLE Mixed (Id INT PRIMARY KEY, NaMe STRING)")
    view = session.sql("CREATE LIVE VIEW MixedView AS SELECT ID, name, NAME AS Third FROM mIXED")
    session.insert("MIXED", [{"ID": 1, "name": "a"}])
    assert session.table("mixed").arrow().column_names == ["Id", "NaMe"]
    assert view.arrow().to_pylist() == [{"ID": 1, "name": "a", "Third": "a"}]
    assert "MixedView" in session.views()
    assert session.view("mixedVIEW").rows() == view.rows()
    view.drop()
    session.sql("DROP TABLE MiXeD")


def test_values_are_never_read_as_sql(session: hw.Session) -> None:
    evil = ["'; DROP TABLE sales; --", "{c0} %s {} \\' \" ` \n \\", "' OR '1' = '1", "a\0b"]
    session.create_table("notes", "id INT, note STRING", key="id")
    session.insert("notes", list(enumerate(evil)))
    view = session.create_view(
        "noted", "SELECT note, count(*) AS n, concat(note, '{c0} \\' \" %') AS c FROM notes GROUP BY note"
    )
    assert sorted(row[0] for row in view.rows()) == sorted(evil)
    assert sorted(row[2] for row in view.rows()) == sorted(note + "{c0} ' \" %" for note in evil)
    session.sql("UPDATE notes SET note = '\\'; DELETE FROM notes; --' WHERE id = 3")
    session.delete("notes", [(0, evil[0])])
    assert {row[1] for row in session.table("notes").rows()} == {*evil[1:3], "'; DELETE FROM notes; --"}
    assert "sales" in session.tables()
    view.drop()
    session.drop_table("notes")


def test_nan_is_one_key_and_so_are_both_zeros(session: hw.Session) -> None:
    session.create_table("floats", "k DOUBLE, v INT", key="k")
    session.create_table("left", "k DOUBLE, a INT")
    joined, grouped = (
        "SELECT l.k, a, v FROM left l JOIN floats f ON l.k = f.k",
        "SELECT k, count(*) AS n, sum(a) AS s FROM left GROUP BY k",
    )
    views = {joined: session.create_view("joined", joined), grouped: session.create_view("grouped", grouped)}
    session.insert("floats", [(NAN, 1), (0.0, 2)])
    session.insert("left", [(NAN, 1), (NAN, 1), (0.0, 3), (-0.0, 4), (None, 5)])
    for key in (NAN, -0.0):
        with refused(session, hw.DuplicateKey, "already"):
            session.insert("floats", [(key, 5)])
    oracle = Oracle(session)
    session.upsert("floats", [(NAN, 9), (-0.0, 8)])
    for query, view in views.items():
        oracle.check(view, query)
    assert len(views[joined]) == 4
    session.delete("left", [(NAN, 1), (-0.0, 4)])
    session.delete("floats", [(NAN, 9)])
    for query, view in views.items():
        oracle.check(view, query)
        view.drop()
    session.drop_table("floats")
    session.drop_table("left")


def test_empty_batches_of_every_kind(session: hw.Session) -> None:
    before = picture(session)[1:]
    for rows in ([], iter(()), pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.int32()), "y": pa.nulls(0)})):
        session.insert("sales", rows)
    session.delete("sales", [])
    session.upsert("sales", [])
    session.sql("DELETE FROM sales WHERE id = 12345")
    with session.transaction():
        pass
    assert picture(session)[1:] == before


def test_tables_without_rows(session: hw.Session) -> None:
    session.create_table("empty", "k INT, v INT")
    queries = {
        "e1": "SELECT count(*) AS n, sum(v) AS s, max(k) AS m FROM empty",
        "e2": "SELECT k, count(*) AS n FROM empty GROUP BY k",
        "e3": "SELECT s.id, e.v FROM sales s LEFT JOIN empty e ON s.id = e.k",
        "e4": "SELECT * FROM empty ORDER BY v LIMIT 3",
    }
    views = {name: session.create_view(name, query) for name, query in queries.items()}
    oracle = Oracle(session)
    for _ in range(2):
        for name, query in queries.items():
            oracle.check(views[name], query)
        session.insert("empty", [(1, 1), (1, None), (None, 2)])
        for name, query in queries.items():
            oracle.check(views[name], query)
        session.sql("DELETE FROM empty")
    assert views["e1"].rows() == [(0, None, None)]
    for view in views.values():
        view.drop()
    session.drop_table("empty")


def test_duplicates_are_counted(session: hw.Session) -> None:
    session.create_table("pairs", "a INT, b STRING")
    view = session.create_view("seen", "SELECT b, a + 1 AS c FROM pairs")
    session.insert("pairs", [(1, "x")] * 3 + [(None, None)] * 2)
    session.delete("pairs", [(1, "x")] * 2 + [(None, None)])
    assert sorted(view.rows(), key=str) == [("x", 2), (None, None)]
    assert len(session.table("pairs")) == len(view) == 2
    view.drop()
    session.drop_table("pairs")


def test_megabytes_in_one_value(session: hw.Session) -> None:
    text, data = "ä𝄞x" * 300_000, b"\0" * 2_000_000
    session.create_table("large", "id INT, t STRING, b BINARY", key="id")
    grouped = session.create_view("by_text", "SELECT t, count(*) AS n, max(length(b)) AS m FROM large GROUP BY t")
    session.insert("large", [(1, text, data), (2, text, b"")])
    assert grouped.rows() == [(text, 2, 2_000_000)]
    with refused(session, hw.MissingRow, "…)"):
        session.delete("large", [(3, text, b"")])
    session.delete("large", [(1, text, data)])
    assert grouped.rows() == [(text, 1, 0)]
    grouped.drop()
    session.drop_table("large")


def test_five_hundred_columns(session: hw.Session) -> None:
    session.create_table("wide", ", ".join(f"c{i} INT" for i in range(500)))
    some = session.create_view("some", "SELECT * FROM wide WHERE c499 IS NULL OR c0 < 5")
    sums = session.create_view(
        "sums", f"SELECT c7, {', '.join(f'sum(c{i}) AS s{i}' for i in range(0, 500, 5))} FROM wide GROUP BY c7"
    )
    full, empty = tuple(range(500)), (None,) * 500
    session.insert("wide", [full, full, empty])
    session.delete("wide", [full])
    assert sorted(some.rows(), key=str) == sorted([full, empty], key=str)
    assert set(sums.rows()) == {(7, *range(0, 500, 5)), (None,) * 101}
    for view in (some, sums):
        view.drop()
    session.drop_table("wide")


def test_deep_nesting(session: hw.Session) -> None:
    kind, value, expression = "INT", 7, "id"
    for i in range(20):
        kind, value = f"STRUCT<f{i}: {kind}, g{i}: ARRAY<ARRAY<INT>>>", {f"f{i}": value, f"g{i}": [[i], [], None]}
        expression = f"({expression} + IF(id > {i}, 1, abs(id)))"
    query = "SELECT * FROM deep"
    for i in range(20):
        query = f"SELECT * FROM ({query}) WHERE id <> {i + 100}"
    session.create_table("deep", f"d {kind}, id INT", key="id")
    path = ".".join(f"f{i}" for i in reversed(range(20)))
    view = session.create_view("dived", f"SELECT d.{path} AS x, {expression} AS y FROM ({query})")
    session.insert("deep", [(value, 1), (None, 100), (None, 200)])
    assert sorted(view.rows(), key=str) == sorted([(7, 21), (None, 220)], key=str)
    session.delete("deep", [(value, 1)])
    assert view.rows() == [(None, 220)]
    view.drop()
    session.drop_table("deep")


def test_conditions_within_conditions(session: hw.Session) -> None:
    """Catalyst's JSON doubles with each level, so Spark keeps these; and what is hidden within them is found all the same."""
    from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)

    chosen, text = F.col("x"), "x"
    for i in range(40):
        chosen = F.when(F.col("x") == i, i * i).otherwise(chosen)
        text = f"CASE WHEN x = {i} THEN {i * i} ELSE {text} END"
    views = {
        "by_frame": session.create_view("by_frame", session.dataframe("sales").select(chosen.alias("c"))),
        "by_text": session.create_view("by_text", f"SELECT {text} AS c FROM sales"),
    }
    with refused(session, hw.NonDeterministic, "Rand"):
        session.create_view("mine", f"SELECT {text.replace('ELSE x END', 'ELSE rand() END')} AS c FROM sales")
    with refused(session, hw.NotIncremental, "more than 10 deep"):
        session.create_view("mine", f"SELECT {text} AS c FROM sales", refresh="incremental")
    session.insert("sales", [(9, 9, 9)])
    for view in views.values():
        assert sorted(view.rows()) == [(1,), (1,), (4,), (81,)]
        assert view.maintenance == "recomputed"
        view.drop()
    session.delete("sales", [(9, 9, 9)])
