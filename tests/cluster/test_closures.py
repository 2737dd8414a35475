"""Closures as loops of jobs: the rows of a plain fixpoint, and a state from which changes of any kind go on."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.cluster import placement
from headwater.errors import RecursionLimit
from tests.recursive_programs import PROGRAMS, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from headwater.cluster.closures import Closed
    from tests.recursive_programs import Program, Tables

QUICK = {"closure_by_halves", "parity", "unreached"}
NODES = 14
# Fixpoints of sets; the best of groups, and bags, are closed by one task.
LOOPS = {"reach", "closure", "closure_by_halves", "same_generation", "parity", "paths", "open", "unreached"} | {
    "counts",
    "largest",
    "fed",
    "named",
}


@pytest.fixture
def closures(monkeypatch: pytest.MonkeyPatch) -> list[Closed]:
    """The closures that jobs have built."""
    found = []
    closed: Callable[..., Closed] = placement.closed

    def spied(*given: object) -> Closed:
        found.append(closed(*given))
        return found[-1]

    monkeypatch.setattr(placement, "closed", spied)
    return found


def content(seed: int) -> Tables:
    """A graph with circles, and a tree."""
    chosen = random.Random(seed)
    edges = [(chosen.randrange(NODES), chosen.randrange(NODES), chosen.randrange(1, 9)) for _ in range(2 * NODES)]
    edges += [(node, node + 1, 1) for node in range(5)]
    return {
        "edge": edges,
        "seed": [(0,), (7,)],
        "blocked": [(3,), (4,)],
        "parent": [(node, (node - 1) // 2) for node in range(1, NODES)],
    }


def check(spark: SparkSession, program: Program, seed: int) -> None:
    tables = content(seed)
    with hw.connect(spark=spark, placement="cluster") as s:
        for name, columns in TABLES.items():
            s.create_table(name, columns)
            s.insert(name, tables[name])
        view = s.create_view("v", program.sql)
        assert Counter(view.rows()) == program.oracle(tables)
        chosen = random.Random(seed)
        for place in ("driver", "cluster", "driver"):
            s.placement = place
            gone = chosen.sample(tables["edge"], 4)
            come = [(chosen.randrange(NODES), chosen.randrange(NODES), 2) for _ in range(2)]
            with s.transaction() as transaction:
                transaction.delete("edge", gone)
                transaction.insert("edge", come)
            left = Counter(tables["edge"])
            left.subtract(gone)
            tables["edge"] = [*left.elements(), *come]
            assert Counter(view.rows()) == program.oracle(tables), place


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.name in QUICK], ids=lambda program: program.name)
def test_closures_go_on_with_changes(spark: SparkSession, program: Program, closures: list[Closed]) -> None:
    check(spark, program, 1)
    assert closures


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_all_closures(spark: SparkSession, program: Program, seed: int, closures: list[Closed]) -> None:
    check(spark, program, seed)
    if program.name in LOOPS:
        assert closures


def test_one_without_an_end_is_refused(spark: SparkSession) -> None:
    with hw.connect(spark=spark, placement="cluster") as s:
        s.create_table("seed", "id BIGINT")
        s.insert("seed", [(1,)])
        query = "WITH RECURSIVE r(n) MAX RECURSION LEVEL 5 AS (SELECT id FROM seed UNION SELECT n + 1 FROM r) SELECT * FROM r"
        epoch = s.epoch
        with pytest.raises(RecursionLimit):
            s.create_view("v", query)
        assert s.epoch == epoch
        assert not s.views()
