"""Sketches that are maintained when they are used: they are what those are that every commit maintains, at the same epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_sketches import REVENUE, SALES, both

import headwater as hw

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOINED = "SELECT owner, sum(price) AS p FROM sales s JOIN brands b ON s.brand = b.brand GROUP BY owner HAVING sum(price) > 2000"
COLUMNS = "id BIGINT, brand STRING, name STRING, price INT, sold INT"


def resting(session: hw.Session) -> int | None:
    return session.sketch("late").stats()["epoch"]


def test_lazy_sketches_are_those_that_commits_maintain(spark: SparkSession, tmp_path: Path) -> None:
    columns = list(zip(*SALES, strict=True))
    names = ["id", "brand", "name", "price", "sold"]
    types = [pa.int64(), pa.string(), pa.string(), pa.int32(), pa.int32()]
    rows = pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, types, strict=True)})
    (tmp_path / "sales").mkdir()
    pq.write_table(rows, tmp_path / "sales" / "0.parquet")
    with hw.connect(tmp_path / "d", spark=spark, placement="driver") as session:
        session.create_table("sales", COLUMNS, source=tmp_path / "sales")
        session.create_table("brands", "brand STRING, owner STRING")
        session.insert("brands", [("HP", "US"), ("Apple", "US"), ("Lenovo", "CN"), (None, "CN")])
        session.partition("sales", "price", bounds=[601, 1001, 1501])
        session.skipping = "always"
        session.sql(f"CREATE SKETCH late ON sales(price), brands(owner) WITH (maintain = lazy) FOR {JOINED}")
        eager = session.create_sketch("soon", JOINED, on={"sales": "price", "brands": "owner"})
        late = session.sketch("late")
        state = late.stats()
        assert state["maintain"] == "lazy"
        assert late.rows() == eager.rows()
        reached = session.epoch
        for number in range(3):
            session.insert("sales", [(10 + number, "Lenovo", "x", 700 * number, 1)])
        session.delete("sales", SALES[2:4])
        session.insert("brands", [("Dell", "CN")])
        assert session.sketchbook.lazily.reached(session.snapshot.views["late"]) == reached
        past = session.epoch - 1
        assert sorted(late.rows()) == sorted(eager.rows())
        assert resting(session) == session.epoch
        session.drop_sketch("soon")
        both(session, JOINED)
        # Of what was before, such a sketch knows nothing any more.
        used = late.stats()["times_used"]
        session.at(past).sql(JOINED).rows()
        assert late.stats()["times_used"] == used
        session.insert("sales", [(20, "Dell", "x", None, 1)])
    with hw.connect(tmp_path / "d", spark=spark, placement="driver") as session:
        session.skipping = "always"
        both(session, JOINED)
        assert session.sketch("late").stats()["times_used"] == 1
        session.create_sketch("soon", JOINED, on={"sales": "price", "brands": "owner"})
        assert sorted(session.sketch("late").rows()) == sorted(session.sketch("soon").rows())


def test_what_changed_too_much_is_captured_anew(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("sales", COLUMNS)
        session.insert("sales", SALES)
        session.partition("sales", "price", bounds=[601, 1001, 1501])
        session.skipping = "always"
        late = session.create_sketch("late", REVENUE, on={"sales": "price"}, maintain="lazy")
        assert late.ranges() == {"sales.price": ["[1001, +∞)"]}
        session.insert("sales", [(8 + i, "HP", "HP ProBook 650", 1299, 1) for i in range(9)])
        # As if that were too much to be remembered.
        session.epochs.history.restart(session.epoch, {"sales": 0})
        assert late.ranges() == {"sales.price": ["[601, +∞)"]}
        assert sorted(both(session, REVENUE)) == [("Apple", 5074), ("HP", 16586)]
        session.insert("sales", [(30, "Apple", "returned", 5000, -1)])
        assert not late.is_valid
        with pytest.raises(hw.InvalidOption, match="maintain is one of eager, lazy"):
            session.create_sketch("k", REVENUE, on={"sales": "price"}, maintain="sometimes")
        session.create_view("v", "SELECT price, sold FROM sales")
        over = "SELECT v.sold FROM v JOIN sales s ON s.price = v.price"
        with pytest.raises(hw.NotSupported, match=r"over views \(v\)"):
            session.create_sketch("k", over, on={"sales": "id"}, maintain="lazy")
