"""Large content as a DataFrame: Spark's tasks read the runs, each a range of hashes, and no row passes through the driver.

    rows of task i of n  =  within(i, i + 1, n),  each as often as its weight says

The files are lent: whatever happens to the table or view, they stay until no plan of Spark's can ask for them any more.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.cluster.order import run_at
from headwater.errors import ExecutorsNotReady, JobFailed
from headwater.store.folding import Fold
from headwater.store.manifest import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from headwater.cluster.cluster import Cluster
    from headwater.cluster.yard import Yard, Yards
    from headwater.operators.ordering import Order
    from headwater.runtime.catalog import Snapshot
    from headwater.state.arrangement import Arrangement

    Batches = Iterator[pa.RecordBatch]

# Fewer rows than this are quicker sent by the driver; fewer if they must be written to files first.
_MANY = 100_000
_MANY_TO_WRITE = 1_000_000
# Rows that a task reads, and that it hands over at a time.
_ROWS = 1 << 19
_AT_ONCE = 1 << 14


class Lending:
    """Content that Spark reads by itself, and the files that it may still need for that."""

    def __init__(self, cluster: Cluster, yards: Yards) -> None:
        self._cluster = cluster
        self._yards = yards
        self._lent: list[tuple[Yard, Any, Callable[[], Snapshot]]] = []

    def _is_worth(self, kept: Arrangement, mode: str) -> bool:
        """Whether Spark should read it; in the mode cluster it always does."""
        stored = all(run.file is not None for run in kept.runs)
        many = 1 if mode == "cluster" else _MANY if stored else _MANY_TO_WRITE
        return mode != "driver" and len(kept) >= many

    def frame(
        self,
        kept: Arrangement,
        mode: str,
        visible: Sequence[DataType],
        order: Sequence[Order],
        now: Callable[[], Snapshot],
    ) -> DataFrame | None:
        """The rows in the order given, their first columns in these types of Spark's; None if the driver is to send them."""
        if not self._is_worth(kept, mode):
            return None
        self._recall()
        yard = self._yards.open()
        stored = self._stored(kept, yard, mode)
        if stored is None:
            self._yards.settled(yard, now)
            return None
        frame = self._read(stored, yard.disk.address, visible)
        if order:
            frame = frame.orderBy(*(_key(frame, key) for key in order)).select(*(f"c{i}" for i in range(len(visible))))
        jvm: Any = frame.sparkSession._jvm  # noqa: SLF001  (py4j)
        rows = frame._jdf.queryExecution().toRdd()  # noqa: SLF001
        self._lent.append((yard, jvm.java.lang.ref.WeakReference(rows), now))
        return frame

    def _stored(self, kept: Arrangement, yard: Yard, mode: str) -> Arrangement | None:
        """The same in files that stay; None if one of them is gone already, or executors cannot read them."""
        try:
            self._cluster.require_ready(yard)
        except (ExecutorsNotReady, JobFailed):
            if mode == "cluster":
                raise
            return None
        fold = Fold(yard.disk, yard.new_name)
        fold.write([(kept,)])
        (stored,) = fold.stored((kept,))
        files = [run.file for run in stored.runs if run.file is not None]
        yard.hold(files)
        return None if any(yard.disk.size(file) is None for file in files) else stored

    def _read(self, stored: Arrangement, place: str, visible: Sequence[DataType]) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        count = max(self._cluster.cores, -(-len(stored) // _ROWS))
        hidden = [from_arrow_type(kind) for kind in stored.schema.types[len(visible) :]]
        schema = StructType([StructField(f"c{i}", kind) for i, kind in enumerate((*visible, *hidden))])
        numbers = self._cluster.session().range(0, count, 1, count)
        return numbers.mapInArrow(read_out(place, json.dumps(asdict(Kept.stored(stored))), count), schema)

    def _recall(self) -> None:
        """Files of which no plan is left may go; the JVM says so when it has cleaned up."""
        for loan in list(self._lent):
            yard, rows, now = loan
            if rows.get() is None:
                self._lent.remove(loan)
                self._yards.settled(yard, now)


def read_out(place: str, kept: str, count: int) -> Callable[[Batches], Batches]:
    """The tasks that read: each row is the number of a range of hashes."""

    def run(batches: Batches) -> Batches:
        whole = Kept.read(**json.loads(kept)).arrangement(lambda run: run_at(place, run))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found = whole.within(number, number + 1, count)
                # One row may be there more often than would fit into memory.
                ends = np.cumsum(found.weights)
                total = int(ends[-1]) if len(ends) else 0
                for start in range(0, total, _AT_ONCE):
                    copies = np.arange(start, min(start + _AT_ONCE, total))
                    yield found.rows.take(pa.array(np.searchsorted(ends, copies, "right")))

    return run


def _key(frame: DataFrame, order: Order) -> Any:  # noqa: ANN401  (a column)
    column = frame[f"c{order.column}"]
    if order.descending:
        return column.desc_nulls_first() if order.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if order.nulls_first else column.asc_nulls_last()
