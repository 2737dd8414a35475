"""Property: whatever the tables, the queries and the transactions, every live view equals Spark after every epoch.

Each seed is one scenario, the same every time. One that fails is cut down by hypothesis before it is printed; that takes
minutes, since each attempt is a dozen Spark jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, event, given, seed, settings
from replay import play
from scenario import Scenario, scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Several examples of one seed would be variations of the first.
LIVE = settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False, database=None)
SHORT, LONG = range(16), range(16, 216)


def check(spark: SparkSession, number: int, *, failing: bool = False) -> None:
    @seed(number)
    @LIVE
    @given(scenario=scenarios(failing=failing))
    def every_view_equals_spark(scenario: Scenario) -> None:
        play(spark, scenario, event)

    every_view_equals_spark()


@pytest.mark.parametrize("number", [*SHORT, *(pytest.param(number, marks=pytest.mark.slow) for number in LONG)])
def test_views_equal_spark(spark: SparkSession, number: int) -> None:
    check(spark, number)


@pytest.mark.parametrize("number", [*SHORT[:4], *(pytest.param(number, marks=pytest.mark.slow) for number in LONG[:60])])
def test_views_fail_as_spark_does(spark: SparkSession, number: int) -> None:
    check(spark, number, failing=True)
