"""Counts: of rows, and of set bits (whose parities are the exclusive or)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.operators.accumulators.contribution import Contribution, in_groups, present

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows have no NULL among the inputs; all of them if there are no inputs."""

    monoid: ClassVar[str] = "count (+)"
    width: ClassVar[int] = 1
    type: ClassVar[pa.DataType] = pa.int64()

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        rows, _, kept = present(inputs, weights)
        return Contribution(rows, np.zeros(len(rows), np.int64), kept[:, None])

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:  # noqa: ARG002
        return pa.array(in_groups(size, groups, sums[:, 0]))


@dataclass(frozen=True, slots=True)
class BitXor:
    """Bit k of the result is the parity of how many values have bit k.

    Two counts share a slot, 32 bits apart. Slots: the number of values, then bits k and k + half of the word, for each k.
    """

    type: pa.DataType
    monoid: ClassVar[str] = "parity (+ of bit counts)"

    @property
    def width(self) -> int:
        return 1 + self._half

    @property
    def _half(self) -> int:
        return int(self.type.bit_width) // 2

    def contribute(self, inputs: Sequence[pa.Array], weights: Int64s) -> Contribution:
        rows, (array,), kept = present(inputs, weights)
        word = array.to_numpy().astype(np.int64)
        values = np.empty((len(rows), self.width), np.int64)
        values[:, 0] = kept
        for k in range(self._half):
            values[:, 1 + k] = (((word >> k) & 1) | (((word >> (k + self._half)) & 1) << 32)) * kept
        return Contribution(rows, np.zeros(len(rows), np.int64), values)

    def finish(self, size: int, groups: Int64s, buckets: Int64s, sums: Int64s) -> pa.Array:  # noqa: ARG002
        word = np.zeros(size, np.int64)
        for k in range(self._half):
            counts = in_groups(size, groups, sums[:, 1 + k])
            word |= (counts & 1) << k
            word |= ((counts >> 32) & 1) << (k + self._half)
        # The low bits are all there is: a narrower type reads its sign from them.
        narrow = word.astype(self.type.to_pandas_dtype())
        return pa.array(narrow, self.type, mask=in_groups(size, groups, sums[:, 0]) == 0)
