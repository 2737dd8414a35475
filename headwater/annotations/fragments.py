"""Fragments: which slice of a table a row is in, by the range of one of its attributes.

    fragment(v)  =  number of bounds b with b ≤ v        0 … m for m bounds;   m + 1 for NULL
    range i      =  [b(i), b(i + 1))                     b(0) = −∞ and b(m + 1) = +∞, so every value is in exactly one

A set of fragments is a condition on the attribute: neighbouring ranges are one interval. Bounds and values are compared in the
attribute's own type, as Spark orders it: NaN is the greatest number, −0.0 equals 0.0, strings go by their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types

    # The first and the last fragment of a run of neighbours.
    Interval = tuple[int, int]

FRAGMENT = pa.int64()


@dataclass(frozen=True, eq=False)
class Partition:
    """A table cut into fragments by the ranges of a column; it never changes, a new one has another version.

    `bounds` is one column, ascending and without NULL or NaN; `depths` are the rows there were in each fragment.
    """

    table: str
    column: str
    version: int
    bounds: pa.RecordBatch
    depths: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and self._name == other._name and self.bounds.equals(other.bounds)

    def __hash__(self) -> int:
        return hash(self._name)

    @property
    def _name(self) -> tuple[str, str, int]:
        return self.table, self.column, self.version

    @property
    def null(self) -> int:
        """The fragment of the rows in which the attribute is NULL."""
        return self.bounds.num_rows + 1

    @property
    def count(self) -> int:
        """How many fragments there are, that of NULL included."""
        return self.bounds.num_rows + 2

    @property
    def type(self) -> pa.DataType:
        return self.bounds.schema.field(0).type

    def fragments(self, values: pa.Array) -> NDArray[np.int64]:
        """The fragment of each value."""
        found = self._search(values)
        if values.null_count:
            found = np.where(values.is_null().to_numpy(zero_copy_only=False), self.null, found)
        return found

    def _search(self, values: pa.Array) -> NDArray[np.int64]:
        bounds = self.bounds.column(0)
        if not pa.types.is_decimal(bounds.type):
            found = pc.search_sorted(bounds, values, side="right")
            return found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        # Arrow does not search decimals, but sorts them: a stable sort leaves a bound before the values that equal it.
        order = pc.array_sort_indices(pa.concat_arrays([bounds, values])).to_numpy(zero_copy_only=False)
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(order < len(bounds))
        return places[len(bounds) :]

    def intervals(self, fragments: Iterable[int]) -> list[Interval]:
        """The ranges of fragments, neighbours as one; the fragment of NULL is none of them."""
        runs: list[Interval] = []
        for fragment in sorted(set(fragments) - {self.null}):
            if runs and runs[-1][1] == fragment - 1:
                runs[-1] = (runs[-1][0], fragment)
            else:
                runs.append((fragment, fragment))
        return runs

    def coarsened(self, fragments: Iterable[int], most: int) -> frozenset[int]:
        """The fragments and some between them, so that there are no more intervals than `most`: the shallowest gaps go."""
        chosen = set(fragments)
        runs = self.intervals(chosen)
        gaps = [(sum(self.depths[end + 1 : start]), end + 1, start) for (_, end), (start, _) in pairwise(runs)]
        for _, first, stop in sorted(gaps)[: max(0, len(runs) - max(1, most))]:
            chosen.update(range(first, stop))
        return frozenset(chosen)

    def ends(self, interval: Interval) -> tuple[Any, Any]:
        """The lower bound of an interval and the one above it, as Arrow scalars; None where it is open."""
        first, last = interval
        bounds = self.bounds.column(0)
        return bounds[first - 1] if first > 0 else None, bounds[last] if last < len(bounds) else None

    def text(self, interval: Interval) -> str:
        """An interval as people write it."""
        low, high = self.ends(interval)
        return f"{'(−∞' if low is None else f'[{low.as_py()}'}, {'+∞' if high is None else high.as_py()})"

    def share(self, fragments: Collection[int]) -> float:
        """Which part of the rows was in these fragments when the table was cut."""
        return float(self._depths[list(fragments)].sum() / max(1, self._depths.sum()))

    @cached_property
    def _depths(self) -> NDArray[np.int64]:
        return np.array(self.depths, np.int64)


@dataclass(frozen=True)
class Marking:
    """The linear stage that adds the fragment of each row as its last column."""

    column: int
    partition: Partition
    types: Types
    engine = "arrow"

    def run(self, delta: Delta) -> Delta:
        fragments = pa.array(self.partition.fragments(delta.rows.column(self.column)))
        arrays = [*delta.rows.columns, fragments]
        names = [f"c{i}" for i in range(len(arrays))]
        return Delta(pa.RecordBatch.from_arrays(arrays, names=names), delta.weights)


def equi_depth(values: pa.Array, count: int) -> pa.Array:
    """Bounds that cut values, NULLs aside, into about `count` ranges of one depth; a value that fills a range has it alone.

    If there are no more different values than ranges, each of them has its own.
    """
    distinct = pc.value_counts(_ordinary(values))
    different, depths = distinct.field("values"), distinct.field("counts").to_numpy()
    order = pc.array_sort_indices(different).to_numpy(zero_copy_only=False)
    different, depths = different.take(pa.array(order)), depths[order]
    if len(different) <= count:
        return different.slice(1)
    return different.take(pa.array(_starts(depths, count)))


def _ordinary(values: pa.Array) -> pa.Array:
    """The values that can be bounds; −0.0 is the 0.0 that it equals."""
    values = values.drop_null()
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.to_numpy(zero_copy_only=False)
    return pa.array(numbers[~np.isnan(numbers)] + values.type.to_pandas_dtype()(0), values.type)


def _starts(depths: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Where ranges begin, but the first: at every full depth, and before and after each value that fills one by itself."""
    depth = depths.sum() / count
    before = np.cumsum(depths) - depths
    heavy = np.flatnonzero(depths >= depth)
    cuts = np.searchsorted(before, depth * np.arange(1, count))
    starts = np.unique(np.concatenate([cuts, heavy, heavy + 1]))
    return starts[(starts > 0) & (starts < len(depths))]


def is_partitionable(kind: pa.DataType) -> bool:
    """Whether values of the type can be cut into ranges: numbers, dates, times, decimals and strings."""
    is_number = pa.types.is_signed_integer(kind) or kind in (pa.float32(), pa.float64()) or pa.types.is_decimal128(kind)
    return is_number or pa.types.is_date32(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind)
