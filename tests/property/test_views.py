"""Property: whatever the tables, the queries and the transactions, every live view equals Spark after every epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, event, given, settings
from replay import play
from scenario import Scenario, scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# an example is a dozen Spark jobs, so what hypothesis thinks slow is not
LIVE = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False, database=None)


@settings(LIVE, max_examples=20)
@given(scenario=scenarios())
def test_views_equal_spark(spark: SparkSession, scenario: Scenario) -> None:
    play(spark, scenario, event)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@settings(LIVE, derandomize=False, max_examples=1000)
@given(scenario=scenarios())
def test_many_views_equal_spark(spark: SparkSession, scenario: Scenario) -> None:
    play(spark, scenario, event)
