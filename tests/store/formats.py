"""Makes the directory that is kept of each format: `python tests/store/formats.py tests/store/formats/<number>`.

It was written by the release that had the format, is never written again, and must be readable for ever.
"""

from __future__ import annotations

import os
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import headwater as hw

TABLES = {
    "orders": ("id BIGINT, product STRING, amount INT, price DECIMAL(10, 2), day DATE, tags ARRAY<STRING>", "id"),
    "products": ("product STRING, category STRING, weight DOUBLE", "product"),
    "clicks": ("product STRING, at TIMESTAMP", None),
}
VIEWS = {
    "revenue": "SELECT category, sum(amount * price) AS revenue, count(*) AS n, avg(weight) AS weight "
    "FROM orders JOIN products USING (product) GROUP BY category",
    "dearest": "SELECT id, price FROM orders ORDER BY price DESC, id LIMIT 2",
    "unsold": "SELECT product FROM products WHERE product NOT IN (SELECT product FROM orders)",
    "tags": "SELECT tag, min(day) AS first, max(day) AS last FROM orders LATERAL VIEW explode(tags) t AS tag GROUP BY tag",
    "ranks": "SELECT id, product, row_number() OVER (PARTITION BY product ORDER BY day, id) AS nth FROM orders",
    "clicked": "SELECT product, count(DISTINCT at) AS times FROM clicks GROUP BY product HAVING count(*) > 1",
    "categories": "SELECT count(*) AS n, max(revenue) AS most FROM revenue",
}
ORDERS = [
    (1, "tea", 2, Decimal("4.50"), date(2026, 1, 5), ["new", "hot"]),
    (2, "cup", 1, Decimal("12.00"), date(2026, 1, 6), []),
    (3, "tea", None, Decimal("4.50"), date(2026, 1, 7), None),
    (4, "pot", 1, Decimal("31.99"), date(2026, 1, 8), ["new"]),
]
PRODUCTS = [("tea", "drinks", 0.1), ("cup", "china", 0.3), ("pot", "china", None), ("mat", None, 1.5)]
CLICKS = [("tea", datetime(2026, 1, 5, 12)), ("tea", datetime(2026, 1, 5, 12)), ("cup", datetime(2026, 1, 5, 13))]


def make(directory: Path) -> None:
    s = hw.connect(directory)
    for name, (columns, key) in TABLES.items():
        s.create_table(name, columns, key=key)
    s.insert("products", PRODUCTS)
    for name, query in VIEWS.items():
        s.create_view(name, query)
    s.insert("orders", ORDERS)
    s.insert("clicks", CLICKS)
    s.close()
    # What comes after the last fold is in the log alone: it ends as a process that is killed.
    s = hw.connect(directory)
    s.delete("orders", [ORDERS[1]])
    os._exit(0)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
