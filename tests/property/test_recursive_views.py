"""Recursive views against a plain Python fixpoint and DuckDB, after every transaction of random edit scripts."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pytest
from crashed import crashed

import headwater as hw
from headwater.operators import rounds
from tests.recursive_programs import PROGRAMS, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.recursive_programs import Program, Row, Tables


COMPILED = rounds.run


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        prepare(session)
        yield session


def prepare(session: hw.Session) -> None:
    for name, columns in TABLES.items():
        session.create_table(name, columns)
    for program in PROGRAMS:
        session.create_view(program.name, program.sql, refresh="incremental")


def random_row(table: str, rng: random.Random, nodes: int) -> Row:
    if table in ("seed", "blocked"):
        return (rng.randrange(nodes),)
    ends = (rng.randrange(nodes), rng.randrange(nodes))
    return ends if table == "parent" else (*ends, rng.randrange(1, 9))


def change(session: hw.Session, tables: Tables, rng: random.Random, *, nodes: int, dense: float) -> None:
    """One random transaction, on the session and on plain lists."""
    with session.transaction() as transaction:
        for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
            table = rng.choice(("edge", "edge", "edge", "edge", "seed", "blocked", "parent"))
            rows = tables[table]
            if rows and rng.random() > dense:
                row = rows.pop(rng.randrange(len(rows)))
                transaction.delete(table, [row])
                continue
            row = random_row(table, rng, nodes)
            if table in ("seed", "blocked") and (row in rows or len(rows) > 2):
                continue
            rows.append(row)
            transaction.insert(table, [row])


def compare(session: hw.Session, tables: Tables, programs: tuple[Program, ...] = PROGRAMS) -> None:
    for program in programs:
        found = Counter(session.view(program.name).rows())
        wanted = program.oracle(tables)
        assert found == wanted, f"{program.name}: too many {found - wanted}, too few {wanted - found}, of {tables}"


def compare_with_duckdb(session: hw.Session, tables: Tables) -> None:
    connection = duckdb.connect()
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" for _ in columns.split(","))
        if tables[name]:
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", tables[name])
    for program in PROGRAMS:
        if program.duckdb is not None:
            wanted = Counter(connection.execute(program.duckdb).fetchall())
            found = Counter(session.view(program.name).rows())
            assert found == wanted, f"{program.name}: too many {found - wanted}, too few {wanted - found}, of {tables}"


def by_operators(monkeypatch: pytest.MonkeyPatch, *, alone: bool) -> None:
    """Has the operators of a body do all rounds, or compiled loops those that they can: both go on with the same state."""
    monkeypatch.setattr(rounds, "run", (lambda *_: None) if alone else COMPILED)


def nothing() -> Tables:
    return {name: [] for name in TABLES}


def empty(session: hw.Session) -> None:
    with session.transaction() as transaction:
        for name in TABLES:
            transaction.delete(name, session.table(name).rows())


@pytest.mark.parametrize(("seed", "nodes", "dense"), [(1, 6, 0.55), (2, 9, 0.6), (3, 4, 0.5), (4, 14, 0.62)])
def test_random_edits(session: hw.Session, monkeypatch: pytest.MonkeyPatch, seed: int, nodes: int, dense: float) -> None:
    empty(session)
    rng = random.Random(seed)
    tables = nothing()
    for number in range(30):
        by_operators(monkeypatch, alone=number % 3 == 2)
        change(session, tables, rng, nodes=nodes, dense=dense if number % 20 < 14 else 0.1)
        compare(session, tables)
        if number % 5 == 0:
            compare_with_duckdb(session, tables)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 30))
def test_many_random_edits(session: hw.Session, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    empty(session)
    rng = random.Random(seed)
    tables = nothing()
    for number in range(60):
        by_operators(monkeypatch, alone=rng.random() < 0.3)
        change(session, tables, rng, nodes=rng.choice((5, 8, 12)), dense=rng.choice((0.3, 0.55, 0.7)))
        compare(session, tables)
        if number % 10 == 0:
            compare_with_duckdb(session, tables)


def test_a_directory_that_was_not_closed(spark: SparkSession, tmp_path: Path) -> None:
    """What was committed is there, and goes on, though nothing was folded since: the log runs through the fixpoints again."""
    rng = random.Random(5)
    tables = nothing()
    session = hw.connect(tmp_path / "d", spark=spark)
    prepare(session)
    for _ in range(6):
        change(session, tables, rng, nodes=7, dense=0.8)
    crashed(session, tmp_path / "crashed")
    session.close()
    with hw.connect(tmp_path / "crashed", spark=spark) as again:
        compare(again, tables)
        for _ in range(6):
            change(again, tables, rng, nodes=7, dense=0.5)
            compare(again, tables)
