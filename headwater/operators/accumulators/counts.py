"""Counts: of rows, and of set bits (whose parities are the exclusive or)."""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.operators.accumulators.cells import count, present
from headwater.operators.accumulators.words import integers_of, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.operators.accumulators.cells import Cells, States

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows have no NULL among the inputs; all of them if there are no inputs."""

    monoid: ClassVar[str] = "count (+)"
    width: ClassVar[int] = 1
    buckets: ClassVar[bool] = False
    type: ClassVar[pa.DataType] = pa.int64()

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        count(present(inputs, weights), ids, cells.sums, first)

    def finish(self, states: States, first: int) -> pa.Array:
        return pa.array(states.slot(first))


@dataclass(frozen=True, slots=True)
class BitXor:
    """Bit k of the result is the parity of how many values have bit k.

    Two counts share a slot, 32 bits apart. Slots: the number of values, then bits k and k + half of the word, for each k.
    """

    type: pa.DataType
    monoid: ClassVar[str] = "parity (+ of bit counts)"
    buckets: ClassVar[bool] = False

    @property
    def width(self) -> int:
        return 1 + self._half

    @property
    def _half(self) -> int:
        return int(self.type.bit_width) // 2

    def add(self, inputs: Sequence[pa.Array], weights: Int64s, ids: Int64s, cells: Cells, first: int) -> None:
        words = integers_of(inputs[0]).astype(np.int64)
        _add_bits(words, present(inputs, weights), ids, cells.sums, first, self._half)

    def finish(self, states: States, first: int) -> pa.Array:
        # The low bits are all there is: a narrower type reads its sign from them.
        narrow = _parities(states.values, states.size, first, self._half).astype(self.type.to_pandas_dtype())
        return written(narrow, self.type, states.slot(first) == 0)


@compiled
def _add_bits(words: Int64s, weights: Int64s, ids: Int64s, sums: Int64s, first: int, half: int) -> None:
    for i in range(len(words)):
        cell = sums[ids[i]]
        cell[first] += weights[i]
        for k in range(half):
            cell[first + 1 + k] += (((words[i] >> k) & 1) | (((words[i] >> (k + half)) & 1) << 32)) * weights[i]


@compiled
def _parities(values: Int64s, size: int, first: int, half: int) -> Int64s:
    words = np.zeros(values.shape[0] * size, np.int64)
    for i in range(len(words)):
        cell = values[i // size, i % size]
        for k in range(half):
            counts = cell[first + 1 + k]
            words[i] |= (counts & 1) << k
            words[i] |= ((counts >> 32) & 1) << (k + half)
    return words
