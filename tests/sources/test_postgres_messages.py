"""What the server's log says, replayed on nothing but maps, is what the tables have."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import headwater as hw
from headwater.sources.postgres import capture
from headwater.sources.postgres.capture import Capture
from headwater.sources.postgres.spark_source import Changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.postgres_server import Server

pytest.importorskip("psycopg")
TABLES = ("public.orders", "public.Items")


@pytest.fixture
def captured(postgres: Server) -> Iterator[Capture]:
    found = Capture.of(postgres.address, "orders, public.Items", "messages")
    with capture.connected(postgres.address) as connection:
        connection.execute("CREATE TABLE orders (id INT PRIMARY KEY, note TEXT, big TEXT, at TIMESTAMPTZ)")
        connection.execute('CREATE TABLE "Items" (id INT, part INT, price NUMERIC(10, 2), PRIMARY KEY (id, part))')
        connection.execute("CREATE TABLE others (id INT)")
        # Large values that cannot be compressed are kept elsewhere, and not sent again.
        connection.execute("ALTER TABLE orders ALTER COLUMN big SET STORAGE EXTERNAL")
    capture.prepare(found)
    yield found
    capture.release_slot(postgres.address, "messages")
    with capture.connected(postgres.address) as connection:
        connection.execute('DROP TABLE orders, "Items", others')


def work(address: str, seed: int, count: int) -> None:
    """Transactions over both tables, some of which are undone."""
    chance = random.Random(seed)
    with capture.connected(address, autocommit=False) as connection:
        for _ in range(count):
            for _ in range(chance.randrange(1, 6)):
                key, other = chance.randrange(20), chance.randrange(20)
                match chance.randrange(6):
                    case 0 | 1:
                        text = "INSERT INTO orders VALUES (%s, %s, repeat(%s, 5000), now())"
                        text += " ON CONFLICT (id) DO UPDATE SET note = 'again'"
                        connection.execute(text, [key, chance.choice(["", None, "Ünïcödé ✓", 'a "b", \\c']), str(other)])
                    case 2:
                        connection.execute("UPDATE orders SET note = %s WHERE id = %s", [str(other), key])
                    case 3:
                        connection.execute("UPDATE orders SET id = (SELECT MAX(id) + 1 FROM orders) WHERE id = %s", [key])
                    case 4:
                        connection.execute("DELETE FROM orders WHERE id = %s", [key])
                    case _:
                        text = 'INSERT INTO "Items" VALUES (%s, %s, 1.5)'
                        text += ' ON CONFLICT (id, part) DO UPDATE SET price = "Items".price * 2'
                        connection.execute(text, [key % 3, other])
            connection.execute("INSERT INTO others VALUES (1)")
            if chance.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()


def there(address: str, table: str) -> dict[Any, Any]:
    with capture.connected(address) as connection, connection.cursor() as cursor:
        name, key = ('"Items"', ("id", "part")) if table == "public.Items" else ("orders", ("id",))
        cursor.execute(f"SELECT * FROM {name}")
        names = [column.name for column in cursor.description]
        texts = ", ".join(f'"{each}"::text' for each in names)
        rows = [dict(zip(names, row, strict=True)) for row in cursor.execute(f"SELECT {texts} FROM {name}").fetchall()]
    return {tuple(row[each] for each in key): row for row in rows}


def replay(tables: dict[str, dict[Any, Any]], batch: Any) -> None:
    for change in batch.to_pylist():
        rows = tables[change["table"]]
        key = ("id", "part") if change["table"] == "public.Items" else ("id",)
        before, after = (None if change[side] is None else dict(change[side]) for side in ("before", "after"))
        if change["op"] == "t":
            rows.clear()
            continue
        old = {}
        if before is not None:
            old = rows.pop(tuple(before[each] for each in key))
        elif after is not None:
            old = rows.pop(tuple(after[each] for each in key), {})
        if after is not None:
            rows[tuple(after[each] for each in key)] = {**old, **after}


def test_changes_replayed_are_the_tables(captured: Capture, postgres: Server) -> None:
    tables: dict[str, dict[Any, Any]] = {name: {} for name in TABLES}
    after = 0
    with capture.connected(postgres.address) as connection:
        for seed in range(4):
            work(postgres.address, seed, 30)
            if seed == 2:
                connection.execute('TRUNCATE orders, "Items"')
                connection.execute("ALTER TABLE orders ADD COLUMN colour TEXT")
                connection.execute("INSERT INTO orders VALUES (7, 'x', 'y', NULL, 'red')")
            until = capture.end_of_log(connection)
            assert capture.has_changes(connection, captured)
            # In two parts: a transaction belongs to one of them.
            middle = (after + until) // 2
            for start, stop in ((after, middle), (middle, until)):
                replay(tables, capture.changes(connection, captured, start, stop, "1:1:"))
            after = until
            capture.advance(connection, captured, until)
            for name in TABLES:
                assert tables[name] == there(postgres.address, name)
        assert not capture.has_changes(connection, captured)


def test_a_snapshot_and_the_changes_after_it_have_no_gap_and_no_overlap(captured: Capture, postgres: Server) -> None:
    work(postgres.address, 1, 20)
    with capture.connected(postgres.address, autocommit=False) as under_way:
        under_way.execute("INSERT INTO orders VALUES (1000, 'under way', '', NULL)")
        with capture.connected(postgres.address, autocommit=False) as open_one:
            open_one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            exported, seen = open_one.execute("SELECT pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
            under_way.commit()
            work(postgres.address, 2, 20)
            tables: dict[str, dict[Any, Any]] = {name: {} for name in TABLES}
            for name in TABLES:
                for batch in capture.snapshot(captured, name, exported, 1):
                    replay(tables, batch)
        with capture.connected(postgres.address) as connection:
            until = capture.end_of_log(connection)
            replay(tables, capture.changes(connection, captured, 0, until, seen))
        for name in TABLES:
            assert tables[name] == there(postgres.address, name)


def test_which_transactions_a_snapshot_has_seen() -> None:
    numbers = np.array([5, 9, 10, 11, 12, 13], np.int64)
    assert capture.visible("10:13:10,12", numbers).tolist() == [True, True, False, True, False, False]
    # Numbers in the log go round after 32 bits.
    late = np.array([(1 << 32) - 1, 0, 1, 2], np.int64)
    assert capture.visible(f"{(1 << 32) + 1}:{(1 << 32) + 2}:", late).tolist() == [True, True, True, False]


def test_the_stream_asks_for_a_batch_only_if_there_is_one(captured: Capture, postgres: Server) -> None:
    stream = Changes(captured, 64 << 20)
    begin = stream.latestOffset(stream.initialOffset(), None)
    assert len(stream.partitions(stream.initialOffset(), begin)) == 2
    assert stream.latestOffset(begin, None) == begin
    work(postgres.address, 3, 10)
    first = stream.latestOffset(begin, None)
    assert first["lsn"] > begin["lsn"]
    (part,) = stream.partitions(begin, first)
    rows = sum(batch.num_rows for batch in stream.read(part))
    assert rows > 0
    # A task that is tried again reads the same.
    assert sum(batch.num_rows for batch in stream.read(part)) == rows
    with capture.connected(postgres.address) as connection:
        connection.execute("INSERT INTO others VALUES (1)")
        assert stream.latestOffset(first, None) == first
        capture.advance(connection, captured, capture.end_of_log(connection))
    with pytest.raises(hw.InvalidStream, match="was read beyond"):
        stream.latestOffset(first, None)
    capture.release_slot(postgres.address, "messages")
    with pytest.raises(hw.InvalidStream, match="the slot 'messages' is gone"):
        stream.latestOffset(first, None)
    stream.stop()
