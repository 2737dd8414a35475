"""The 22 queries of TPC-H as live views, all at once: equal to Spark after load and each refresh, and none recomputed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from oracle import Oracle
from tpch_data import KEYS, QUERIES, REFRESHES, SCHEMAS, Model, Refresh, generate, held_out

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1800)

SCALE = float(os.environ.get("SCALE", "0.01"))
STAGES = ["load", *(f"refresh {number + 1}" for number in range(REFRESHES))]


Findings = dict[tuple[str, str], "str | Exception"]


@pytest.fixture(scope="module")
def findings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Findings]:
    """(query, stage) → the class of the view at that stage, or the error that creating or comparing it gave."""
    loaded, refreshes = held_out(generate(tmp_path_factory.mktemp("tpch"), SCALE))
    model = Model(spark, {name: rows.slice(0, 0) for name, rows in loaded.items()})
    oracle = Oracle(model)
    session = hw.connect(spark=spark)
    for name, schema in SCHEMAS.items():
        session.create_table(name, schema, key=KEYS[name])
    found = create_views(session)
    for stage, refresh in zip(STAGES, [Refresh({}, loaded, {}), *refreshes], strict=True):
        apply(session, refresh)
        model.apply(refresh)
        model.epoch = session.epoch
        for name, view in session.views().items():
            try:
                oracle.check(view, QUERIES[name])
                found[name, stage] = view.stats()["class"]
            except Exception as error:  # noqa: BLE001
                found[name, stage] = error
    yield found
    session.close()


def create_views(session: hw.Session) -> Findings:
    """Create all that can be created; what cannot fails in all its tests, but in no others."""
    failed: Findings = {}
    for name, query in QUERIES.items():
        try:
            session.create_view(name, query)
        except Exception as error:  # noqa: BLE001
            failed.update({(name, stage): error for stage in STAGES})
    return failed


def apply(session: hw.Session, refresh: Refresh) -> None:
    with session.transaction() as transaction:
        for name, rows in refresh.deletes.items():
            transaction.delete(name, rows)
        for name, rows in refresh.inserts.items():
            transaction.insert(name, rows)
        for name, rows in refresh.upserts.items():
            transaction.upsert(name, rows)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("query", QUERIES)
def test_equals_spark(findings: Findings, query: str, stage: str) -> None:
    found = findings[query, stage]
    if isinstance(found, Exception):
        raise found


@pytest.mark.parametrize("query", QUERIES)
def test_is_not_recomputed(findings: Findings, query: str) -> None:
    found = findings[query, STAGES[-1]]
    assert found in ("linear", "stateful", "touched groups")
