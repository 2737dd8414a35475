"""The same content on both placements: views that are fed, and built, on executors of the local Spark of all tests."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from random import Random
from threading import Thread
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest
from oracle import Oracle, check_changes

import headwater as hw
from headwater.cluster import cluster as placed
from headwater.cluster import placement as placing
from headwater.cluster.cluster import Cluster, Whole
from headwater.delta import Delta
from headwater.state.arrangement import Arrangement
from headwater.store.folding import Fold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.compiler.dataflow import Step

VIEWS = {
    "joined": "SELECT a.g, a.x, b.name FROM a JOIN b ON a.g = b.g",
    "summed": "SELECT g, sum(x) AS s, count(*) AS n, avg(y) AS m FROM a GROUP BY g",
    "whole": "SELECT sum(x) AS s, max(y) AS m, count(DISTINCT g) AS d FROM a",
    "first": "SELECT * FROM a ORDER BY x DESC, g, y LIMIT 3",
    "alone": "SELECT g FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.g = a.g)",
    "above": "SELECT s, count(*) AS n FROM summed GROUP BY s",
}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with closing(hw.connect(spark=spark, placement="driver")) as made:
        made.create_table("a", "g INT, x BIGINT, y DOUBLE")
        made.create_table("b", "g INT, name STRING")
        yield made


def fill(session: hw.Session) -> None:
    with session.transaction() as transaction:
        transaction.insert("a", [(i % 7, i, i / 4) for i in range(50)])
        transaction.insert("b", [(i, f"name {i}") for i in range(5)])


def compare(session: hw.Session, views: dict[str, str]) -> None:
    oracle = Oracle(session, {"summed": VIEWS["summed"]} if "above" in views else {})
    for name, query in views.items():
        oracle.check(session.view(name), query)


def ran_there(session: hw.Session) -> bool:
    return session.epochs.executors.last.where == "cluster"  # type: ignore[attr-defined]


def test_one_session_goes_to_and_fro(session: hw.Session) -> None:
    for name, query in VIEWS.items():
        session.create_view(name, query)
    before = {name: (session.epoch, session.view(name).arrow()) for name in VIEWS}
    session.placement = "cluster"
    fill(session)
    assert ran_there(session)
    compare(session, VIEWS)
    for placement, change in (("driver", 50), ("cluster", 60), ("cluster", 70), ("driver", 80)):
        session.placement = placement
        with session.transaction() as transaction:
            transaction.delete("a", [(old % 7, old, old / 4) for old in (change - 50, change - 49)])
            transaction.insert("a", [(3, change, None), (None, change, float("nan"))])
            transaction.insert("b", [(change % 3, "more"), (None, "nobody")])
        assert ran_there(session) == (placement == "cluster")
        compare(session, VIEWS)
    for name, (epoch, content) in before.items():
        check_changes(content, session.view(name), epoch)


def test_views_are_built_on_executors(session: hw.Session) -> None:
    fill(session)
    session.placement = "cluster"
    with mock.patch.object(Cluster, "run", autospec=True, side_effect=Cluster.run) as run:
        for name, query in VIEWS.items():
            session.create_view(name, query)
        assert run.call_count == len(VIEWS)
    compare(session, VIEWS)
    session.placement = "driver"
    session.insert("a", [(1, 1, 1.0)])
    compare(session, VIEWS)


SIDES = {
    "joined": VIEWS["joined"],
    "all_of_a": "SELECT a.g, a.x, b.name FROM a LEFT JOIN b ON a.g = b.g",
    "all_of_b": "SELECT b.name, count(a.x) AS n FROM b LEFT JOIN a ON a.g = b.g GROUP BY b.name",
    "three": "SELECT a.x, b.name, c.name AS other FROM a JOIN b ON a.g = b.g JOIN b AS c ON c.g = a.x",
    "twice": "SELECT a.x, c.y FROM a JOIN b ON a.g = b.g JOIN a AS c ON c.x = b.g",
    "constants": "SELECT b.name, v.n FROM b JOIN VALUES (1, 'I'), (2, 'II') AS v(g, n) ON b.g = v.g",
    "short": "SELECT a.x, c.n FROM a JOIN (SELECT g, upper(name) AS n FROM b WHERE g > 1) c ON a.g = c.g",
}


@pytest.mark.parametrize("arranged", [False, True])
def test_small_sides_of_joins_are_there_before(session: hw.Session, arranged: bool) -> None:  # noqa: FBT001
    fill(session)
    if arranged:
        session.create_view("before", VIEWS["joined"])
    session.placement = "cluster"
    found: list[int] = []
    real = placing.small_sides

    def noted(*given: Any) -> set[Step]:
        sides = real(*given)
        found.append(len(sides))
        return sides

    with mock.patch.object(placing, "_MANY", 10), mock.patch.object(placing, "small_sides", noted):
        for name, query in SIDES.items():
            session.create_view(name, query)
    assert sum(map(bool, found)) >= 2, "few rows that only joins read are there before"
    compare(session, SIDES)
    for where in ("driver", "cluster"):
        session.placement = where
        with session.transaction() as transaction:
            transaction.insert("a", [(1, 2, 0.5), (4, 3, 0.5)])
            transaction.delete("b", [(4, "name 4")] if where == "driver" else [(1, "name 1")])
            transaction.insert("b", [(2, where)])
        compare(session, SIDES)


RECURSIVE = {
    "ways": """WITH RECURSIVE w(a, b, n) AS (
        SELECT g, x, 1 FROM a UNION ALL SELECT w.a, a.x, w.n + 1 FROM w JOIN a ON w.b = a.g WHERE w.n < 4) SELECT * FROM w""",
    "reached": """WITH RECURSIVE r(a, b) AS (
        SELECT g, x FROM a UNION SELECT r.a, a.x FROM r JOIN a ON r.b = a.g) SELECT * FROM r""",
}


def reached(edges: list[tuple[int, int, float]]) -> tuple[Counter[tuple[int, int, int]], Counter[tuple[int, int]]]:
    """The ways of up to four edges, each as often as there are such, and the pairs between which there are any ways."""
    last = Counter((g, x, 1) for g, x, _ in edges)
    ways = Counter(last)
    for _ in range(3):
        last = Counter((a, x, n + 1) for (a, b, n), count in last.items() for g, x, _ in edges if g == b for _ in range(count))
        ways += last
    pairs = {(g, x) for g, x, _ in edges}
    while more := {(a, x) for a, b in pairs for g, x, _ in edges if g == b} - pairs:
        pairs |= more
    return ways, Counter(pairs)


def test_recursion_goes_to_and_fro(session: hw.Session) -> None:
    views = [session.create_view(name, query) for name, query in RECURSIVE.items()]
    draw, edges = Random(1), list[tuple[int, int, float]]()
    for where in ("driver", "cluster", "cluster", "driver", "cluster"):
        session.placement = where
        come = [(draw.randint(1, 4), draw.randint(1, 4), float(i)) for i in range(5)]
        gone = [edges.pop(draw.randrange(len(edges))) for _ in range(3) if edges]
        with session.transaction() as transaction:
            transaction.delete("a", gone)
            transaction.insert("a", come)
        edges += come
        assert ran_there(session) == (where == "cluster")
        assert [Counter(view.rows()) for view in views] == list(reached(edges))
    session.placement = "cluster"
    again = [session.create_view(f"{name} again", query) for name, query in RECURSIVE.items()]
    assert [Counter(view.rows()) for view in again] == list(reached(edges))


def test_what_begins_with_a_row_is_built_once(session: hw.Session) -> None:
    """The two views share a step that is kept by neither, and gives a row also of no rows."""
    fill(session)
    views = {"one": "SELECT median(x) + 1 AS m FROM a", "two": "SELECT median(x) + 2 AS m FROM a"}
    session.create_view("one", views["one"])
    session.placement = "cluster"
    session.create_view("two", views["two"])
    compare(session, views)
    session.insert("a", [(1, 1000, 1.0)])
    compare(session, views)


def test_a_change_of_no_rows(session: hw.Session) -> None:
    session.create_view("summed", VIEWS["summed"])
    fill(session)
    session.placement = "cluster"
    epoch = session.epoch
    session.insert("a", [])
    with session.transaction() as transaction:
        transaction.insert("a", [(1, 1, 1.0)])
        transaction.delete("a", [(1, 1, 1.0)])
    session.insert("b", [])
    assert session.epoch == epoch + 3
    compare(session, {"summed": VIEWS["summed"]})


def test_a_view_over_empty_tables(session: hw.Session) -> None:
    session.placement = "cluster"
    for name, query in VIEWS.items():
        session.create_view(name, query)
    compare(session, VIEWS)
    session.insert("b", [(1, "one")])
    compare(session, VIEWS)


def test_a_union_of_an_earlier_wave_and_of_what_comes_in_parts(session: hw.Session) -> None:
    # Rows without a partner are found a wave before the pairs. These come in two parts where both sides only grow or shrink.
    views = {"padded": "SELECT a.x, b.name FROM a LEFT JOIN b ON a.g = b.g"}
    fill(session)
    session.create_view("padded", views["padded"])
    session.placement = "cluster"
    with session.transaction() as transaction:
        transaction.delete("a", [(old % 7, old, old / 4) for old in range(25)])
        transaction.delete("b", [(i, f"name {i}") for i in range(1, 4)])
    assert ran_there(session)
    compare(session, views)


def test_all_rows_go(session: hw.Session) -> None:
    for name, query in VIEWS.items():
        session.create_view(name, query)
    fill(session)
    session.placement = "cluster"
    session.delete("a", session.table("a").arrow())
    compare(session, VIEWS)
    session.insert("a", [(1, 2, 3.0)])
    compare(session, VIEWS)


def test_an_error_leaves_all_as_it_was(session: hw.Session) -> None:
    fill(session)
    session.create_view("divided", "SELECT g, 10 DIV x AS d FROM a WHERE x > -5 AND g = 6")
    session.create_view("summed", VIEWS["summed"])
    session.placement = "cluster"
    epoch, rows = session.epoch, session.view("summed").rows()
    with pytest.raises(hw.EvaluationFailed, match="DIVIDE_BY_ZERO"):
        session.insert("a", [(6, 0, 1.0)])
    assert (session.epoch, session.view("summed").rows()) == (epoch, rows)
    session.insert("a", [(6, 1, 1.0)])
    assert ran_there(session)
    compare(session, {"summed": VIEWS["summed"]})


def test_what_only_spark_evaluates_is_left_to_the_driver(session: hw.Session) -> None:
    views = {"made": "SELECT g, mask(name) AS masked FROM b", "summed": VIEWS["summed"]}
    views |= {"counted": "SELECT masked, count(*) AS n FROM made GROUP BY masked"}
    views |= {"mixed": "SELECT s, masked FROM summed JOIN made USING (g)"}
    for name, query in views.items():
        session.create_view(name, query)
    session.placement = "cluster"
    oracle = Oracle(session, {name: views[name] for name in ("made", "summed")})
    for _ in range(2):
        fill(session)
        assert ran_there(session)
        for name, query in views.items():
            oracle.check(session.view(name), query)


def test_a_reader_beside_a_job(session: hw.Session) -> None:
    """To read all rows of an arrangement may merge its runs, just when they are being written."""
    session.create_view("summed", VIEWS["summed"])
    for i in range(6):
        session.insert("a", [(j % 3, j, None) for j in range(300 * i, 300 * i + 300)])
    session.placement = "cluster"
    written = Fold.write

    def read_then(self: Fold, states: Any) -> None:
        states = list(states)
        written(self, states)
        for state in states:
            for kept in state:
                kept.contents()

    with mock.patch.object(Fold, "write", read_then):
        session.insert("a", [(1, 1, 1.0)])
    assert ran_there(session)
    compare(session, {"summed": VIEWS["summed"]})


def test_a_build_beside_commits(session: hw.Session) -> None:
    """While a view is built on executors, others commit, in the driver and on executors."""
    fill(session)
    session.create_view("summed", VIEWS["summed"])
    session.placement = "cluster"
    run, failures = Cluster.run, list[BaseException]()

    def commits() -> None:
        try:
            session.insert("a", [(2, 5, 0.5)] * 3)
            session.delete("b", [(1, "name 1")])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    def run_beside(*arguments: Any, **options: Any) -> Any:
        outcome = run(*arguments, **options)
        with mock.patch.object(Cluster, "run", run):
            other = Thread(target=commits)
            other.start()
            other.join()
        return outcome

    with mock.patch.object(Cluster, "run", run_beside):
        session.create_view("joined", VIEWS["joined"])
    assert not failures
    session.insert("b", [(1, "again")])
    assert ran_there(session)
    compare(session, {name: VIEWS[name] for name in ("summed", "joined")})


def test_a_directory_goes_on_after_jobs(spark: SparkSession, tmp_path: Path) -> None:
    with closing(hw.connect(tmp_path / "kept", spark=spark, placement="cluster")) as session:
        session.create_table("a", "g INT, x BIGINT, y DOUBLE")
        session.create_table("b", "g INT, name STRING")
        fill(session)
        for name, query in VIEWS.items():
            session.create_view(name, query)
        session.insert("a", [(1, 2, 3.0)])
        compare(session, VIEWS)
    needed = {place.file for place in _manifest(tmp_path / "kept").places()}
    assert {f"runs/{path.name}" for path in (tmp_path / "kept" / "runs").iterdir()} == needed
    with closing(hw.connect(tmp_path / "kept", spark=spark, placement="driver")) as session:
        compare(session, VIEWS)
        session.insert("b", [(1, "again")])
        session.placement = "cluster"
        session.insert("b", [(2, "again")])
        compare(session, VIEWS)


def _manifest(directory: Path) -> Any:
    from headwater.store import manifest
    from headwater.store.disk import LocalDisk

    found = manifest.newest(LocalDisk(directory))
    assert found is not None
    return found


def test_nothing_of_the_users_session_is_changed(spark: SparkSession, session: hw.Session) -> None:
    spark.createDataFrame(pa.table({"x": [1]})).createOrReplaceTempView("mine")
    spark.sparkContext.setJobDescription("what I do")
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "mine")
    configuration = dict(spark.sparkContext.getConf().getAll())
    settings = _settings(spark)
    views = _temporary_views(spark)
    try:
        fill(session)
        session.placement = "cluster"
        for name, query in VIEWS.items():
            session.create_view(name, query)
        session.insert("a", [(1, 2, 3.0)])
        assert ran_there(session)
        assert _settings(spark) == settings
        assert dict(spark.sparkContext.getConf().getAll()) == configuration
        assert _temporary_views(spark) == views
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "what I do"
        assert spark.sparkContext.getLocalProperty("spark.scheduler.pool") == "mine"
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
        assert type(spark).getActiveSession() is spark or type(spark).getActiveSession()._jsparkSession == spark._jsparkSession
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
        spark.catalog.dropTempView("mine")


def _temporary_views(spark: SparkSession) -> list[str]:
    return sorted(view.name for view in spark.catalog.listTables() if view.isTemporary)


def _settings(spark: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


def test_shards_follow_rows_and_bytes(session: hw.Session) -> None:
    """So that no task has more than it can hold."""
    cluster = Cluster(lambda: session.spark, lambda: "UTC")
    step = session.snapshot.tables["a"].source
    few = Delta.inserting(pa.RecordBatch.from_pydict({"c0": [1]}))
    assert cluster._shards({step: [few]}) == cluster.cores
    with mock.patch.object(placed, "_ROWS", 10):
        many = Delta.inserting(pa.RecordBatch.from_pydict({"c0": list(range(95))}))
        assert cluster._shards({step: [many]}) == 10
    with mock.patch.object(placed, "_BYTES", 1000):
        long = Delta.inserting(pa.RecordBatch.from_pydict({"c0": ["x" * 6500]}))
        assert cluster._shards({step: [long]}) == 8
        assert cluster._shards({step: [Whole(Arrangement.empty(long.schema, (0,)).insert(long))]}) >= 8
