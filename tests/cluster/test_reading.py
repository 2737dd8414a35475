"""Of rows outside, executors read what views look at, and answers are those of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from oracle import bag_difference, rows_of

import headwater as hw
from headwater.cluster import reading

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ITEMS = """
    SELECT id, id % 7 AS kind, IF(id % 5 = 0, NULL, id * 3) AS price, CAST(id AS STRING) AS name,
        DATE '2024-01-01' + CAST(id AS INT) AS day
    FROM range(0, 500, 1, 2)
"""
# What is asked, the columns that it looks at, and whether Spark can drop rows for it.
QUERIES = {
    "rows": (
        "SELECT kind, SUM(price) AS p FROM items WHERE day < DATE '2024-06-01' AND price > 30 GROUP BY kind",
        {1, 2, 4},
        True,
    ),
    "no column": ("SELECT COUNT(*) AS n FROM items", {0}, False),
    "may fail": ("SELECT name FROM items WHERE price / (kind + 1) > 10 AND kind > 0", {1, 2, 3}, True),
    "two sides": (
        "SELECT a.name, b.price FROM items a JOIN items b ON a.kind = b.id WHERE a.price < 90 AND b.name <> '3'",
        {0, 1, 2, 3},
        True,
    ),
    "one of two sides": ("SELECT a.name, b.day FROM items a JOIN items b ON a.id = b.id WHERE a.kind = 2", {0, 1, 3, 4}, None),
}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[DataFrame, tuple[int, ...]]]:
    """What was read for the views that were built."""
    found = []
    read = reading.read

    def spied(*given: object) -> tuple[DataFrame, tuple[int, ...]]:
        found.append(read(*given))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(reading, "read", spied)
    return found


def test_views_read_what_they_look_at(
    spark: SparkSession, tmp_path: Path, seen: list[tuple[DataFrame, tuple[int, ...]]]
) -> None:
    spark.sql(ITEMS).write.parquet(str(tmp_path / "items"))
    spark.read.parquet(str(tmp_path / "items")).createOrReplaceTempView("items_before")
    with hw.connect(spark=spark, placement="cluster") as s:
        s.create_table("items", source=tmp_path / "items", key="id")
        s.delete("items", spark.sql(ITEMS).filter("id < 20"))
        s.insert("items", [(1000, 3, 40, "new", None)])
        for name, (query, columns, drops) in QUERIES.items():
            seen.clear()
            view = s.create_view(f"v_{name.replace(' ', '_')}", query)
            (frame, read), *_ = seen
            assert set(read) == columns, name
            plan = frame._jdf.queryExecution().sparkPlan().toString()
            if drops is not None:
                assert ("PushedFilters: []" not in plan) == drops, plan
            now = "SELECT * FROM items_before WHERE id >= 20 UNION ALL SELECT 1000, 3, 40, 'new', NULL"
            wanted = spark.sql(f"WITH items AS ({now}) {query}").toArrow()
            assert bag_difference(rows_of(view.arrow()), rows_of(wanted)) == ([], []), name


def test_conditions_on_other_types_are_left_to_steps(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT CAST(id AS INT) AS id, id % 3 AS kind FROM range(50)").write.parquet(str(tmp_path / "t"))
    with hw.connect(spark=spark, placement="cluster") as s:
        s.create_table("t", "id BIGINT, kind BIGINT", source=tmp_path / "t")
        view = s.create_view("v", "SELECT id FROM t WHERE id > 40 AND kind = 1")
        assert sorted(view.rows()) == [(43,), (46,), (49,)]
