"""What an accumulator is, and what a row contributes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """What the rows of a delta add to the state, times their weights; a row with a NULL input has no entry."""

    rows: Int64s  # which input row
    buckets: Int64s
    values: Int64s  # one vector of `width` slots an entry


class Accumulator(Protocol):
    """An aggregate function whose state is a vector of integers for each group and bucket."""

    @property
    def monoid(self) -> str:
        """How states merge, in words for `explain`."""

    @property
    def width(self) -> int:
        """How many int64 slots a vector has."""

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        """What these rows add to the state."""

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:
        """The result of each of `size` groups, from rows of state: `sums[j]` belongs to `groups[j]` and `buckets[j]`.

        A group without a row has an all zero state; a row may be all zero too, in whatever bucket (functions that share an
        arrangement see each other's buckets). Raises `EvaluationFailed` where Spark would.
        """


def present(inputs: Sequence[pa.Array], weights: Int64s) -> tuple[Int64s, list[pa.Array], Int64s]:
    """The rows in which no input is NULL: their indices, inputs and weights."""
    if all(array.null_count == 0 for array in inputs):
        return np.arange(len(weights), dtype=np.int64), list(inputs), weights
    valid = np.ones(len(weights), np.bool_)
    for array in inputs:
        if array.null_count:
            valid &= array.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(valid)
    return rows, [pc.filter(array, pa.array(valid)) for array in inputs], weights[rows]


def occupied(groups: Int64s, buckets: Int64s, sums: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The rows of state that are not all zero: only their buckets are sure to be this accumulator's own."""
    used = sums.any(axis=1)
    return (groups, buckets, sums) if used.all() else (groups[used], buckets[used], sums[used])


def in_groups(size: int, groups: Int64s, values: Int64s) -> Int64s:
    """The sum of the values of each group."""
    summed = np.zeros(size, np.int64)
    np.add.at(summed, groups, values)
    return summed
