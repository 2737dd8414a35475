"""A small shop in a directory: its tables, its views, and changes that a process without Spark can make."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oracle import Oracle
    from pyspark.sql import SparkSession

    import headwater as hw

TABLES = {
    "items": "id BIGINT, brand STRING, price INT, weight DOUBLE",
    "orders": "id BIGINT, item BIGINT, amount INT",
    "brands": "name STRING, country STRING",
}
KEYS = {"items": "id", "orders": "id"}
VIEWS = {
    "revenue": """SELECT i.brand, SUM(i.price * o.amount) AS revenue, COUNT(*) AS sold, SUM(i.weight) AS weight
                  FROM orders o JOIN items i ON o.item = i.id GROUP BY i.brand""",
    "best": "SELECT id, price FROM items ORDER BY price DESC, id LIMIT 5",
    "unsold": "SELECT i.id, i.brand FROM items i WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.item = i.id)",
    "strong": "SELECT r.brand, r.revenue, b.country FROM revenue r JOIN brands b ON b.name = r.brand WHERE r.revenue > 100",
}
BRANDS = ("acme", "bolt", "core", "dune")

# A change: what to do to which table with which rows.
Change = tuple[str, str, list[list[Any]]]


def make(directory: Path, spark: SparkSession) -> None:
    """The template: all tables with some rows, all views."""
    import headwater as hw

    with hw.connect(directory, spark=spark) as session:
        for name, schema in TABLES.items():
            session.create_table(name, schema, key=KEYS.get(name))
        for name, query in VIEWS.items():
            session.create_view(name, query)
        chosen = random.Random(0)
        session.insert("items", [item(chosen, number) for number in range(40)])
        session.insert("orders", [order(chosen, number) for number in range(60)])
        session.insert("brands", [(name, country) for name in BRANDS for country in ("x", "y")])


def item(chosen: random.Random, number: int) -> list[Any]:
    return [number, chosen.choice(BRANDS), chosen.randrange(100), chosen.random()]


def order(chosen: random.Random, number: int) -> list[Any]:
    return [number, chosen.randrange(45), chosen.randrange(9)]


def content(session: hw.Session) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of all tables."""
    return {name: Counter(map(tuple, session.table(name).rows())) for name in TABLES}


def apply(tables: dict[str, Counter[tuple[Any, ...]]], changes: list[Change]) -> None:
    """What changes make of the rows, as anyone would do it."""
    for kind, table, given in changes:
        rows = [tuple(row) for row in given]
        present = tables[table]
        if kind == "upsert":
            keys = {row[0] for row in rows}
            for row in [row for row in present if row[0] in keys]:
                del present[row]
        for row in rows:
            present[row] += -1 if kind == "delete" else 1
        tables[table] = +present


def ask_about(oracle: Oracle, session: hw.Session) -> None:
    """The same Spark session for another session of ours, since to make one takes long."""
    oracle.session, oracle._epoch = session, -1
    oracle._tables.clear()
    oracle._answers.clear()


def transactions(seed: int, session: hw.Session, *, larger: bool = True) -> Iterator[list[Change]]:
    """Changes without end that fit what is in the tables; these get larger, or stay about as they are."""
    chosen = random.Random(seed)
    tables = content(session)
    while True:
        changes: list[Change] = []
        for _ in range(chosen.randint(1, 3)):
            change = _change(chosen, tables)
            if change is not None and not larger and change[0] == "insert" and len(tables[change[1]]) > 100:
                change = ("delete", change[1], [list(row) for row in sorted(tables[change[1]])[: len(change[2])]])
            if change is not None:
                changes.append(change)
                apply(tables, [change])
        if changes:
            yield changes


def _change(chosen: random.Random, tables: dict[str, Counter[tuple[Any, ...]]]) -> Change | None:
    kind = chosen.choice(("insert", "insert", "upsert", "upsert", "delete"))
    table = chosen.choice(("items", "orders", "orders", "brands"))
    present = sorted(tables[table])
    count = chosen.randint(1, 6)
    if kind == "delete":
        gone = chosen.sample(present, min(count, len(present) - 1)) if len(present) > 10 else []
        return ("delete", table, [list(row) for row in gone]) if gone else None
    if table == "brands":
        return "insert", table, [[chosen.choice(BRANDS), chosen.choice("xyz")]]
    makes = item if table == "items" else order
    if kind == "insert":
        first = 1 + max((row[0] for row in present), default=0)
        return kind, table, [makes(chosen, first + number) for number in range(count)]
    keys = chosen.sample(range(60), count)
    return kind, table, [makes(chosen, key) for key in keys]


def commit(session: hw.Session, changes: list[Change]) -> int:
    with session.transaction() as transaction:
        for kind, table, rows in changes:
            getattr(transaction, kind)(table, [tuple(row) for row in rows])
    return session.epoch
