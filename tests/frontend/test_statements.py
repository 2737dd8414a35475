"""Statements: what each text is read as, what is refused and how; and the SELECTs for changes, executed by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.errors import HeadwaterError, InvalidName, InvalidQuery, InvalidRows, InvalidSchema, NotSupported, UnknownName
from headwater.frontend.statements import (
    Assignment,
    Clause,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Merge,
    Query,
    ShowTables,
    ShowViews,
    Statement,
    TargetColumn,
    Update,
    merged_actions,
    parse,
    quote,
    select_deleted,
    select_inserted,
    select_merged,
    select_updated,
    target_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

READ: list[tuple[str, Statement]] = [
    ("SELECT 1", Query("SELECT 1")),
    ("-- why\nselect ';' /* ; */ -- end;\n ; ", Query("select ';'")),
    ("(SELECT 1) UNION (SELECT 2);;", Query("(SELECT 1) UNION (SELECT 2)")),
    (
        "WITH a (x) AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b",
        Query("WITH a (x) AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b"),
    ),
    ("FROM t SELECT delete, `insert`", Query("FROM t SELECT delete, `insert`")),
    ("VALUES (1, 'a'), (2, ')')", Query("VALUES (1, 'a'), (2, ')')")),
    ("TABLE t", Query("TABLE t")),
    ("SELECT delete FROM t", Query("SELECT delete FROM t")),
    (
        "SELECT r'\\' AS a, 'it''s' AS b, '\\'' AS c, \"\\\"\" AS d",
        Query("SELECT r'\\' AS a, 'it''s' AS b, '\\'' AS c, \"\\\"\" AS d"),
    ),
    ("SELECT /* a /* b */ ' */ 1", Query("SELECT /* a /* b */ ' */ 1")),
    ("-- a \\\n; '\nSELECT 1", Query("SELECT 1")),
    ("SELECT /*+ BROADCAST(t) */ 1 FROM t", Query("SELECT /*+ BROADCAST(t) */ 1 FROM t")),
    ("CREATE TABLE t (a INT)", CreateTable("t", "a INT", None, if_not_exists=False)),
    ("create table if not exists t (a int not null);", CreateTable("t", "a int not null", None, if_not_exists=True)),
    (
        "CREATE TABLE t (a INT, PRIMARY KEY (a, `b c`), `b c` STRING)",
        CreateTable("t", "a INT, `b c` STRING", ("a", "b c"), if_not_exists=False),
    ),
    (
        "CREATE TABLE `täb``le` (id INT PRIMARY KEY NOT NULL COMMENT '(', -- ,\n m MAP<STRING, ARRAY<INT>>, d DECIMAL(9, 2))",
        CreateTable(
            "täb`le",
            "id INT NOT NULL COMMENT '(', m MAP<STRING, ARRAY<INT>>, d DECIMAL(9, 2)",
            ("id",),
            if_not_exists=False,
        ),
    ),
    ("CREATE TABLE select (primary INT, key INT)", CreateTable("select", "primary INT, key INT", None, if_not_exists=False)),
    ("CREATE TABLE größe (a INT)", CreateTable("größe", "a INT", None, if_not_exists=False)),
    (
        "CREATE TABLE t (a INT, ts TIMESTAMP) WITH (ttl = '10 minutes', event_time = `ts`)",
        CreateTable("t", "a INT, ts TIMESTAMP", None, if_not_exists=False, ttl="10 minutes", event_time="ts"),
    ),
    ("INSERT INTO t VALUES (1), (2)", Insert("t", None, "VALUES (1), (2)")),
    ("INSERT INTO TABLE t (a, `b`) SELECT 1, 2", Insert("t", ("a", "b"), "SELECT 1, 2")),
    ("INSERT INTO t (SELECT a FROM s)", Insert("t", None, "(SELECT a FROM s)")),
    ("INSERT INTO t (TABLE s) UNION ALL VALUES (1)", Insert("t", None, "(TABLE s) UNION ALL VALUES (1)")),
    ("INSERT INTO t (a) (SELECT 1)", Insert("t", ("a",), "(SELECT 1)")),
    ("INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c", Insert("t", None, "WITH c AS (SELECT 1) SELECT * FROM c")),
    ("UPDATE t SET a = 1", Update("t", None, (Assignment("a", "1"),), None)),
    (
        "UPDATE t AS x SET a = f(b, c), x.b = CASE WHEN a THEN 1 END -- note\n, `c d` = array[1, 2][0] WHERE a > 0 -- end",
        Update(
            "t",
            "x",
            (Assignment("a", "f(b, c)"), Assignment("b", "CASE WHEN a THEN 1 END"), Assignment("c d", "array[1, 2][0]")),
            "a > 0",
        ),
    ),
    (
        "UPDATE t x SET a = (SELECT max(b) FROM s WHERE s.a = x.a)",
        Update("t", "x", (Assignment("a", "(SELECT max(b) FROM s WHERE s.a = x.a)"),), None),
    ),
    ("UPDATE t SET a = t.where WHERE b", Update("t", None, (Assignment("a", "t.where"),), "b")),
    ("DELETE FROM t", Delete("t", None, None)),
    ("DELETE FROM `t` x WHERE x.a IN (SELECT a FROM s)", Delete("t", "x", "x.a IN (SELECT a FROM s)")),
    ("CREATE LIVE VIEW v AS SELECT 1", CreateView("v", "SELECT 1", replace=False, if_not_exists=False, refresh="auto")),
    (
        "CREATE LIVE VIEW v STRATEGY Absorption Eager Every 10 Milliseconds AS SELECT 1",
        CreateView(
            "v",
            "SELECT 1",
            replace=False,
            if_not_exists=False,
            refresh="auto",
            strategy="absorption-eager every 10 milliseconds",
        ),
    ),
    (
        "CREATE OR REPLACE LIVE VIEW `v v` REFRESH Incremental AS (SELECT 1);",
        CreateView("v v", "(SELECT 1)", replace=True, if_not_exists=False, refresh="incremental"),
    ),
    (
        "CREATE LIVE VIEW IF NOT EXISTS v REFRESH FULL AS WITH a AS (SELECT 1) TABLE a",
        CreateView("v", "WITH a AS (SELECT 1) TABLE a", replace=False, if_not_exists=True, refresh="full"),
    ),
    ("DROP TABLE t", Drop("table", "t", if_exists=False)),
    ("DROP LIVE VIEW IF EXISTS `v`", Drop("view", "v", if_exists=True)),
    ("SHOW TABLES", ShowTables()),
    ("show live views;", ShowViews()),
    ("DESCRIBE t", Describe(None, "t")),
    ("DESCRIBE table", Describe(None, "table")),
    ("DESC TABLE t", Describe("table", "t")),
    ("DESCRIBE LIVE VIEW v", Describe("view", "v")),
    ("EXPLAIN LIVE VIEW v", Explain("v", "text")),
    ("EXPLAIN LIVE VIEW `a b` FORMAT Mermaid", Explain("a b", "mermaid")),
    (
        """MERGE INTO t AS a USING (SELECT * FROM s WHERE x) AS b ON a.id = CASE WHEN b.id > 0 THEN b.id END
        WHEN MATCHED AND a.x = CASE WHEN NOT matched THEN 1 END THEN UPDATE SET x = b.x, a.y = CASE WHEN 1 THEN 2 END
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED BY TARGET AND b.x > 0 THEN INSERT (id, a.x) VALUES (b.id, f(b.x, 1))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND x THEN UPDATE SET x = x + 1
        WHEN NOT MATCHED BY SOURCE THEN DELETE""",
        Merge(
            "t",
            "a",
            "(SELECT * FROM s WHERE x)",
            "b",
            None,
            "a.id = CASE WHEN b.id > 0 THEN b.id END",
            (
                Clause(
                    "matched",
                    "a.x = CASE WHEN NOT matched THEN 1 END",
                    "update",
                    (Assignment("x", "b.x"), Assignment("y", "CASE WHEN 1 THEN 2 END")),
                ),
                Clause("matched", None, "delete"),
                Clause("not matched", "b.x > 0", "insert", (Assignment("id", "b.id"), Assignment("x", "f(b.x, 1)"))),
                Clause("not matched", None, "insert", None),
                Clause("not matched by source", "x", "update", (Assignment("x", "x + 1"),)),
                Clause("not matched by source", None, "delete"),
            ),
        ),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        Merge("t", None, "s", "s", None, "t.id = s.id", (Clause("matched", None, "update", None),)),
    ),
    (
        "MERGE INTO t USING (VALUES (1)) b(id) ON t.id = b.id WHEN MATCHED THEN DELETE",
        Merge("t", None, "(VALUES (1))", "b", ("id",), "t.id = b.id", (Clause("matched", None, "delete"),)),
    ),
]


@pytest.mark.parametrize(("text", "statement"), READ, ids=[text for text, _ in READ])
def test_reads(text: str, statement: Statement) -> None:
    assert parse(text) == statement


REFUSED: list[tuple[str, type[HeadwaterError], str]] = [
    ("", InvalidQuery, "there is no statement"),
    (" -- only a comment\n;", InvalidQuery, "accepted are CREATE TABLE"),
    ("SELECT 1; SELECT 2", NotSupported, "one statement at a time"),
    ("CREATE VIEW v AS SELECT 1", NotSupported, "CREATE LIVE VIEW"),
    ("DROP VIEW v", NotSupported, "live"),
    ("ALTER TABLE t ADD COLUMN a INT", NotSupported, "accepted are"),
    ("SET a = 1", NotSupported, "accepted are"),
    ("EXPLAIN SELECT 1", NotSupported, "EXPLAIN LIVE VIEW"),
    ("INSERT OVERWRITE t SELECT 1", NotSupported, "INSERT INTO"),
    ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", NotSupported, "within a query"),
    ("FROM s INSERT OVERWRITE DIRECTORY '/x' SELECT a", NotSupported, "within a query"),
    ("CREATE LIVE VIEW v AS WITH a AS (SELECT 1) DELETE FROM t", NotSupported, "within a query"),
    ("CREATE LIVE VIEW v AS DROP TABLE t", InvalidQuery, "expected a query"),
    ("CREATE LIVE VIEW v AS", InvalidQuery, "expected a query"),
    ("CREATE LIVE VIEW v STRATEGY ABSORPTION EAGER EVERY AS SELECT 1", InvalidQuery, "expected a number of rows, or a span"),
    ("CREATE TABLE t (a INT) WITH (ttl = )", InvalidQuery, "expected a text such as '10 minutes'"),
    ("CREATE LIVE VIEW v REFRESH daily AS SELECT 1", InvalidQuery, "AUTO or INCREMENTAL or FULL at line 1, column 28: daily"),
    ("CREATE OR REPLACE LIVE VIEW IF NOT EXISTS v AS SELECT 1", InvalidQuery, "not with both"),
    ("CREATE TABLE t AS SELECT 1", InvalidQuery, "takes a list of columns"),
    ("CREATE TABLE t (a INT) USING parquet", NotSupported, "nothing after them"),
    ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", InvalidSchema, "more than one PRIMARY KEY"),
    ("CREATE TABLE t (PRIMARY KEY (a))", InvalidSchema, "no columns"),
    ("CREATE TABLE t ()", InvalidQuery, "a column name"),
    ("CREATE TABLE t (a)", InvalidQuery, "the type of column 'a'"),
    ("CREATE TABLE t (a INT,)", InvalidQuery, "a column name"),
    ("CREATE TABLE c.d.t (a INT)", InvalidName, "one part"),
    ("CREATE TABLE `` (a INT)", InvalidName, "empty"),
    ("CREATE TABLE 't' (a INT)", InvalidName, "backquotes"),
    ("CREATE TABLE 12 (a INT)", InvalidName, "number"),
    ("INSERT INTO db.t VALUES (1)", InvalidName, "one part"),
    ("INSERT INTO t (a.b) VALUES (1)", InvalidName, "one part"),
    ("INSERT INTO t ('a') VALUES (1)", InvalidName, "string"),
    ("INSERT INTO t (a, A) VALUES (1, 2)", InvalidQuery, "twice"),
    ("INSERT INTO t", InvalidQuery, "expected a query"),
    ("INSERT INTO t (a)", InvalidQuery, "expected"),
    ("UPDATE t SET", InvalidQuery, "a column name"),
    ("UPDATE t SET a = WHERE b", InvalidQuery, "an expression"),
    ("UPDATE t SET a = 1,", InvalidQuery, "a column name"),
    ("UPDATE t SET a = 1, a = 2", InvalidQuery, "two values"),
    ("UPDATE t SET a.b = 1", NotSupported, "whole columns"),
    ("UPDATE t SET a = 1 WHERE", InvalidQuery, "a condition"),
    ("DELETE t WHERE a", NotSupported, "DELETE FROM"),
    ("DELETE FROM t WHERE", InvalidQuery, "a condition"),
    ("DELETE FROM t x y", InvalidQuery, "the end"),
    ("DELETE FROM t WHERE a = 'x", InvalidQuery, "this string does not end (line 1, column 25)"),
    ("SELECT `a", InvalidQuery, "name in backquotes does not end"),
    ("SELECT 1 /* x", InvalidQuery, "comment does not end"),
    ("SELECT (1", InvalidQuery, "a ) is missing"),
    ("DELETE FROM t WHERE a) OR (b", InvalidQuery, ") closes nothing"),
    ("SELECT [1)", InvalidQuery, ") closes nothing"),
    ("MERGE INTO t USING s ON a", InvalidQuery, "expected WHEN"),
    ("MERGE INTO t USING a.s ON a WHEN MATCHED THEN DELETE", InvalidName, "one part"),
    ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN DELETE", InvalidQuery, "INSERT"),
    ("MERGE INTO t USING s ON a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", InvalidQuery, "a column name"),
    ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", InvalidQuery, "2 columns but gives 1"),
    ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a) VALUES ()", InvalidQuery, "an expression"),
    ("MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE WHEN MATCHED AND b THEN DELETE", InvalidQuery, "never apply"),
    ("EXPLAIN LIVE VIEW v FORMAT xml", InvalidQuery, "TEXT or JSON or MERMAID"),
    ("SHOW TABLES IN x", InvalidQuery, "the end of the statement"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_refuses(text: str, error: type[HeadwaterError], message: str) -> None:
    with pytest.raises(error) as raised:
        parse(text)
    assert message in str(raised.value)


def test_reads_long_texts() -> None:
    value = "x''" * 400_000
    statement = parse(f"INSERT INTO t VALUES ('{value}')")
    assert statement == Insert("t", None, f"VALUES ('{value}')")


def test_quote_escapes() -> None:
    assert quote("a`b") == "`a``b`"


COLUMNS = (TargetColumn("id", "INT"), TargetColumn("Väl`ue", "BIGINT"), TargetColumn("note", "STRING"))
ROWS = [(1, 10, "a"), (2, 20, None), (2, 20, None), (3, None, "c")]
SOURCE = [(2, 200, "new"), (4, 400, "four"), (4, 400, "four"), (5, None, None)]


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    for name, rows in (("t`t", ROWS), ("s", SOURCE)):
        spark.createDataFrame(rows, "id INT, `Väl``ue` BIGINT, note STRING").createOrReplaceTempView(quote(name))
    yield spark
    for name in ("t`t", "s"):
        spark.catalog.dropTempView(quote(name))


def answer(spark: SparkSession, select: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in spark.sql(select).collect()), key=repr)


def test_select_inserted(tables: SparkSession) -> None:
    insert = parse("INSERT INTO `t``t` (NOTE, id) SELECT 7 AS x, '8' AS x -- both cast")
    assert isinstance(insert, Insert)
    assert answer(tables, select_inserted(insert, COLUMNS)) == [(8, None, "7")]
    everything = parse("INSERT INTO `t``t` VALUES (1, 2, 'x'), (3, NULL, NULL)")
    assert isinstance(everything, Insert)
    assert answer(tables, select_inserted(everything, COLUMNS)) == [(1, 2, "x"), (3, None, None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "UPDATE `t``t` SET note = 1 -- one\n, `väl``ue` = id + `Väl``ue` WHERE id < 3 OR note = 'z' -- end",
            [(1, 10, "a", 1, 11, "1"), (2, 20, None, 2, 22, "1"), (2, 20, None, 2, 22, "1")],
        ),
        (
            "UPDATE `t``t` AS x SET x.id = (SELECT max(s.id) FROM s WHERE s.id >= x.id) WHERE x.id NOT IN (SELECT id FROM s)",
            [(1, 10, "a", 5, 10, "a"), (3, None, "c", 5, None, "c")],
        ),
        ("UPDATE `t``t` SET id = 1 / (id - 1) WHERE id > 5", []),
    ],
)
def test_select_updated(tables: SparkSession, text: str, expected: list[tuple[object, ...]]) -> None:
    update = parse(text)
    assert isinstance(update, Update)
    assert answer(tables, select_updated(update, COLUMNS)) == expected


def test_expressions_see_no_names_of_ours(tables: SparkSession) -> None:
    update = parse("UPDATE `t``t` SET id = o0")
    assert isinstance(update, Update)
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        tables.sql(select_updated(update, COLUMNS))


@pytest.mark.parametrize("text", ["DELETE FROM t WHERE a GROUP BY b", "DELETE FROM t WHERE a -- \\\n) OR (b\n UNION SELECT 1"])
def test_conditions_cannot_leave_their_place(spark: SparkSession, text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, Delete)
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        spark.sql(select_deleted(statement, COLUMNS))


@pytest.mark.parametrize("text", ["UPDATE t SET id = 1 AS x", "UPDATE t SET id = 1 FROM s"])
def test_expressions_cannot_leave_their_place(spark: SparkSession, text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, Update)
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        spark.sql(select_updated(statement, COLUMNS))


def test_unknown_columns_are_named() -> None:
    update, insert = parse("UPDATE t SET nope = 1"), parse("INSERT INTO t (id, nope) VALUES (1, 2)")
    assert isinstance(update, Update)
    assert isinstance(insert, Insert)
    with pytest.raises(UnknownName, match="no column 'nope'"):
        select_updated(update, COLUMNS)
    with pytest.raises(UnknownName, match="no column 'nope'"):
        select_inserted(insert, COLUMNS)


def test_select_deleted(tables: SparkSession) -> None:
    delete = parse("DELETE FROM `t``t` x WHERE EXISTS (SELECT 1 FROM s WHERE s.id = x.id)")
    assert isinstance(delete, Delete)
    assert answer(tables, select_deleted(delete, COLUMNS)) == [(2, 20, None), (2, 20, None)]
    everything = parse("DELETE FROM `t``t`")
    assert isinstance(everything, Delete)
    assert answer(tables, select_deleted(everything, COLUMNS)) == sorted(ROWS, key=repr)


def merged(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    merge = parse(text)
    assert isinstance(merge, Merge)
    done = merged_actions(spark.sql(select_merged(merge, COLUMNS)).toArrow())
    return sorted((tuple(row.values()) for row in done.to_pylist()), key=repr)


NOTHING = (None, None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "MERGE INTO `t``t` USING s ON `t``t`.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            [
                ("I", *NOTHING, 4, 400, "four"),
                ("I", *NOTHING, 4, 400, "four"),
                ("I", *NOTHING, 5, None, None),
                ("U", 2, 20, None, 2, 200, "new"),
                ("U", 2, 20, None, 2, 200, "new"),
            ],
        ),
        (
            # the first clause that applies wins; each kind sees its own side, so the names below are not ambiguous
            """MERGE INTO `t``t` AS a USING (SELECT * FROM s) AS b ON a.id = b.id -- pairs
            WHEN MATCHED AND b.note = 'old' THEN DELETE
            WHEN MATCHED THEN UPDATE SET `Väl``ue` = a.`väl``ue` + b.`väl``ue` -- sum
            WHEN NOT MATCHED AND id = 4 THEN INSERT (note, id) VALUES (concat(note, '!'), id)
            WHEN NOT MATCHED BY SOURCE AND id = 1 THEN DELETE
            WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = upper(note)""",
            [
                ("D", 1, 10, "a", *NOTHING),
                ("I", *NOTHING, 4, None, "four!"),
                ("I", *NOTHING, 4, None, "four!"),
                ("U", 2, 20, None, 2, 220, None),
                ("U", 2, 20, None, 2, 220, None),
                ("U", 3, None, "c", 3, None, "C"),
            ],
        ),
        (
            # many matches delete once
            "MERGE INTO `t``t` a USING (VALUES (1), (1), (3)) AS b(k) ON a.id = b.k WHEN MATCHED THEN DELETE",
            [("D", 1, 10, "a", *NOTHING), ("D", 3, None, "c", *NOTHING)],
        ),
        ("MERGE INTO `t``t` a USING s ON a.id = s.id WHEN MATCHED AND s.note IS NULL THEN DELETE", []),
        (
            # what is not taken is not evaluated
            "MERGE INTO `t``t` a USING s ON a.id = s.id WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id) VALUES (1 / (s.id - 4))",
            [("I", *NOTHING, 1, None, None)],
        ),
        (
            "MERGE INTO `t``t` USING (SELECT 9 AS k) ON id > k WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
            [("I", *NOTHING, 9, None, None)],
        ),
    ],
)
def test_select_merged(tables: SparkSession, text: str, expected: list[tuple[object, ...]]) -> None:
    assert merged(tables, text) == expected


def test_merge_refuses_two_matches_even_without_action(tables: SparkSession) -> None:
    with pytest.raises(InvalidRows, match="MERGE_CARDINALITY_VIOLATION"):
        merged(tables, "MERGE INTO `t``t` a USING (VALUES (1), (1)) AS b(k) ON a.id = b.k WHEN MATCHED AND b.k = 2 THEN DELETE")


def test_target_columns_are_types_that_spark_reads(spark: SparkSession) -> None:
    from pyspark.sql.types import StructType

    ddl = (
        "a STRUCT<`x y`: INT, `b``c`: ARRAY<STRUCT<`p,q`: MAP<STRING, DECIMAL(9, 2)>>>>, b INTERVAL DAY TO SECOND, c VARIANT, "
        "d TIMESTAMP_NTZ, e INTERVAL YEAR TO MONTH, f BINARY, g STRING COLLATE UTF8_LCASE, h TIMESTAMP, i STRUCT<>"
    )
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    casts = [f"CAST(NULL AS {column.type}) AS {quote(column.name)}" for column in target_columns(schema)]
    assert spark.sql(f"SELECT {', '.join(casts)}").schema == schema


@pytest.mark.parametrize("statement", [statement for _, statement in READ if isinstance(statement, CreateTable)])
def test_spark_reads_the_columns(spark: SparkSession, statement: CreateTable) -> None:
    from pyspark.sql.types import StructType

    assert spark is not None
    assert isinstance(StructType.fromDDL(statement.columns_ddl), StructType)


@pytest.mark.parametrize(
    "text", [text for text, statement in READ if isinstance(statement, Query) and " t" not in text] + ["-- a \\\n b\nSELECT 1"]
)
def test_spark_agrees_on_where_a_query_ends(spark: SparkSession, text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, Query)
    alone = text.rstrip(" ;")
    assert spark.sql(f"SELECT * FROM (\n{statement.text}\n)").collect() == spark.sql(alone).collect()
