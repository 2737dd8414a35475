"""Scenarios that failed once. One of `test_views` that fails is added here as it is printed, cut down to what it takes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from replay import play
from scenario import Change, Scenario, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIOS = {
    "a constant that is both delimiter and order": Scenario(
        tables={"t": Table({"k": "INT", "s": "STRING"}, [(1, "a"), (1, "b"), (2, None)])},
        views={"v": "SELECT k, listagg(s, '-') WITHIN GROUP (ORDER BY s, '-') AS c FROM t GROUP BY k"},
        transactions=[[Change("delete", "t", [(1, "a")])]],
    ),
    "projections of an Expand that the JSON of the plan leaves out": Scenario(
        tables={"t": Table({"k": "INT", "x": "BIGINT", "s": "STRUCT<y: INT>"}, [(1, 2, {"y": 1}), (1, None, None)])},
        views={
            "v": "SELECT a.k FROM (SELECT k, s, sum(DISTINCT greatest(x, x)) FILTER (WHERE x BETWEEN 1 AND 9) AS c FROM t"
            " GROUP BY k, if(s IS NULL, s, s), s HAVING c <> k) a LEFT ANTI JOIN t b ON a.k < b.k GROUP BY a.k"
        },
        transactions=[[Change("insert", "t", [(2, 2, {"y": 1})])]],
    ),
    "a join by two conditions, one of which only Spark can evaluate": Scenario(
        tables={
            "t": Table({"n": "DECIMAL(10,2)", "a": "ARRAY<INT>"}, [(Decimal("1.50"), [2, 1]), (Decimal("99.99"), [1, None])])
        },
        views={"v": "SELECT l.n, r.a FROM t l RIGHT JOIN t r ON l.a >= r.a AND l.n <> r.n"},
        transactions=[[Change("insert", "t", [(Decimal("0.00"), [])])], [Change("delete", "t", [(Decimal("1.50"), [2, 1])])]],
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_regression(spark: SparkSession, scenario: Scenario) -> None:
    play(spark, scenario)
