"""The views of TPC-H go on after their catalog went through JSON."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from storing import changed, engine_of, require_same_epoch, stored
from tpch_data import KEYS, QUERIES, SCHEMAS, generate, held_out

import headwater as hw

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.transaction import Transaction


@pytest.mark.slow
def test_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    loaded, refreshes = held_out(generate(tmp_path, 0.01))

    def refresh(transaction: Transaction) -> None:
        for name, rows in refreshes[0].deletes.items():
            transaction.delete(name, rows)
        for name, rows in refreshes[0].inserts.items():
            transaction.insert(name, rows)

    with closing(hw.connect(spark=spark)) as session:
        for name, schema in SCHEMAS.items():
            session.create_table(name, schema, key=KEYS[name])
        with session.transaction() as transaction:
            for name, rows in loaded.items():
                transaction.insert(name, rows)
        for name, query in QUERIES.items():
            session.create_view(name, query)
        again = stored(session.snapshot.catalog, engine_of(session))
        require_same_epoch(session.snapshot, again, changed(session, refresh))
