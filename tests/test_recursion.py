"""Recursive views in a session: what is refused, where they stop, and that all else works with them."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from typing import TYPE_CHECKING

import duckdb
import pytest

import headwater as hw
from headwater.compiler.dataflow import in_order
from headwater.errors import InvalidQuery, NotStratified, NotSupported, RecursionLimit, UnknownName
from headwater.operators.fixpoint import Fixpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

REACH = (
    "WITH RECURSIVE r(s, d) AS (SELECT src, dst FROM edge UNION SELECT r.s, e.dst FROM r JOIN edge e ON e.src = r.d) "
    "SELECT * FROM r"
)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        session.create_table("edge", "src BIGINT, dst BIGINT, cost INT")
        session.insert("edge", [(1, 2, 5), (2, 3, 1), (3, 1, 1), (3, 4, 2)])
        yield session


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("SELECT src FROM edge UNION SELECT dst FROM edge WHERE dst NOT IN (SELECT n FROM r)", "negation"),
        ("SELECT src FROM edge UNION SELECT dst FROM edge e WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.n = e.dst)", "negation"),
        ("SELECT src FROM edge UNION SELECT count(*) FROM r", "an aggregate over all of its rows"),
        ("SELECT src FROM edge UNION SELECT sum(n) FROM r GROUP BY n % 2", "the aggregate sum"),
        ("SELECT src FROM edge UNION SELECT r.n FROM edge LEFT JOIN r ON r.n = dst", "an outer join"),
        ("SELECT src FROM edge UNION (SELECT n FROM r ORDER BY n LIMIT 1)", "a limit"),
        ("SELECT src FROM edge UNION SELECT rank() OVER (ORDER BY n) FROM r", "a window function"),
        ("SELECT src FROM edge UNION SELECT dst FROM edge WHERE dst > (SELECT max(n) FROM r)", "a scalar subquery over itself"),
    ],
)
def test_not_stratified(session: hw.Session, body: str, said: str) -> None:
    epoch = session.epoch
    with pytest.raises(NotStratified, match="'r' → 'r'") as refused:
        session.create_view("v", f"WITH RECURSIVE r(n) AS ({body}) SELECT * FROM r")
    assert said in str(refused.value)
    assert session.epoch == epoch
    assert not session.views()


def test_the_cycle_is_named(session: hw.Session) -> None:
    with pytest.raises(NotStratified, match="'won' → 'lost' → 'won'"):
        session.create_view(
            "v",
            "WITH RECURSIVE lost(n) AS (SELECT n FROM won WHERE n > 1), "
            "won(n) AS (SELECT src FROM edge UNION SELECT dst FROM edge WHERE dst NOT IN (SELECT n FROM lost)) "
            "SELECT * FROM won",
        )


@pytest.mark.parametrize(
    "step",
    [
        "SELECT e.dst, MIN(10 - p.c) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst",
        "SELECT e.dst, CAST(MIN(CAST(p.c + 1 AS STRING)) AS INT) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst",
        "SELECT e.dst, MIN(p.c + 1) FROM p JOIN edge e ON e.src = p.n WHERE p.c > 3 GROUP BY e.dst",
        "SELECT e.dst, MIN(p.c + 1) FROM p JOIN edge e ON e.src = p.n AND e.cost = p.c GROUP BY e.dst",
        "SELECT p.c, MIN(e.cost) FROM p JOIN edge e ON e.src = p.n GROUP BY p.c",
        "SELECT e.dst, MIN(p.c % 7) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst",
    ],
)
def test_not_monotone(session: hw.Session, step: str) -> None:
    with pytest.raises(NotStratified, match="not monotone"):
        session.create_view("v", f"WITH RECURSIVE p(n, c) AS (SELECT src, 0 FROM edge UNION {step}) SELECT * FROM p")


def test_a_recursion_without_end_stops(session: hw.Session) -> None:
    session.create_table("start", "n BIGINT")
    up = (
        "WITH RECURSIVE r(n) MAX RECURSION LEVEL 50 AS (SELECT n FROM start UNION SELECT n + 1 FROM r WHERE n > 0) "
        "SELECT * FROM r"
    )
    view = session.create_view("up", up)
    session.insert("start", [(0,), (-1,)])
    epoch = session.epoch
    with pytest.raises(RecursionLimit, match=r"'r' has not ended after 50 rounds.*\(51,\)") as stopped:
        session.insert("start", [(1,)])
    assert stopped.value.code == "RECURSION_LIMIT"
    assert session.epoch == epoch
    assert sorted(view.rows()) == [(-1,), (0,)]
    session.insert("start", [(-2,)])
    assert sorted(view.rows()) == [(-2,), (-1,), (0,)]


def test_paths_on_a_cycle_have_no_end(session: hw.Session) -> None:
    session.create_table("link", "a BIGINT, b BIGINT")
    for word in ("UNION ALL", "UNION"):
        session.create_view(
            f"paths_{len(word)}",
            f"WITH RECURSIVE p(a, b, n) MAX RECURSION LEVEL 300 AS (SELECT a, b, 1 FROM link {word} "
            "SELECT p.a, l.b, p.n + 1 FROM p JOIN link l ON l.a = p.b) "
            "SELECT * FROM p",
        )
    session.insert("link", [(1, 2), (2, 3)])
    rows = [(1, 2, 1), (1, 3, 2), (2, 3, 1)]
    assert sorted(session.view("paths_9").rows()) == sorted(session.view("paths_5").rows()) == rows
    with pytest.raises(RecursionLimit, match="300 rounds"):
        session.insert("link", [(3, 1)])
    assert sorted(session.view("paths_9").rows()) == rows
    session.delete("link", [(2, 3)])
    assert session.view("paths_9").rows() == [(1, 2, 1)]


def test_a_cycle_of_negative_costs_is_stopped_soon(session: hw.Session) -> None:
    """Names have no compiled rounds: the limit allows a million of them, which take many minutes."""
    session.create_table("way", "a STRING, b STRING, cost INT")
    cheapest = session.create_view(
        "cheapest",
        "WITH RECURSIVE p(n, c) AS (SELECT 'x', 10 UNION "
        "SELECT w.b, MIN(p.c + w.cost) FROM p JOIN way w ON w.a = p.n GROUP BY w.b) SELECT n, MIN(c) FROM p GROUP BY n",
    )
    session.insert("way", [("x", "y", -2), ("y", "z", 1), ("y", "u", 5), ("u", "y", -5), ("z", "u", 4)])
    rows = [("u", 13), ("x", 10), ("y", 8), ("z", 9)]
    assert sorted(cheapest.rows()) == rows
    with pytest.raises(
        RecursionLimit, match=r"'p \(min\)' would never end.* in the group of \('.', -?\d+\), the MIN makes a better"
    ):
        session.insert("way", [("u", "x", -4), ("z", "x", -1)])
    assert sorted(cheapest.rows()) == rows
    session.insert("way", [("u", "x", -3)])
    assert sorted(cheapest.rows()) == rows


def test_rows_are_limited_by_the_setting_of_spark(session: hw.Session, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.cteRecursionRowLimit", "100")
    try:
        query = (
            "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT a + b, b + 1 FROM r WHERE a < 100000) "
            "SELECT * FROM r"
        )
        with pytest.raises(RecursionLimit, match="100 rows"):
            session.create_view("v", query)
    finally:
        spark.conf.unset("spark.sql.cteRecursionRowLimit")
    assert not session.views()


def test_negative_cycles_have_no_end(session: hw.Session) -> None:
    query = (
        "WITH RECURSIVE p(n, c) MAX RECURSION LEVEL 200 AS (SELECT src, 0 FROM edge WHERE src = 1 UNION "
        "SELECT e.dst, MIN(p.c + e.cost) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst) "
        "SELECT n, MIN(c) AS c FROM p GROUP BY n"
    )
    view = session.create_view("cheapest", query)
    assert sorted(view.rows()) == [(1, 0), (2, 5), (3, 6), (4, 8)]
    session.insert("edge", [(2, 4, -3)])
    assert sorted(view.rows()) == [(1, 0), (2, 5), (3, 6), (4, 2)]
    with pytest.raises(RecursionLimit):
        session.insert("edge", [(3, 2, -4)])
    assert sorted(view.rows()) == [(1, 0), (2, 5), (3, 6), (4, 2)]


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        ("WITH RECURSIVE r(n) AS (SELECT n FROM r) SELECT * FROM r", InvalidQuery, "begins nowhere"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT x FROM r) SELECT * FROM r", UnknownName, "x"),
        ("WITH RECURSIVE r(n, m) AS (SELECT 1 UNION SELECT n FROM r) SELECT * FROM r", InvalidQuery, "names 2 columns"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n, n FROM r) SELECT * FROM r", InvalidQuery, "same number of columns"),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r UNION ALL SELECT 2) SELECT * FROM r",
            NotSupported,
            "not by both",
        ),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r ORDER BY n) SELECT * FROM r", NotSupported, "ORDER"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r EXCEPT SELECT 2) SELECT * FROM r", NotSupported, "EXCEPT"),
        ("WITH RECURSIVE r(n) AS (SELECT 1), r(m) AS (SELECT 2) SELECT * FROM r", InvalidQuery, "twice"),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT a.n FROM r a JOIN r b ON a.n = b.n) SELECT * FROM r",
            NotSupported,
            "twice",
        ),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT DISTINCT n FROM r) SELECT * FROM r", NotSupported, "UNION ALL"),
        ("WITH RECURSIVE r(n) AS (SELECT 1.5 UNION SELECT n * 1.5 FROM r WHERE n < 9) SELECT * FROM r", InvalidQuery, "wider"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r)", InvalidQuery, "a query"),
    ],
)
def test_bad_recursion(session: hw.Session, query: str, error: type[hw.HeadwaterError], said: str) -> None:
    with pytest.raises(error) as refused:
        session.create_view("v", query)
    assert said in str(refused.value)
    assert not session.views()


def test_full_refresh_is_not_for_recursion(session: hw.Session) -> None:
    with pytest.raises(NotSupported, match="refresh auto"):
        session.create_view("v", REACH, refresh="full")


def test_types_become_as_wide_as_needed(session: hw.Session) -> None:
    query = "WITH RECURSIVE r(n, x) AS (SELECT 1, 1 UNION SELECT n + 1L, x / 2D FROM r WHERE n < 3) SELECT * FROM r"
    answer = session.sql(query)
    assert [str(kind) for kind in answer.arrow().schema.types] == ["int64", "double"]
    assert sorted(answer.rows()) == [(1, 1.0), (2, 0.5), (3, 0.25)]


def test_texts_reach_spark_as_written(session: hw.Session) -> None:
    query = """WITH RECURSIVE
      -- a comment with UNION in it, and a ( bracket
      `my rel` (`a b`, c) AS (((SELECT src, 'UNION ) ALL' FROM edge WHERE src = 1)
        UNION DISTINCT /* UNION ALL */ (WITH w AS (SELECT src AS s, dst FROM edge) SELECT w.dst, CASE WHEN true THEN c END
          FROM `my rel` JOIN w ON w.s = `a b`))),
      other AS (SELECT count(*) AS n FROM `My Rel`)
      SELECT `a b`, c, n FROM `my rel` CROSS JOIN other"""
    view = session.sql(f"CREATE LIVE VIEW v AS {query}")
    assert sorted(view.rows()) == [(n, "UNION ) ALL", 4) for n in (1, 2, 3, 4)]


def test_nulls_and_doubles_are_one_value(spark: SparkSession) -> None:
    """As in Spark, NULL joins nothing but is one row of a set; NaN is one; 0.0 and −0.0 are the same."""
    with hw.connect(spark=spark) as session:
        session.create_table("edge", "src DOUBLE, dst DOUBLE")
        view = session.create_view("v", REACH)
        rows = [(0.0, 1.0), (1.0, -0.0), (None, 1.0), (1.0, None), (None, None), (float("nan"), 0.0), (1.0, float("nan"))]
        for row in rows:
            session.insert("edge", [row])
        connection = duckdb.connect()
        connection.execute("CREATE TABLE edge (src DOUBLE, dst DOUBLE)")
        connection.executemany("INSERT INTO edge VALUES (?, ?)", [[0.0 if v == 0 else v for v in row] for row in rows])
        assert Counter(map(str, view.rows())) == Counter(map(str, connection.execute(REACH).fetchall()))
        for row in rows[::-1]:
            session.delete("edge", [row])
        assert view.rows() == []


def test_explain_says_how(session: hw.Session) -> None:
    view = session.create_view("v", REACH)
    text = view.explain()
    assert "Fixpoint r" in text
    assert "strategy counting" in text
    assert "from rows believed before it" in text
    assert "rounds: " in text
    assert view.stats()["class"] == "stateful"


def test_views_on_views_changes_and_the_past(session: hw.Session) -> None:
    reach = session.create_view("reach", REACH)
    session.create_view("sizes", "SELECT s, count(*) AS n FROM reach GROUP BY s")
    twice = session.create_view(
        "twice",
        "WITH RECURSIVE t(n) AS (SELECT 4 UNION SELECT r.s FROM t JOIN reach r ON r.d = t.n WHERE r.s < 4) SELECT * FROM t",
    )
    before = session.epoch
    assert sorted(twice.rows()) == [(1,), (2,), (3,), (4,)]
    session.delete("edge", [(3, 4, 2)])
    assert twice.rows() == [(4,)]
    assert sorted(session.view("sizes").rows()) == [(1, 3), (2, 3), (3, 3)]
    assert sorted(twice.at(before).rows()) == [(1,), (2,), (3,), (4,)]
    ((_, gone),) = reach.changes(since=before)
    assert sorted(zip(*gone.to_pydict().values(), strict=True)) == [(1, 4, -1), (2, 4, -1), (3, 4, -1)]
    session.insert("edge", [(3, 4, 7)])
    session.delete("edge", [(1, 2, 5)])
    assert sorted(reach.rows()) == [(2, 1), (2, 3), (2, 4), (3, 1), (3, 4)]


def test_a_view_is_replaced(session: hw.Session) -> None:
    session.create_view("reach", REACH)
    session.create_view("sizes", "SELECT s, count(*) AS n FROM reach GROUP BY s")
    back = (
        REACH.replace("SELECT src, dst", "SELECT dst, src")
        .replace("r.s, e.dst", "r.s, e.src")
        .replace("e.src = r.d", "e.dst = r.d")
    )
    session.create_view("reach", back, replace=True)
    assert sorted(session.view("sizes").rows()) == [(1, 3), (2, 3), (3, 3), (4, 3)]


def test_a_directory_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    def content(session: hw.Session) -> list[list[tuple[object, ...]]]:
        return [sorted(session.view(name).rows()) for name in ("reach", "cheapest")]

    with hw.connect(tmp_path / "d", spark=spark) as session:
        session.create_table("edge", "src BIGINT, dst BIGINT, cost INT")
        session.insert("edge", [(1, 2, 5), (2, 3, 1), (3, 1, 1), (3, 4, 2)])
        session.create_view("reach", REACH)
        session.create_view(
            "cheapest",
            "WITH RECURSIVE p(n, c) AS (SELECT src, 0 FROM edge WHERE src = 1 UNION "
            "SELECT e.dst, MIN(p.c + e.cost) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst) "
            "SELECT n, MIN(c) FROM p GROUP BY n",
        )
        session.delete("edge", [(3, 1, 1)])
        held = content(session)
    with hw.connect(tmp_path / "d", spark=spark) as session:
        assert content(session) == held
        session.insert("edge", [(4, 1, 1)])
        assert sorted(session.view("reach").rows()) == [(a, b) for a in (1, 2, 3, 4) for b in (1, 2, 3, 4)]
        session.delete("edge", [(2, 3, 1)])
        assert content(session) == [[(1, 2), (3, 1), (3, 2), (3, 4), (4, 1), (4, 2)], [(1, 0), (2, 5)]]


WITHIN = [
    "SELECT d, count(*) AS n FROM ({}) AS x GROUP BY d",
    "SELECT e.src, x.d FROM edge e JOIN ({}) AS x ON e.dst = x.s WHERE e.cost > 1",
    "WITH a AS (SELECT src FROM edge), b AS ({}) SELECT a.src, b.d FROM a JOIN b ON a.src = b.s",
    "SELECT src FROM edge WHERE dst IN (SELECT d FROM ({}) AS x WHERE x.s = 3)",
    "SELECT s, d FROM ({}) AS x WHERE NOT EXISTS (SELECT 1 FROM ({}) AS y WHERE y.s = x.d AND y.d = x.s)",
    "WITH RECURSIVE t(s, d) AS ({} UNION SELECT t.d, t.s FROM t) SELECT * FROM t JOIN ({}) AS y USING (s, d)",
    (
        "WITH RECURSIVE t(n) AS (SELECT s FROM ({}) AS x UNION SELECT n + 1 FROM t WHERE n < 6) "
        "SELECT * FROM (WITH RECURSIVE u(n) AS (SELECT n FROM t UNION SELECT n + 1 FROM u WHERE n < 8) SELECT * FROM u) AS z"
    ),
]


@pytest.mark.parametrize("query", WITHIN)
def test_a_recursion_within_a_query(session: hw.Session, query: str) -> None:
    """Against DuckDB, which knows it anywhere."""
    text = query.replace("({} UNION", f"(SELECT * FROM ({REACH}) AS z UNION").replace("{}", REACH)
    view = session.create_view("v", text)
    connection = duckdb.connect()
    for change in ([(4, 5, 1), (5, 4, 9)], [(9, 1, 2)]):
        session.insert("edge", change)
        connection.execute("CREATE OR REPLACE TABLE edge (src BIGINT, dst BIGINT, cost INT)")
        connection.executemany("INSERT INTO edge VALUES (?, ?, ?)", session.table("edge").rows())
        assert Counter(view.rows()) == Counter(connection.execute(text).fetchall())
    session.delete("edge", [(3, 1, 1), (4, 5, 1)])
    connection.execute("DELETE FROM edge WHERE (src, dst) IN ((3, 1), (4, 5))")
    assert Counter(view.rows()) == Counter(connection.execute(text).fetchall())
    assert Counter(session.sql(text).rows()) == Counter(view.rows())


def test_a_recursion_within_a_query_sees_nothing_of_it(session: hw.Session) -> None:
    for query in (
        (
            "WITH a AS (SELECT * FROM edge) SELECT * FROM (WITH RECURSIVE r(n) AS (SELECT src FROM a UNION SELECT n FROM r) "
            "SELECT * FROM r) AS x"
        ),
        "SELECT * FROM edge o WHERE EXISTS (WITH RECURSIVE r(n) AS (SELECT o.src UNION SELECT n FROM r) SELECT * FROM r)",
        (
            "WITH RECURSIVE t(n) AS (SELECT src FROM edge UNION SELECT n FROM (WITH RECURSIVE u(n) AS (SELECT n FROM t UNION "
            "SELECT n FROM u) SELECT * FROM u) AS x) SELECT * FROM t"
        ),
    ):
        with pytest.raises(NotSupported, match="put it at the beginning"):
            session.create_view("v", query)
    assert not session.views()


def test_compiled_rounds_keep_nulls_narrow_numbers_dates_and_greatest_values(spark: SparkSession) -> None:
    """Values that stand differently in the words of a row, looked up, compared and added; against DuckDB."""
    queries = {
        "reach": "SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON e.src = r.b WHERE e.day >= DATE'2024-01-02'",
        "same": "SELECT src, dst FROM e UNION SELECT e.dst, r.b FROM r JOIN e ON e.src <=> r.a AND e.cost < 5",
        "widest": "SELECT src, dst FROM e UNION SELECT r.a - 1, r.b + e.cost FROM r JOIN e ON e.src = r.a AND r.b + e.cost < 9",
    }
    best = "SELECT src, cost FROM e UNION SELECT e.dst, MAX(r.b - e.cost) FROM r JOIN e ON e.src = r.a GROUP BY e.dst"
    rng = random.Random(6)
    rows: list[tuple[int | None, int | None, int, date]] = []
    with hw.connect(spark=spark) as session:
        session.create_table("e", "src INT, dst INT, cost INT, day DATE")
        for name, body in (*queries.items(), ("best", best)):
            above = "a, b FROM r" if name != "best" else "a, MAX(b) FROM r GROUP BY a"
            made = session.create_view(name, f"WITH RECURSIVE r(a, b) AS ({body}) SELECT {above}")
            steps = in_order([session.snapshot.views[name].contents])
            operator = next(step.operator for step in steps if isinstance(step.operator, Fixpoint))
            assert operator.program is not None, made.explain()
        for number in range(24):
            with session.transaction() as transaction:
                for _ in range(3 if number else 12):
                    if rows and rng.random() < 0.45:
                        transaction.delete("e", [rows.pop(rng.randrange(len(rows)))])
                        continue
                    ends = [rng.choice((None, 0, 1, 2, 3, 4, 5)) for _ in range(2)]
                    rows.append((ends[0], ends[1], rng.randrange(1, 7), date(2024, 1, rng.randrange(1, 4))))
                    transaction.insert("e", [rows[-1]])
            connection = duckdb.connect()
            connection.execute("CREATE TABLE e (src INT, dst INT, cost INT, day DATE)")
            if rows:
                connection.executemany("INSERT INTO e VALUES (?, ?, ?, ?)", rows)
            for name, body in queries.items():
                said = body.replace("e.src <=> r.a", "e.src IS NOT DISTINCT FROM r.a")
                wanted = Counter(connection.execute(f"WITH RECURSIVE r(a, b) AS ({said}) SELECT a, b FROM r").fetchall())
                assert Counter(session.view(name).rows()) == wanted, (name, rows)
            assert dict(session.view("best").rows()) == _greatest(rows), rows


def _greatest(rows: list[tuple[int | None, int | None, int, date]]) -> dict[int | None, int]:
    """The most that is left at each node, from edges on that begin with their cost and take it away along the way."""
    best: dict[int | None, int] = {}
    while True:
        found = [(src, cost) for src, _, cost, _ in rows]
        found += [(dst, best[src] - cost) for src, dst, cost, _ in rows if src is not None and src in best]
        now = {node: max(value for other, value in found if other == node) for node, _ in found}
        if now == best:
            return best
        best = now
