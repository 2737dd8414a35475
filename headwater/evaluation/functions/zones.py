"""Whether DuckDB and the JVM agree on the clocks of a time zone.

Both bring their own edition of the time zone database, and editions differ: in the past where research corrected it, in the
future where governments changed their minds. So a zone is compared once, change by change, before anything is computed in it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

# The translation raises outside of these years: nobody knows the clocks of the far future, and neither edition those before.
FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1850, 2100))
_REGION = re.compile(r"(Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Za-z_/+-]+")
_STEP = 3 * 86_400 + 7 * 3600


@cache
def agree(zone: str) -> bool:
    """Do both engines show the same local time in `zone`, at every moment between the first and the last year?"""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # noqa: SLF001  (there is no public way to ask)
    if context is None or not _REGION.fullmatch(zone):
        return False
    changes, offsets = _changes(context._jvm, zone)  # noqa: SLF001  (py4j)
    moments = np.unique(np.concatenate([changes, changes - 1, np.arange(FIRST, LAST, _STEP)]))
    moments = moments[(moments >= FIRST) & (moments < LAST)]
    theirs = offsets[np.searchsorted(changes, moments, side="right")]
    return bool(np.array_equal(_offsets_in_duckdb(zone, moments), theirs))


def _changes(jvm: Any, zone: str) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401  (the gateway to the JVM)
    """When the JVM changes the clocks, and the offsets in seconds before, between and after."""
    rules = jvm.java.time.ZoneId.of(zone).getRules()
    moment = jvm.java.time.Instant.ofEpochSecond(FIRST)
    offsets = [rules.getOffset(moment).getTotalSeconds()]
    changes: list[int] = []
    while (change := rules.nextTransition(moment)) is not None and change.toEpochSecond() < LAST:
        moment = change.getInstant()
        changes.append(change.toEpochSecond())
        offsets.append(change.getOffsetAfter().getTotalSeconds())
    return np.array(changes, np.int64), np.array(offsets, np.int64)


def _offsets_in_duckdb(zone: str, moments: np.ndarray) -> np.ndarray:
    import duckdb

    instants = pa.array(moments * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    with duckdb.connect(":memory:") as connection:
        connection.register("moments", pa.table({"t": instants}))
        try:
            query = "SELECT (epoch_us(timezone($zone, t)) - epoch_us(t)) // 1000000 FROM moments"
            found = connection.sql(query, params={"zone": zone}).to_arrow_table()
        except duckdb.Error:
            return np.empty(0)
    return found.column(0).to_numpy()
