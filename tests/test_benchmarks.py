"""The benchmarks run: a workload of each family on few rows, all of them among the slow tests; results are judged and kept."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console

from benchmarks.data import Changing, ddl, facts, partners
from benchmarks.families import FAMILIES
from benchmarks.peers.tables import Outcome, peers_table
from benchmarks.peers.tables import scoreboard as peers_scoreboard
from benchmarks.plots import draw
from benchmarks.results import Results
from benchmarks.tables import family_table, scoreboard
from benchmarks.targets import TARGETS, target_of
from benchmarks.workload import Figure, Scale

ALL = [(family, workload.name) for family in FAMILIES for workload in FAMILIES[family].workloads]
SOME = [
    ("smallest", "join and aggregate"),
    ("synthetic", "join 1-2K"),
    ("incremental", "join-groupBy, 10K"),
    ("tpch", "q03"),
    ("tpch", "q11"),
    ("skew", "join"),
    ("many_views", "common sub-plan"),
    ("many_views", "creating the 101st view"),
    ("long_run", "aggregate"),
    ("load", "join, view first"),
    ("durable", "commits of ten rows"),
    ("durable", "state of four times the memory"),
    ("load", "growth, top-k"),
    ("provenance", "aggregate selection"),
    ("recursion", "shortest paths, random"),
    ("cluster", "join"),
    ("attached", "TPC-H, attached"),
    ("sketches", "maintenance, having"),
    ("streams", "change feed"),
]


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Scale:
    return Scale(rows=20_000, quick=True, directory=tmp_path_factory.mktemp("shared"))


def run(family: str, name: str, scale: Scale) -> list[Figure]:
    workload = next(each for each in FAMILIES[family].workloads if each.name == name)
    figures = workload.run(scale)
    assert figures
    assert all(isfinite(figure.value) for figure in figures)
    assert {figure.workload for figure in figures} == {name}
    return figures


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("family", "name"), SOME)
def test_a_workload_of_each_family_runs(family: str, name: str, scale: Scale) -> None:
    figures = run(family, name, scale)
    assert any(target_of(family, figure) for figure in figures)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("family", "name"), [each for each in ALL if each not in SOME])
def test_every_workload_runs(family: str, name: str, scale: Scale) -> None:
    run(family, name, scale)


def test_names_are_found() -> None:
    assert set(SOME) <= set(ALL)
    assert {family for family, _ in SOME} == set(FAMILIES)
    assert {target.family for target in TARGETS} == set(FAMILIES)


def test_deleted_rows_are_there() -> None:
    table = Changing.of(facts(50), 1_000)
    keys = set(table.base["id"].to_pylist())
    for size in (10, 100, 500):
        going, coming = table.change(size)
        assert (going.num_rows, coming.num_rows) == (size // 2, size // 2)
        left = set(going["id"].to_pylist())
        assert left <= keys
        keys = keys - left | set(coming["id"].to_pylist())
        assert sorted(table.rows()["id"].to_pylist()) == sorted(keys)
    assert ddl(table.base.schema).startswith("id BIGINT, a INT, b INT")


def test_partners_meet_as_often_as_asked() -> None:
    rows = partners(1_000, values=10, times=20)
    assert rows.num_rows == 1_000
    assert [rows["ttid"].to_pylist().count(value) for value in range(10)] == [20] * 10
    assert sum(value >= 10 for value in rows["ttid"].to_pylist()) == 800


def example(family: str) -> Results:
    """Figures of all shapes that the tables and plots know."""
    refresh = {"refresh_s": 0.002, "recompute_s": 0.5}
    figures = {
        "synthetic": [
            *(Figure("5K groups", "aggregate", "speedup", 250, "×", size, refresh) for size in (10, 1_000)),
            Figure("join 1-2K", "join", "speedup", 70, "×", 10, refresh),
            Figure("join 1-2K", "join", "share of recompute", 0.5, "×", 100, {**refresh, "per_cent": 10}),
            Figure("join 1-2K", "join", "break-even", 20, "%"),
        ],
        "incremental": [Figure("groupBy, 10K", "aggregate", "speedup", 30, "×", 10, {**refresh, "refreshes": [0.1, 0.1]})],
        "tpch": [Figure("q01", "tpch", "speedup", 4, "×", 1_000, refresh)],
        "many_views": [
            Figure("common sub-plan", "commit", f"{n} views", 0.01, "s", 10, {"refresh_s": 0.01, "views": n}) for n in (1, 10)
        ],
        "long_run": [Figure("top-k", "epochs", "last to first", 1.1, "×", 100, {"medians": [0.1] * 3, "p99s": [0.2] * 3})],
    }
    results = replace(Results.empty(family, Scale()), figures=figures[family], failures={"other": "KeyError: it was not there"})
    results.figures += FAMILIES[family].summary(results.figures)
    return results


@pytest.mark.parametrize("family", ["synthetic", "incremental", "tpch", "many_views", "long_run"])
def test_results_are_kept_and_drawn(family: str, tmp_path: Path) -> None:
    results = example(family)
    results.write(tmp_path)
    assert Results.read(tmp_path / f"{family}.json") == results
    drawn = draw(results, tmp_path)
    assert drawn
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def printed(*tables: object) -> str:
    console = Console(width=200, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    for table in tables:
        console.print(table)
    console.file.close()
    return console.export_text()


def test_the_scoreboard_tells_what_is_missed() -> None:
    shown = printed(family_table(example("synthetic")), scoreboard([example("synthetic"), example("tpch")]))
    lines = {line.split("│")[1].strip(): line for line in shown.splitlines() if line.count("│") == 6}
    assert "2 of 2" in lines["synthetic: single-table aggregates, deltas up to 1000 rows"]
    assert "70.0×" in lines["synthetic: joins and top-k, deltas up to 1000 rows"]
    assert "0 of 1" in lines["synthetic: joins and top-k, deltas up to 1000 rows"]
    assert "0 of 1" in lines["tpch: TPC-H, each query"]
    assert "KeyError: it was not there" in lines["tpch: other"]


def test_peers_are_compared() -> None:
    times = {10: 0.002, 1_000: 0.01, 10_000: 0.05}
    ours = Outcome("headwater", "having", "Headwater 1", 2.0, 2**30, [1, 2], times, {})
    theirs = Outcome("flink", "having", "Flink 2", 50.0, 2**31, [1, 2], {size: 2.5 * time for size, time in times.items()}, {})
    shown = printed(peers_table([ours, theirs], 1_000), peers_scoreboard([ours, theirs]))
    assert [line.count("✓") for line in shown.splitlines() if "10 000 rows" in line] == [0]
    assert [line.count("✓") for line in shown.splitlines() if "1000 rows" in line] == [1]
    assert "yes" in shown
