"""A process that follows a directory and a server, and is to be killed: it answers when it is idle, and ends with its input."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLES = {
    "sales": ("id BIGINT, brand STRING, price INT", "id"),
    "accounts": ("aid BIGINT, bid BIGINT, abalance BIGINT", "aid"),
    "tellers": ("tid BIGINT, bid BIGINT, tbalance BIGINT", "tid"),
    "branches": ("bid BIGINT, bbalance BIGINT", "bid"),
    "history": ("hid BIGINT, tid BIGINT, bid BIGINT, aid BIGINT, delta BIGINT", "hid"),
}
VIEWS = {
    "totals": "SELECT brand, SUM(price) AS total, COUNT(*) AS n FROM sales GROUP BY brand",
    "balances": """SELECT b.bid, b.bbalance, SUM(h.delta) AS moved, COUNT(*) AS n
                   FROM branches b JOIN history h ON b.bid = h.bid
                   GROUP BY b.bid, b.bbalance""",
    "books": "SELECT a.bid, SUM(a.abalance) AS total FROM accounts a GROUP BY a.bid",
}


def main(directory: str, files: str, address: str) -> None:
    session = hw.connect(directory)
    for name, (columns, key) in TABLES.items():
        if name not in session.tables():
            session.create_table(name, columns, key=key)
    for name, query in VIEWS.items():
        if name not in session.views():
            session.create_view(name, query)
    hw.register(session.spark)
    read = session.spark.readStream.schema(f"{TABLES['sales'][0]}, _corrupt_record STRING")
    session.follow("sales", read.option("maxFilesPerTrigger", 3).json(files))
    if address:
        session.follow(
            {f"pgbench_{name}": name for name in list(TABLES)[1:]}, changes(session, address), mode="cdc", name="bank"
        )
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        session.await_idle()
        found = {name: sorted(map(list, session.view(name).rows())) for name in VIEWS}
        letters = len(session.table("sales_dead_letters"))
        print(json.dumps({"asked": line.strip(), "views": found, "letters": letters}), flush=True)  # noqa: T201
    session.close()


def changes(session: hw.Session, address: str) -> DataFrame:
    tables = ", ".join(f"pgbench_{name}" for name in list(TABLES)[1:])
    reader = session.spark.readStream.format("headwater_postgres").option("address", address)
    return reader.option("tables", tables).option("slot", "bank").load()


if __name__ == "__main__":
    main(*sys.argv[1:])
