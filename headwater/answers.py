"""An answer: rows under users' names, in whatever form they are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.boundary import bounded
from headwater.operators.ordering import sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headwater.delta import Delta
    from headwater.operators.ordering import Order
    from headwater.runtime.history import Changed
    from headwater.session import Session


def table_of(rows: Delta, names: pa.Schema, order: Sequence[Order] = ()) -> pa.Table:
    """The rows of a bag, each as often as its weight says, sorted if there is an order."""
    if order:
        rows = rows.take(sorted_rows(rows.rows, order))
    visible = rows.select(range(len(names)))
    copies = visible.rows if (visible.weights == 1).all() else visible.rows.take(pa.array(_repeated(visible)))
    if not len(names):
        return pa.Table.from_batches([copies])
    return pa.Table.from_arrays(copies.columns, schema=names)


def change_table(delta: Delta, names: pa.Schema) -> pa.Table:
    """A delta as a table with the weight in the last column."""
    columns = [*delta.rows.columns, pa.array(delta.weights)]
    return pa.Table.from_arrays(columns, schema=names.append(pa.field("_weight", pa.int64())))


def rows_of_changes(changes: pa.Table) -> pa.Table:
    """Rows that came, each as often as its weight says."""
    weights = changes.column("_weight").to_numpy()
    return changes.drop_columns(["_weight"]).take(pa.array(np.repeat(np.arange(len(weights)), weights)))


@dataclass(frozen=True)
class Told:
    """What an epoch changed in a view, as tables with a column `_weight`."""

    epoch: int
    changes: pa.Table
    former: pa.Table | None
    """Set if the epoch gave the view other columns: the rows it had, under those of before; `changes` then has all rows."""
    anew: bool
    """Whether the view came to be with this epoch, so that it cannot be told what one of its name was before."""

    @staticmethod
    def of(changed: Changed, names: pa.Schema) -> Told:
        *former, came = (change_table(delta, columns) for delta, columns in changed.parts(names))
        return Told(changed.epoch, came, former[0] if former else None, changed.anew)

    @property
    def tables(self) -> list[pa.Table]:
        """What went under former columns, and what changed under its present ones, if anything did."""
        return [table for table in (self.former, self.changes) if table is not None and table.num_rows]


def _repeated(rows: Delta) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.repeat(np.arange(len(rows)), rows.weights)


@bounded
class Answer:
    """The answer of a query at one epoch."""

    def __init__(self, session: Session, schema: StructType, table: pa.Table) -> None:
        self._session = session
        self._schema = schema
        self._table = table

    @property
    def schema(self) -> StructType:
        """Names and types of the columns, as Spark states them."""
        return self._schema

    def arrow(self) -> pa.Table:
        return self._table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        table = self.arrow()
        if not table.num_columns:
            return [()] * table.num_rows
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def pandas(self) -> Any:  # noqa: ANN401  (pandas is optional)
        return self.arrow().to_pandas()

    def dataframe(self) -> DataFrame:
        """The rows as a Spark DataFrame."""
        return self._session.spark.createDataFrame(self.arrow(), self._schema)
