"""On a real cluster, with separate executors: the tests of views once more, each epoch placed at random.

The tests run in a process of their own, since there is one Spark in a process. What they compare with is Spark, as ever.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from standalone import run_pytest

if TYPE_CHECKING:
    from pathlib import Path

    from driving import Driver
    from standalone import Standalone

pytestmark = pytest.mark.timeout(7200)

# Every operator that has state, and those that have none.
OPERATORS = {"Linear", "Union", "Arrange", "Join", "MultiJoin", "Match", "Aggregate", "TopK", "Regroup", "Scalar"}
QUICK = ["tests/test_sql.py", "-k", "graph or bag"]
SQL = ["tests/test_sql.py"]
PROPERTIES = ["tests/property/test_views.py", "-m", "slow or not slow", "-k", "00] or 25] or 50] or 75] or _spark[7]"]
RECURSION = ["tests/property/test_recursive_views.py", "-k", "test_random_edits"]
TPCH = ["tests/tpch/test_tpch.py"]
DATA_SOURCES = ["tests/sinks/test_spark_source.py", "tests/sources/test_postgres.py"]


def play(cluster: Standalone, tests: list[str], folder: Path, seed: int, **options: str) -> dict[str, int]:
    """Runs tests on the cluster; gives how many jobs there were with each operator."""
    ran = run_pytest(cluster, tests, folder, seed, options)
    assert ran.returncode == 0, f"{ran.stdout[-20_000:]}\n{cluster.logs()[-5_000:]}"
    counts: dict[str, int] = json.loads((folder / "counts.json").read_text("utf-8"))
    assert counts["done"] > 0.9 * counts["asked"], "executors refuse almost nothing"
    return counts


def test_every_operator_meets_executors(drive: type[Driver]) -> None:
    """One session, its epochs here and there, views of every operator; compared after each epoch."""
    driver = drive()
    driver.ask("connect")
    driver.ask("create")
    for number, placement in enumerate(["cluster", "driver", "cluster", "cluster", "driver", "cluster"]):
        told = driver.ask("epoch", number=number, placement=placement)
        assert told["where"] == placement, told["why"]
        driver.ask("check", numbers=number + 1)


@pytest.mark.slow
def test_a_closure_is_a_loop_of_jobs(drive: type[Driver]) -> None:
    driver = drive()
    driver.ask("connect")
    driver.ask("closure", nodes=40)


@pytest.mark.slow
def test_recursion(cluster: Standalone, tmp_path: Path) -> None:
    play(cluster, RECURSION, tmp_path, seed=7)


@pytest.mark.slow
def test_views_equal_spark(cluster: Standalone, tmp_path: Path) -> None:
    play(cluster, QUICK, tmp_path, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_all_sql_fixtures(cluster: Standalone, tmp_path: Path, seed: int) -> None:
    counts = play(cluster, SQL, tmp_path, seed)
    assert counts.keys() >= OPERATORS


@pytest.mark.slow
def test_properties(cluster: Standalone, tmp_path: Path) -> None:
    play(cluster, PROPERTIES, tmp_path, seed=4)


@pytest.mark.slow
def test_tpch(cluster: Standalone, tmp_path: Path) -> None:
    play(cluster, TPCH, tmp_path, seed=5)


@pytest.mark.slow
def test_tpch_at_scale(cluster: Standalone, tmp_path: Path) -> None:
    play(cluster, TPCH, tmp_path, seed=6, SCALE="0.1")


@pytest.mark.slow
def test_data_sources(cluster: Standalone, tmp_path: Path) -> None:
    """Directories and a server of PostgreSQL are read by executors."""
    ran = run_pytest(cluster, DATA_SOURCES, tmp_path, 7, {})
    assert ran.returncode == 0, f"{ran.stdout[-20_000:]}\n{ran.stderr[-5_000:]}\n{cluster.logs()[-5_000:]}"
    assert "skipped" not in ran.stdout
