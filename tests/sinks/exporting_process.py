"""A process that commits and exports all the time, and is to be killed; told to, it says what the view has, and ends."""

from __future__ import annotations

import json
import sys
from threading import Event, Thread

import headwater as hw

VIEW = "SELECT id % 50 AS k, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY id % 50"


def main(directory: str, files: str, delta: str, address: str) -> None:
    session = hw.connect(directory)
    if "orders" not in session.tables():
        session.create_table("orders", "id BIGINT, amount BIGINT", key="id")
        session.create_view("totals", VIEW)
    view = session.view("totals")
    exports = [
        view.write_to(files, format="parquet", of="changes", name="files"),
        view.write_to(delta, format="delta", key="k", name="delta"),
        view.write_to(address, table="totals", key="k", name="server"),
    ]
    over = Event()
    Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    print("ready", flush=True)  # noqa: T201
    number = len(session.table("orders"))
    while not over.is_set():
        session.insert("orders", [(each, each * 7 % 100) for each in range(number, number + 3)])
        number += 3
        # What is written now and then is deleted again.
        if number % 5 == 0:
            session.upsert("orders", [(number - 2, -1)])
    for export in exports:
        export.await_idle()
    print(json.dumps({"rows": sorted(map(list, view.rows())), "epoch": session.epoch}), flush=True)  # noqa: T201
    session.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
