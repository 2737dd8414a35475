"""Transactions of a source over several tables: what is seen is always what some prefix of them left, whoever is late."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from crashed import crashed

import headwater as hw
from headwater.sources import held, wholes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Message = dict[str, Any]
    State = dict[tuple[str, int], str]

TABLES = ("orders", "items")
KINDS = {
    "table": pa.string(),
    "op": pa.string(),
    "xid": pa.string(),
    "total_order": pa.int64(),
    "status": pa.string(),
    "event_count": pa.int64(),
    "data_collections": pa.list_(pa.struct([("data_collection", pa.string()), ("event_count", pa.int64())])),
    "source": pa.struct([("lsn", pa.int64()), ("ts_ms", pa.int64())]),
    "key": pa.int64(),
    "value": pa.string(),
    wholes.BATCH: pa.int64(),
}


def history(chance: random.Random, count: int) -> tuple[dict[str, list[Message]], list[State]]:
    """Messages by topic, and what the tables have after so many transactions."""
    topics: dict[str, list[Message]] = {name: [] for name in (*TABLES, "others", "transaction")}
    states: list[State] = [{}]
    for number in range(count):
        state, xid = dict(states[-1]), f"{number}:{chance.randrange(1000)}"
        topics["transaction"].append({"status": "BEGIN", "xid": xid})
        counts = dict.fromkeys(topics, 0)
        for order in range(chance.randrange(1, 8)):
            table, key = chance.choice([*TABLES, "others"]), chance.randrange(5)
            counts[table] += 1
            value = f"{number}.{order}"
            told = {"table": f"shop.public.{table}", "xid": xid, "total_order": order + 1, "key": key}
            gone = (table, key) in state and chance.random() < 0.4
            topics[table].append({**told, "op": "d"} if gone else {**told, "op": "u", "value": value})
            if chance.random() < 0.1:
                # Connectors tell some things again.
                topics[table].append(topics[table][-1])
            state.pop((table, key), None)
            if not gone:
                state[table, key] = value
        collections = [{"data_collection": f"public.{name}", "event_count": n} for name, n in counts.items() if n]
        end = {"status": "END", "xid": xid, "event_count": sum(counts.values()), "data_collections": collections}
        topics["transaction"].append(end)
        states.append({at: value for at, value in state.items() if at[0] != "others"})
    return topics, states


def batches(chance: random.Random, topics: dict[str, list[Message]]) -> list[list[Message]]:
    """Each batch has some of what is next in each topic, topic by topic, as Kafka gives it."""
    rest = {name: list(messages) for name, messages in topics.items()}
    found = []
    while any(rest.values()):
        batch = []
        for name in chance.sample(list(rest), len(rest)):
            some = chance.choice([0, 1, 2, 5, 20])
            batch += rest[name][:some]
            rest[name] = rest[name][some:]
        found.append(batch)
    return found


def pooled(messages: list[Message]) -> pa.Table:
    return pa.Table.from_pylist([{name: message.get(name) for name in KINDS} for message in messages], pa.schema(KINDS))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_applied_is_the_longest_prefix_that_is_complete(seed: int) -> None:
    chance = random.Random(seed)
    topics, states = history(chance, 12)
    state: State = {}
    done: set[str] = set()
    waiting: list[Message] = []
    came: list[Message] = []
    for number, batch in enumerate(batches(chance, topics)):
        pool = waiting + [{**message, wholes.BATCH: number} for message in batch if message["xid"] not in done]
        came += batch
        found = wholes.sort(pooled(pool), TABLES)
        for at in found.ready.tolist():
            table = TABLES[found.targets[at]]
            done.add(pool[at]["xid"])
            state.pop((table, pool[at]["key"]), None)
            if pool[at]["op"] != "d":
                state[table, pool[at]["key"]] = pool[at]["value"]
        waiting = [pool[at] for at in found.held.tolist()]
        assert state == states[complete(came, topics)]
    assert state == states[-1]
    assert waiting == []


def complete(came: list[Message], topics: dict[str, list[Message]]) -> int:
    """How many transactions there are before the first of which something is missing, looked at one by one."""
    ends = [message for message in topics["transaction"] if message["status"] == "END"]
    for number, end in enumerate(ends):
        wanted = [message for name in TABLES for message in topics[name] if message["xid"] == end["xid"]]
        if end not in came or any(message not in came for message in wanted):
            return number
    return len(ends)


def test_changes_without_a_transaction_wait_for_those_before_them() -> None:
    change = {"table": "public.orders", "op": "c", "key": 1}
    end = {"status": "END", "xid": "a", "event_count": 2, wholes.BATCH: 1}
    alone, late = {**change, wholes.BATCH: 0}, {**change, wholes.BATCH: 1}
    open_ = [{**change, "xid": "a", "total_order": 1, wholes.BATCH: 0}]
    found = wholes.sort(pooled([alone, *open_, late]), TABLES)
    assert (found.ready.tolist(), found.held.tolist()) == ([0], [1, 2])
    # An end that does not list tables counts the changes of all that are followed.
    found = wholes.sort(pooled([*open_, late, end]), TABLES)
    assert (found.ready.tolist(), found.held.tolist()) == ([], [0, 1, 2])
    second = {**change, "table": "public.items", "xid": "a", "total_order": 2, wholes.BATCH: 2}
    found = wholes.sort(pooled([*open_, late, end, second]), TABLES)
    assert (found.ready.tolist(), found.held.tolist()) == ([0, 3, 1], [])
    moments = [{**change, "source": {"lsn": lsn, "ts_ms": None}, wholes.BATCH: 0} for lsn in (30, 10, 20)]
    assert wholes.sort(pooled(moments), TABLES).ready.tolist() == [1, 2, 0]
    assert wholes.sort(pooled([]), TABLES).ready.tolist() == []


def row(table: str, xid: str, order: int, after: Message | None, before: Message | None = None) -> Message:
    return {
        "op": "c" if before is None else "u" if after is not None else "d",
        "before": before,
        "after": after,
        "source": {"db": "shop", "schema": "public", "table": table, "lsn": 7},
        "transaction": {"id": f"{xid}:{100 + order}", "total_order": order, "data_collection_order": order},
    }


def end(xid: str, **counts: int) -> Message:
    listed = [{"data_collection": f"public.{name}", "event_count": count} for name, count in counts.items()]
    # As PostgreSQL's connector calls it; others call a transaction the same everywhere.
    return {"status": "END", "id": f"{xid}:999", "event_count": sum(counts.values()), "data_collections": listed, "ts_ms": 1}


class Shop:
    """A directory of messages, one file a batch, and a session that follows them, and may be opened again."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        (folder / "messages").mkdir()
        self.session = hw.connect(folder / "state", spark=spark)
        self.session.create_table("orders", "id BIGINT, total DECIMAL(20, 10)", key="id")
        self.session.create_table("items", "id BIGINT, part INT, name STRING", key=["id", "part"])
        query = "SELECT o.id, o.total, COUNT(*) AS n FROM orders o JOIN items i USING (id) GROUP BY ALL"
        self.session.create_view("parts", query)
        self.number = 0

    def put(self, *messages: Message | str) -> None:
        """A file, which is read before the next one comes."""
        self.number += 1
        lines = [each if isinstance(each, str) else json.dumps({"payload": each}) for each in messages]
        beside = self.folder / "beside"
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        beside.rename(self.folder / "messages" / f"{self.number}.json")
        self.session.await_idle()

    def stream(self) -> DataFrame:
        return self.spark.readStream.text(str(self.folder / "messages"))

    def follow(self) -> hw.Stream:
        return self.session.follow({"public.orders": "orders", "items": "items"}, self.stream(), mode="cdc", name="shop")

    def restart(self, state: Path | None = None) -> None:
        self.session.close()
        self.session = hw.connect(state or self.folder / "state", spark=self.spark)
        self.follow()

    @property
    def parts(self) -> list[Any]:
        return sorted((key, str(total), n) for key, total, n in self.session.view("parts").rows())


def test_a_transaction_over_batches_and_restarts_is_one_epoch(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path)
    followed = shop.follow()
    shop.put(
        row("orders", "1", 1, {"id": 1, "total": "1234567890.0123456789"}),
        row("items", "2", 2, {"id": 2, "part": 1, "name": "b"}),
        {"status": "BEGIN", "id": "1", "ts_ms": 0},
        "no message",
    )
    assert shop.session.table("orders").rows() == []
    assert followed.progress.held == 2
    (letter,) = shop.session.table("orders_dead_letters").rows()
    assert letter[1:3] + letter[4:] == (0, 3, "the record cannot be read", "no message")
    # The process ends: what is held is in the directory; and, as it was then, in a copy of it.
    copy = crashed(shop.session, tmp_path / "copy")
    shop.restart()
    shop.put(row("items", "1", 2, {"id": 1, "part": 1, "name": "a"}), end("2", orders=1, items=1), row("orders", "2", 1, None))
    assert shop.parts == []
    shop.restart()
    before = shop.session.epoch
    # The second ended first, but one of its changes cannot be understood, and still it is complete.
    shop.put(end("1", orders=1, items=1, others=5))
    assert shop.parts == [(1, "1234567890.0123456789", 1)]
    (changes,) = [epoch for epoch, _ in shop.session.view("parts").changes(since=before)]
    assert shop.session.epoch == changes
    assert sorted(shop.session.table("items").rows()) == [(1, 1, "a"), (2, 1, "b")]
    assert shop.session.streams()["shop"].progress.held == 0
    assert "op is none of" in min(letter[4] for letter in shop.session.table("orders_dead_letters").rows())
    # The copy goes on as if nothing had happened, with all that came since.
    expected = shop.parts
    shop.restart(copy)
    shop.session.await_idle()
    assert shop.parts == expected
    shop.session.close()


def test_transactions_that_never_end(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(spark, tmp_path)
    shop.follow()
    monkeypatch.setattr(held, "MOST", 2)
    shop.put(*(row("orders", "1", number, {"id": number, "total": 1}) for number in (1, 2)))
    epoch = shop.session.epoch
    with pytest.raises(hw.UnendedTransaction, match=r"'shop' holds 3 changes .* of transaction '1' in batch 0: its end"):
        shop.put(row("items", "1", 3, {"id": 1, "part": 1, "name": "a"}))
    assert shop.session.epoch == epoch
    # Forgotten, nothing of it is held any more.
    shop.session.forget("shop")
    assert len(shop.session.snapshot.kept(shop.session.snapshot.tables[f"{held.TABLE}\0"]).contents()) == 0
    assert set(shop.session.tables()) == {"orders", "items", "orders_dead_letters", "items_dead_letters"}
    monkeypatch.undo()
    shop.follow()
    shop.put(end("1", orders=2, items=1))
    assert shop.parts == [(1, "1.0000000000", 1)]
    shop.session.close()


def test_envelopes_in_columns(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "messages"
    folder.mkdir()
    session = hw.connect(spark=spark)
    session.create_table("orders", "id BIGINT, total INT", key="id")
    session.create_table("items", "id BIGINT, name STRING", key="id")
    columns = "op STRING, before STRING, after STRING, source STRUCT<db: STRING, table: STRING>"
    rows = [
        {"op": "c", "after": '{"id": 1, "total": 5}', "source": {"db": "shop", "table": "orders"}},
        {"op": "c", "after": '{"id": 1, "name": "a"}', "source": {"db": "shop", "table": "items"}},
        {"op": "c", "after": '{"id": 2, "name": "a"}', "source": {"db": "shop", "table": "more_items"}},
        {"op": "d", "before": '{"id": 1, "total": 5}', "source": {"db": "shop", "table": "orders"}},
    ]
    (folder / "1.json").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    stream = spark.readStream.schema(columns).json(str(folder))
    with pytest.raises(hw.InvalidStream, match="op, source, and before and after as JSON"):
        session.follow({"orders": "orders"}, stream.drop("source"), mode="cdc")
    session.follow({"orders": "orders", "shop.items": "items"}, stream, mode="cdc")
    session.await_idle()
    assert session.table("orders").rows() == []
    assert session.table("items").rows() == [(1, "a")]
    assert np.isin(["orders_dead_letters", "items_dead_letters"], list(session.tables())).all()
    session.close()
