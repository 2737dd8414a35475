"""The data source `headwater`: what Spark reads from a directory is what the view has, now and then."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.sinks import spark_source
from headwater.sinks.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[hw.Session]:
    session = hw.connect(tmp_path / "state", spark=spark)
    session.create_table("sales", "id BIGINT, brand STRING, price INT", key="id")
    session.create_view("totals", "SELECT brand, SUM(price) AS total FROM sales GROUP BY brand ORDER BY MAX(id)")
    for number in range(6):
        session.upsert("sales", [(number, "ab"[number % 2], number), (100, "c", number)])
        if number == 3:
            assert session._store is not None
            session._store.fold()
    hw.register(spark)
    yield session
    session.close()


def test_rows_now_and_then(spark: SparkSession, session: hw.Session, tmp_path: Path) -> None:
    place = f"{tmp_path}/state/totals"
    frame = spark.read.format("headwater").load(place)
    assert frame.schema.names == ["brand", "total"]
    assert Counter(map(tuple, frame.collect())) == Counter(session.view("totals").rows())
    for epoch in (session.epoch - 5, session.epoch - 1):
        then = spark.read.format("headwater").option("epoch", epoch).load(place)
        assert Counter(map(tuple, then.collect())) == Counter(session.view("totals").at(epoch).rows())
    session.insert("sales", [(200, "d", 9)])
    again = spark.read.format("headwater").load(place)
    assert Counter(map(tuple, again.collect())) == Counter(session.view("totals").rows())


def test_every_range_of_hashes_has_its_part(session: hw.Session, tmp_path: Path) -> None:
    directory = Directory(str(tmp_path / "state"))
    for epoch in range(session.epoch - 5, session.epoch + 1):
        parts = [directory.content("totals", epoch, number, 7) for number in range(7)]
        rows = [row for part in parts for row in zip(*(c.to_pylist() for c in part.select((0, 1)).rows.columns), strict=True)]
        assert Counter(rows) == Counter(session.view("totals").at(epoch).rows())


def test_published_views_are_live(spark: SparkSession, session: hw.Session) -> None:
    session.publish("totals")
    query = "SELECT t.brand, t.total + o.more FROM totals t JOIN VALUES ('a', 1), ('c', 2) AS o (brand, more) USING (brand)"
    expected = {"a": 1, "c": 2}
    for _ in range(2):
        found = Counter(map(tuple, spark.sql(query).collect()))
        rows = [(brand, total + expected[brand]) for brand, total in session.view("totals").rows() if brand in expected]
        assert found == Counter(rows)
        session.upsert("sales", [(300, "a", 50)])
    spark.catalog.dropTempView("totals")
    with pytest.raises(hw.NotSupported, match="this session has none"):
        hw.connect(spark=spark).publish()


@pytest.mark.parametrize("changes", ["types", "weight"])
def test_the_changes_add_up(spark: SparkSession, session: hw.Session, tmp_path: Path, changes: str) -> None:
    found: Counter[Any] = Counter()
    versions: list[int] = []

    def add(batch: Any, _: int) -> None:
        for row in batch.collect():
            weight = row["_weight"] if changes == "weight" else {"insert": 1, "delete": -1}[row["_change_type"]]
            found[row["brand"], row["total"]] += weight
            versions.append(row["_commit_version"])
            assert row["_commit_timestamp"].year > 2000

    stream = spark.readStream.format("headwater").option("changes", changes).load(f"{tmp_path}/state/totals")
    query = stream.writeStream.foreachBatch(add).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        first = session.epoch
        assert set(versions) == {first}
        for number in range(3):
            session.upsert("sales", [(number, "z", 5)])
        query.processAllAvailable()
    finally:
        query.stop()
    assert Counter({row: weight for row, weight in found.items() if weight}) == Counter(session.view("totals").rows())
    assert max(versions) == session.epoch


def test_what_is_asked_for_wrongly_is_refused(session: hw.Session, tmp_path: Path) -> None:  # noqa: ARG001
    def source(**options: str) -> spark_source.HeadwaterSource:
        return spark_source.HeadwaterSource(options)

    place = f"{tmp_path}/state"
    with pytest.raises(hw.UnknownName, match="there is no table or view 'nothing'"):
        source(path=f"{place}/nothing").schema()
    with pytest.raises(hw.InvalidOption, match="names the directory and the view"):
        source().schema()
    with pytest.raises(hw.InvalidOption, match="changes is one of types, weight"):
        source(path=f"{place}/totals", changes="all").schema()
    with pytest.raises(hw.InvalidOption, match="epoch is an epoch, a number"):
        source(path=f"{place}/totals", epoch="now").schema()
    with pytest.raises(hw.InvalidOption, match="say how"):
        source(path=f"{place}/totals").streamReader(None)  # type: ignore[arg-type]
    with pytest.raises(hw.UnknownEpoch, match="there is no epoch 999"):
        source(path=f"{place}/totals", epoch="999").reader(None).partitions()  # type: ignore[arg-type]
