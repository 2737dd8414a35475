"""Directories of every format there has been: opened by this release, exact, and able to go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from formats import CLICKS, ORDERS, PRODUCTS, VIEWS
from oracle import Oracle

import headwater as hw
from headwater.store.manifest import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = Path(__file__).parent / "formats"


def test_there_is_one_of_each_format() -> None:
    assert sorted(int(path.name) for path in KEPT.iterdir()) == list(range(1, FORMAT + 1))


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_it_is_exact_and_goes_on(number: int, spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "d"
    shutil.copytree(KEPT / str(number), directory)
    with hw.connect(directory, spark=spark) as s:
        assert sorted(s.table("orders").rows()) == [row for row in ORDERS if row[0] != 2]
        assert len(s.table("products")), len(s.table("clicks")) == (len(PRODUCTS), len(CLICKS))
        assert sorted(s.view("dearest").at(s.epoch - 1).rows()) == [(2, ORDERS[1][3]), (4, ORDERS[3][3])]
        oracle = Oracle(s, {"revenue": VIEWS["revenue"]})
        for _ in range(2):
            for name, query in VIEWS.items():
                oracle.check(s.view(name), query)
            s.upsert("orders", [(7, "mat", 3, ORDERS[0][3], ORDERS[0][4], ["late"]), ORDERS[1]])
