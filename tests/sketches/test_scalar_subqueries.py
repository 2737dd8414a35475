"""Sketches of queries with scalar subqueries: the value is one more input, and what it is computed from is never skipped."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_lazily import COLUMNS
from test_sketches import SALES, both

import headwater as hw

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# The condition of each has a value that every change moves; of the last, the value is the one row that a limit leaves.
QUERIES = {
    "above the average": "SELECT id, price FROM sales WHERE price > (SELECT avg(price) FROM sales)",
    "a part of all": (
        "SELECT brand, sum(price * sold) AS rev FROM sales GROUP BY brand "
        "HAVING sum(price * sold) > (SELECT sum(price * sold) * 0.3 FROM sales)"
    ),
    "the best": (
        "SELECT brand, rev FROM (SELECT brand, sum(price) AS rev FROM sales GROUP BY brand) "
        "WHERE rev = (SELECT max(rev) FROM (SELECT brand, sum(price) AS rev FROM sales GROUP BY brand))"
    ),
    "of another table": (
        "SELECT s.id FROM sales s JOIN owners o ON s.brand = o.brand WHERE s.sold < (SELECT max(most) FROM owners) "
        "AND NOT EXISTS (SELECT 1 FROM owners p WHERE p.brand = s.brand AND p.most > (SELECT avg(sold) FROM sales))"
    ),
    "shown": "SELECT id, price - (SELECT min(price) FROM sales) AS more FROM sales ORDER BY more DESC, id LIMIT 2",
    "as much as the last but one": (
        "SELECT id FROM sales WHERE price >= (SELECT price FROM sales WHERE price IS NOT NULL ORDER BY price DESC LIMIT 1)"
    ),
}
ON = {"the best": "brand", "a part of all": "brand"}
STEPS: list[tuple[list[Any], list[Any]]] = [
    ([(8, "HP", "x", 9000, 1)], []),
    ([(9, "Dell", "y", 40, 90), (10, None, "z", None, None)], [SALES[3]]),
    ([], [SALES[2], SALES[4], SALES[0]]),
    ([SALES[3]], [(8, "HP", "x", 9000, 1)]),
]


@pytest.mark.parametrize("attached", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_with_the_sketch_the_answer_is_the_one_without(spark: SparkSession, tmp_path: Path, *, attached: bool) -> None:
    """After every transaction; and the sketch, however it is maintained, is the one that is captured then."""
    with hw.connect(spark=spark, placement="driver") as session:
        session.skipping = "always"
        session.sketchbook.room = 0 if attached else session.sketchbook.room
        if attached:
            texts, numbers = ["brand", "name"], ["price", "sold"]
            types = [("id", pa.int64()), *((name, pa.string()) for name in texts), *((name, pa.int32()) for name in numbers)]
            rows = pa.Table.from_pylist([dict(zip(dict(types), row, strict=True)) for row in SALES], pa.schema(types))
            (tmp_path / "sales").mkdir()
            pq.write_table(rows, tmp_path / "sales" / "0.parquet")
            session.create_table("sales", source=tmp_path / "sales")
        else:
            session.create_table("sales", COLUMNS)
            session.insert("sales", SALES)
        session.create_table("owners", "brand STRING, most INT")
        session.insert("owners", [("HP", 3), ("Apple", 1), (None, 4)])
        session.partition("sales", "price", bounds=[400, 601, 950, 1001, 1200, 1501])
        session.partition("sales", "brand", bounds=["B", "H", "L"])
        made = {} if attached else {"late": "lazy"}
        for number, (kind, query) in enumerate(QUERIES.items()):
            on = {"sales": ON.get(kind, "price")}
            session.create_sketch(f"k{number}", query, on=on)
            for way, maintain in made.items():
                session.create_sketch(f"k{number}_{way}", query, on=on, maintain=maintain)
        for coming, going in [([], []), *STEPS]:
            with session.transaction() as tx:
                tx.delete("sales", going)
                tx.insert("sales", coming)
            for number, (kind, query) in enumerate(QUERIES.items()):
                used = session.sketch(f"k{number}").stats()["times_used"]
                both(session, query)
                assert session.sketch(f"k{number}").stats()["times_used"] == used + 1
                fresh = session.create_sketch("fresh", query, on={"sales": ON.get(kind, "price")})
                for name in (f"k{number}", *(f"k{number}_{way}" for way in made)):
                    assert Counter(session.sketch(name).rows()) == Counter(fresh.rows()), (kind, name)
                session.drop_sketch("fresh")


def test_other_constants_and_other_subqueries(spark: SparkSession) -> None:
    """A query is served whose subquery is the same; not one whose subquery is another, though that may have the same value."""
    with hw.connect(spark=spark, placement="driver") as session:
        session.skipping = "always"
        session.create_table("sales", COLUMNS)
        session.insert("sales", SALES)
        session.partition("sales", "price", bounds=[400, 601, 950, 1001, 1200, 1501])
        query = "SELECT id FROM sales WHERE price > (SELECT avg(price) FROM sales WHERE sold < 9) AND sold < 3"
        sketch = session.create_sketch("k", query, on={"sales": "price"})
        assert [(each["column"], each["of"]) for each in sketch.stats()["accesses"]] == [("price", 8)]
        for other, served in ((query, 1), (query.replace("< 3", "< 2"), 2), (query.replace("< 9", "< 8"), 2)):
            assert both(session, other)
            assert sketch.stats()["times_used"] == served
        with pytest.raises(hw.NotSupported, match="may give several rows would fail commits; end it with LIMIT 1"):
            session.create_sketch(
                "many", "SELECT id FROM sales WHERE price > (SELECT price FROM sales WHERE id = 1)", on={"sales": "id"}
            )
        before = session.epoch
        session.insert("sales", [(8, "HP", "x", 90_000, 1)])
        assert both(session, query) == [(8,)]
        assert sorted(session.at(before).sql(query).rows()) == [(4,), (5,)]


def test_files_are_skipped_outside_of_the_subquery_only(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 20_000).selectExpr("id", "id DIV 200 AS g", "IF(id < 18000, 1, 50) AS v")
    frame.repartitionByRange(4, "g").sortWithinPartitions("g").write.parquet(str(tmp_path / "t"))
    query = "SELECT g, sum(v) AS s FROM t GROUP BY g HAVING sum(v) > (SELECT sum(v) * 0.01 FROM t)"
    with hw.connect(spark=spark, placement="driver") as session:
        session.skipping = "always"
        session.create_table("t", source=tmp_path / "t")
        session.create_sketch("k", query, on={"t": "g"}, fragments=50)
        report = session.explain_skipping(query)
        assert report.without.rows == 40_000
        assert 20_000 < report.skipping.rows < 30_000
        assert sorted(both(session, query)) == [(g, 10_000) for g in range(90, 100)]
