"""What happens to each row by itself: the stages of a linear step, and which engine runs them.

    linear:  f(a + b) = f(a) + f(b),   so  Δf(R) = f(ΔR)   and no state is needed

Picking columns and dropping NULLs are Arrow slices; common expressions are kernels; other verified expressions run in DuckDB,
as one statement for as many nodes of the plan as possible; everything else runs in Spark. Should a kernel refuse, the same
nodes run in DuckDB, and should that raise, in Spark, which has the right answer or the right error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta, without_columns
from headwater.evaluation.duckdb_sql import entering

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.plan import Types
    from headwater.evaluation.duckdb_sql import Connection

    RowFunction = Callable[[pa.RecordBatch], pa.RecordBatch]


class Stage(Protocol):
    """A linear function of deltas."""

    @property
    def engine(self) -> str: ...

    def run(self, delta: Delta) -> Delta: ...


@dataclass(frozen=True)
class Columns:
    """Some of the columns, in some order; NULLs where the index is None."""

    indices: tuple[int | None, ...]
    types: Types
    engine = "arrow"

    def run(self, delta: Delta) -> Delta:
        chosen = [
            pa.nulls(len(delta), kind) if i is None else delta.rows.column(i)
            for i, kind in zip(self.indices, self.types, strict=True)
        ]
        return Delta(typed(chosen, self.types, len(delta)), delta.weights)


@dataclass(frozen=True)
class NotNull:
    """The rows in which none of the columns is NULL."""

    indices: tuple[int, ...]
    engine = "arrow"

    def run(self, delta: Delta) -> Delta:
        valid = np.ones(len(delta), bool)
        for i in self.indices:
            column = delta.rows.column(i)
            if column.null_count:
                valid &= column.is_valid().to_numpy(zero_copy_only=False)
        return delta.where(valid)


@dataclass(frozen=True)
class Sql:
    """One DuckDB statement over the delta; columns c0, c1, … and the weight w in and out."""

    connection: Connection
    statement: str
    types: Types
    otherwise: Stage
    engine = "duckdb"

    def run(self, delta: Delta) -> Delta:
        try:
            found = run_sql(self.connection, self.statement, delta)
        except duckdb.Error:
            return self.otherwise.run(delta)
        return Delta(typed(found.columns[:-1], self.types, found.num_rows), found.column(found.num_columns - 1).to_numpy())


def run_sql(connection: Connection, statement: str, delta: Delta) -> pa.Table:
    """The answer of a statement that reads `delta`."""
    arrays = [*map(entering, delta.rows.columns), pa.array(delta.weights)]
    names = [*(f"c{i}" for i in range(delta.rows.num_columns)), "w"]
    return connection.ask(statement, pa.table(arrays, names=names))


def typed(columns: list[pa.Array | pa.ChunkedArray], types: Types, count: int) -> pa.RecordBatch:
    """The columns under the engine's names, in exactly the types that Spark gives them."""
    if not types:
        return without_columns(count)
    arrays = []
    for column, wanted in zip(columns, types, strict=True):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        arrays.append(whole if whole.type.equals(wanted) else whole.cast(wanted))
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


@dataclass(frozen=True)
class OnSpark:
    """A row function that Spark evaluates: once for every weight there is, so that weights need not pass through Spark."""

    function: RowFunction
    types: Types
    engine = "spark"

    def run(self, delta: Delta) -> Delta:
        parts = []
        for weight in np.unique(delta.weights):
            part = delta.where(delta.weights == weight)
            rows = self.function(part.rows)
            rows = typed(rows.columns, self.types, rows.num_rows)
            parts.append(Delta(rows, np.full(rows.num_rows, weight, np.int64)))
        return Delta.concat(parts) if parts else Delta.empty(pa.schema([(f"c{i}", t) for i, t in enumerate(self.types)]))


@dataclass(frozen=True)
class Sequence:
    """Stages one after another."""

    stages: tuple[Stage, ...]

    @property
    def engine(self) -> str:
        engines = [stage.engine for stage in self.stages]
        return next((engine for engine in ("spark", "duckdb") if engine in engines), "arrow")

    def run(self, delta: Delta) -> Delta:
        for stage in self.stages:
            delta = stage.run(delta)
        return delta


@dataclass(frozen=True)
class Several:
    """The sum of several functions of the same rows (grouping sets)."""

    stages: tuple[Stage, ...]

    @property
    def engine(self) -> str:
        return Sequence(self.stages).engine

    def run(self, delta: Delta) -> Delta:
        return Delta.concat([stage.run(delta) for stage in self.stages])


@dataclass(frozen=True)
class Explode:
    """The columns `kept` of each row with each element of the list or map in the last column, and its position if wanted.

    With `outer`, a row without elements appears once, with NULL for them. `fields` unpacks elements that are structs.
    """

    kept: tuple[int, ...]
    position: bool
    outer: bool
    fields: bool
    types: Types
    engine = "arrow"

    def run(self, delta: Delta) -> Delta:
        lists = delta.rows.column(delta.rows.num_columns - 1)
        pairs = pa.types.is_map(lists.type)
        if pairs:
            lists = _as_list(lists)
        parents, ordinals = _elements(lists)
        made = self._unpack(pc.list_flatten(lists), pairs=pairs)
        if self.position:
            made = [pa.array(ordinals, pa.int32()), *made]
        if self.outer:
            childless = np.setdiff1d(np.arange(len(delta)), parents)
            parents = np.concatenate([parents, childless])
            made = [pa.concat_arrays([column, pa.nulls(len(childless), column.type)]) for column in made]
        source = delta.select(self.kept).take(parents)
        return Delta(typed([*source.rows.columns, *made], self.types, len(source)), source.weights)

    def _unpack(self, elements: pa.Array, *, pairs: bool) -> list[pa.Array]:
        if not (pairs or self.fields):
            return [elements]
        return list(elements.flatten())


def _as_list(maps: pa.MapArray) -> pa.ListArray:
    entries = pa.struct([pa.field("key", maps.type.key_type), pa.field("value", maps.type.item_type)])
    return maps.cast(pa.list_(entries))


def _elements(lists: pa.ListArray) -> tuple[np.ndarray, np.ndarray]:
    """For every element: the row it is in and its ordinal there."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    parents = np.repeat(np.arange(len(lists)), lengths)
    ordinals = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return parents, ordinals


@dataclass(frozen=True)
class Replicate:
    """Each row as often as its first generated value says: the weight is multiplied."""

    count: int
    columns: tuple[int, ...]
    engine = "arrow"

    def run(self, delta: Delta) -> Delta:
        times = delta.rows.column(self.count).to_numpy(zero_copy_only=False).astype(np.int64)
        return Delta(delta.select(self.columns).rows, delta.weights * times)
