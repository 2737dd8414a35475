"""Inner join, bilinear: both sides may change at once.

    Δ(L ⋈ R)  =  ΔL ⋈ R'  +  L ⋈ ΔR        (R' = R + ΔR)
              =  P ⋈ R'  −  N ⋈ R  +  (L − N) ⋈ ΔR        (ΔL = P − N)

The trap: taking both sides old, or both new, forgets or doubles ΔL ⋈ ΔR. Another: the first form pairs a row that goes with one
that comes, adds the pair and takes it away. The sum is right, but what is above may fail on a pair that never was (`a / b`) and
refuse a good transaction. The second form makes only pairs of the old answer or the new one.

Pairs are made in slices of a bounded number (`state.slicing`), and the condition is applied to each before the next is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta, beside, products, taken
from headwater.operators.operator import Input, Joining
from headwater.picking import picked
from headwater.state.slicing import lookup_slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.evaluation.stages import Stage
    from headwater.operators.operator import Key, State
    from headwater.state.arrangement import Arrangement, Matches

    Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class JoinKey:
    """The columns on which two inputs are matched; NULL matches nothing but where `null_safe` says so."""

    left: Key
    right: Key
    null_safe: tuple[bool, ...]

    def matchable(self, delta: Delta, columns: Key) -> Delta:
        """The rows that can match at all."""
        keys = (delta.rows.column(column) for column, safe in zip(columns, self.null_safe, strict=True) if not safe)
        missing = [key for key in keys if key.null_count]
        if not missing:
            return delta
        return delta.where(np.logical_and.reduce([key.is_valid().to_numpy(zero_copy_only=False) for key in missing]))


@dataclass(frozen=True)
class Join(Joining):
    """Pairs of rows with equal keys: the first `left_width` columns of one side beside the first `right_width` of the other."""

    types: Types
    key: JoinKey
    left_width: int
    right_width: int
    condition: Stage | None = None
    rule = "Δ(L ⋈ R) = ΔL ⋈ R' + L ⋈ ΔR"

    @property
    def monoid(self) -> str:
        return "⊎ × ⊎"

    @property
    def lineage(self) -> Key:
        return self.key.left

    def arranged_by(self) -> tuple[Key | None, ...]:
        return self.key.left, self.key.right

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        slices = list(self.slices(inputs))
        return state, Delta.concat(slices) if slices else self.nothing()

    def slices(self, inputs: Sequence[Input]) -> Iterator[Delta]:
        left, right = inputs
        before, after = right.arranged
        staying = left.arranged[0]
        meetings = [(left.delta, after)]
        if len(left.delta) and len(right.delta):
            come, go = left.delta.where(left.delta.weights > 0), left.delta.where(left.delta.weights < 0)
            staying = staying.insert(go)
            meetings = [(come, after), (go, before)]
        for delta, other in meetings:
            probe = self.key.matchable(delta, self.key.left)
            for found in _looked_up(other, probe, self.key.left, self.right_width):
                mine = picked(probe.rows.columns[: self.left_width], found.probe)
                yield from self._pairs(mine, found.rows.columns, probe.weights, found)
        probe = self.key.matchable(right.delta, self.key.right)
        for found in _looked_up(staying, probe, self.key.right, self.left_width):
            mine = picked(probe.rows.columns[: self.right_width], found.probe)
            yield from self._pairs(found.rows.columns, mine, probe.weights, found)

    def _pairs(self, left: Sequence[pa.Array], right: Sequence[pa.Array], weights: Int64s, found: Matches) -> Iterator[Delta]:
        """Columns of rows that meet, side by side; the weights are those of the rows that were looked up."""
        pairs = Delta(beside([*left, *right], len(found)), products(taken(weights, found.probe), found.weights))
        if self.condition is not None:
            pairs = self.condition.run(pairs)
        if len(pairs):
            yield pairs


def _looked_up(other: Arrangement, probe: Delta, key: Key, width: int) -> Iterator[Matches]:
    """The rows that are met: their first columns."""
    return lookup_slices(other, probe.rows, key, None if width == len(other.schema) else tuple(range(width)))
