"""Every translated function gives Spark's value or raises: on NULL, NaN, ±0, extremes, unicode, scales, leap days, zones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from duckdb_agreement import RAISES, Agreement, Case, cases, exact, same_type
from duckdb_edges import ZONED, ZONES

from headwater.evaluation.duckdb_sql import connection, functions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    from pyspark.sql import SparkSession

_CASES = [(case, zone) for case in cases() for zone in (ZONES if case.table in ZONED else ZONES[:1])]


@pytest.fixture(scope="module")
def agreement(spark: SparkSession) -> Iterator[Agreement]:
    # Common parts would be evaluated outside of what catches their errors.
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    yield Agreement(spark)
    spark.conf.unset("spark.sql.subexpressionElimination.enabled")


@pytest.fixture(scope="module")
def connections() -> dict[str, duckdb.DuckDBPyConnection]:
    return {zone: connection(zone) for zone in ZONES}


@pytest.mark.parametrize(("case", "zone"), _CASES, ids=[f"{c.family}-{c.table}-{z}-{c.text}" for c, z in _CASES])
def test_duckdb_gives_the_value_of_spark_or_raises(
    case: Case, zone: str, agreement: Agreement, connections: dict[str, duckdb.DuckDBPyConnection]
) -> None:
    outcome = agreement.outcome(case, zone)
    if case.untranslatable:
        assert outcome.reason is not None
        return
    assert outcome.reason is None
    kind, found = outcome.duckdb(connections[zone])
    assert same_type(kind, outcome.translated.type)
    assert same_type(outcome.translated.type, outcome.spark_type)
    wrong = [
        f"{[exact(column)[0] for column in outcome.rows.slice(row, 1).columns]}: Spark {theirs!r}, DuckDB {ours!r}"
        for row, (theirs, ours) in enumerate(zip(outcome.spark, found, strict=True))
        if ours not in (RAISES, theirs)
    ]
    assert not wrong, "\n".join([outcome.translated.sql, *wrong[:10]])
    assert any(value != RAISES for value in found)


def test_every_function_with_a_rule_has_a_case(agreement: Agreement) -> None:
    covered: set[str] = set()
    for case, zone in _CASES:
        outcome = agreement.outcome(case, zone)
        if outcome.reason is None:
            covered |= outcome.functions
    assert set(functions()) - covered == set()
