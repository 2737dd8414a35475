"""Inner join, bilinear: both sides may change at once.

    Δ(L ⋈ R)  =  ΔL ⋈ R'  +  L ⋈ ΔR        (R' = R + ΔR)
              =  P ⋈ R'  −  N ⋈ R  +  (L − N) ⋈ ΔR        (ΔL = P − N)

The trap: taking both sides old, or both new, forgets or doubles ΔL ⋈ ΔR. Another: the first form pairs a row that goes with one
that comes, adds the pair and takes it away. The sum is right, but what is above may fail on a pair that never was (`a / b`) and
refuse a good transaction. The second form makes only pairs of the old answer or the new one.

A join without a key meets every row with every row; its condition is applied to a bounded number of pairs at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta
from headwater.operators.operator import Input, Operator, beside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.algebra.plan import Types
    from headwater.evaluation.stages import Stage
    from headwater.operators.operator import Key, State
    from headwater.state.arrangement import Arrangement

_PAIRS = 4_000_000


@dataclass(frozen=True)
class JoinKey:
    """The columns on which two inputs are matched; NULL matches nothing but where `null_safe` says so."""

    left: Key
    right: Key
    null_safe: tuple[bool, ...]

    def matchable(self, delta: Delta, columns: Key) -> Delta:
        """The rows that can match at all."""
        valid = np.ones(len(delta), bool)
        for column, safe in zip(columns, self.null_safe, strict=True):
            array = delta.rows.column(column)
            if not safe and array.null_count:
                valid &= array.is_valid().to_numpy(zero_copy_only=False)
        return delta.where(valid)


@dataclass(frozen=True)
class Join(Operator):
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
        left, right = inputs
        before, after = right.arranged
        staying = left.arranged[0]
        meetings = [(left.delta, after)]
        if len(left.delta) and len(right.delta):
            come, go = left.delta.where(left.delta.weights > 0), left.delta.where(left.delta.weights < 0)
            staying = staying.insert(go)
            meetings = [(come, after), (go, before)]
        parts = [self.nothing()]
        for delta, other in meetings:
            for part in self._bounded(delta, other):
                probe, found = self._meet(part, self.key.left, other)
                parts.append(self._pair(probe, found))
        for part in self._bounded(right.delta, staying):
            probe, found = self._meet(part, self.key.right, staying)
            parts.append(self._pair(found, probe))
        return state, Delta.concat(parts)

    def _bounded(self, delta: Delta, other: Arrangement) -> Iterator[Delta]:
        """The delta in slices that do not make too many pairs at once."""
        size = len(delta) if self.key.left else max(1, _PAIRS // max(1, len(other)))
        for start in range(0, len(delta), max(1, size)):
            yield Delta(delta.rows.slice(start, size), delta.weights[start : start + size])

    def _meet(self, delta: Delta, columns: Key, other: Arrangement) -> tuple[Delta, Delta]:
        """The changed rows and the rows they meet, pair by pair."""
        probe = self.key.matchable(delta, columns)
        matches = other.lookup(probe.rows, columns).existing()
        return probe.take(matches.probe), Delta(matches.rows, matches.weights)

    def _pair(self, left: Delta, right: Delta) -> Delta:
        rows = beside(left.rows.select(range(self.left_width)), right.rows.select(range(self.right_width)))
        pairs = Delta(rows, left.weights * right.weights)
        return pairs if self.condition is None else self.condition.run(pairs)
