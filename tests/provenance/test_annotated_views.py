"""Views that are not recursive and carry annotations: the same rows, and the same explanations without asking the tables."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from subsets import Subsets, check_sets

import headwater as hw
from headwater.provenance import kept

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMAS = {
    "flight": pa.schema([("a", pa.int64()), ("b", pa.int64()), ("price", pa.int64())]),
    "home": pa.schema([("a", pa.int64()), ("name", pa.string())]),
}
QUERIES = [
    "SELECT DISTINCT f.a, g.b FROM flight f JOIN flight g ON f.b = g.a",
    "SELECT f.a, g.b FROM flight f JOIN flight g ON f.b = g.a WHERE f.price + g.price < 9",
    "SELECT a FROM flight WHERE price > 2 UNION SELECT b FROM flight WHERE price < 7",
    "SELECT a, b FROM flight UNION ALL SELECT b, a FROM flight",
    "SELECT f.b, f.price FROM flight f WHERE f.a IN (SELECT a FROM home WHERE name <> 'x')",
    "SELECT DISTINCT h.name, f.b FROM home h JOIN flight f ON f.a = h.a JOIN home g ON g.a = f.b ORDER BY f.b",
    "SELECT f.a, c.n FROM flight f JOIN (SELECT a, count(*) AS n FROM home GROUP BY a) c ON f.b = c.a",
]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        session.create_table("flight", "a BIGINT, b BIGINT, price BIGINT")
        session.create_table("home", "a BIGINT, name STRING")
        yield session


def turn(session: hw.Session, tables: dict[str, list[Any]], chance: random.Random) -> None:
    with session.transaction() as transaction:
        for _ in range(chance.choice((1, 3, 6))):
            table = chance.choice(("flight", "flight", "home"))
            rows = tables[table]
            if rows and chance.random() < 0.4:
                row = rows.pop(chance.randrange(len(rows)))
                transaction.delete(table, [row])
                continue
            row = (chance.randrange(4), chance.choice("xyz"))
            if table == "flight":
                row = (chance.randrange(4), chance.randrange(4), chance.randrange(9))
            rows.append(row)
            transaction.insert(table, [row])


def test_rows_and_explanations(session: hw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bool] = []
    found = kept.found

    def watched(*arguments: Any) -> Any:
        answer = found(*arguments)
        read.append(answer is not None)
        return answer

    monkeypatch.setattr(kept, "found", watched)
    chance, tables, subsets = random.Random(3), {name: [] for name in SCHEMAS}, Subsets(SCHEMAS)
    views = [session.create_view(f"v{i}", query, strategy="absorption-eager") for i, query in enumerate(QUERIES)]
    assert all("strategy absorption-eager, as asked for" in view.explain() for view in views)
    for _ in range(12):
        turn(session, tables, chance)
        for view, query in zip(views, QUERIES, strict=True):
            assert Counter(view.rows()) == Counter(subsets.answer(query, tables)), query
    for view, query in zip(views, QUERIES, strict=True):
        for row in set(view.rows()):
            if "count(*)" in query:
                # Of a group, all rows are needed, as often as they are there.
                plain = session.create_view("plain", query, replace=True)
                assert sorted(view.why(row).sets(), key=repr) == sorted(plain.why(row).sets(), key=repr)
                assert {table for found in plain.why(row).sets() for table in found} == {"flight", "home"}
            else:
                check_sets(subsets, query, row, view.why(row).sets())
    assert read
    assert all(read)


def test_views_on_views_why_not_and_depends_on(session: hw.Session) -> None:
    session.create_view("hop", "SELECT DISTINCT f.a, g.b FROM flight f JOIN flight g ON f.b = g.a", strategy="absorption-eager")
    above = session.create_view("far", "SELECT h.name, hop.b FROM home h JOIN hop ON h.a = hop.a", strategy="absorption-eager")
    session.insert("flight", [(1, 2, 5), (2, 3, 5), (1, 4, 1), (4, 3, 1)])
    session.insert("home", [(1, "x")])
    assert len(above.why(("x", 3)).sets()) == 2
    assert above.depends_on("home", (1, "x")) == [("x", 3)]
    assert above.depends_on("flight", (1, 2, 5)) == []
    assert above.why_not(("x", 9)).missing
    assert above.stats()["strategies"][0]["state"]["fixpoint"]["rows"] == 1
    session.delete("flight", [(4, 3, 1)])
    assert above.why(("x", 3)).sets() == [{"flight": [(1, 2, 5), (2, 3, 5)], "home": [(1, "x")]}]


def test_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    with hw.connect(tmp_path / "d", spark=spark) as session:
        session.create_table("flight", "a BIGINT, b BIGINT, price BIGINT")
        session.sql(f"CREATE LIVE VIEW hop STRATEGY ABSORPTION EAGER AS {QUERIES[0]}")
        session.insert("flight", [(1, 2, 5), (2, 3, 5)])
    with hw.connect(tmp_path / "d", spark=spark) as session:
        hop = session.view("hop")
        assert hop.why((1, 3)).rows() == {"flight": [(1, 2, 5), (2, 3, 5)]}
        session.insert("flight", [(1, 4, 1), (4, 3, 1)])
        assert len(hop.why((1, 3)).sets()) == 2


def test_what_cannot_be_annotated_is_refused(session: hw.Session) -> None:
    for query in (
        "SELECT a, count(*) FROM flight GROUP BY a",
        "SELECT * FROM flight",
        "SELECT * FROM flight ORDER BY a LIMIT 3",
    ):
        with pytest.raises(hw.NotSupported, match="explained on demand"):
            session.create_view("v", query, strategy="absorption-eager")
    for strategy in ("absorption-lazy", "dred", "counting"):
        with pytest.raises(hw.InvalidOption, match="for recursive queries"):
            session.create_view("v", QUERIES[0], strategy=strategy)
    assert not session.views()
