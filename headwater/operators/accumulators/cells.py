"""Cells: where contributions are summed up, and what an accumulator is.

    cell(group, bucket)  =  Σ over the group's rows in that bucket of weight · contribution        a vector of integers

Cell g is bucket 0 of group g. Cells of other buckets come behind, as they are met, and hang on the chain of their group, which
is a cell or two long:  g → following[g] → following[following[g]] → … → −1.

A row that is not there (NULL, filtered out) has the weight 0: whatever lies in its place adds nothing.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headwater.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bytes = NDArray[np.uint8]


class Cells:
    """The sums of a delta while they are made; slots of a vector belong to the accumulators, one after the other."""

    __slots__ = ("_following", "_groups", "_of_bucket", "size", "sums", "used")

    def __init__(self, size: int, width: int, room: int | None = 0) -> None:
        """`size` groups, and room for so many cells of further buckets before more has to be made; None: there are no such."""
        self.size = self.used = size
        self.sums = np.zeros((size + (room or 0), width), np.int64)
        if room is None:
            self._groups = self._of_bucket = self._following = _NONE
        else:
            self._groups = np.arange(size + room)
            self._of_bucket = np.zeros(size + room, np.int64)
            self._following = np.full(size + room, -1)

    @property
    def groups(self) -> Int64s:
        """The group of each cell, if there are buckets."""
        return self._groups[: self.used]

    @property
    def buckets(self) -> Int64s:
        """The bucket of each cell, if there are buckets."""
        return self._of_bucket[: self.used]

    def place(self, groups: Int64s, buckets: Int64s) -> Int64s:
        """The cell of each pair of group and bucket, made where there was none."""
        self._reserve(len(groups))
        places = np.empty(len(groups), np.int64)
        self.used = _place(groups, buckets, self._groups, self._of_bucket, self._following, self.used, places)
        return places

    def alone(self) -> States:
        """The states that groups of which nothing was known have now."""
        return States(self.size, self.buckets, self._following[: self.used], self.sums[None, : self.used])

    def before_and_after(self, places: Int64s, vectors: Int64s) -> States:
        """Two versions of the states: the sum of the given vectors, each of a cell, and that with this delta added."""
        values = np.empty((2, self.used, self.sums.shape[1]), np.int64)
        _before_and_after(places, vectors, self.sums, values)
        return States(self.size, self.buckets, self._following[: self.used], values)

    def _reserve(self, count: int) -> None:
        missing = self.used + count - len(self.sums)
        if missing <= 0:
            return
        room = max(missing, len(self.sums))
        self.sums = np.concatenate([self.sums, np.zeros((room, self.sums.shape[1]), np.int64)])
        self._groups = np.concatenate([self._groups, np.zeros(room, np.int64)])
        self._of_bucket = np.concatenate([self._of_bucket, np.zeros(room, np.int64)])
        self._following = np.concatenate([self._following, np.full(room, -1)])


_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The states of `size` groups in one or more versions: `values[v, c]` is the vector of cell c in version v."""

    size: int
    buckets: Int64s
    following: Int64s
    values: Int64s

    @property
    def results(self) -> int:
        """How many results there are: one for each version and group."""
        return self.values.shape[0] * self.size

    def slot(self, slot: int) -> Int64s:
        """What stands in a slot of bucket 0 for each result."""
        return self.values[:, : self.size, slot].reshape(-1)


class Accumulator(Protocol):
    """An aggregate function whose state is a vector of integers for each group and bucket."""

    @property
    def monoid(self) -> str:
        """How states merge, in words for `explain`."""

    @property
    def width(self) -> int:
        """How many int64 slots a vector has."""

    @property
    def buckets(self) -> bool:
        """Whether there are buckets beside bucket 0."""

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        """Adds what the rows, of the groups `ids`, contribute to the cells, in the slots from `first` on."""

    def finish(self, states: States, first: int) -> pa.Array:
        """The result of each group in each version, one version after the other, from the slots from `first` on.

        All slots of a cell may be zero (functions that share cells see each other's buckets): then it counts for nothing.
        Raises `EvaluationFailed` where Spark would.
        """


def present(inputs: Sequence[pa.Array], weights: Int64s) -> Int64s:
    """The weights, 0 where an input is NULL."""
    for array in inputs:
        if array.null_count:
            valid = array.buffers()[0]
            if valid is None:
                return np.zeros(len(weights), np.int64)
            weights = _kept(np.ascontiguousarray(weights), np.frombuffer(valid, np.uint8), array.offset)
    return weights


def chosen(condition: pa.Array, weights: Int64s) -> Int64s:
    """The weights, 0 where the condition is not true."""
    truth = condition.buffers()[1]
    if truth is None:
        return np.zeros(len(weights), np.int64)
    return present([condition], _kept(np.ascontiguousarray(weights), np.frombuffer(truth, np.uint8), condition.offset))


@compiled
def _kept(weights: Int64s, bits: Bytes, offset: int) -> Int64s:
    kept = np.empty(len(weights), np.int64)
    for i in range(len(weights)):
        at = offset + i
        kept[i] = weights[i] if (bits[at >> 3] >> (at & 7)) & 1 else 0
    return kept


@compiled
def _place(
    groups: Int64s, buckets: Int64s, of_group: Int64s, of_bucket: Int64s, following: Int64s, used: int, places: Int64s
) -> int:
    for i in range(len(groups)):
        cell = groups[i]
        if buckets[i] != 0:
            cell = following[cell]
            while cell >= 0 and of_bucket[cell] != buckets[i]:
                cell = following[cell]
            if cell < 0:
                cell = used
                used += 1
                of_group[cell] = groups[i]
                of_bucket[cell] = buckets[i]
                following[cell] = following[groups[i]]
                following[groups[i]] = cell
        places[i] = cell
    return used


@compiled
def _before_and_after(places: Int64s, vectors: Int64s, sums: Int64s, values: Int64s) -> None:
    _, cells, width = values.shape
    values[0] = 0
    for i in range(len(places)):
        for k in range(width):
            values[0, places[i], k] += vectors[i, k]
    for c in range(cells):
        for k in range(width):
            values[1, c, k] = values[0, c, k] + sums[c, k]


@compiled
def count(weights: Int64s, places: Int64s, sums: Int64s, slot: int) -> None:
    """Adds the weights to the slot of their cells."""
    for i in range(len(weights)):
        sums[places[i], slot] += weights[i]


@compiled
def is_used(cell: Int64s, first: int, width: int) -> bool:
    """Whether any of so many slots is not zero."""
    used = False
    for k in range(first, first + width):
        used |= cell[k] != 0
    return used
