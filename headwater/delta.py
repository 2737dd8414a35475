"""A delta: rows and how often each is added (+) or removed (−) — a Z-set over Arrow rows.

    a + b        the changes of both
    consolidate  equal rows merged, zeros gone;  consolidate(a) = consolidate(b)  iff  a and b are the same change

Inside the engine columns are known by position: they are named ``c0, c1, …``, and users' names are put on at the surface,
so that no identifier of a user ever reaches an expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.picking import rows_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Weights = NDArray[np.int64]


def positional(schema: pa.Schema) -> pa.Schema:
    """The same types under the engine's own names ``c0, c1, …``; NULL is allowed everywhere."""
    return pa.schema([pa.field(f"c{i}", field.type) for i, field in enumerate(schema)])


# More equal weights than this are one number in memory (an array of stride 0).
_MANY = 1 << 16


def uniform(weight: int, count: int) -> Weights:
    """The same weight so many times."""
    return np.full(count, weight, np.int64) if count <= _MANY else np.broadcast_to(np.int64(weight), count)


def is_one_number(weights: Weights) -> bool:
    """Whether they are all the same, and kept as such."""
    return len(weights) > 0 and weights.strides == (0,)


def end_to_end(parts: Sequence[Weights]) -> Weights:
    """Weights, numbers or vectors, of rows that are put together."""
    if len(parts) == 1:
        return parts[0]
    if all(map(is_one_number, parts)) and len({int(part[0]) for part in parts}) == 1:
        return uniform(int(parts[0][0]), sum(map(len, parts)))
    return np.concatenate(parts)


def taken(weights: Weights, places: NDArray[np.int64]) -> Weights:
    """The weights at the places."""
    return uniform(int(weights[0]), len(places)) if is_one_number(weights) else weights.take(places, axis=0)


def products(left: Weights, right: Weights) -> Weights:
    """Weights of pairs of rows."""
    if is_one_number(left) and is_one_number(right):
        return uniform(int(left[0]) * int(right[0]), len(left))
    return left * right


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Arrow rows with an integer weight each."""

    rows: pa.RecordBatch
    weights: Weights

    @staticmethod
    def empty(schema: pa.Schema) -> Delta:
        return Delta(no_rows(schema), np.empty(0, np.int64))

    @staticmethod
    def inserting(rows: pa.RecordBatch) -> Delta:
        return Delta(rows, uniform(1, rows.num_rows))

    @staticmethod
    def concat(deltas: Sequence[Delta]) -> Delta:
        """The sum of one or more deltas of one schema."""
        if len(deltas) == 1:
            return deltas[0]
        full = [delta for delta in deltas if len(delta)] or deltas[:1]
        return Delta(pa.concat_batches([delta.rows for delta in full]), end_to_end([delta.weights for delta in full]))

    def __len__(self) -> int:
        return self.rows.num_rows

    def __neg__(self) -> Delta:
        return Delta(self.rows, uniform(-int(self.weights[0]), len(self)) if is_one_number(self.weights) else -self.weights)

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    def in_slices(self, size: int) -> Iterator[Delta]:
        """The same in slices of so many rows."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            yield self.slice(start, size)

    def slice(self, start: int, size: int) -> Delta:
        """So many rows from a place on; nothing is copied."""
        return Delta(self.rows.slice(start, size), self.weights[start : start + size])

    def take(self, indices: NDArray[np.int64]) -> Delta:
        return Delta(rows_at(self.rows, indices), taken(self.weights, indices))

    def where(self, mask: NDArray[np.bool_]) -> Delta:
        return self if np.count_nonzero(mask) == len(mask) else self.take(mask.nonzero()[0])

    def select(self, columns: Sequence[int]) -> Delta:
        """The given columns, renamed by their new position."""
        arrays = [self.rows.column(i) for i in columns]
        names = [f"c{i}" for i in range(len(arrays))]
        if not arrays:
            return Delta(without_columns(len(self)), self.weights)
        return Delta(pa.RecordBatch.from_arrays(arrays, names), self.weights)


@cache
def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """An empty batch; the same one for the same schema, since it is often wanted."""
    return pa.RecordBatch.from_pylist([], schema)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table's rows in one piece, its columns known by position."""
    if not table.num_columns:
        return without_columns(table.num_rows)
    arrays = [pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def without_columns(count: int) -> pa.RecordBatch:
    """So many rows of no columns at all."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))


def beside(columns: Sequence[pa.Array], count: int) -> pa.RecordBatch:
    """Columns of `count` rows as a batch; there may be no columns at all."""
    if not columns:
        return without_columns(count)
    return pa.RecordBatch.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])
