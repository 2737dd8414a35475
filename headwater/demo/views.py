"""The five live views of the tour, each after those it reads: questions a shop has, and one kind of operator each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A view: its name, the kind of operator it shows, and its query."""

    name: str
    shows: str
    query: str


QUESTIONS = (
    Question(
        "big_spenders",
        "join + aggregate + HAVING",
        """
        SELECT o.customer_id, COUNT(*) AS lines, SUM(i.quantity * i.price) AS spent
        FROM orders o JOIN items i ON i.order_id = o.id
        WHERE o.status <> 'returned'
        GROUP BY o.customer_id
        HAVING SUM(i.quantity * i.price) > 20000
        """,
    ),
    Question(
        "bestsellers",
        "top-k",
        """
        SELECT product_id, SUM(quantity) AS sold
        FROM items
        GROUP BY product_id
        ORDER BY sold DESC, product_id
        LIMIT 100
        """,
    ),
    Question(
        "idle_customers",
        "anti join",
        """
        SELECT c.id, c.name, c.country
        FROM customers c
        WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)
        """,
    ),
    Question(
        "latest_orders",
        "window function",
        """
        SELECT customer_id, id, placed, previous
        FROM (
            SELECT customer_id, id, placed, LEAD(placed) OVER latest AS previous, ROW_NUMBER() OVER latest AS place
            FROM orders
            WINDOW latest AS (PARTITION BY customer_id ORDER BY placed DESC, id DESC)
        )
        WHERE place = 1
        """,
    ),
    Question(
        "to_reorder",
        "view on view",
        """
        SELECT s.product_id, s.name, s.category, s.available, b.sold
        FROM bestsellers b JOIN stock s ON s.product_id = b.product_id
        WHERE s.available < 50
        """,
    ),
)
