"""Sketches as users have them, on Spark: with a sketch the answer is the answer without."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SALES = [
    (1, "Lenovo", "ThinkPad T14s", 349, 1),
    (2, "Lenovo", "ThinkPad T14s", 449, 2),
    (3, "Apple", "MacBook Air", 1199, 1),
    (4, "Apple", "MacBook Pro", 3875, 1),
    (5, "Dell", "Dell XPS", 1345, 1),
    (6, "HP", "HP ProBook 450", 999, 4),
    (7, "HP", "HP ProBook 550", 899, 1),
]
REVENUE = "SELECT brand, SUM(price * sold) AS rev FROM sales GROUP BY brand HAVING SUM(price * sold) > 5000"
CITIES = [
    *[(4200, "Anchorage", "AK"), (6000, "San Diego", "CA"), (5000, "Sacramento", "CA"), (7000, "New York", "NY")],
    *[(2000, "Buffalo", "NY"), (3700, "Austin", "TX"), (2500, "Houston", "TX")],
]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as made:
        made.create_table("sales", "id BIGINT, brand STRING, name STRING, price INT, sold INT")
        made.insert("sales", SALES)
        made.partition("sales", "price", bounds=[601, 1001, 1501])
        made.skipping = "always"
        yield made


def both(session: hw.Session, query: str) -> list[Any]:
    """The answer with sketches, after it was compared with the one without."""
    with_sketches = session.sql(query).rows()
    session.skipping = "never"
    assert Counter(session.sql(query).rows()) == Counter(with_sketches)
    session.skipping = "always"
    return with_sketches


def test_sales_of_the_document(session: hw.Session) -> None:
    sketch = session.sql(f"CREATE SKETCH top ON sales(price) FOR {REVENUE}")
    assert sketch.rows() == [(0, 2), (0, 3)]
    assert sketch.ranges() == {"sales.price": ["[1001, +∞)"]}
    assert both(session, REVENUE) == [("Apple", 5074)]
    before = session.epoch
    session.insert("sales", [(8, "HP", "HP ProBook 650", 1299, 1)])
    assert sketch.ranges() == {"sales.price": ["[601, +∞)"]}
    assert sorted(both(session, REVENUE)) == [("Apple", 5074), ("HP", 6194)]
    # The past is answered from the sketch of then.
    assert session.at(before).sql(REVENUE).rows() == [("Apple", 5074)]
    session.sql("UPDATE sales SET sold = 0 WHERE brand = 'Apple'")
    assert both(session, REVENUE) == [("HP", 6194)]
    session.sql("DELETE FROM sales")
    assert sketch.ranges() == {"sales.price": []}
    assert both(session, REVENUE) == []
    figures = sketch.stats()
    assert figures["times_used"] == 5
    assert figures["guards"] == ["sales.price ≥ 0", "sales.sold ≥ 0"]


def test_violated_guard_sets_a_sketch_aside(session: hw.Session) -> None:
    sketch = session.create_sketch("top", REVENUE, on={"sales": "price"})
    session.insert("sales", [(8, "Apple", "returned", 5000, -1), (9, "Dell", "lot", 2000, 3)])
    assert not sketch.is_valid
    assert session.sql("SHOW SKETCHES").rows()[0][2] == "false"
    assert both(session, REVENUE) == [("Dell", 7345)]
    assert sketch.stats()["times_used"] == 0
    session.delete("sales", [(8, "Apple", "returned", 5000, -1)])
    assert sketch.is_valid
    assert sorted(both(session, REVENUE)) == [("Apple", 5074), ("Dell", 7345)]
    session.insert("sales", [(8, "Apple", "returned", 5000, -1)])
    with pytest.raises(hw.UnsafeSketch, match="sketched by price"):
        session.create_sketch("again", REVENUE, on={"sales": "price"})


def test_cities_of_the_report(session: hw.Session) -> None:
    session.create_table("cities", "popden INT, city STRING, state STRING")
    session.insert("cities", CITIES)
    session.partition("cities", "state", bounds=["FL", "MN", "OR"])
    session.partition("cities", "popden", bounds=[4001])
    query = "SELECT state, {} AS d FROM cities GROUP BY state ORDER BY d DESC LIMIT 1"
    dense = query.format("avg(popden)")
    assert session.create_sketch("by_state", dense, on={"cities": "state"}).rows() == [(0, 0)]
    assert both(session, dense) == [("CA", 5500.0)]
    with pytest.raises(hw.UnsafeSketch, match=r"at Limit: a group of which rows are missing") as refused:
        session.create_sketch("by_density", dense, on={"cities": "popden"})
    assert refused.value.operator == "Limit"
    for number, function in enumerate(["sum(popden)", "count(*)"]):
        sketch = session.create_sketch(f"by_density_{number}", query.format(function), on={"cities": "popden"})
        assert both(session, query.format(function))[0][0] == "CA"
        assert sketch.stats()["times_used"] == 1


JOINED = {
    "join": "SELECT owner, sum(price) p FROM sales s JOIN brands b ON s.brand = b.brand GROUP BY owner HAVING p > 2000",
    "self join": "SELECT a.id, b.id FROM sales a JOIN sales b ON a.brand = b.brand AND a.price < b.price WHERE a.sold > 3",
    "semi join": "SELECT id FROM sales s WHERE EXISTS (SELECT 1 FROM brands b WHERE b.brand = s.brand AND b.owner = 'US')",
    "union": "SELECT brand FROM sales WHERE price > 3000 UNION ALL SELECT brand FROM brands WHERE owner = 'CN'",
    "limit below a filter": "SELECT name FROM (SELECT * FROM sales ORDER BY price DESC LIMIT 3) WHERE brand <> 'Apple'",
    "limit with offset": "SELECT name, price FROM sales ORDER BY price LIMIT 2 OFFSET 2",
    "limit without order": "SELECT brand FROM sales LIMIT 2",
    "two levels": "SELECT n, count(*) c FROM (SELECT brand, count(*) n FROM sales GROUP BY brand) GROUP BY n HAVING c > 1",
    "window": "SELECT id FROM (SELECT id, price, rank() OVER (PARTITION BY price ORDER BY sold, id) r FROM sales) WHERE r > 1",
    "anti join": "SELECT id FROM sales s WHERE NOT EXISTS (SELECT 1 FROM brands b WHERE b.brand = s.brand) AND price > 1000",
}
ON = {"union": {"sales": "price", "brands": "owner"}, "join": {"sales": "price", "brands": "owner"}}


SOME = ("join", "limit below a filter", "two levels", "window")
OTHERS = tuple(name for name in JOINED if name not in SOME)


@pytest.mark.parametrize("names", [pytest.param(SOME, id="some"), pytest.param(OTHERS, id="others", marks=pytest.mark.slow)])
def test_queries_of_every_kind_on_spark(names: tuple[str, ...], spark: SparkSession, tmp_path: Path) -> None:
    """Over attached tables, after changes of them; without a sketch, Spark answers the text of the query itself."""
    columns = "id BIGINT, brand STRING, name STRING, price INT, sold INT"
    spark.createDataFrame(SALES, columns).coalesce(1).write.parquet(str(tmp_path / "sales"))
    brands = [("HP", "US"), ("Apple", "US"), ("Lenovo", "CN"), (None, "CN")]
    spark.createDataFrame(brands, "brand STRING, owner STRING").coalesce(1).write.parquet(str(tmp_path / "brands"))
    with hw.connect(spark=spark, placement="driver") as session:
        session.create_table("sales", source=tmp_path / "sales")
        session.create_table("brands", source=tmp_path / "brands")
        session.skipping = "always"
        made = {}
        for name in names:
            query = JOINED[name]
            if name == "two levels":
                with pytest.raises(hw.UnsafeSketch, match="at Aggregate: it groups by a value that is another"):
                    session.create_sketch(name, query, on={"sales": "price"})
                continue
            made[name] = session.create_sketch(name, query, on=ON.get(name, {"sales": "price"}))
        if "window" in made:
            elsewhere = "SELECT id FROM (SELECT id, sum(sold) OVER (PARTITION BY brand) n FROM sales) WHERE n > 1"
            with pytest.raises(hw.UnsafeSketch, match="at Window: it is not partitioned by the attribute"):
                session.create_sketch("elsewhere", elsewhere, on={"sales": "price"})
        session.insert("sales", [(10, "HP", "x", None, 5), (11, None, "y", 700, 4), (12, "Dell", "z", 4000, 9)])
        session.insert("sales", [(13, "HP", "x", 4000, 5), (14, None, "y", 4000, 4)])
        session.delete("sales", SALES[3:6])
        session.insert("brands", [("Dell", "CN")])
        for name, sketch in made.items():
            both(session, JOINED[name])
            session.sketchbook.room = 0
            both(session, JOINED[name])
            session.sketchbook.room = 1_000
            assert sketch.stats()["times_used"] == 2, name


def test_files_and_row_groups_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 40_000).selectExpr("id", "CAST(id % 500 AS INT) AS g", "CAST(pmod(hash(id), 97) AS INT) AS a")
    query = "SELECT g, count(*) AS n, sum(a) AS s FROM t GROUP BY g ORDER BY s DESC LIMIT 3"
    with hw.connect(spark=spark) as session:
        session.create_table("loose", source=rows).export(tmp_path / "t", cluster_by="g", files=8)
        with pytest.raises(hw.InvalidTarget, match="something at"):
            session.export("loose", tmp_path / "t")
        session.create_table("t", source=tmp_path / "t")
        sketch = session.create_sketch("busiest", query, on={"t": "g"}, fragments=100)
        assert len(both(session, query)) == 3
        session.placement = "cluster"
        session.insert("t", [(50_000, 7, 10_000), (50_001, None, 3)])
        session.delete("t", [tuple(rows.where("id = 493").first())])
        found = both(session, query)
        session.sketchbook.room = 0
        assert both(session, query) == found
        assert found[0][0] == 7
        report = session.explain_skipping(query)
        assert sketch.stats()["times_used"] == 3
    assert report.without.rows == 40_000
    assert report.skipping.rows < 20_000
    assert report.skipping.files < report.without.files
    assert report.without.row_groups is not None
    assert report.skipping.row_groups is not None
    assert report.skipping.row_groups < report.without.row_groups
    assert "sketch busiest" in str(report)
    assert "t.g (access 1): " in str(report)


def test_ranges_are_passed_on_to_the_right_column(spark: SparkSession, tmp_path: Path) -> None:
    """The other table has a column of the attribute's name, too, which is not the one that is joined."""
    spark.range(0, 100).selectExpr("id AS k", "id % 10 AS v").repartitionByRange(4, "k").write.parquet(str(tmp_path / "r"))
    spark.range(0, 100).selectExpr("99 - id AS k", "id AS fk").repartitionByRange(4, "k").write.parquet(str(tmp_path / "s"))
    query = "SELECT r.k, s.k AS other FROM r JOIN s ON r.k = s.fk WHERE r.v = 7 AND r.k < 20"
    with hw.connect(spark=spark, placement="driver") as session:
        for name in ("r", "s"):
            session.create_table(name, source=tmp_path / name)
        session.create_sketch("early", query, on={"r": "k"}, fragments=20)
        assert sorted(both(session, query)) == [(7, 92), (17, 82)]
        session.skipping = "always"
        assert sorted(both(session, query)) == [(7, 92), (17, 82)]
        report = session.explain_skipping(query)
        assert report.ranges["s.fk (access 2)"] == report.ranges["r.k (access 1)"] == ("[5, 10)", "[15, 20)")
        session.sketchbook.transfer = False
        assert sorted(both(session, query)) == [(7, 92), (17, 82)]
        assert list(session.explain_skipping(query).ranges) == ["r.k (access 1)"]


def test_other_constants_are_served_by_the_same_sketch(session: hw.Session) -> None:
    sketch = session.create_sketch("top", REVENUE, on={"sales": "price"})
    assert both(session, REVENUE.replace("5000", "5050")) == [("Apple", 5074)]
    assert sketch.stats()["times_used"] == 1
    assert sorted(both(session, REVENUE.replace("5000", "4800"))) == [("Apple", 5074), ("HP", 4895)]
    assert sketch.stats()["times_used"] == 1
    by_brand = session.create_sketch("brands", REVENUE, on={"sales": "brand"}, fragments=3)
    # Both are used at once: what is left is what both leave.
    assert both(session, REVENUE) == [("Apple", 5074)]
    assert sketch.stats()["times_used"] == 2
    assert by_brand.stats()["times_used"] == 1


def test_sketches_come_by_themselves(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 2_000).selectExpr("id", "id % 100 AS g").write.parquet(str(tmp_path / "t"))
    with hw.connect(spark=spark) as session:
        session.create_table("t", source=tmp_path / "t")
        session.learns_sketches = True
        for number in range(5):
            assert not session.sketches()
            session.sql(f"SELECT g, count(*) AS n FROM t WHERE g < {number + 5} GROUP BY g HAVING count(*) > 10").rows()
        (sketch,) = session.sketches().values()
        assert sketch.ranges() == {"t.g": ["(−∞, 10)"]}
        assert len(session.sql("SELECT g, count(*) AS n FROM t WHERE g < 7 GROUP BY g HAVING count(*) > 10").rows()) == 7
        assert sketch.stats()["times_used"] == 1
        usage = session.sketchbook.used(sketch.name)
        usage.upkeep = 3_600.0
        usage.took(0.0, skipping=False)
        session.sql("SELECT g, count(*) AS n FROM t WHERE g < 7 GROUP BY g HAVING count(*) > 10").rows()
        # Commits spent more on it than it saved: it goes, and comes again when such queries are asked still more often.
        assert not session.sketches()
        for number in range(10):
            assert not session.sketches()
            session.sql(f"SELECT g, count(*) AS n FROM t WHERE g < {number + 5} GROUP BY g HAVING count(*) > 10").rows()
        (sketch,) = session.sketches().values()
        for suffix in ("svg", "html", "png"):
            sketch.plot(tmp_path / f"sketch.{suffix}")
        assert (tmp_path / "sketch.png").read_bytes().startswith(b"\x89PNG")
        assert "t.g" in str(sketch.plot())


def test_sketches_are_there_again_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with hw.connect(tmp_path / "d", spark=spark) as session:
        session.create_table("sales", "id BIGINT, brand STRING, name STRING, price INT, sold INT")
        session.insert("sales", SALES)
        session.partition("sales", "price", bounds=[601, 1001, 1501])
        session.create_sketch("top", REVENUE, on={"sales": "price"})
    with hw.connect(tmp_path / "d", spark=spark) as session:
        session.skipping = "always"
        sketch = session.sketch("top")
        session.insert("sales", [(8, "HP", "HP ProBook 650", 1299, 1)])
        assert sketch.ranges() == {"sales.price": ["[601, +∞)"]}
        assert sorted(both(session, REVENUE)) == [("Apple", 5074), ("HP", 6194)]
        assert session.partition("sales", "price", 3).version == 2
        assert list(session.views()) == []
        with pytest.raises(hw.DependentViews, match="'top'"):
            session.drop_table("sales")
        session.sql("DROP SKETCH top")
        assert session.sql("SHOW SKETCHES").rows() == []


def test_bad_input_changes_nothing(session: hw.Session) -> None:
    session.create_table("brands", "id BIGINT")
    epoch = session.epoch
    sketch = session.create_sketch
    cases: list[tuple[type[hw.HeadwaterError], str, Any]] = [
        (hw.UnknownName, "no column 'prize'", lambda: sketch("k", REVENUE, on={"sales": "prize"})),
        (hw.UnknownName, "no table 'shops'", lambda: sketch("k", REVENUE, on={"shops": "price"})),
        (hw.InvalidOption, "on says which tables", lambda: sketch("k", REVENUE, on={})),
        (hw.InvalidOption, "fragments is a number", lambda: sketch("k", REVENUE, on={"sales": "price"}, fragments=0)),
        (hw.InvalidOption, "skipping is one of", lambda: setattr(session, "skipping", "sometimes")),
        (hw.InvalidOption, "ascending order", lambda: session.partition("sales", "price", bounds=[3, 1])),
        (hw.InvalidOption, "values of its type", lambda: session.partition("sales", "price", bounds=["x"])),
        (
            hw.UnsafeSketch,
            "Scalar subquery: its value over part of the rows",
            lambda: sketch("k", "SELECT id FROM brands WHERE id > (SELECT avg(price) FROM sales)", on={"sales": "price"}),
        ),
        (hw.UnknownName, "no sketch 'k'", lambda: session.drop_sketch("k")),
        (hw.InvalidQuery, "expected FOR", lambda: session.sql("CREATE SKETCH k ON sales(price) SELECT 1")),
    ]
    for error, message, attempt in cases:
        with pytest.raises(error, match=message):
            attempt()
    assert session.epoch == epoch
