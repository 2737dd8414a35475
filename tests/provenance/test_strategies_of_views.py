"""Recursive views by every strategy, against a plain fixpoint; why their rows are there, against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from subsets import Subsets, check_sets

import headwater as hw
from tests.recursive_programs import PROGRAMS, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

STRATEGIES = ("absorption-lazy", "absorption-eager", "relative", "dred", "recompute")
# Bags, and MIN and MAX within the recursion, are for counting alone.
REFUSED = {"path_bag", "components", "shortest", "widest", "cost_and_hops"}
CHOSEN = [program for program in PROGRAMS if program.name not in REFUSED]
REACH = (
    "WITH RECURSIVE reach(src, dst) AS (SELECT src, dst FROM edge UNION "
    "SELECT e.src, r.dst FROM edge e JOIN reach r ON e.dst = r.src) SELECT * FROM reach"
)
CHEAPEST = (
    "WITH RECURSIVE path(src, dst, way, cost, hops) AS (SELECT src, dst, concat(src, '.', dst), cost, 1 FROM edge UNION "
    "SELECT e.src, p.dst, concat(e.src, '.', p.way), e.cost + p.cost, p.hops + 1 FROM edge e JOIN path p ON e.dst = p.src) "
    "SELECT src, dst, MIN(cost) AS cost, MIN(hops) AS hops FROM path GROUP BY src, dst"
)
SCHEMAS = {
    "edge": pa.schema([("src", pa.int64()), ("dst", pa.int64()), ("cost", pa.int64())]),
    "seed": pa.schema([("id", pa.int64())]),
    "blocked": pa.schema([("id", pa.int64())]),
    "parent": pa.schema([("child", pa.int64()), ("parent", pa.int64())]),
}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        for name, columns in TABLES.items():
            session.create_table(name, columns)
        yield session


def turn(session: hw.Session, tables: dict[str, list[Any]], chance: random.Random) -> None:
    """One random transaction, on the session and on plain lists."""
    with session.transaction() as transaction:
        for _ in range(chance.choice((1, 1, 2, 5))):
            table = chance.choice(("edge", "edge", "edge", "parent", "seed", "blocked"))
            rows = tables[table]
            if rows and chance.random() < 0.45:
                row = rows.pop(chance.randrange(len(rows)))
                transaction.delete(table, [row])
                continue
            width = {"edge": 2, "parent": 2}.get(table, 1)
            row = tuple(chance.randrange(5) for _ in range(width)) + ((chance.randrange(1, 9),) if table == "edge" else ())
            if width == 1 and row in rows:
                continue
            rows.append(row)
            transaction.insert(table, [row])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_views_equal_a_plain_fixpoint(session: hw.Session, strategy: str) -> None:
    chance = random.Random(11)
    tables: dict[str, list[Any]] = {name: [] for name in TABLES}
    views = {program.name: session.create_view(program.name, program.sql, strategy=strategy) for program in CHOSEN}
    for _ in range(12):
        turn(session, tables, chance)
        for program in CHOSEN:
            assert Counter(views[program.name].rows()) == Counter(program.oracle(tables)), program.name


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
def test_views_equal_a_plain_fixpoint_for_long(session: hw.Session, strategy: str, seed: int) -> None:
    chance = random.Random(seed)
    tables: dict[str, list[Any]] = {name: [] for name in TABLES}
    views = {program.name: session.create_view(program.name, program.sql, strategy=strategy) for program in CHOSEN}
    for _ in range(60):
        turn(session, tables, chance)
        for program in CHOSEN:
            assert Counter(views[program.name].rows()) == Counter(program.oracle(tables)), program.name


def test_what_a_strategy_cannot_keep_is_refused(session: hw.Session) -> None:
    for program in PROGRAMS:
        if program.name in REFUSED:
            with pytest.raises(hw.NotSupported, match="create the view with the strategy counting, or auto"):
                session.create_view(program.name, program.sql, strategy="dred")
    assert not session.views()


def cheapest(edges: list[Any]) -> set[Any]:
    """The least cost and the fewest hops of each pair, each by its own relaxation."""
    best: dict[Any, list[float]] = {}
    changing = True
    while changing:
        changing = False
        for a, b, cost in edges:
            ways = [(b, [cost, 1])] + [(d, [cost + c, h + 1]) for (x, d), (c, h) in best.items() if x == b]
            for d, found in ways:
                known = best.setdefault((a, d), [float("inf")] * 2)
                for i in (0, 1):
                    if found[i] < known[i]:
                        known[i] = found[i]
                        changing = True
    return {(a, d, c, h) for (a, d), (c, h) in best.items()}


@pytest.mark.parametrize("strategy", ["absorption-lazy", "absorption-eager"])
def test_aggregate_selection_ends_on_cycles(session: hw.Session, strategy: str) -> None:
    view = session.create_view("cheapest", CHEAPEST, strategy=strategy)
    assert "aggregate selection: only the best of 2 aggregates" in view.explain()
    chance = random.Random(5)
    tables: dict[str, list[Any]] = {name: [] for name in TABLES}
    for _ in range(25):
        turn(session, tables, chance)
        assert Counter(view.rows()) == Counter(cheapest(tables["edge"]))


def test_without_selection_paths_without_end_are_stopped(session: hw.Session) -> None:
    session.insert("edge", [(1, 2, 1), (2, 1, 1)])
    bounded = CHEAPEST.replace("path(src, dst, way, cost, hops)", "path(src, dst, way, cost, hops) MAX RECURSION LEVEL 20")
    with pytest.raises(hw.HeadwaterError, match="RECURSION_LIMIT"):
        session.create_view("cheapest", bounded, strategy="dred")
    # The way is looked at, so all ways matter.
    watched = bounded.replace("MIN(hops) AS hops", "MIN(way) AS way")
    with pytest.raises(hw.HeadwaterError, match="RECURSION_LIMIT"):
        session.create_view("cheapest", watched, strategy="absorption-lazy")
    assert not session.views()


@pytest.mark.parametrize("strategy", ["auto", "absorption-lazy", "absorption-eager"])
def test_sets_of_recursive_rows_suffice_and_are_minimal(session: hw.Session, strategy: str) -> None:
    chance = random.Random(2)
    edges = sorted({(chance.randrange(4), chance.randrange(4), 1) for _ in range(8)})
    session.insert("edge", edges)
    view = session.create_view("reached", REACH, strategy=strategy)
    session.delete("edge", edges[:1])
    subsets = Subsets(SCHEMAS)
    for row in view.rows():
        check_sets(subsets, REACH, row, view.why(row).sets())


@pytest.mark.parametrize("name", ["closure_by_halves", "same_generation", "paths", "counts", "fed", "open", "named"])
def test_sets_of_other_recursions(session: hw.Session, name: str) -> None:
    program = next(program for program in PROGRAMS if program.name == name)
    chance = random.Random(9)
    tables: dict[str, list[Any]] = {table: [] for table in TABLES}
    for _ in range(12):
        turn(session, tables, chance)
    view = session.create_view(name, program.sql)
    for row in set(view.rows()):
        for rows in view.why(row).sets()[:20]:
            only = {table: rows.get(table, []) for table in TABLES}
            assert row in program.oracle(only), f"{row} does not follow from {rows}"
            if name == "open":
                continue  # without an edge that leads on, what is blocked does not matter either
            for table, those in rows.items():
                for i in range(len(those)):
                    fewer = {**only, table: those[:i] + those[i + 1 :]}
                    assert row not in program.oracle(fewer), f"{row} follows from less than {rows}"


def test_cheapest_paths_are_explained(session: hw.Session) -> None:
    session.insert("edge", [(1, 2, 1), (2, 3, 1), (1, 3, 5), (3, 1, 1)])
    query = (
        "WITH RECURSIVE p(n, c) AS (SELECT id, CAST(0 AS BIGINT) FROM seed UNION "
        "SELECT e.dst, MIN(p.c + e.cost) FROM p JOIN edge e ON e.src = p.n GROUP BY e.dst) SELECT n, MIN(c) FROM p GROUP BY n"
    )
    session.insert("seed", [(1,)])
    view = session.create_view("far", query)
    assert view.why((3, 2)).sets() == [{"edge": [(1, 2, 1), (2, 3, 1)], "seed": [(1,)]}]


def test_why_not_and_depends_on_of_a_recursion(session: hw.Session) -> None:
    session.insert("edge", [(1, 2, 1), (2, 3, 1), (4, 5, 1)])
    for strategy in ("auto", "absorption-lazy", "absorption-eager", "dred"):
        view = session.create_view("reached", REACH, strategy=strategy, replace=True)
        told = view.why_not((1, 5))
        assert any("no row of edge" in part.what for part in told.missing), str(told)
        assert sorted(view.depends_on("edge", (2, 3, 1))) == [(1, 3), (2, 3)]
        # What was computed and forgotten is forgotten.
        assert sorted(view.depends_on("edge", (1, 2, 1))) == [(1, 2), (1, 3)]
        session.insert("edge", [(3, 4, 1)])
        assert len(view.rows()) == 10
        session.delete("edge", [(3, 4, 1)])
        assert len(view.rows()) == 4


def test_a_strategy_in_sql_and_in_explain_and_stats(session: hw.Session) -> None:
    session.insert("edge", [(1, 2, 1), (2, 3, 1)])
    view = session.sql(f"CREATE LIVE VIEW reached STRATEGY ABSORPTION LAZY AS {REACH}")
    assert "strategy absorption-lazy, as asked for" in view.explain()
    (figures,) = view.stats()["strategies"]
    assert figures["strategy"] == "absorption-lazy"
    assert figures["state"]["fixpoint"]["rows"] == 3
    assert figures["exchanged_rows"] >= 0
    view = session.sql(f"CREATE OR REPLACE LIVE VIEW reached REFRESH AUTO STRATEGY dred AS {REACH}")
    assert view.stats()["strategies"][0]["strategy"] == "dred"
    view = session.sql(f"CREATE OR REPLACE LIVE VIEW reached STRATEGY ABSORPTION EAGER EVERY 100 ROWS AS {REACH}")
    assert view.stats()["strategies"][0]["strategy"] == "absorption-eager every 100 rows"
    assert view.why((1, 3)).rows() == {"edge": [(1, 2, 1), (2, 3, 1)]}
    for strategy in ("magic", "absorption-eager every 0 rows", "absorption-eager every now", "dred every 2 rows"):
        with pytest.raises(hw.InvalidOption, match="strategy is one of auto, counting, absorption-lazy"):
            session.create_view("other", REACH, strategy=strategy)
    with pytest.raises(hw.InvalidOption, match="for recursive queries"):
        session.create_view("other", "SELECT * FROM edge", strategy="dred")


def test_strategies_survive_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    with hw.connect(tmp_path / "kept", spark=spark) as session:
        session.create_table("edge", TABLES["edge"])
        for strategy in STRATEGIES:
            session.create_view(strategy.replace("-", "_"), REACH, strategy=strategy)
        session.insert("edge", [(1, 2, 1), (2, 3, 1), (3, 1, 1)])
    with hw.connect(tmp_path / "kept", spark=spark) as session:
        session.delete("edge", [(3, 1, 1)])
        for view in session.views().values():
            assert sorted(view.rows()) == [(1, 2), (1, 3), (2, 3)]
            assert view.why((1, 3)).rows() == {"edge": [(1, 2, 1), (2, 3, 1)]}


def test_blow_up_says_what_to_choose(session: hw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.annotations.absorption.LARGEST_FUNCTION", 20)
    session.insert("edge", [(a, b, 1) for a in range(5) for b in range(5) if a != b])
    with pytest.raises(hw.ProvenanceTooLarge, match="absorption-lazy if this was absorption-eager, else dred or counting"):
        session.create_view("reached", REACH, strategy="absorption-eager")
    assert not session.views()
