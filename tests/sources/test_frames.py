"""Rows of streams as they came."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from headwater.sources.frames import record_of
from tests.sinks.receiver import strict


def test_a_record_is_valid_json() -> None:
    rows = pa.table({"f": [1.0, float("nan")], "b": [b"", b"\x00\xff"], "d": [None, Decimal("1.50")], "ä": [None, None]})
    assert strict(record_of(rows, 1)) == {"f": "NaN", "b": "AP8=", "d": 1.5, "ä": None}
    assert record_of(rows, 0, all_columns=False) == '{"f": 1.0, "b": ""}'
