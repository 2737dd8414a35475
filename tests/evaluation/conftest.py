"""Spark's answers to all expressions on edge values: asked for once, for all engines that must agree with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from duckdb_agreement import Agreement
from duckdb_edges import TABLES
from duckdb_random import random_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    # Common parts would be evaluated outside of what catches their errors.
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.subexpressionElimination.enabled")


@pytest.fixture(scope="package")
def edges(session: SparkSession) -> Agreement:
    return Agreement(session, TABLES)


@pytest.fixture(scope="package")
def randoms(session: SparkSession) -> Agreement:
    return Agreement(session, TABLES | random_tables(seed=20240229, count=500))
