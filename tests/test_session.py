"""The session: transactions, epochs, views on views, SQL, and everything a person touches, on real Spark."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
import pyarrow as pa
import pytest
from oracle import Oracle, check, check_changes

import headwater as hw
from headwater.compiler.dataflow import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from headwater.runtime.catalog import Snapshot


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[hw.Session]:
    """One for all tests here; each has tables and views of its own, and leaves none."""
    with hw.connect(spark=spark) as opened:
        yield opened


@pytest.fixture
def s(session: hw.Session) -> Iterator[hw.Session]:
    yield session
    while session.views():
        for view in list(session.views().values()):
            if not session.snapshot.readers(view.name):
                view.drop()
    for table in session.tables().values():
        table.drop()


def bag(relation: Any) -> Counter[Any]:
    return Counter(relation.rows())


# -- rows in and out


def test_rows_come_in_many_shapes(s: hw.Session, spark: SparkSession) -> None:
    zoned = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
    table = s.create_table("t", "id BIGINT, name STRING, at TIMESTAMP", key="id")
    one = spark.sql("SELECT 'a' AS name, TIMESTAMP '2024-02-29 12:30:00' AS at")
    arrow = pa.table({"AT": pa.array([zoned], pa.timestamp("us", "UTC")), "id": pa.array([1], pa.int8()), "Name": ["a"]})
    shapes: dict[int, object] = {
        1: arrow,
        2: arrow.set_column(1, "id", pa.array([2])).to_batches()[0],
        3: pd.DataFrame({"name": ["a"], "id": [3], "at": [pd.Timestamp("2024-02-29 12:30")]}),
        4: one.selectExpr("4L AS id", "name", "at"),
        5: [(5, "a", zoned)],
        6: [{"name": "a", "ID": 6, "at": zoned.replace(tzinfo=None)}],
        7: (row for row in [[7, "a", zoned]]),
        8: [one.selectExpr("8L AS id", "name", "at").first()],
    }
    for number, rows in shapes.items():
        epoch = s.epoch
        assert s.insert("t", rows) == s.epoch == epoch + 1
        assert len(table) == number
    assert {row[1:] for row in table.rows()} == {("a", zoned)}
    s.delete("t", pd.DataFrame({"id": [3], "name": ["a"], "at": [pd.Timestamp("2024-02-29 12:30")]}))
    s.upsert("t", pa.table({"id": [1, 9], "name": [None, "b"], "at": pa.nulls(2)}))
    assert {row[:2] for row in table.rows()} == {(1, None), (9, "b"), *((i, "a") for i in (2, 4, 5, 6, 7, 8))}


def test_answers_go_out_in_many_shapes_and_in_order(s: hw.Session) -> None:
    s.create_table("t", "id INT, x INT")
    view = s.create_view("v", "SELECT id AS a, x AS b FROM t ORDER BY x DESC NULLS LAST, id")
    s.insert("t", [(1, 5), (2, None), (3, 7), (4, 5), (4, 5)])
    expected = [(3, 7), (1, 5), (4, 5), (4, 5), (2, None)]
    answer = s.sql("SELECT * FROM v ORDER BY b DESC NULLS LAST, a")
    for shape in (view, answer):
        assert shape.rows() == expected
        assert shape.arrow().to_pylist() == [{"a": a, "b": b} for a, b in expected]
        assert shape.pandas()["a"].tolist() == [3, 1, 4, 4, 2]
        assert [tuple(row) for row in shape.dataframe().collect()] == expected
        assert shape.schema.simpleString() == "struct<a:int,b:int>"
    assert (len(view), view.name, repr(view)) == (5, "v", "View('v')")


# -- transactions


def test_a_transaction_over_several_tables_is_one_epoch(s: hw.Session) -> None:
    s.create_table("a", "k INT, x INT", key="k")
    s.create_table("b", "k INT, y INT")
    query = "SELECT a.k, sum(x * y) AS s, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k"
    view = s.create_view("v", query)
    epoch = s.epoch
    with s.transaction() as tx:
        tx.insert("a", [(1, 10), (2, 20)])
        tx.insert("b", [(1, 1), (1, 2), (2, 3)])
        tx.upsert("a", [(2, 21)])
        tx.delete("b", [(1, 2)])
        tx.sql("UPDATE b SET y = y + 1 WHERE k IN (SELECT k FROM a WHERE x > 20)")
        assert tx.answer("SELECT sum(y) FROM b").rows() == [(5,)]
        assert view.rows() == [], "nobody sees what is not committed"
    assert s.epoch == epoch + 1
    assert bag(view) == {(1, 10, 1): 1, (2, 84, 1): 1}
    assert [e for e, _ in view.changes()] == [epoch + 1]
    check(s, view, query)


def test_an_exception_in_the_block_rolls_back(s: hw.Session) -> None:
    s.create_table("a", "k INT", key="k")
    view = s.create_view("v", "SELECT count(*) AS n FROM a")
    s.insert("a", [(1,)])
    before = s.epochs.now

    def broken() -> None:
        with s.transaction() as tx:
            tx.insert("a", [(2,)])
            tx.delete("a", [(1,)])
            raise RuntimeError("of the user")

    def duplicate() -> None:
        with s.transaction() as tx:
            tx.insert("a", [(2,)])
            tx.insert("a", [(2,)])

    with pytest.raises(RuntimeError, match="of the user"):
        broken()
    with pytest.raises(hw.DuplicateKey, match=r"\(k=2\) already"):
        duplicate()
    assert s.epochs.now is before
    assert s.insert("a", [(2,)]) == before.epoch + 1
    assert view.rows() == [(2,)]


def test_a_statement_that_fails_leaves_no_half_in_the_transaction(s: hw.Session) -> None:
    table = s.create_table("a", "k INT, x INT", key="k")
    s.insert("a", [(1, 1), (2, 2), (3, 3)])
    with s.transaction() as tx:
        tx.insert("a", [(4, 4)])
        with pytest.raises(hw.DuplicateKey):
            tx.sql("UPDATE a SET k = 1 WHERE x > 1")
        with pytest.raises(hw.DuplicateKey):
            tx.replace("a", [(2, 2)], [(1, 9)])
        with pytest.raises(hw.MissingRow):
            tx.delete("a", [(1, 1), (1, 1)])
    assert bag(table) == {(i, i): 1 for i in (1, 2, 3, 4)}


def test_keys_may_be_exchanged_in_one_statement(s: hw.Session) -> None:
    table = s.create_table("a", "k INT, x STRING", key="k")
    s.insert("a", [(1, "one"), (2, "two")])
    s.sql("UPDATE a SET k = 3 - k")
    assert bag(table) == {(2, "one"): 1, (1, "two"): 1}


def test_transactions_do_not_nest_and_end_with_their_block(s: hw.Session) -> None:
    s.create_table("a", "k INT", key="k")
    s.create_view("v", "SELECT count(*) AS n FROM a")
    with s.transaction() as tx:
        tx.insert("a", [(1,)])
        for beside in (
            lambda: s.insert("a", [(1,)]),
            lambda: s.sql("DELETE FROM a"),
            lambda: s.create_table("b", "k INT"),
            lambda: s.create_view("w", "SELECT 1 AS one"),
            lambda: s.drop_view("v"),
            lambda: s.transaction().__enter__(),
        ):
            with pytest.raises(hw.InvalidTransaction, match="a transaction is open"):
                beside()
        assert s.sql("SELECT n FROM v").rows() == [(0,)], "others may be read: they are at the last epoch"
    for after in (lambda: tx.insert("a", [(2,)]), lambda: tx.sql("DELETE FROM a"), lambda: tx.answer("SELECT 1")):
        with pytest.raises(hw.InvalidTransaction, match="has ended"):
            after()
    assert s.view("v").rows() == [(1,)]
    assert list(s.tables()) == ["a"]


# -- failing epochs


def test_an_epoch_that_fails_changes_nothing_and_the_next_one_is_exact(s: hw.Session, spark: SparkSession) -> None:
    def picky(x: int) -> int:
        if x == 13:
            raise ValueError("no thirteen")
        return x * 2

    def exchange(old: list[Any], new: list[Any]) -> None:
        with s.transaction() as tx:
            tx.delete("t", old)
            tx.insert("t", new)

    spark.udf.register("picky", picky, "int")
    s.create_table("t", "id BIGINT, x INT, y INT", key="id")
    queries = {
        "grouped": "SELECT x, count(*) AS n, max(y) AS m FROM t GROUP BY x",
        "ranked": "SELECT id, y FROM t ORDER BY y DESC, id LIMIT 2",
        "divided": "SELECT id, 100 / y AS q FROM t",
        "summed": "SELECT sum(id) AS s FROM t",
        "called": "SELECT id, picky(x) AS p FROM t",
        "windowed": "SELECT id, sum(y) OVER (PARTITION BY x ORDER BY id) AS w FROM t",
    }
    views = {name: s.create_view(name, query) for name, query in queries.items()}
    s.insert("t", [(1, 1, 1), (2, 1, 5), (3, 2, 5)])
    contents = {name: bag(view) for name, view in views.items()}
    before = s.epochs.now
    for row, part in (
        ((9, 1, 0), "DIVIDE_BY_ZERO"),
        ((2**63 - 1, 1, 9), "ARITHMETIC_OVERFLOW"),
        ((9, 13, 9), "no thirteen"),
    ):
        with pytest.raises(hw.EvaluationFailed, match=part) as failed:
            exchange([(2, 1, 5)], [(8, 1, 9), row])
        assert failed.value.code == "EVALUATION_FAILED"
        assert s.epochs.now is before
        assert {name: bag(view) for name, view in views.items()} == contents
    exchange([(2, 1, 5)], [(8, 1, 9), (2**63 - 20, 1, 4)])
    oracle = Oracle(s)
    for name, query in queries.items():
        if name != "called":
            oracle.check(views[name], query)
    assert bag(views["called"]) == {(1, 2): 1, (3, 4): 1, (8, 2): 1, (2**63 - 20, 2): 1}


def test_a_view_that_cannot_be_built_is_not_created(s: hw.Session) -> None:
    s.create_table("t", "x INT")
    s.insert("t", [(0,)])
    before = s.epochs.now
    with pytest.raises(hw.EvaluationFailed, match="DIVIDE_BY_ZERO"):
        s.create_view("v", "SELECT 1 / x AS q FROM t")
    with pytest.raises(hw.EvaluationFailed, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        s.create_view("v", "SELECT (SELECT y FROM VALUES (1), (2) AS w(y) WHERE y > x) AS q FROM t")
    assert s.epochs.now is before
    s.sql("UPDATE t SET x = 4")
    assert s.create_view("v", "SELECT 1 / x AS q FROM t").rows() == [(0.25,)]


def test_pairs_that_never_were_fail_nothing(s: hw.Session) -> None:
    """A row that goes and its partner that comes are in no answer together."""
    s.create_table("l", "k INT, x INT")
    s.create_table("r", "k INT, y INT")
    queries = {
        "joined": "SELECT l.k, y / x AS q FROM l JOIN r ON l.k = r.k",
        "crossed": "SELECT l.k FROM l JOIN r ON y / x > l.k",
        "existing": "SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND y / x > 1)",
        "outer": "SELECT l.k, y / x AS q FROM l LEFT JOIN r ON l.k = r.k AND y / x > 1",
    }
    views = {name: s.create_view(name, query) for name, query in queries.items()}
    s.insert("l", [(1, 0), (2, 0)] + [(i, 1) for i in range(3, 30)])
    s.delete("l", [(2, 0)])
    with s.transaction() as tx:
        tx.delete("l", [(1, 0)])
        tx.insert("r", [(1, 5), (2, 5), (3, 5)])
    oracle = Oracle(s)
    for name, query in queries.items():
        oracle.check(views[name], query)


# -- readers, subscribers, changes


@dataclass
class Onlookers:
    """Readers in threads of their own, while the block runs: two who look at snapshots, and one who asks three times."""

    session: hw.Session
    wrong: list[Any] = field(default_factory=list)
    looks: int = 0

    def __enter__(self) -> Self:
        self.done = threading.Event()
        self.threads = [threading.Thread(target=guarded, args=(work, self.wrong)) for work in (self.look, self.look, self.ask)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.threads[-1].join()
        self.done.set()
        for thread in self.threads:
            thread.join()

    def look(self) -> None:
        last = 0
        while not self.done.is_set():
            now = self.session.snapshot
            if self.contents(now, "paid") != self.contents(now, "got"):
                self.wrong.append(("views differ at epoch", now.epoch))
            if self.session.view("both").rows()[0][0] not in (None, 0):
                self.wrong.append(("the difference is not 0 at about epoch", self.session.epoch))
            if now.epoch < last:
                self.wrong.append(("epochs went back", last, now.epoch))
            last = now.epoch
            self.looks += 1

    def ask(self) -> None:
        for _ in range(3):
            query = "SELECT paid.k FROM paid FULL JOIN got ON paid.k = got.k WHERE NOT paid.s <=> got.s"
            self.wrong += self.session.sql(query).rows()

    @staticmethod
    def contents(now: Snapshot, name: str) -> set[Any]:
        rows = now.contents(now.entries[name]).rows
        return set(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def test_readers_in_other_threads_see_whole_epochs(s: hw.Session) -> None:
    s.create_table("debit", "k INT, x BIGINT")
    s.create_table("credit", "k INT, x BIGINT")
    s.create_view("paid", "SELECT k, sum(x) AS s FROM debit GROUP BY k")
    s.create_view("got", "SELECT k, sum(x) AS s FROM credit GROUP BY k")
    s.create_view("both", "SELECT sum(s) AS s FROM (SELECT s FROM paid UNION ALL SELECT -s FROM got)")
    with Onlookers(s) as onlookers:
        for i in range(40):
            with s.transaction() as tx:
                for name in ("debit", "credit"):
                    tx.insert(name, [(i % 7, i), (0, 1)])
                    if i >= 10:
                        tx.delete(name, [((i - 10) % 7, i - 10)])
    assert not onlookers.wrong
    assert onlookers.looks > 10


def guarded(work: Any, wrong: list[Any]) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001  (what a thread raises would be lost)
        wrong.append(error)


def test_writers_in_several_threads_wait_for_each_other(s: hw.Session) -> None:
    s.create_table("t", "k INT, x INT", key="k")
    view = s.create_view("v", "SELECT count(*) AS n, sum(x) AS s FROM t")
    s.insert("t", [(0, 0)])
    epoch, wrong = s.epoch, []

    def write(first: int) -> None:
        for i in range(10):
            s.insert("t", [(first + i, 1)])
            s.sql("UPDATE t SET x = x + 1 WHERE k = 0") if i % 5 == 0 else None

    writers = [threading.Thread(target=guarded, args=(lambda n=n: write(n), wrong)) for n in (100, 200, 300)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not wrong
    assert s.epoch == epoch + 36
    assert view.rows() == [(31, 36)]


def test_changes_replay_to_the_present_content(s: hw.Session) -> None:
    s.create_table("t", "k INT, x DOUBLE")
    view = s.create_view("v", "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k")
    unread = s.create_view("unread", "SELECT k FROM t WHERE k > 100")
    s.insert("t", [(1, 1.5), (2, -0.0)])
    middle, content = s.epoch, view.arrow()
    s.insert("t", [(1, 2.5), (3, float("nan"))])
    s.delete("t", [(2, -0.0)])
    s.insert("t", [])
    check_changes(view.arrow().slice(0, 0), view, since=0)
    check_changes(content, view, since=middle)
    epochs = [epoch for epoch, _ in view.changes(since=middle)]
    assert epochs == [middle + 1, middle + 2]
    assert list(view.changes(since=s.epoch)) == []
    assert list(unread.changes()) == []
    (_, last), *_ = view.changes(since=middle + 1)
    assert last.to_pylist() == [{"k": 2, "s": 0.0, "n": 1, "_weight": -1}]


def test_subscribers_are_told_of_each_change(s: hw.Session, caplog: pytest.LogCaptureFixture) -> None:
    s.create_table("t", "k INT, x INT")
    view = s.create_view("v", "SELECT k, count(*) AS n FROM t GROUP BY k")
    total = s.create_view("total", "SELECT sum(n) AS n FROM v")
    told: list[tuple[str, int, list[Any]]] = []

    def broken(epoch: int, _: pa.Table) -> None:
        raise RuntimeError(f"at epoch {epoch}")

    view.subscribe(broken)
    end = view.subscribe(lambda epoch, delta: told.append(("v", epoch, delta.to_pylist())))
    total.subscribe(lambda epoch, delta: told.append(("total", epoch, delta.to_pylist())))
    with caplog.at_level(logging.ERROR, "headwater"):
        first = s.insert("t", [(1, 1), (1, 2)])
        s.await_idle()
    assert sorted(told, reverse=True) == [
        ("v", first, [{"k": 1, "n": 2, "_weight": 1}]),
        ("total", first, [{"n": None, "_weight": -1}, {"n": 2, "_weight": 1}]),
    ]
    assert "A subscriber of view 'v' failed" in caplog.text
    caplog.clear()
    told.clear()
    s.sql("UPDATE t SET x = x + 1")
    s.await_idle()
    assert told == [], "nothing that the view shows has changed"
    end()
    end()
    with caplog.at_level(logging.CRITICAL, "headwater"):
        s.insert("t", [(2, 1)])
        s.await_idle()
    assert [name for name, *_ in told] == ["total"]


def test_a_subscriber_may_commit_and_all_are_told_epoch_by_epoch(s: hw.Session) -> None:
    s.create_table("t", "k INT")
    s.create_table("log", "k INT")
    s.create_view("v", "SELECT k FROM t")
    s.create_view("w", "SELECT k FROM t UNION ALL SELECT k FROM log")
    told: list[tuple[str, int]] = []
    s.view("v").subscribe(lambda _, delta: s.insert("log", [(k,) for k in delta.column("k").to_pylist()]))
    s.view("v").subscribe(lambda epoch, _: told.append(("v", epoch)))
    s.view("w").subscribe(lambda epoch, _: told.append(("w", epoch)))
    start = s.epoch
    s.insert("t", [(1,)])
    assert s.await_idle() == start + 2
    assert sorted(told) == [("v", start + 1), ("w", start + 1), ("w", start + 2)]
    assert told.index(("w", start + 1)) < told.index(("w", start + 2))
    assert [epoch for epoch, _ in s.view("w").changes()] == [start + 1, start + 2]
    assert bag(s.view("w")) == {(1,): 2}


# -- views on views, and their replacement


def test_a_view_is_replaced_in_one_epoch_with_all_views_on_top(s: hw.Session) -> None:
    s.create_table("a", "k INT, x INT")
    s.create_table("b", "k INT, y INT")
    definitions = {
        "sums": "SELECT a.k, sum(y) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "sizes": "SELECT s, count(*) AS n FROM sums GROUP BY s",
        "pairs": "SELECT sums.k, sizes.n FROM sums JOIN sizes ON sums.s = sizes.s",
        "large": "SELECT k, s FROM sums WHERE s > 2",
    }
    views = {name: s.create_view(name, q, refresh="full" if name == "large" else "auto") for name, q in definitions.items()}
    s.insert("a", [(1, 1), (2, 1), (3, 1)])
    s.insert("b", [(1, 1), (1, 5), (2, 6), (3, 1)])
    told: list[int] = []
    views["pairs"].subscribe(lambda epoch, _: told.append(epoch))
    epoch, old, states = s.epoch, {name: view.arrow() for name, view in views.items()}, s.epochs.now.states
    definitions["sums"] = "SELECT a.k, sum(y) + sum(x) AS S FROM a JOIN b ON a.k = b.k WHERE a.k <> 3 GROUP BY a.k"
    with pytest.raises(hw.NameTaken, match="'sums' already"):
        s.sql(f"CREATE LIVE VIEW sums AS {definitions['sums']}")
    assert s.sql(f"CREATE OR REPLACE LIVE VIEW Sums AS {definitions['sums']}").name == "Sums"
    assert s.await_idle() == epoch + 1
    assert told == [epoch + 1]
    oracle = Oracle(s, definitions)
    for name, query in definitions.items():
        oracle.check(views[name], query)
        check_changes(old[name], views[name], since=epoch)
    used = in_order([s.epochs.now.views["sums"].contents])
    kept = [step.label for step in used if step in states and states[step] is s.epochs.now.states[step]]
    assert "Table a" in kept
    assert "Table b" in kept
    with s.transaction() as tx:
        tx.insert("a", [(4, 4), (2, 2)])
        tx.insert("b", [(4, 4), (1, 1)])
    for name, query in definitions.items():
        oracle.check(views[name], query)
        check_changes(old[name], views[name], since=epoch)


def test_common_parts_of_the_old_and_the_new_definition_keep_their_state(s: hw.Session) -> None:
    s.create_table("a", "k INT, x INT")
    s.create_table("b", "k INT, y INT")
    s.insert("a", [(1, 1), (2, 2)])
    s.insert("b", [(1, 5), (2, 6)])
    s.create_view("v", "SELECT a.k, sum(x + y) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.k")
    before = s.epochs.now.states
    view = s.create_view("v", "SELECT x + y AS z, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY x + y", replace=True)
    assert bag(view) == {(6, 1): 1, (8, 1): 1}
    kept = Counter(step.label for step, state in s.epochs.now.states.items() if state and before.get(step) is state)
    assert kept["Arrange"] >= 4, "both tables, and both sides of the join by its key"
    assert sum(step.label == "Join" for step in s.epochs.now.states) == 1


def test_a_replacement_that_does_not_fit_is_refused(s: hw.Session) -> None:
    s.create_table("t", "k INT, x INT")
    s.insert("t", [(1, 0), (2, 2)])
    s.create_view("v", "SELECT k, sum(x) AS s FROM t GROUP BY k")
    s.create_view("w", "SELECT max(s) AS m FROM v")
    before = s.epochs.now
    for query in (
        "SELECT k FROM t",
        "SELECT sum(x) AS s, k FROM t GROUP BY k",
        "SELECT k, sum(x) AS other FROM t GROUP BY k",
        "SELECT k, CAST(sum(x) AS INT) AS s FROM t GROUP BY k",
    ):
        with pytest.raises(
            hw.DependentViews, match="'v' cannot be replaced by a query with other columns, because 'w' read it"
        ):
            s.create_view("v", query, replace=True)
    with pytest.raises(hw.EvaluationFailed, match="DIVIDE_BY_ZERO"):
        s.create_view("v", "SELECT k, CAST(1 / x AS BIGINT) AS s FROM t", replace=True)
    with pytest.raises(hw.EvaluationFailed, match="DIVIDE_BY_ZERO"):
        s.create_view("v", "SELECT k, CAST(count(*) / min(x) AS BIGINT) AS s FROM t GROUP BY k", replace=True)
    assert s.epochs.now is before
    # Nothing of the failed attempts is left in what is compiled later.
    again = s.create_view("again", "SELECT k, s + 1 AS s FROM v")
    s.insert("t", [(1, 5)])
    assert bag(again) == {(1, 6): 1, (2, 3): 1}
    assert s.view("w").rows() == [(5,)]
    again.drop()
    s.drop_view("w")
    view = s.create_view("v", "SELECT k FROM t", replace=True)
    assert bag(view) == {(1,): 2, (2,): 1}
    check_changes(view.arrow().slice(0, 0), view, since=0)


def test_a_view_may_be_dropped_and_made_again(s: hw.Session) -> None:
    s.create_table("t", "k INT")
    view = s.create_view("v", "SELECT k FROM t WHERE k > 1")
    told: list[int] = []
    view.subscribe(lambda epoch, _: told.append(epoch))
    view.drop()
    with pytest.raises(hw.UnknownName, match="any more"):
        view.rows()
    s.drop_table("t")
    s.create_table("t", "k STRING, j INT", key="j")
    s.insert("t", [("a", 1)])
    again = s.create_view("v", "SELECT upper(k) AS k FROM t")
    s.insert("t", [("b", 2)])
    assert bag(again) == {("A",): 1, ("B",): 1}
    s.await_idle()
    assert told == []


# -- refresh policies, explain, stats


def test_refresh_policies(s: hw.Session) -> None:
    s.create_table("t", "k INT, x INT")
    s.insert("t", [(1, 1), (1, 2), (2, 3)])
    query = "SELECT k, sum(x) AS s FROM t GROUP BY k"
    auto = s.create_view("auto_view", query)
    full = s.sql(f"CREATE LIVE VIEW full_view REFRESH FULL AS {query}")
    incremental = s.create_view("incremental_view", query, refresh="incremental")
    frame = s.dataframe("t").mapInArrow(lambda batches: batches, "k INT, x INT")
    mapped = s.create_view("mapped", frame)
    before = s.epochs.now
    with pytest.raises(hw.NotIncremental) as refused:
        s.create_view("never", frame, refresh="incremental")
    assert refused.value.code == "NOT_INCREMENTAL"
    assert "view 'never' cannot be incremental: MapInArrow would be recomputed (MapInArrow has no incremental rule" in str(
        refused.value
    )
    with pytest.raises(hw.NotIncremental, match="Recompute would be recomputed"):
        s.sql("CREATE LIVE VIEW never REFRESH INCREMENTAL AS SELECT max(s) AS m FROM full_view")
    assert s.epochs.now is before
    s.insert("t", [(2, 4), (3, None)])
    assert bag(auto) == bag(full) == bag(incremental) == {(1, 3): 1, (2, 7): 1, (3, None): 1}
    assert len(mapped) == 5
    assert [v.refresh for v in (auto, full, incremental)] == ["auto", "full", "incremental"]
    assert [v.maintenance for v in (auto, full, incremental, mapped)] == ["stateful", "recomputed", "stateful", "recomputed"]
    assert full.stats()["recomputed"] == [{"operator": "Recompute", "why": "the view was created with refresh full"}]
    assert mapped.stats()["recomputed"][0]["operator"] == "MapInArrow"
    assert auto.stats()["recomputed"] == []
    shown = {row["view"]: row for row in s.sql("SHOW LIVE VIEWS").arrow().to_pylist()}
    assert shown["mapped"]["class"] == "recomputed"
    assert shown["mapped"]["why"].startswith("MapInArrow: MapInArrow has no incremental rule")
    assert shown["full_view"] == {
        "view": "full_view",
        "class": "recomputed",
        "refresh": "full",
        "rows": "3",
        "why": "Recompute: the view was created with refresh full",
    }
    assert shown["auto_view"]["why"] == ""


def test_explain_tells_all_about_every_operator(s: hw.Session) -> None:
    s.create_table("a", "k INT, x INT")
    s.create_table("b", "k INT, y INT")
    view = s.create_view(
        "v",
        "SELECT k, s, row_number() OVER (PARTITION BY s ORDER BY k) AS r "
        "FROM (SELECT a.k, sum(y) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.k)",
    )
    s.insert("a", [(1, 1), (2, 2)])
    s.insert("b", [(1, 1), (2, 2), (2, 3)])
    told = json.loads(view.explain(format="json"))
    assert {name: told[name] for name in ("view", "epoch", "class", "refresh")} == {
        "view": "v",
        "epoch": s.epoch,
        "class": "touched groups",
        "refresh": "auto",
    }
    by_name = {operator["operator"]: operator for operator in told["operators"]}
    assert {"Table a", "Table b", "Join", "Aggregate", "Window", "Arrange"} <= set(by_name)
    join, aggregate, window = by_name["Join"], by_name["Aggregate"], by_name["Window"]
    assert (join["class"], join["rule"], join["lineage"]) == ("stateful", "Δ(L ⋈ R) = ΔL ⋈ R' + L ⋈ ΔR", [0])
    assert (join["last_rows_in"], join["last_rows_out"]) == (3, 3)
    assert aggregate["state_rows"] == 2
    assert aggregate["state_bytes"] > 0
    assert "exact sum" in aggregate["monoid"]
    assert window["class"] == "touched groups"
    assert "only the partitions that changed" in window["reason"]
    assert by_name["Table a"]["class"] == "linear"
    for place, operator in enumerate(told["operators"]):
        assert operator["id"] == place
        assert all(child < place for child in operator["inputs"])
        assert operator["last_seconds"] >= 0
        assert operator["engine"] in ("arrow", "duckdb", "spark")
    text = view.explain()
    assert text.startswith(f"live view v  ·  touched groups  ·  refresh auto  ·  epoch {s.epoch}\n")
    for part in (
        "Join  [stateful, arrow]",
        join["rule"],
        "merged by ⊎ × ⊎  by (#0)",
        "why: window functions",
        "3 rows in, 3 out",
    ):
        assert part in text
    assert "\n".join(row[0] for row in s.sql("EXPLAIN LIVE VIEW v").rows()) == text
    assert s.sql("EXPLAIN LIVE VIEW v FORMAT JSON").rows()[0] == ("{",)
    mermaid = view.explain("mermaid").split("\n")
    assert mermaid[0] == "flowchart BT"
    assert sum("-->" in line for line in mermaid) == sum(len(operator["inputs"]) for operator in told["operators"])
    assert any('"Join<br/>stateful' in line for line in mermaid)
    figures = view.stats()
    assert (figures["view"], figures["class"], figures["rows"], figures["epoch"]) == ("v", "touched groups", 2, s.epoch)
    assert figures["state_rows"] == sum(operator["state_rows"] for operator in told["operators"])


# -- SQL


def test_every_statement(s: hw.Session) -> None:
    table = s.sql("CREATE TABLE sales (id BIGINT, brand STRING NOT NULL, price DECIMAL(8, 2), PRIMARY KEY (id))")
    assert (table.name, table.key) == ("sales", ("id",))
    assert s.sql("CREATE TABLE IF NOT EXISTS sales (other INT)").schema == table.schema
    s.sql("CREATE TABLE news (id BIGINT, brand STRING, price DOUBLE)")
    view = s.sql("CREATE LIVE VIEW per_brand AS SELECT brand, sum(price) AS total, count(*) AS n FROM sales GROUP BY brand;")
    assert s.sql("CREATE LIVE VIEW IF NOT EXISTS per_brand AS SELECT 1 AS a").schema == view.schema
    epoch = s.epoch
    assert s.sql("INSERT INTO sales VALUES (1, 'a', 1.5), (2, 'b', 2), (3, 'a', NULL)") == epoch + 1
    s.sql("INSERT INTO sales (brand, id) SELECT upper(brand), id + 10 FROM sales WHERE id < 3 -- a comment")
    assert s.sql("SELECT count(*) FROM sales").rows() == [(5,)]
    s.sql("UPDATE sales AS t SET price = coalesce(price, 0) + 1, brand = lower(brand) WHERE t.id >= 3")
    s.sql("DELETE FROM sales WHERE id = 11 OR brand IN (SELECT brand FROM per_brand WHERE n > 5)")
    assert sorted(map(str, s.sql("SELECT id, brand, price FROM sales ORDER BY id").rows())) == [
        "(1, 'a', Decimal('1.50'))",
        "(12, 'b', Decimal('1.00'))",
        "(2, 'b', Decimal('2.00'))",
        "(3, 'a', Decimal('1.00'))",
    ]
    s.sql("INSERT INTO news VALUES (1, 'z', 9), (2, NULL, NULL), (50, 'new', 0.5)")
    s.sql(
        "MERGE INTO sales AS t USING (SELECT * FROM news) AS n ON t.id = n.id "
        "WHEN MATCHED AND n.brand IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET brand = n.brand, price = n.price "
        "WHEN NOT MATCHED THEN INSERT (id, brand, price) VALUES (n.id, n.brand, n.price) "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 10 THEN DELETE"
    )
    assert {(row[0], row[1], float(row[2])) for row in table.rows()} == {(1, "z", 9.0), (3, "a", 1.0), (50, "new", 0.5)}
    check(s, view, "SELECT brand, sum(price) AS total, count(*) AS n FROM sales GROUP BY brand")
    assert s.sql("SELECT s.id, v.n FROM sales s JOIN per_brand v ON s.brand = v.brand WHERE s.price > 1").rows() == [(1, 1)]
    assert s.sql("WITH c AS (SELECT max(n) AS m FROM per_brand) SELECT m + 1 FROM c").rows() == [(2,)]
    assert s.sql("VALUES (1, 'x')").rows() == [(1, "x")]
    assert len(s.sql("SELECT rand() AS r FROM sales").rows()) == 3
    assert s.sql("DESCRIBE sales").rows() == [("id", "bigint", "key"), ("brand", "string", ""), ("price", "decimal(8,2)", "")]
    assert s.sql("DESCRIBE LIVE VIEW per_brand").rows()[1] == ("total", "decimal(18,2)", "")
    assert s.sql("SHOW TABLES").rows() == [("sales", "id"), ("news", "")]
    assert s.sql("SHOW LIVE VIEWS").rows() == [("per_brand", "stateful", "auto", "3", "")]
    s.sql("CREATE OR REPLACE LIVE VIEW per_brand REFRESH INCREMENTAL AS SELECT max(price) AS top FROM sales")
    assert s.sql("SELECT * FROM per_brand").arrow().column_names == ["top"]
    s.sql("DROP LIVE VIEW per_brand")
    s.sql("DROP LIVE VIEW IF EXISTS per_brand")
    s.sql("DROP TABLE news")
    s.sql("DROP TABLE IF EXISTS news")
    assert (list(s.views()), list(s.tables())) == ([], ["sales"])


# -- DataFrames and functions of the user


def test_views_from_frames(s: hw.Session) -> None:
    from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)

    s.create_table("people", "id INT, city STRING", key="id")
    s.create_table("cities", "city STRING, country STRING")
    s.insert("people", [(1, "Rome"), (2, "Oslo")])
    s.insert("cities", [("Rome", "it"), ("Oslo", "no")])
    joined = s.dataframe("people").join(s.dataframe("cities"), "city", "left").groupBy("country").agg(F.count("*").alias("n"))
    view = s.create_view("per_country", joined)
    above = s.create_view("above", view.dataframe().where("n > 1").select(F.upper("country").alias("c")))
    with s.transaction() as tx:
        tx.insert("people", [(3, "Rome"), (4, "Atlantis")])
        tx.delete("cities", [("Oslo", "no")])
    query = "SELECT country, count(*) AS n FROM people LEFT JOIN cities USING (city) GROUP BY country"
    check(s, view, query)
    assert Counter(above.rows()) == {("IT",): 1, (None,): 1}
    assert view.maintenance == "stateful"
    with pytest.raises(hw.DependentViews, match="'per_country' read it"):
        s.drop_table("people")
    stale = s.dataframe("people")
    above.drop()
    view.drop()
    s.drop_table("people")
    with pytest.raises(hw.UnknownName, match="'people'"):
        s.create_view("late", stale)


def test_python_functions_and_aggregates(s: hw.Session, spark: SparkSession) -> None:
    from pyspark.sql.functions import pandas_udf

    @pandas_udf("double")
    def spread(values: pd.Series) -> float:
        return float(values.max() - values.min())

    spark.udf.register("shout", lambda text: None if text is None else text.upper() + "!", "string")
    spark.udf.register("spread", spread)
    s.create_table("t", "k INT, x DOUBLE, name STRING")
    s.insert("t", [(1, 1.0, "a"), (1, 4.0, "b"), (2, 5.0, None)])
    shouted = s.create_view(
        "shouted", "SELECT shout(name) AS n, count(*) AS c FROM t WHERE shout(name) <> 'B!' OR name IS NULL GROUP BY 1"
    )
    spreads = s.create_view("spreads", "SELECT k, spread(x) AS d FROM t GROUP BY k")
    assert bag(shouted) == {("A!", 1): 1, (None, 1): 1}
    assert bag(spreads) == {(1, 3.0): 1, (2, 0.0): 1}
    assert spreads.maintenance == "touched groups"
    with s.transaction() as tx:
        tx.delete("t", [(1, 4.0, "b")])
        tx.insert("t", [(2, 7.5, "a"), (3, 1.0, "b")])
    assert bag(shouted) == {("A!", 2): 1, (None, 1): 1}
    assert bag(spreads) == {(1, 0.0): 1, (2, 2.5): 1, (3, 0.0): 1}


# -- the end


def test_a_closed_session_says_so_and_leaves_spark_alone(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as s:
        table = s.create_table("t", "k INT")
        view = s.create_view("v", "SELECT k FROM t")
        s.insert("t", [(1,)])
        frame = s.dataframe("t")
    s.close()
    for use in (
        lambda: s.create_table("u", "k INT"),
        lambda: s.create_view("w", "SELECT 1 AS a"),
        lambda: s.insert("t", [(2,)]),
        lambda: s.sql("SELECT * FROM v"),
        lambda: s.sql("SHOW TABLES"),
        s.tables,
        lambda: s.view("v"),
        lambda: s.dataframe("t"),
        lambda: s.drop_view("v"),
        lambda: s.transaction().__enter__(),
        table.rows,
        view.rows,
        view.explain,
        view.stats,
        lambda: list(view.changes()),
        lambda: view.subscribe(print),
        lambda: view.schema,
    ):
        with pytest.raises(hw.SessionClosed, match="connect again") as closed:
            use()
        assert closed.value.code == "SESSION_CLOSED"
    assert [tuple(row) for row in frame.collect()] == [(1,)]
    assert spark.range(2).count() == 2


def test_sessions_have_tables_and_views_of_their_own(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("t", "k INT")
    s.insert("t", [(1,)])
    with hw.connect(spark=spark) as other:
        assert list(other.tables()) == []
        other.create_table("t", "k STRING")
        other.create_view("v", "SELECT k FROM t")
        other.insert("t", [("a",)])
        assert other.view("v").rows() == [("a",)]
        assert other.epoch == 3
    assert s.create_view("v", "SELECT k FROM t").rows() == [(1,)]
    assert not spark.catalog.tableExists("t")
