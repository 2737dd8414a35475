"""Soft state: rows with a time to live, by clocks that a test can advance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater import expiring
from headwater.delta import Delta
from headwater.runtime.calendar import Calendar
from headwater.runtime.lifetimes import TIME
from headwater.state.arrangement import Arrangement
from tests.storing import copy_as_crashed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
REACHABLE = """
    WITH RECURSIVE reachable(src, dst) AS (
        SELECT src, dst FROM link UNION SELECT r.src, l.dst FROM reachable r JOIN link l ON r.dst = l.src
    ) SELECT * FROM reachable"""


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark, clock=NOON) as session:
        yield session


def test_rows_expire_by_their_event_time_and_derived_rows_with_them(session: hw.Session) -> None:
    link = session.create_table("link", "src STRING, dst STRING, seen TIMESTAMP", ttl="10 minutes", event_time="seen")
    assert (link.ttl, link.event_time) == (timedelta(minutes=10), "seen")
    reachable = session.create_view("reachable", REACHABLE)
    count = session.create_view("n", "SELECT count(*) AS n FROM link")
    inserted = session.insert("link", [("a", "b", at(0)), ("b", "c", at(60)), ("c", "a", None)])
    assert len(reachable) == 9
    assert session.advance("9 minutes") == inserted
    assert session.advance(at(600)) == inserted + 1
    assert session.now == at(600)
    assert sorted(reachable.rows()) == [("b", "a"), ("b", "c"), ("c", "a")]
    assert count.rows() == [(2,)]
    assert [epoch for epoch, _ in reachable.changes(inserted)] == [inserted + 1]
    assert len(reachable.at(inserted).rows()) == 9
    session.advance(timedelta(days=1000))
    assert link.rows() == [("c", "a", None)]


def test_a_row_that_comes_late_is_there_for_one_epoch_however_often_it_comes(session: hw.Session) -> None:
    table = session.create_table("t", "a INT, ts TIMESTAMP", ttl="10 seconds", event_time="ts")
    session.insert("t", [(1, at(0)), (2, at(5))])
    session.advance(at(10))
    assert table.rows() == [(2, at(5))]
    for _ in range(2):
        session.insert("t", [(1, at(0))])
        assert len(table) == 2
        session.advance("0 seconds")
        assert table.rows() == [(2, at(5))]


def test_without_event_time_a_row_lives_from_its_insertion(session: hw.Session) -> None:
    table = session.create_table("t", "a INT, b STRING", ttl="10 seconds")
    assert (table.ttl, table.event_time) == (timedelta(seconds=10), None)
    session.insert("t", [(1, "x"), (2, "y")])
    session.advance("4 seconds")
    session.insert("t", [(1, "x"), (3, None)])
    session.advance(at(10))
    assert sorted(table.rows()) == [(1, "x"), (3, None)]
    session.advance(at(14))
    assert table.rows() == []
    assert list(session.tables()) == ["t"]
    assert session.sql("SHOW TABLES").rows() == [("t", "")]


def test_to_replace_a_row_by_its_like_extends_its_life(session: hw.Session) -> None:
    table = session.create_table("t", "id INT, v STRING", key="id", ttl="10 seconds")
    view = session.create_view("v", "SELECT v, count(*) AS n FROM t GROUP BY v")
    first = session.insert("t", [(1, "a"), (2, "b"), (3, "c")])
    session.advance(at(6))
    session.upsert("t", [(1, "a"), (2, "c")])
    session.sql("UPDATE t SET v = v WHERE id = 3")
    assert [epoch for epoch, _ in view.changes(first)] == [first + 1]
    session.advance(at(10))
    assert sorted(table.rows()) == [(1, "a"), (2, "c"), (3, "c")]
    session.delete("t", [(1, "a")])
    session.insert("t", [(1, "z")])
    session.advance(at(16))
    assert table.rows() == [(1, "z")]
    session.advance(at(20))
    assert view.rows() == []


def test_a_delete_takes_the_copy_that_came_first(session: hw.Session) -> None:
    table = session.create_table("t", "a INT", ttl="10 seconds")
    for second in range(4):
        session.advance(at(second))
        session.insert("t", [(7,), (8,)])
    session.delete("t", [(7,), (7,), (7,)])
    session.advance(at(12))
    assert sorted(table.rows()) == [(7,), (8,)]
    session.advance(at(13))
    assert table.rows() == []


def test_after_a_long_pause_epochs_are_of_bounded_size_and_the_earliest_rows_go_first(
    session: hw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "MOST", 10)
    session.create_table("t", "a INT, ts TIMESTAMP", ttl="10 seconds", event_time="ts")
    session.create_table("u", "a INT", ttl="10 seconds")
    view = session.create_view("v", "SELECT a FROM t")
    before = session.insert("t", [(i, at(100 - i)) for i in range(35)])
    with session.transaction() as transaction:
        transaction.insert("u", [(i,) for i in range(8)])
        transaction.delete("t", [(34, at(66)), (33, at(67))])
    session.advance("1 hour")
    gone = [change.column("a").to_pylist() for _, change in view.changes(before + 1)]
    assert max(map(len, gone)) <= 10
    assert [a for each in gone for a in sorted(each, reverse=True)] == list(range(32, -1, -1))
    assert len(session.table("t")) == len(session.table("u")) == 0


def test_a_clock_of_the_data(spark: SparkSession) -> None:
    with hw.connect(spark=spark, clock="data") as session:
        assert session.now is None
        table = session.create_table("t", "a INT, ts TIMESTAMP", ttl="10 seconds", event_time="ts")
        assert session.insert("t", [(1, at(0)), (2, at(3)), (3, None)]) == 2
        assert session.now == at(3)
        assert session.insert("t", [(4, at(11))]) == 3
        assert session.epoch == 4
        assert sorted(table.rows()) == [(2, at(3)), (3, None), (4, at(11))]
        session.advance("10 seconds")
        assert table.rows() == [(3, None)]
        with pytest.raises(hw.InvalidOption, match="name its event_time"):
            session.create_table("u", "a INT", ttl="10 seconds")


def test_the_wall_clock_goes_on_by_itself(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("t", "a INT", ttl="50 milliseconds")
        view = session.create_view("v", "SELECT a FROM t")
        gone = Event()

        def told(_: int, change: pa.Table) -> None:
            if -1 in change.column("_weight").to_pylist():
                gone.set()

        view.subscribe(told)
        session.insert("t", [(1,)])
        assert gone.wait(60)
        assert view.rows() == []
        with pytest.raises(hw.InvalidOption, match="goes on by itself"):
            session.advance("1 second")


def test_in_sql(session: hw.Session) -> None:
    session.sql("CREATE TABLE t (a INT PRIMARY KEY, ts TIMESTAMP) WITH (ttl = '1 hour 30 minutes', event_time = ts)")
    assert (session.table("t").ttl, session.table("t").event_time) == (timedelta(minutes=90), "ts")
    session.sql('CREATE TABLE u (a INT) WITH (TTL = "2 days")')
    session.sql("INSERT INTO u VALUES (1), (1)")
    session.sql("MERGE INTO u USING (SELECT 1 AS a) AS s ON u.a = s.a WHEN MATCHED THEN UPDATE SET a = 2")
    assert session.table("u").rows() == [(2,), (2,)]
    session.advance("2 days")
    assert session.table("u").rows() == []
    session.sql("DROP TABLE u")
    session.sql("CREATE TABLE u (a INT) WITH (ttl = '1 day')")
    assert session.table("u").rows() == []


BAD: list[tuple[dict[str, Any], type[hw.HeadwaterError], str]] = [
    ({"ttl": "soon"}, hw.InvalidOption, "ttl is a span"),
    ({"ttl": ""}, hw.InvalidOption, "ttl is a span"),
    ({"ttl": "0 seconds"}, hw.InvalidOption, "ttl is a span"),
    ({"ttl": timedelta(days=-1)}, hw.InvalidOption, "ttl is a span"),
    ({"ttl": 10}, hw.InvalidOption, "ttl is a span"),
    ({"event_time": "ts"}, hw.InvalidOption, "no ttl says how long"),
    ({"ttl": "1 day", "event_time": "when"}, hw.UnknownName, "is not a column"),
    ({"ttl": "1 day", "event_time": "a"}, hw.InvalidSchema, "only a TIMESTAMP"),
    ({"ttl": "1 day", "event_time": "local"}, hw.InvalidSchema, "only a TIMESTAMP"),
]


@pytest.mark.parametrize(("options", "kind", "said"), BAD, ids=[str(options) for options, _, _ in BAD])
def test_bad_lifetimes_are_refused(
    session: hw.Session, options: dict[str, Any], kind: type[hw.HeadwaterError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        session.create_table("t", "a INT, ts TIMESTAMP, local TIMESTAMP_NTZ", **options)
    assert (session.epoch, dict(session.tables())) == (0, {})


def test_bad_clocks_and_statements_are_refused(session: hw.Session, spark: SparkSession, tmp_path: Path) -> None:
    for clock in ("noon", datetime(2026, 3, 2)):
        with pytest.raises(hw.InvalidOption, match="the clock is"):
            hw.connect(clock=clock)
    for to, said in [(at(-1), "does not run back"), ("yesterday", "a span such as"), (timedelta(-1), "a span such as")]:
        with pytest.raises(hw.InvalidOption, match=said):
            session.advance(to)
    with pytest.raises(hw.InvalidQuery, match="expected TTL or EVENT_TIME"):
        session.sql("CREATE TABLE t (a INT) WITH (key = 'a')")
    with pytest.raises(hw.InvalidQuery, match="is there twice"):
        session.sql("CREATE TABLE t (a INT) WITH (ttl = '1 day', ttl = '2 days')")
    with session.transaction(), pytest.raises(hw.InvalidTransaction):
        session.advance("1 day")
    spark.range(3).write.parquet(str(tmp_path / "rows"))
    for source in (spark.range(3), tmp_path / "rows"):
        with pytest.raises(hw.NotSupported, match="insert the rows"):
            session.create_table("t", source=source, ttl="1 day")


def test_a_table_that_is_loaded_expires_by_its_event_time(session: hw.Session, spark: SparkSession) -> None:
    source = spark.sql("SELECT id, timestamp'2026-03-02 12:00:00' + make_dt_interval(0, 0, id) AS ts FROM range(5)")
    table = session.create_table("t", source=source, key="id", ttl="1 minute", event_time="ts")
    session.advance("3 minutes")
    assert sorted(table.rows()) == [(3, at(180)), (4, at(240))]


def test_a_directory_is_opened_after_a_pause(spark: SparkSession, tmp_path: Path) -> None:
    """Closed or crashed, folded or only in the log: times of insertion are there, and what is due goes when it is opened."""
    with hw.connect(tmp_path / "d", spark=spark, clock=NOON) as session:
        session.create_table("t", "a INT", ttl="10 seconds")
        session.create_table("k", "id INT, v INT", key="id", ttl="10 seconds")
        session.create_table("e", "a INT, ts TIMESTAMP", ttl="10 seconds", event_time="ts")
        session.create_view("v", "SELECT a, count(*) AS n FROM (SELECT a FROM t UNION ALL SELECT a FROM e) GROUP BY a")
        session.insert("t", [(1,), (2,)])
        session.insert("k", [(1, 1), (2, 2)])
        session.insert("e", [(1, at(2)), (3, at(4))])
        session.advance(at(5))
        session.insert("t", [(1,)])
        session.upsert("k", [(1, 1)])
        copy_as_crashed(session, tmp_path / "d", tmp_path / "crashed")
        with hw.connect(tmp_path / "d", spark=spark, mode="r") as reader:
            assert list(reader.tables()) == ["t", "k", "e"]
            assert sorted(reader.table("t").rows()) == [(1,), (1,), (2,)]
            with pytest.raises(hw.ReadOnly):
                reader.advance("1 day")
    for name in ("d", "crashed"):
        with hw.connect(tmp_path / name, spark=spark, clock=at(12)) as session:
            assert session.table("t").rows() == [(1,)]
            assert session.table("k").rows() == [(1, 1)]
            assert sorted(session.view("v").rows()) == [(1, 1), (3, 1)]
            session.advance("2 seconds")
            assert session.view("v").rows() == [(1, 1)]
        with hw.connect(tmp_path / name, spark=spark) as session:
            # the wall clock is far ahead
            assert session.view("v").rows() == []
            assert session.at(session.epoch - 1).view("v").rows() == [(1, 1)]
        for _ in range(2):
            with pytest.raises(hw.InvalidOption, match="name its event_time"):
                hw.connect(tmp_path / name, spark=spark, clock="data")


def test_on_executors(session: hw.Session) -> None:
    """Times of insertion are state like any other: jobs write them, and find them again."""
    session.create_table("t", "id INT, v INT", key="id", ttl="10 seconds")
    view = session.create_view("v", "SELECT v % 2 AS odd, count(*) AS n FROM t GROUP BY v % 2")
    session.placement = "cluster"
    session.insert("t", [(i, i) for i in range(20)])
    session.advance("5 seconds")
    session.upsert("t", [(i, i) for i in range(5)])
    session.placement = "driver"
    session.insert("t", [(99, 1)])
    session.placement = "cluster"
    session.advance("5 seconds")
    assert sorted(view.rows()) == [(0, 3), (1, 3)]
    assert sorted(session.table("t").rows()) == [*((i, i) for i in range(5)), (99, 1)]


def test_what_fails_is_tried_again(session: hw.Session) -> None:
    table = session.create_table("t", "a INT", ttl="10 seconds")
    session.insert("t", [(1,)])
    session.advance("5 seconds")
    session.insert("t", [(2,)])
    session.create_view("v", "SELECT 1 DIV (count(*) - 1) AS n FROM t")
    with pytest.raises(hw.EvaluationFailed):
        session.advance("5 seconds")
    assert sorted(table.rows()) == [(1,), (2,)]
    session.drop_view("v")
    session.advance("0 seconds")
    assert table.rows() == [(2,)]


def test_the_calendar_looks_at_what_is_due_and_not_at_the_table() -> None:
    rng = np.random.default_rng(1)
    schema = pa.schema([pa.field("c0", pa.int64()), pa.field("c1", TIME)])

    def delta(ids: Any, times: Any, weight: int) -> Delta:
        rows = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(times).cast(TIME)], schema=schema)
        return Delta(rows, np.full(len(rows), weight))

    kept, calendar = Arrangement.empty(schema, (0,)), Calendar(1)
    times = rng.permutation(100_000)
    for start in range(0, 100_000, 10_000):
        ids = np.arange(start, start + 10_000)
        kept = kept.insert(delta(ids, times[ids], 1))
    looked_at = 0
    for until in range(0, 2_000, 100):
        due = calendar.due(kept, until, 1_000)
        looked_at += due.looked_at
        assert sorted(due.rows.rows.column(1).cast(pa.int64()).to_pylist()) == list(range(max(until - 99, 0), until + 1))
        kept = kept.insert(-due.rows)
        due.passed()
    assert looked_at < 3 * 1_901
    assert calendar.latest(kept) == 99_999
