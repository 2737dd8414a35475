"""Every kernel gives Spark's value or refuses, on the edge values and by the answers that the translations are tested with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from duckdb_agreement import Case, cases, kernel_differences
from duckdb_edges import ZONED, ZONES

from headwater.evaluation import duckdb_sql
from headwater.evaluation.kernels import functions

if TYPE_CHECKING:
    from duckdb_agreement import Agreement

_CASES = [(case, zone) for case in cases() for zone in (ZONES if case.table in ZONED else ZONES[:1])]
_FAMILIES = sorted({(case.family, case.table, zone) for case, zone in _CASES})


def _wrong(family: tuple[str, str, str], answers: Agreement) -> list[str]:
    wrong = []
    for case, zone in _CASES:
        if (case.family, case.table, zone) == family:
            outcome = answers.outcome(case, zone)
            if outcome.kernel is not None:
                wrong += [f"{case.text}  {difference}" for difference in kernel_differences(outcome)[:5]]
    return wrong


@pytest.mark.parametrize("family", _FAMILIES, ids="-".join)
def test_kernels_give_the_value_of_spark_or_refuse(family: tuple[str, str, str], edges: Agreement) -> None:
    wrong = _wrong(family, edges)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("family", _FAMILIES, ids="-".join)
def test_random_values_agree_as_well(family: tuple[str, str, str], randoms: Agreement) -> None:
    wrong = _wrong(family, randoms)
    assert not wrong, "\n".join(wrong)


def test_every_function_with_a_kernel_has_a_case(edges: Agreement) -> None:
    def functions_of(case: Case, zone: str) -> set[str]:
        outcome = edges.outcome(case, zone)
        return outcome.functions if outcome.kernel is not None else set()

    covered = {function for case, zone in _CASES for function in functions_of(case, zone)}
    assert set(functions()) - covered == set()


def test_what_kernels_refuse_another_engine_of_the_driver_can_do() -> None:
    assert set(functions()) <= set(duckdb_sql.functions())
