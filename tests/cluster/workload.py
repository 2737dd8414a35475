"""Tables, views of every operator, and transactions without end, each a function of its number, for anyone to repeat."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

SCHEMAS = {
    "sales": "id BIGINT, brand STRING, price DOUBLE, shop INT",
    "shops": "shop INT, town STRING",
    "towns": "town STRING, size INT",
}
VIEWS = {
    "dear": "SELECT id, upper(brand) AS brand FROM sales WHERE price > 50",
    "either": "SELECT shop FROM sales UNION ALL SELECT shop FROM shops",
    "where_sold": "SELECT s.id, s.price, h.town FROM sales s JOIN shops h ON s.shop = h.shop",
    "sizes": "SELECT s.brand, t.size FROM sales s JOIN shops h ON s.shop = h.shop JOIN towns t ON h.town = t.town",
    "idle": "SELECT * FROM shops h WHERE NOT EXISTS (SELECT 1 FROM sales s WHERE s.shop = h.shop)",
    "busy": "SELECT * FROM shops WHERE shop IN (SELECT shop FROM sales WHERE price > 90)",
    "shown": "SELECT h.shop, h.town, t.size FROM shops h LEFT JOIN towns t ON h.town = t.town",
    "summed": "SELECT brand, sum(price) AS total, count(*) AS n, avg(price) AS mean FROM sales GROUP BY brand",
    "extremes": "SELECT shop, min(price) AS least, max(id) AS last, count(DISTINCT brand) AS brands FROM sales GROUP BY shop",
    "whole": "SELECT count(*) AS n, sum(price) AS total, max(price) AS most FROM sales",
    "dearest": "SELECT id, price FROM sales ORDER BY price DESC, id LIMIT 5",
    "ranked": "SELECT id, shop, row_number() OVER (PARTITION BY shop ORDER BY price DESC, id) AS place FROM sales",
    "above": "SELECT id FROM sales WHERE price > (SELECT avg(price) FROM sales)",
    "middle": "SELECT shop, median(price) AS m FROM sales GROUP BY shop",
    "brands": "SELECT DISTINCT brand FROM sales",
    "on_top": "SELECT n, count(*) AS groups FROM summed GROUP BY n",
    "by_spark": "SELECT mask(brand) AS masked, count(*) AS n FROM sales GROUP BY mask(brand)",
}
# Views that others read, in an order in which each can be defined.
BELOW = {"summed": VIEWS["summed"]}
BRANDS = ("acme", "Böhm", "", "c", None)
TOWNS = ("Ulm", "Bonn", None, "Köln")

Row = tuple[Any, ...]
# The changes of a transaction: a table, its rows that go, and its rows that come.
Changes = list[tuple[str, list[Row], list[Row]]]


def changes(number: int, rows: int = 40) -> Changes:
    """The transaction of a number; 0 fills the tables."""
    random = Random(number)
    if number == 0:
        shops = [(shop, random.choice(TOWNS)) for shop in range(12)]
        return [("sales", [], _sales(0, 3 * rows)), ("shops", [], shops), ("towns", [], [("Ulm", 1), ("Bonn", 3), ("Bonn", 4)])]
    gone = random.sample(_sales(number - 1, 3 * rows if number == 1 else rows), rows // 4)
    shop = random.randrange(12, 15)
    return [("sales", gone, _sales(number, rows)), ("shops", [], [(shop, "Köln"), (None, "Ulm")])]


def _sales(number: int, rows: int) -> list[Row]:
    random = Random(-1 - number)
    return [
        (1000 * number + i, random.choice(BRANDS), random.choice([None, 0.5, -0.0, 99.25, i + 1.0]), random.randrange(14))
        for i in range(rows)
    ]


def content(numbers: int, table: str) -> Counter[str]:
    """What a table holds after the transactions below a number; rows as text, since −0.0 is not 0.0."""
    found: Counter[str] = Counter()
    for number in range(numbers):
        for name, gone, come in changes(number):
            if name == table:
                found.subtract(map(repr, gone))
                found.update(map(repr, come))
    return Counter({row: count for row, count in found.items() if count})


def apply(session: Any, number: int) -> None:
    with session.transaction() as transaction:
        for table, gone, come in changes(number):
            if gone:
                transaction.delete(table, gone)
            if come:
                transaction.insert(table, come)


def create(session: Any) -> None:
    for name, schema in SCHEMAS.items():
        session.create_table(name, schema)
    for name, query in VIEWS.items():
        session.create_view(name, query)


def check(session: Any, numbers: int) -> None:
    """The tables hold what the transactions below a number made of them, and each view what Spark answers over that."""
    from oracle import Oracle

    for name in SCHEMAS:
        rows = Counter(map(repr, session.table(name).rows()))
        assert rows == content(numbers, name), (
            f"{name} has {rows - content(numbers, name)}, lacks {content(numbers, name) - rows}"
        )
    oracle = Oracle(session, BELOW)
    for name, query in VIEWS.items():
        oracle.check(session.view(name), query)
