"""Tables that get the rows of a new snapshot: one epoch, of what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from oracle import Oracle, check_changes
from test_attached import QUERY, SALES, assert_same, kept, written
from test_loading import EVERYTHING

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

NEW = "SELECT id + 10 AS id, (id + 10) % 11 AS brand, IF(id % 500 = 0, 0, (id + 10) * 2) AS price FROM range(4100)"


@pytest.fixture(params=["cluster", "driver"])
def s(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark, placement=request.param) as session:
        yield session


def test_views_see_what_differs_in_one_epoch(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("sales", source=spark.sql(SALES), key="id")
    view = s.create_view("v", QUERY)
    rows = s.create_view("rows", "SELECT * FROM sales WHERE id >= 0")
    epoch = s.replace("sales", spark.sql(NEW))
    assert epoch == s.epoch == 4
    assert_same(s.table("sales").arrow(), spark.sql(NEW))
    Oracle(s).check(view, QUERY)
    ((at, changed),) = rows.changes(since=3)
    assert at == epoch
    # Ten at the beginning are gone, 110 at the end are new, and of nine the price is another one.
    weights = changed.column("_weight").to_pylist()
    assert (weights.count(-1), weights.count(1), len(weights)) == (10 + 8, 110 + 8, 10 + 110 + 16)
    assert_same(s.table("sales").at(3).arrow(), spark.sql(SALES))


def test_all_types_are_compared(s: hw.Session, spark: SparkSession) -> None:
    frame = spark.sql(EVERYTHING)
    s.create_table("t", source=frame.union(frame.filter("b < 100")))
    view = s.create_view("v", "SELECT * FROM t")
    new = frame.filter("b IS NULL OR b % 3 > 0").union(frame.filter("b = 50"))
    s.replace("t", new)
    assert_same(s.table("t").arrow(), new)
    assert_same(view.arrow(), new)
    ((_, changed),) = view.changes(since=2)
    assert sum(changed.column("_weight").to_pylist()) == new.count() - frame.count() - 100
    s.replace("t", new)
    assert list(view.changes(since=s.epoch - 1)) == []


def test_an_attached_table_goes_on_with_the_new_place(s: hw.Session, spark: SparkSession, tmp_path: Path) -> None:
    s.create_table("sales", source=written(spark.sql(SALES), tmp_path / "1"), key="id")
    view = s.create_view("v", QUERY)
    start = view.arrow()
    oracle = Oracle(s)
    s.delete("sales", [(5, 5, 10)])
    s.upsert("sales", [(6, 6, 0)])
    before = s.table("sales").arrow()
    epoch = s.replace("sales", written(spark.sql(NEW), tmp_path / "2"))
    oracle.check(view, QUERY)
    assert_same(s.table("sales").arrow(), spark.sql(NEW))
    assert kept(s, "sales") == 0
    assert s.table("sales").at(epoch - 1).arrow().num_rows == before.num_rows
    assert [at for at, _ in view.changes(since=epoch - 1)] == [epoch]
    s.insert("sales", [(9000, 1, 1)])
    oracle.check(view, QUERY)
    late = s.create_view("late", QUERY)
    oracle.check(late, QUERY)
    s.replace("sales", spark.sql(SALES))
    oracle.check(late, QUERY)
    assert_same(s.table("sales").arrow(), spark.sql(SALES))
    with pytest.raises(hw.InvalidOption, match="write the new rows to another place"):
        s.replace("sales", tmp_path / "2")
    check_changes(start, view, 2)


def test_what_does_not_fit_changes_nothing(s: hw.Session, spark: SparkSession) -> None:
    s.create_table("sales", source=spark.sql(SALES), key="id")
    epoch = s.epoch
    for rows, error in [
        ("SELECT id % 3 AS id, 1 AS brand, 2 AS price FROM range(10)", hw.DuplicateKey),
        ("SELECT NULL AS id, 1 AS brand, 2 AS price", hw.NullKey),
        ("SELECT 1 AS id, 'x' AS brand, 2 AS price", hw.InvalidRows),
        ("SELECT 1 AS id, 2.5 AS brand, 2 AS price", hw.InvalidRows),
        ("SELECT 1 AS id, 1 AS brand", hw.InvalidRows),
    ]:
        with pytest.raises(error):
            s.replace("sales", spark.sql(rows))
    with pytest.raises(hw.UnknownName):
        s.replace("nothing", spark.range(3))
    with s.transaction() as _, pytest.raises(hw.InvalidTransaction):
        s.replace("sales", spark.sql(NEW))
    assert s.epoch == epoch + 1
    assert_same(s.table("sales").arrow(), spark.sql(SALES))


def test_a_directory_remembers_the_new_place(spark: SparkSession, tmp_path: Path) -> None:
    with hw.connect(tmp_path / "d", spark=spark, placement="cluster") as s:
        s.create_table("sales", source=written(spark.sql(SALES), tmp_path / "1"))
        s.create_table("copy", source=spark.sql(SALES))
        s.create_view("v", QUERY)
        s.create_view("c", QUERY.replace("FROM sales", "FROM copy"))
        s.replace("sales", written(spark.sql(NEW), tmp_path / "2"))
        s.replace("copy", tmp_path / "2")
        epoch = s.epoch
    (tmp_path / "1").rename(tmp_path / "gone")
    with hw.connect(tmp_path / "d", spark=spark) as s:
        assert s.epoch == epoch
        assert_same(s.table("sales").arrow(), spark.sql(NEW))
        Oracle(s).check(s.view("v"), QUERY)
        Oracle(s).check(s.view("c"), QUERY.replace("FROM sales", "FROM copy"))
        assert_same(s.table("copy").at(epoch - 1).arrow(), spark.sql(SALES))
