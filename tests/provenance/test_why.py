"""Explanations of rows: the sets suffice and are minimal, whatever the query; what is not there is told as such."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from subsets import Subsets, check_sets

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMAS = {
    "person": pa.schema([("id", pa.int64()), ("name", pa.string()), ("team", pa.string())]),
    "badge": pa.schema([("person", pa.int64()), ("kind", pa.string()), ("points", pa.int32())]),
    "banned": pa.schema([("kind", pa.string())]),
}
DDL = {
    "person": "id BIGINT, name STRING, team STRING",
    "badge": "person BIGINT, kind STRING, points INT",
    "banned": "kind STRING",
}
# Points are positive, so that a row less is always another sum.
QUERIES = [
    "SELECT name FROM person WHERE team = 'red'",
    "SELECT DISTINCT team FROM person",
    "SELECT p.name, b.kind FROM person p JOIN badge b ON p.id = b.person",
    "SELECT DISTINCT p.team, b.kind FROM person p JOIN badge b ON p.id = b.person WHERE b.points > 1",
    "SELECT team, COUNT(*) AS n FROM person GROUP BY team",
    "SELECT p.team, SUM(b.points) AS s FROM person p JOIN badge b ON p.id = b.person GROUP BY p.team",
    "SELECT kind, MIN(points) AS low, MAX(points) AS high FROM badge GROUP BY kind",
    "SELECT kind, COUNT(DISTINCT points) AS n FROM badge GROUP BY kind",
    "SELECT kind FROM badge UNION SELECT kind FROM banned",
    "SELECT kind FROM badge UNION ALL SELECT kind FROM banned",
    "SELECT kind FROM badge INTERSECT SELECT kind FROM banned",
    "SELECT kind FROM badge EXCEPT SELECT kind FROM banned",
    "SELECT name FROM person p WHERE EXISTS (SELECT 1 FROM badge b WHERE b.person = p.id)",
    "SELECT name FROM person p WHERE NOT EXISTS (SELECT 1 FROM badge b WHERE b.person = p.id)",
    "SELECT kind FROM badge WHERE kind NOT IN (SELECT kind FROM banned)",
    "SELECT p.name, b.kind FROM person p LEFT JOIN badge b ON p.id = b.person",
    "SELECT p.name, b.kind FROM person p FULL JOIN badge b ON p.id = b.person AND b.points > 2",
    "SELECT a.name, b.name FROM person a JOIN person b ON a.team = b.team AND a.id < b.id",
    "SELECT name, length(name) + id AS x FROM person WHERE id % 2 = 0",
    "SELECT COUNT(*) AS n FROM badge WHERE points > 3",
    "SELECT t.team, t.n FROM (SELECT team, COUNT(*) AS n FROM person GROUP BY team) t WHERE t.n > 1",
    "SELECT DISTINCT b.kind FROM badge b WHERE b.points = (SELECT MAX(points) FROM badge)",
    "SELECT person, points FROM badge ORDER BY points DESC, person, kind LIMIT 3",
    "SELECT team, name, COUNT(*) OVER (PARTITION BY team) AS n FROM person",
]


def tables(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    chance = random.Random(seed)
    return {
        "person": [(i, chance.choice("abc"), chance.choice(["red", "blue", None])) for i in range(6)],
        "badge": sorted({(chance.randrange(8), chance.choice("xyz"), chance.randrange(1, 5)) for _ in range(9)}),
        "banned": [("z",)],
    }


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        for name, columns in DDL.items():
            session.create_table(name, columns)
        for name, rows in tables(1).items():
            session.insert(name, rows)
        yield session


@pytest.mark.parametrize("query", QUERIES)
def test_sets_suffice_and_are_minimal(session: hw.Session, query: str) -> None:
    subsets = Subsets(SCHEMAS)
    view = session.create_view("explained", query, replace=True)
    for row in set(view.rows()):
        check_sets(subsets, query, row, view.why(row).sets())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_sets_of_other_data(spark: SparkSession, seed: int) -> None:
    with hw.connect(spark=spark) as session:
        for name, columns in DDL.items():
            session.create_table(name, columns)
        for name, rows in tables(seed).items():
            session.insert(name, rows)
        for query in QUERIES:
            test_sets_suffice_and_are_minimal(session, query)


def test_formula_names_rows_and_absences(session: hw.Session) -> None:
    view = session.create_view("explained", "SELECT kind FROM badge EXCEPT SELECT kind FROM banned", replace=True)
    why = view.why({"kind": "x"})
    first, *legend = why.formula().split("\n")
    assert first.startswith("p1 ∧ n1")
    assert any(line.startswith("p1 = badge(person=") for line in legend)
    assert "n1 = no partner in banned for badge.kind = 'x'" in legend
    assert why.absences() == ["no partner in banned for badge.kind = 'x'"]
    assert {row[1] for row in why.rows()["badge"]} == {"x"}
    assert str(why).startswith("explained('x') is there while")


def test_a_view_over_a_view_leads_to_tables(session: hw.Session) -> None:
    session.create_view("teams", "SELECT team, COUNT(*) AS n FROM person GROUP BY team")
    above = session.create_view("large_teams", "SELECT team FROM teams WHERE n > 1")
    team = above.rows()[0][0]
    assert all(row[2] == team for row in above.why((team,)).rows()["person"])
    above.drop()
    session.view("teams").drop()


def test_graph_as_mermaid_and_as_a_page(session: hw.Session, tmp_path: Path) -> None:
    view = session.create_view("explained", "SELECT DISTINCT team FROM person", replace=True)
    graph = view.why(("red",)).graph()
    assert graph.mermaid().startswith("flowchart BT")
    assert "person(id=" in graph.mermaid()
    page = graph.html(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == page
    assert "http" not in page
    assert "<svg" in page


def test_a_row_that_is_not_there_is_not_explained(session: hw.Session) -> None:
    view = session.create_view("explained", "SELECT name FROM person WHERE team = 'red'", replace=True)
    with pytest.raises(hw.NotExplained, match=r"has no row \('nobody',\).*why_not"):
        view.why(("nobody",))
    with pytest.raises(hw.NotExplained, match=r"has the row.*why\(row\) says why"):
        view.why_not(view.rows()[0])
    with pytest.raises(hw.InvalidRows):
        view.why(("a", "b"))
    with pytest.raises(hw.InvalidRows, match="a tuple of its values or a dict"):
        view.why("nobody")


def test_why_not_tells_where_candidates_end(session: hw.Session) -> None:
    view = session.create_view(
        "explained", "SELECT p.id, b.kind FROM person p JOIN badge b ON p.id = b.person WHERE b.points > 2", replace=True
    )
    nobody = view.why_not((99, "x"))
    assert ["no row of person with person.id = 99" in part.what for part in nobody.missing] == [True]
    poor = next(row for row in session.table("badge").rows() if row[2] <= 2 and row[:2] not in view.rows() and row[0] < 6)
    told = view.why_not(poor[:2])
    assert any("points > 2" in part.what and poor in part.candidates for part in told.missing), str(told)
    assert str(told).startswith(f"explained({poor[0]}, '{poor[1]}') is not there:")


def test_why_not_of_a_group_shows_its_value(session: hw.Session) -> None:
    view = session.create_view("explained", "SELECT team, COUNT(*) AS n FROM person GROUP BY team", replace=True)
    (told,) = view.why_not(("red", 100)).missing
    assert told.operator == "Aggregate"
    assert told.candidates == tuple(row for row in view.rows() if row[0] == "red")


def test_depends_on_tells_what_would_vanish(session: hw.Session) -> None:
    query = "SELECT DISTINCT p.team, b.kind FROM person p JOIN badge b ON p.id = b.person"
    view = session.create_view("explained", query, replace=True)
    subsets, rows, epoch = Subsets(SCHEMAS), tables(1), session.epoch
    for badge in rows["badge"]:
        fewer = {**rows, "badge": [row for row in rows["badge"] if row != badge]}
        expected = set(view.rows()) - set(subsets.answer(query, fewer))
        assert set(view.depends_on("badge", badge)) == expected
    assert session.epoch == epoch
    with pytest.raises(hw.MissingRow):
        view.depends_on("badge", (77, "x", 1))
    with pytest.raises(hw.UnknownName):
        view.depends_on("explained", (77, "x"))


def test_what_only_spark_evaluates_is_named(session: hw.Session) -> None:
    from pyspark.sql.functions import udf

    shout = udf(lambda text: text + "!", "string")
    frame = session.dataframe("person").where("name IS NOT NULL")
    view = session.create_view("explained", frame.select(shout("name").alias("loud")), replace=True)
    with pytest.raises(hw.NotExplained, match="evaluated by Spark alone"):
        view.why(view.rows()[0])


def test_copies_of_a_row_are_counted(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("badge", DDL["badge"])
        session.insert("badge", [(1, "x", 2), (1, "x", 2), (1, "y", 3), (2, "y", 3)])
        counts = session.create_view("counts", "SELECT person, COUNT(*) AS n, SUM(points) AS s FROM badge GROUP BY person")
        assert counts.why((1, 3, 7)).sets() == [{"badge": [(1, "x", 2), (1, "y", 3)]}]
        pairs = session.create_view(
            "pairs", "SELECT COUNT(*) AS n FROM badge a JOIN badge b ON a.kind = b.kind WHERE a.person = 1 AND b.person = 1"
        )
        assert pairs.why((5,)).sets() == [{"badge": [(1, "x", 2), (1, "y", 3)]}]
