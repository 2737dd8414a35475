"""Revenue per customer that is always up to date, and who hears of it when it changes.

Run it: .venv/bin/python examples/orders.py
"""

import headwater as hw

with hw.connect() as s:
    s.create_table("customers", "id INT, name STRING", key="id")
    s.create_table("orders", "id INT, customer INT, amount DECIMAL(10,2)", key="id")
    s.insert("customers", [(1, "Ada"), (2, "Grace")])

    revenue = s.create_view(
        "revenue",
        """
        SELECT c.name, count(o.id) AS orders, sum(o.amount) AS total
        FROM customers c LEFT JOIN orders o ON o.customer = c.id
        GROUP BY c.name ORDER BY c.name
        """,
    )
    revenue.subscribe(lambda epoch, changes: print(f"epoch {epoch}: {changes.num_rows} rows changed"))

    s.sql("INSERT INTO orders VALUES (10, 1, 20.50), (11, 1, 4.50), (12, 2, 100.00)")
    s.sql("UPDATE orders SET amount = 90.00 WHERE id = 12")
    s.sql("DELETE FROM orders WHERE id = 11")
    s.await_idle()  # subscribers are told from a thread of their own

    for row in revenue.rows():
        print(row)
