"""Change capture, end to end: every view equals SQL on the server, whatever was killed in between."""

from __future__ import annotations

import os
import random
from collections import Counter
from threading import current_thread
from typing import TYPE_CHECKING, Any

import pytest
from crashed import crashed

import headwater as hw
from headwater.sources.postgres import capture
from headwater.store import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.postgres_server import Server

pytest.importorskip("psycopg")
ORDERS = "id BIGINT, customer STRING, note STRING, placed TIMESTAMP, tags ARRAY<STRING>"
ITEMS = "id BIGINT, part INT, price DECIMAL(10, 2), active BOOLEAN, data BINARY, more STRING, weight DOUBLE"
QUERY = """SELECT o.customer, COUNT(*) AS n, SUM(i.price) AS total FROM orders o JOIN items i ON o.id = i.id
           GROUP BY o.customer"""


@pytest.fixture
def tables(postgres: Server) -> Iterator[Server]:
    with capture.connected(postgres.address) as connection:
        connection.execute(
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer TEXT, note TEXT, placed TIMESTAMPTZ, tags TEXT[])"
        )
        connection.execute("ALTER TABLE orders ALTER COLUMN note SET STORAGE EXTERNAL")
        connection.execute(
            """CREATE TABLE items (id BIGINT, part INT, price NUMERIC(10, 2), active BOOLEAN, data BYTEA, more JSONB,
               weight FLOAT8, PRIMARY KEY (id, part))"""
        )
    yield postgres
    capture.release_slot(postgres.address, "shop")
    with capture.connected(postgres.address) as connection:
        connection.execute("DROP TABLE orders, items")


def work(address: str, seed: int, count: int) -> None:
    chance = random.Random(seed)
    with capture.connected(address, autocommit=False) as connection:
        for _ in range(count):
            key, part = chance.randrange(30), chance.randrange(4)
            kind = chance.randrange(8)
            if kind < 4:
                connection.execute(
                    """INSERT INTO orders VALUES (%s, %s, repeat(%s, 3000), '2024-02-29 12:00:00.123456+02', %s)
                       ON CONFLICT (id) DO UPDATE SET customer = EXCLUDED.customer""",
                    [key, chance.choice("abc"), str(part), [None, 'a "b", \\c', "", "NULL"][: part + 1]],
                )
                connection.execute(
                    """INSERT INTO items VALUES (%s, %s, %s, %s, %s, '{"a": [1, null]}', %s) ON CONFLICT (id, part)
                       DO UPDATE SET price = items.price + 1""",
                    [key, part, chance.randrange(100) / 4, chance.choice([True, False, None]), b"\x00\xff", float("inf")],
                )
            elif kind == 4:
                connection.execute("UPDATE orders SET id = (SELECT MAX(id) + 1 FROM orders) WHERE id = %s", [key])
            elif kind == 5:
                connection.execute("DELETE FROM items WHERE id = %s", [key])
            elif kind == 6:
                connection.execute("DELETE FROM orders WHERE id = %s", [key])
            else:
                connection.execute("UPDATE items SET data = %s WHERE id = %s", [bytes([part]), key])
            if chance.random() < 0.1:
                connection.rollback()
            elif chance.random() < 0.5:
                connection.commit()
        connection.commit()


def stream(spark: SparkSession, server: Server) -> DataFrame:
    hw.register(spark)
    reader = spark.readStream.format("headwater_postgres").option("address", server.address)
    return reader.option("tables", "orders, items").option("slot", "shop").load()


def open_shop(spark: SparkSession, folder: Path) -> hw.Session:
    session = hw.connect(folder, spark=spark)
    if "orders" not in session.tables():
        session.create_table("orders", ORDERS, key="id")
        session.create_table("items", ITEMS, key=["id", "part"])
        session.create_view("totals", QUERY)
    return session


def follow(session: hw.Session, server: Server, *, by_spark: bool = False) -> hw.Stream:
    """By the driver itself, unless something is done to the stream."""
    frame = stream(session.spark, server)
    frame = frame.where("true") if by_spark else frame
    return session.follow({"orders": "orders", "public.items": "items"}, frame, mode="cdc", name="shop")


def require_equal(session: hw.Session, server: Server) -> None:
    with capture.connected(server.address) as connection:

        def there(text: str) -> Counter[Any]:
            return Counter(repr(row) for row in connection.execute(text).fetchall())

        orders = [(i, c, n, p.replace(tzinfo=None), t) for i, c, n, p, t in session.table("orders").rows()]
        assert Counter(map(repr, orders)) == there("SELECT id, customer, note, placed AT TIME ZONE 'UTC', tags FROM orders")
        assert Counter(map(repr, session.table("items").rows())) == there(
            "SELECT id, part, price, active, data, more::text, weight FROM items"
        )
        assert Counter(map(repr, session.view("totals").rows())) == there(QUERY)
    assert [letter for name in ("orders", "items") for letter in session.table(f"{name}_dead_letters").rows()] == []


def test_views_equal_sql_on_the_server(spark: SparkSession, tables: Server, tmp_path: Path) -> None:
    work(tables.address, 1, 60)
    session = open_shop(spark, tmp_path / "state")
    followed = follow(session, tables)
    session.await_idle()
    require_equal(session, tables)
    before = session.epoch
    work(tables.address, 2, 60)
    session.await_idle()
    require_equal(session, tables)
    with capture.connected(tables.address, autocommit=False) as connection:
        connection.execute("TRUNCATE orders, items")
        connection.execute("INSERT INTO orders VALUES (1, 'again', NULL, '2024-01-01Z', '{}')")
        connection.execute("INSERT INTO items VALUES (1, 1, 5, NULL, NULL, NULL, 'NaN')")
        connection.commit()
    session.await_idle()
    require_equal(session, tables)
    assert session.epoch > before
    followed.stop()
    tables.kill()
    tables.start()
    work(tables.address, 3, 30)
    session.close()
    for seed, by_spark in ((4, True), (5, True), (6, False)):
        session = open_shop(spark, tmp_path / "state")
        follow(session, tables, by_spark=by_spark)
        session.await_idle()
        require_equal(session, tables)
        work(tables.address, seed, 20)
        session.await_idle()
        require_equal(session, tables)
        session.close()
    with capture.connected(tables.address) as connection:
        assert connection.execute("SELECT COUNT(*) FROM pg_replication_slots WHERE slot_name = 'shop'").fetchone() == (1,)


def test_the_server_keeps_what_is_not_on_disk(
    spark: SparkSession, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `durability="async"` a crash loses the last epochs; the server must be able to tell again what was in them."""
    hw.register(spark)
    reader = spark.readStream.format("headwater_postgres").option("address", postgres.address)
    changes = reader.option("tables", "kept").option("slot", "kept").load()
    with capture.connected(postgres.address) as server:
        try:
            server.execute("CREATE TABLE kept (id BIGINT PRIMARY KEY)")
            session = hw.connect(tmp_path / "state", spark=spark, durability="async")
            session.create_table("kept", "id BIGINT", key="id")
            stream = session.follow({"kept": "kept"}, changes, mode="cdc", name="kept")
            server.execute("INSERT INTO kept VALUES (1)")
            session.await_idle()
            # What a crash would leave of the next epochs, whatever they are, if the disk takes nothing from here on.
            left = crashed(session, tmp_path / "left")
            with monkeypatch.context() as patch:
                patch.setattr(os, "fdatasync", _refuse)
                server.execute("INSERT INTO kept VALUES (2)")
                with pytest.raises(hw.StorageFailed):
                    session.await_idle()
                assert len(session.table("kept")) == 2
            # The disk is well again, but nobody knows what it has of that epoch.
            with pytest.raises(hw.StorageFailed, match="could not be written some time ago"):
                stream.resume()
            session.close()
            again = hw.connect(left, spark=spark, durability="async")
            assert again._store is not None
            again.follow({"kept": "kept"}, changes, mode="cdc", name="kept")
            # What an earlier process left in the log only, perhaps in memory, is in a manifest before the server hears of it.
            noted = manifest.newest(again._store.disk)
            assert noted is not None
            assert noted.positions.keys() == {"kept"}
            again.await_idle()
            assert sorted(again.table("kept").rows()) == [(1,), (2,)]
            again.close()
        finally:
            capture.release_slot(postgres.address, "kept")
            server.execute("DROP TABLE kept")


def _refuse(descriptor: int, sync: Callable[[int], None] = os.fdatasync) -> None:
    """The disk refuses a stream that waits for it; who syncs now and then may be in time, or not be there."""
    if current_thread().name.startswith("headwater: "):
        raise OSError("the disk is gone")
    sync(descriptor)


def test_what_cannot_be_captured_is_refused(spark: SparkSession, postgres: Server) -> None:
    session = hw.connect(spark=spark)
    session.create_table("orders", "id BIGINT, note STRING")
    with pytest.raises(hw.MissingKey, match="table 'orders' has no key"):
        session.follow({"orders": "orders"}, stream(spark, postgres), mode="cdc")
    session.create_table("items", "id BIGINT, note STRING", key="id")
    with pytest.raises(hw.InvalidStream, match="has the columns of headwater_postgres"):
        session.follow({"items": "items"}, spark.readStream.format("rate").load(), mode="cdc")
    with pytest.raises(hw.InvalidOption, match="the option tables names what is captured"):
        capture.Capture.of("", "", "slot")
    with pytest.raises(hw.InvalidOption, match="small letters, digits and underscores"):
        capture.Capture.of("", "t", "My Slot")
    session.close()


def test_columns_that_come_later_are_taken_along(spark: SparkSession, postgres: Server, tmp_path: Path) -> None:
    hw.register(spark)
    reader = spark.readStream.format("headwater_postgres").option("address", postgres.address)
    changes = reader.option("tables", "growing").option("slot", "growing").load()
    with capture.connected(postgres.address) as server, hw.connect(tmp_path / "state", spark=spark) as session:
        try:
            server.execute("CREATE TABLE growing (id BIGINT PRIMARY KEY, unwanted TEXT, name TEXT)")
            session.create_table("growing", "id BIGINT, name STRING", key="id")
            session.create_view("names", "SELECT name, COUNT(*) AS n FROM growing GROUP BY name")
            stream = session.follow({"growing": "growing"}, changes, mode="cdc")
            session.await_idle()
            stream.stop()
            server.execute("INSERT INTO growing VALUES (1, 'x', 'a'), (2, 'y', 'b')")
            server.execute(
                "ALTER TABLE growing ADD COLUMN Price NUMERIC(6, 2), ADD COLUMN tags INT[], ADD COLUMN other INTERVAL"
            )
            server.execute("UPDATE growing SET name = 'c' WHERE id = 1")
            server.execute("INSERT INTO growing VALUES (3, 'z', 'c', 1.5, '{1,NULL}', '1 day')")
            stream.resume()
            session.await_idle()
            rows = sorted(session.table("growing").rows())
            assert rows == server.execute("SELECT id, name, other::text, price, tags FROM growing ORDER BY id").fetchall()
            assert Counter(session.view("names").rows()) == Counter({("b", 1): 1, ("c", 2): 1})
            assert session.table("growing_dead_letters").rows() == []
            server.execute("ALTER TABLE growing ADD COLUMN late INT DEFAULT 5")
            server.execute("INSERT INTO growing (id) VALUES (4)")
            with pytest.raises(
                hw.SchemaChanged, match=r"'late' of public.growing was added with a value for the rows that were"
            ):
                session.await_idle()
            assert len(session.table("growing")) == 3
            stream.stop()
        finally:
            capture.release_slot(postgres.address, "growing")
            server.execute("DROP TABLE growing")
