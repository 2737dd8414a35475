"""Ways to maintain a sketch: with each of them it is the same sketch, and the answer is Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from test_lazily import COLUMNS
from test_sketches import REVENUE, SALES, both

import headwater as hw
from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Literal
from headwater.operators.multijoin import MultiJoin
from headwater.sketches.tuning import Tuning, needed, tuned
from headwater.skipping.lazily import Upkeep

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOINED = (
    "SELECT owner, sum(price) AS p FROM sales s JOIN brands b ON s.brand = b.brand "
    "WHERE s.sold < 4 AND b.owner <> 'none' GROUP BY owner HAVING sum(price) > 2000"
)
GREATEST = "SELECT brand, max(price) AS most, min(sold) AS least FROM sales GROUP BY brand HAVING max(price) > 1000"
FIRST = "SELECT id, price FROM sales WHERE sold > 0 ORDER BY price DESC, id LIMIT 2"
WAYS: dict[str, dict[str, Any]] = {
    "usual": {},
    "plain": {"key_filter": False, "push_down": False},
    "few": {"best": 1},
    "late": {"maintain": "lazy", "best": 1},
    "late_plain": {"maintain": "lazy", "push_down": False},
}
INT = pa.int64()


@pytest.mark.parametrize("placement", ["driver", pytest.param("cluster", marks=pytest.mark.slow)])
def test_all_ways_lead_to_one_sketch(spark: SparkSession, tmp_path: Path, placement: str) -> None:
    queries = {"joined": JOINED, "greatest": GREATEST, "first": FIRST}
    with hw.connect(tmp_path / "d", spark=spark, placement="driver") as session:
        session.create_table("sales", COLUMNS)
        session.create_table("brands", "brand STRING, owner STRING")
        session.insert("sales", SALES)
        session.insert("brands", [("HP", "US"), ("Apple", "US"), ("Lenovo", "CN"), (None, "CN"), ("Dell", "none")])
        session.partition("sales", "price", bounds=[400, 601, 950, 1001, 1200, 1501])
        for name, query in queries.items():
            for way, options in WAYS.items():
                session.create_sketch(f"{name}_{way}", query, on={"sales": "price"}, **options)
    with hw.connect(tmp_path / "d", spark=spark, placement=placement) as session:
        session.skipping = "always"
        assert session.sketch("first_few").stats()["tuning"] == {"key_filter": True, "push_down": True, "best": 1}
        steps: list[tuple[list[Any], list[Any]]] = [
            ([], [SALES[3]]),
            ([], [SALES[2], SALES[4]]),
            ([(8, "Apple", "x", 1100, 2), (9, "Dell", "y", None, 1)], [SALES[5]]),
            ([SALES[3]], [(8, "Apple", "x", 1100, 2)]),
        ]
        for coming, going in steps if placement == "driver" else steps[:2]:
            with session.transaction() as tx:
                tx.delete("sales", going)
                tx.insert("sales", coming)
            for name in queries:
                rows = {way: sorted(session.sketch(f"{name}_{way}").rows()) for way in WAYS}
                assert all(found == rows["usual"] for found in rows.values()), rows
        for query in queries.values() if placement == "driver" else ():
            both(session, query)


def test_switches_are_options_of_the_statement(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("sales", COLUMNS)
        session.create_table("brands", "brand STRING, owner STRING")
        session.insert("sales", SALES)
        options = "fragments = 10, witnesses = true, key_filter = false, push_down = FALSE, best = 3, maintain = eager"
        sketch = session.sql(f"CREATE SKETCH k ON sales(price) WITH ({options}) FOR {GREATEST}")
        assert sketch.stats()["tuning"] == {"key_filter": False, "push_down": False, "best": 3}
        view = session.snapshot.views["k"]
        assert view.sketch is not None
        assert view.sketch.witnesses
        session.sql(f"CREATE SKETCH j ON sales(price) WITH (key_filter = false) FOR {JOINED}")
        joins = [s.operator for s in session.snapshot.catalog.steps if isinstance(s.operator, MultiJoin)]
        assert joins
        assert not any(join.filtered for join in joins)
        for wrong, message in (
            ("witnesses = 1", "expected true or false"),
            ("best = some", "expected a number for best"),
            ("size = 1", "expected one of the options fragments, maintain, "),
            ("best = 1, best = 2", "the option best of sketch w is given twice"),
        ):
            with pytest.raises(hw.InvalidQuery, match=message):
                session.sql(f"CREATE SKETCH w ON sales(price) WITH ({wrong}) FOR {REVENUE}")
        before = session.epoch
        with pytest.raises(hw.InvalidOption, match="best is how many rows or values are kept"):
            session.create_sketch("w", GREATEST, on={"sales": "price"}, best=0)
        wrong_type: Any = "no"
        with pytest.raises(hw.InvalidOption, match="push_down is True or False"):
            session.create_sketch("w", GREATEST, on={"sales": "price"}, push_down=wrong_type)
        assert session.epoch == before


def test_a_resting_sketch_is_captured_anew_where_that_is_cheaper(spark: SparkSession) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("sales", COLUMNS)
        session.insert("sales", SALES)
        session.partition("sales", "price", bounds=[601, 1001, 1501])
        late = session.create_sketch("late", REVENUE, on={"sales": "price"}, maintain="lazy")
        assert late.stats()["upkeep"]["captures"] == 1
        session.insert("sales", [(100 + i, "HP", "x", 700, 1) for i in range(200)])
        assert late.ranges() == {"sales.price": ["[601, +∞)"]}
        figures = late.stats()["upkeep"]
        assert (figures["captures"], figures["maintained"], figures["rows"]) == (1, 1, 200)
        # As if to follow changes had turned out to be slow.
        session.sketchbook.lazily.upkeep[session.snapshot.views["late"]].seconds = 1e9
        session.delete("sales", [(100 + i, "HP", "x", 700, 1) for i in range(200)])
        assert late.ranges() == {"sales.price": ["[1001, +∞)"]}
        figures = late.stats()["upkeep"]
        assert (figures["captures"], figures["maintained"]) == (2, 1)


def test_what_is_cheaper_is_told_by_what_was_measured() -> None:
    costs = Upkeep()
    costs.captured(2.0, 1_000_000)
    assert not costs.favours_capture(10**9, 1_000_000)
    costs.followed(0.001, 10)
    assert not costs.favours_capture(10**9, 1_000_000)
    costs.followed(0.1, 1_000)
    assert not costs.favours_capture(19_000, 1_000_000)
    assert costs.favours_capture(21_000, 1_000_000)
    assert not costs.favours_capture(21_000, 2_000_000)


def test_what_no_access_selects_is_left_out() -> None:
    scan = plan.Scan(types=(INT, INT), source="R")
    positive = Call("GreaterThan", (Column(0, INT), Literal("0", INT)))
    small = Call("LessThan", (Column(1, INT), Literal("9", INT)))
    one = plan.Filter(types=scan.types, child=scan, condition=positive)
    other = plan.Filter(types=scan.types, child=scan, condition=small)
    assert needed(one) == {"r": positive}
    assert needed(plan.Union(types=scan.types, inputs=(one, other))) == {"r": Call("Or", (positive, small))}
    assert needed(plan.Union(types=scan.types, inputs=(one, scan))) == {}


def test_without_push_down_selections_come_after_joins() -> None:
    scan = plan.Scan(types=(INT, INT), source="r")
    positive = Call("GreaterThan", (Column(1, INT), Literal("0", INT)))
    left = plan.picked(plan.Filter(types=scan.types, child=scan, condition=positive), [0])
    equal = Call("EqualTo", (Column(0, INT), Column(1, INT)))
    join = plan.Join(types=(INT, INT, INT), left=left, right=scan, kind="inner", condition=equal)
    late = tuned(join, Tuning(push_down=False))
    assert late.types == join.types
    (selection,) = [node for node in plan.walk(late) if isinstance(node, plan.Filter)]
    assert any(isinstance(node, plan.Join) for node in plan.walk(selection.child))
    assert tuned(join, Tuning()) == join
