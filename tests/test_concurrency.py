"""Several threads on one session: views are created and queries answered while others commit, and everything stays exact."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import pytest
from oracle import Oracle, check_changes
from patience import PATIENCE, wait_until

import headwater as hw
from headwater.runtime import history, subscriptions
from headwater.runtime.building import Building

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

QUERIES = {
    "grouped": "SELECT k, count(*) AS n, sum(x) AS s, min(x) AS m FROM r GROUP BY k",
    "joined": "SELECT r.k, r.x, s.y FROM r JOIN s ON r.k = s.k WHERE r.x + s.y > 2",
    "outer": "SELECT s.k, count(r.x) AS n FROM s LEFT JOIN r ON r.k = s.k GROUP BY s.k",
    "windowed": "SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x) AS place FROM r",
    "largest": "SELECT k, x FROM r ORDER BY x DESC, k LIMIT 3",
    "above": "SELECT n, count(*) AS c FROM grouped GROUP BY n",
    "again": "SELECT y, sum(k) AS total FROM s GROUP BY y",
}


@pytest.fixture
def s(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as opened:
        opened.create_table("r", "id BIGINT, k INT, x INT", key="id")
        opened.create_table("s", "k INT, y INT")
        yield opened


class Writer:
    """A thread that commits random changes of both tables, one after another, while the block lasts."""

    def __init__(self, session: hw.Session, seed: int) -> None:
        self.session = session
        self.random = random.Random(seed)
        self.commits = 0
        self.wrong: list[BaseException] = []
        self._rows: list[tuple[int, int, int]] = []
        self._pairs: list[tuple[int, int]] = []
        self._next = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def commit(self) -> None:
        draw, rows, pairs = self.random, self._rows, self._pairs
        gone = [rows.pop(draw.randrange(len(rows))) for _ in range(draw.randint(0, 3)) if rows]
        lost = [pairs.pop(draw.randrange(len(pairs))) for _ in range(draw.randint(0, 2)) if pairs]
        come = [(self._next + i, draw.randint(0, 4), draw.randint(0, 5)) for i in range(draw.randint(0, 4))]
        more = [(draw.randint(0, 4), draw.randint(0, 5)) for _ in range(draw.randint(0, 2))]
        with self.session.transaction() as tx:
            tx.delete("r", gone)
            tx.delete("s", lost)
            tx.insert("r", come)
            tx.insert("s", more)
        self.commits += 1
        self._next += len(come)
        rows += come
        pairs += more

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                self.commit()
                time.sleep(0.002)
        except BaseException as error:  # noqa: BLE001  (what a thread raises would be lost)
            self.wrong.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        assert not self.wrong


def in_thread(work: Callable[[], Any]) -> Any:
    """What the work gives, done in a thread of its own; it must end soon."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "the work fails, or waits for this thread"
    return found[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_views_are_exact_whatever_is_committed_while_they_are_created(
    s: hw.Session, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    writer = Writer(s, seed)
    start = Building.start

    def start_and_wait(building: Building, *arguments: Any) -> None:
        start(building, *arguments)
        commits = writer.commits
        wait_until(lambda: writer.commits > commits)

    monkeypatch.setattr(Building, "start", start_and_wait)
    for _ in range(20):
        writer.commit()
    with writer:
        for name, query in QUERIES.items():
            epoch = s.epoch
            s.create_view(name, query, refresh="full" if name == "again" else "auto")
            assert s.epoch > epoch + 1, "nobody has committed meanwhile"
            assert len(s.sql(query).rows()) >= 0
        s.create_view("grouped", QUERIES["grouped"] + " HAVING count(*) <> 2", replace=True)
    monkeypatch.undo()
    queries = {**QUERIES, "grouped": QUERIES["grouped"] + " HAVING count(*) <> 2"}
    oracle = Oracle(s, {"grouped": queries["grouped"]})
    for _ in range(3):
        for name, query in queries.items():
            oracle.check(s.view(name), query)
            check_changes(s.view(name).arrow().slice(0, 0), s.view(name), since=0)
        writer.commit()


def test_commits_do_not_wait_for_a_view_that_takes_long(s: hw.Session, spark: SparkSession, tmp_path: Path) -> None:
    committed = tmp_path / "committed"

    def slow(x: int) -> int:
        while not committed.exists():
            time.sleep(0.01)
        return x

    spark.udf.register("slow", slow, "int")
    writer = Writer(s, 7)
    for _ in range(10):
        writer.commit()
    s.insert("r", [(1_000_000 + i, i % 3, i) for i in range(12)])
    query = "SELECT k, max(slow(x)) AS m FROM r WHERE id >= 1000000 GROUP BY k"
    before = writer.commits
    creating = threading.Thread(target=lambda: s.create_view("v", query))
    with writer:
        creating.start()
        wait_until(lambda: writer.commits > before + 10)
        assert "v" not in s.views()
        committed.touch()
        creating.join()
    view = s.view("v")
    assert sorted(view.rows()) == [(0, 9), (1, 10), (2, 11)]


def test_queries_and_readers_do_not_wait_for_a_transaction(s: hw.Session) -> None:
    s.insert("r", [(1, 1, 1)])
    view = s.create_view("v", "SELECT count(*) AS n FROM r")
    with s.transaction() as tx:
        tx.insert("r", [(2, 1, 1)])
        assert tx.answer("SELECT count(*) AS n FROM r").rows() == [(2,)]
        assert in_thread(lambda: s.sql("SELECT count(*) AS n FROM r").rows()) == [(1,)]
        assert in_thread(view.rows) == [(1,)]
        assert in_thread(lambda: list(view.changes()))
        assert in_thread(view.explain)
        with pytest.raises(hw.InvalidTransaction):
            s.create_view("w", "SELECT k FROM r")
        with pytest.raises(hw.InvalidTransaction):
            s.insert("s", [(1, 1)])
    assert view.rows() == [(2,)]


def test_definitions_wait_for_each_other(s: hw.Session) -> None:
    """Of several that want one name, one gets it; all others are there in the end."""
    s.insert("s", [(1, 1), (2, 1)])
    taken: list[str] = []

    def define(number: int) -> None:
        s.create_view(f"v{number}", f"SELECT y, count(*) + {number} AS n FROM s GROUP BY y")
        try:
            s.create_view("same", f"SELECT y, {number} AS n FROM s")
        except hw.NameTaken as error:
            taken.append(str(error))
        if number == 2:
            s.view(f"v{number}").drop()

    threads = [threading.Thread(target=define, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 2
    assert sorted(s.views()) == ["same", "v0", "v1"]
    s.delete("s", [(2, 1)])
    assert s.view("v1").rows() == [(1, 2)]


def test_a_subscriber_may_create_views_while_others_do(s: hw.Session) -> None:
    view = s.create_view("v", "SELECT k FROM r")
    view.subscribe(lambda epoch, _: s.create_view(f"at{epoch}", "SELECT k, x FROM r"))
    other = threading.Thread(target=lambda: s.create_view("other", "SELECT y FROM s"))
    other.start()
    epoch = s.insert("r", [(1, 5, 5)])
    other.join()
    s.await_idle()
    made = [name for name in s.views() if name.startswith("at")]
    assert len(made) == 1
    assert int(made[0][2:]) <= epoch
    assert s.view(made[0]).rows() == [(5, 5)]


def test_changes_of_long_ago_are_not_kept(s: hw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "EPOCHS", 3)
    view = s.create_view("v", "SELECT count(*) AS n FROM s")
    for i in range(5):
        s.insert("s", [(i, i)])
    with pytest.raises(hw.HistoryGone, match="read it whole") as gone:
        view.changes()
    assert gone.value.code == "HISTORY_GONE"
    since = s.epoch - 3
    assert [epoch for epoch, _ in view.changes(since)] == [since + 1, since + 2, since + 3]


# -- subscribers that take their time


def test_a_subscriber_that_blocks_holds_nobody_up(s: hw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits go on, others are told, and the slow one misses nothing, though only a few epochs wait for it."""
    monkeypatch.setattr(subscriptions, "EPOCHS", 3)
    view = s.create_view("v", "SELECT k FROM s")
    go_on = threading.Event()
    slowly: list[int] = []
    quickly: list[int] = []
    view.subscribe(lambda epoch, _: (go_on.wait(PATIENCE), slowly.append(epoch)))
    stop = view.subscribe(lambda epoch, _: quickly.append(epoch))
    epochs = [s.insert("s", [(1, 1)])]
    epochs += [in_thread(lambda number=number: s.insert("s", [(number, number)])) for number in range(9)]  # type: ignore[misc]
    stop()
    assert quickly == epochs
    assert slowly == []
    go_on.set()
    s.await_idle()
    assert slowly == epochs
    epochs.append(s.insert("s", [(2, 2)]))
    s.await_idle()
    assert slowly == epochs


def test_a_subscriber_that_is_too_slow_is_ended_with_a_word(
    s: hw.Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(subscriptions, "EPOCHS", 2)
    monkeypatch.setattr(history, "EPOCHS", 3)
    view = s.create_view("v", "SELECT k FROM s")
    begun, go_on = threading.Event(), threading.Event()
    told: list[int] = []
    view.subscribe(lambda epoch, _: (begun.set(), go_on.wait(PATIENCE), told.append(epoch)))
    first = s.insert("s", [(1, 1)])
    begun.wait(PATIENCE)
    for _ in range(6):
        s.insert("s", [(1, 1)])
    go_on.set()
    s.await_idle()
    s.insert("s", [(1, 1)])
    s.await_idle()
    assert told == [first]
    assert f"A subscriber of view 'v' was told of epoch {first} last" in caplog.text
    assert "read the view whole, and subscribe again" in caplog.text


def test_close_does_not_wait_for_ever_for_a_subscriber(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(subscriptions, "PATIENCE", 0.1)
    go_on = threading.Event()
    with hw.connect(spark=spark) as session:
        session.create_table("t", "k INT")
        session.create_view("v", "SELECT k FROM t").subscribe(lambda *_: go_on.wait(PATIENCE))
        session.insert("t", [(1,)])
    assert "A subscriber has not ended" in caplog.text
    go_on.set()


def test_close_waits_for_what_is_being_told(spark: SparkSession) -> None:
    told: list[int] = []
    with hw.connect(spark=spark) as session:
        session.create_table("t", "k INT")
        view = session.create_view("v", "SELECT k FROM t")
        view.subscribe(lambda epoch, _: (time.sleep(0.05), told.append(epoch)))
        epochs = [session.insert("t", [(number,)]) for number in range(3)]
    assert told == epochs


def test_a_subscriber_may_end_its_own_subscription_and_close_the_session(spark: SparkSession) -> None:
    session = hw.connect(spark=spark)
    session.create_table("t", "k INT")
    view = session.create_view("v", "SELECT k FROM t")
    told: list[int] = []
    closed = threading.Event()

    def once(epoch: int, _: pa.Table) -> None:
        told.append(epoch)
        stop()
        session.insert("t", [(2,)])
        session.close()
        closed.set()

    stop = view.subscribe(once)
    epoch = session.insert("t", [(1,)])
    assert closed.wait(PATIENCE)
    assert told == [epoch]


# -- threads that die


def test_a_thread_that_dies_within_a_transaction_is_in_nobodys_way(s: hw.Session) -> None:
    left: list[Any] = []

    def begin() -> None:
        block = s.transaction()
        block.__enter__().insert("s", [(7, 7)])
        left.append(block)

    in_thread(lambda: (begin(), True))
    assert s.insert("s", [(1, 1)]) == s.epoch
    # Its number may be that of the dead one.
    assert in_thread(lambda: s.insert("s", [(2, 2)])) == s.epoch
    with pytest.raises(hw.InvalidTransaction, match="does not end in the thread in which it began"):
        left.pop().__exit__(None, None, None)
    assert sorted(s.table("s").rows()) == [(1, 1), (2, 2)]
    s.insert("s", [(3, 3)])


def test_a_transaction_that_another_thread_ends_is_void(s: hw.Session) -> None:
    begun, end = threading.Event(), threading.Event()
    left: list[Any] = []

    def begin() -> None:
        left.append(s.transaction())
        left[0].__enter__().insert("s", [(7, 7)])
        begun.set()
        end.wait(PATIENCE)

    thread = threading.Thread(target=begin)
    thread.start()
    begun.wait(PATIENCE)
    with pytest.raises(hw.InvalidTransaction, match="begin and end it in one thread"):
        left.pop().__exit__(None, None, None)
    s.insert("s", [(1, 1)])
    end.set()
    thread.join()
    assert s.table("s").rows() == [(1, 1)]
