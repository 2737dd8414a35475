"""Every translated function gives Spark's value or raises: on NULL, NaN, ±0, extremes, unicode, scales, leap days, zones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from duckdb_agreement import Case, cases, differences
from duckdb_edges import ZONED, ZONES

from headwater.evaluation.duckdb_sql import connection, functions

if TYPE_CHECKING:
    import duckdb
    from duckdb_agreement import Agreement

    Connections = dict[str, duckdb.DuckDBPyConnection]

_CASES = [(case, zone) for case in cases() for zone in (ZONES if case.table in ZONED else ZONES[:1])]
_TRANSLATED = [(case, zone) for case, zone in _CASES if not case.untranslatable]


def _names(found: list[tuple[Case, str]]) -> list[str]:
    return [f"{case.family}-{case.table}-{zone}-{case.text}" for case, zone in found]


@pytest.fixture(scope="module")
def connections() -> Connections:
    return {zone: connection(zone) for zone in ZONES}


@pytest.mark.parametrize(("case", "zone"), _CASES, ids=_names(_CASES))
def test_duckdb_gives_the_value_of_spark_or_raises(case: Case, zone: str, edges: Agreement, connections: Connections) -> None:
    outcome = edges.outcome(case, zone)
    assert (outcome.reason is not None) == case.untranslatable, outcome.reason or "it has a translation now"
    if not case.untranslatable:
        wrong = differences(outcome, connections[zone])
        assert not wrong, "\n".join([outcome.translated.sql, *wrong[:10]])


@pytest.mark.slow
@pytest.mark.parametrize(("case", "zone"), _TRANSLATED, ids=_names(_TRANSLATED))
def test_random_values_agree_as_well(case: Case, zone: str, randoms: Agreement, connections: Connections) -> None:
    outcome = randoms.outcome(case, zone)
    wrong = differences(outcome, connections[zone])
    assert not wrong, "\n".join([outcome.translated.sql, *wrong[:10]])


def test_every_function_with_a_rule_has_a_case(edges: Agreement) -> None:
    covered = {function for case, zone in _TRANSLATED for function in edges.outcome(case, zone).functions}
    assert set(functions()) - covered == set()
