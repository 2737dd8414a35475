"""A view on a view, one of them made with the DataFrame API, and a transaction that changes two tables at once.

Run it: .venv/bin/python examples/views_on_views.py
"""

from pyspark.sql import functions as f

import headwater as hw

with hw.connect() as s:
    s.create_table("stock", "product STRING, quantity INT", key="product")
    s.create_table("reserved", "product STRING, quantity INT")

    held = s.dataframe("reserved").groupBy("product").agg(f.sum("quantity").alias("quantity"))
    s.create_view("held", held)
    available = s.create_view(
        "available",
        """
        SELECT s.product, s.quantity - coalesce(h.quantity, 0) AS quantity
        FROM stock s LEFT JOIN held h ON h.product = s.product ORDER BY s.product
        """,
    )

    with s.transaction() as tx:
        tx.insert("stock", [("lamp", 10), ("chair", 4)])
        tx.insert("reserved", [("lamp", 3), ("lamp", 2)])
    print(available.rows())

    with s.transaction() as tx:
        tx.delete("reserved", [("lamp", 3)])
        tx.upsert("stock", [("lamp", 7)])
    print(available.rows())
    print(available.explain())
