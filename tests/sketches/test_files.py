"""What sketches leave of Parquet files, read without Spark: the rows that Spark reads, or nothing where that is not sure."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.annotations.fragments import Partition
from headwater.skipping.files import Files
from headwater.skipping.reading import Ranges

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EVEN = pa.table(
    {
        "Key": pa.array(range(40), pa.int64()),
        "text": pa.array([None if i % 7 == 0 else f"t{i}" for i in range(40)]),
        "day": pa.array([date(2020, 1, 1 + i % 28) for i in range(40)]),
        "number": pa.array([float(i) for i in range(40)]),
    }
)
ODD: dict[str, pa.Table] = {
    "a day before the calendar": EVEN.set_column(2, "day", pa.array([date(1500, 1, 1)] * 40)),
    "times in nanoseconds": EVEN.set_column(2, "day", pa.array([datetime(2020, 1, 1)] * 40, pa.timestamp("ns"))),
    "numbers of another type": EVEN.set_column(3, "number", pa.array(range(40), pa.int32())),
    "no such column": EVEN.drop_columns(["number"]),
}


def below(bound: int) -> Ranges:
    bounds = pa.RecordBatch.from_arrays([pa.array([bound], pa.int64())], names=["c0"])
    return Ranges(0, Partition("t", "key", 1, bounds, (1, 1, 0)), frozenset({0}))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    target = tmp_path / "t"
    target.mkdir()
    pq.write_table(EVEN.slice(0, 20), target / "0.parquet", row_group_size=5)
    pq.write_table(EVEN.slice(20), target / "1.parquet", row_group_size=5)
    return target


def fetched(session: hw.Session, ranges: list[list[Ranges]], columns: set[int], most: int = 1_000) -> Any:
    now = session.snapshot
    content = now.outer[now.tables["t"].source]
    return Files(lambda: session.spark).fetched(content, ranges, columns, most)


def test_rows_in_ranges_with_the_columns_that_are_read(spark: SparkSession, place: Path) -> None:
    with hw.connect(spark=spark, placement="driver") as session:
        session.create_table("t", "number DOUBLE, key BIGINT, text STRING, day DATE", source=place)
        ranges = [[Ranges(1, below(7).partition, frozenset({0}))]]
        found = fetched(session, ranges, {2})
        assert found.rows.column(1).to_pylist() == list(range(7))
        assert found.rows.column(2).to_pylist() == EVEN["text"].to_pylist()[:7]
        assert found.rows.column(0).null_count == 7
        # Three of the eight row groups have 15 rows.
        assert fetched(session, [[Ranges(1, below(12).partition, frozenset({0}))]], {2}, most=14) is None
        assert len(fetched(session, [[Ranges(1, below(12).partition, frozenset({0}))]], {2}, most=15)) == 12
        assert len(fetched(session, [*ranges, []], {2})) == 40
        assert len(fetched(session, [[Ranges(1, below(0).partition, frozenset())]], set())) == 0
        session.delete("t", [(3.0, 3, "t3", date(2020, 1, 4)), (30.0, 30, "t30", date(2020, 1, 3))])
        session.insert("t", [(1.5, 5, "new", None), (1.5, 500, "new", None)])
        changed = fetched(session, ranges, {2})
        rows = zip(changed.rows.column(1).to_pylist(), changed.rows.column(2).to_pylist(), changed.weights, strict=True)
        expected = session.sql("SELECT key, text FROM t WHERE key < 7").rows()
        assert sorted((key, text or "") for key, text, weight in rows for _ in range(weight)) == sorted(
            (key, text or "") for key, text in expected
        )


@pytest.mark.parametrize("name", ODD)
def test_what_spark_might_read_otherwise_is_left_to_spark(name: str, spark: SparkSession, place: Path) -> None:
    pq.write_table(ODD[name], place / "2.parquet")
    with hw.connect(spark=spark, placement="driver") as session:
        session.create_table("t", "key BIGINT, text STRING, day DATE, number DOUBLE", source=place)
        assert fetched(session, [[below(7)]], {0, 1}) is not None
        assert fetched(session, [[below(7)]], {2, 3}) is None


def test_columns_in_the_names_of_directories_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(EVEN.to_pylist(), "key LONG, text STRING").write.partitionBy("text").parquet(str(tmp_path / "t"))
    with hw.connect(spark=spark, placement="driver") as session:
        session.create_table("t", source=tmp_path / "t")
        assert fetched(session, [[below(7)]], {0}) is None


def test_a_question_is_read_again_when_its_meaning_changes(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("t", "a INT")
        session.insert("t", [(1,)])
        query = "SELECT a, CAST(TIMESTAMP '2020-01-01 00:00:00' AS STRING) AS at, size(array()) FROM t"
        spark.conf.set("spark.sql.legacy.sizeOfNull", "false")
        first = session._engine.analyse(query, session.snapshot.catalog)
        assert session._engine.analyse(query, session.snapshot.catalog) is first
        session.insert("t", [(2,)])
        assert len(session.sql(query).rows()) == 2
        assert session._engine.analyse(query, session.snapshot.catalog) is first
        spark.conf.unset("spark.sql.legacy.sizeOfNull")
        assert session._engine.analyse(query, session.snapshot.catalog) is not first
        session.drop_table("t")
        session.create_table("t", "a STRING")
        session.insert("t", [("x",)])
        assert session.sql(query).rows()[0][0] == "x"
