"""Top-k: the first rows in an order, also when rows above leave.

    output  =  rows offset … offset + count of the sorted input

The operator keeps the first m ≥ k rows, a reserve beyond what is asked for. A change below the last of them cannot matter;
others are applied to them. Only when deletions have used up the reserve is the input looked through again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, without_columns
from headwater.operators.operator import Input, Operator, schema_of
from headwater.operators.ordering import Order, places, sorted_rows
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State


@dataclass(frozen=True)
class TopK(Operator):
    """At most `count` rows (None: all) after the first `offset`, in `order`."""

    types: Types
    order: tuple[Order, ...]
    count: int | None
    offset: int
    rule = "output = rows offset … offset + count of the sorted input"

    @property
    def monoid(self) -> str:
        return "⊎ sorted, cut at k"

    @property
    def lineage(self) -> Key:
        return ()

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ((),)

    def start(self) -> tuple[State, Delta]:
        reserve = Arrangement.empty(schema_of(self.types), ())
        total = Arrangement.empty(schema_of(()), ())
        return (reserve, total), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        delta = inputs[0].delta
        held = state[0].contents()
        total = state[1].insert(Delta(without_columns(1), np.array([delta.weights.sum()])))
        size, held_size = int(total.contents().weights.sum()), int(held.weights.sum())
        whole = held_size == int(state[1].contents().weights.sum())
        kept = consolidate(Delta.concat([held, delta if whole else self._above_last(held, delta)]))
        kept_size = int(kept.weights.sum())
        wanted = self._wanted
        if wanted is not None and kept_size != size and kept_size < wanted:
            kept = self._first(inputs[0].arranged[1].contents(), self._reserve)
        elif wanted is not None and kept_size > 2 * self._reserve:
            kept = self._first(kept, self._reserve)
        change = consolidate(Delta.concat([-self._cut(held), self._cut(kept)]))
        return (state[0].insert(consolidate(Delta.concat([kept, -held]))), total), change

    @property
    def _wanted(self) -> int | None:
        return None if self.count is None else self.offset + self.count

    @property
    def _reserve(self) -> int:
        return 2 * (self._wanted or 0) + 256

    def _above_last(self, held: Delta, delta: Delta) -> Delta:
        """The changes that come no later in the order than the last row held."""
        if not len(held):
            return delta.where(np.zeros(len(delta), bool))
        place = places(pa.concat_batches([held.rows, delta.rows]), self.order)
        return delta.where(place[len(held) :] <= place[: len(held)].max())

    def _first(self, rows: Delta, count: int) -> Delta:
        ordered = rows.take(sorted_rows(rows.rows, self.order))
        return ordered.where(np.cumsum(ordered.weights) - ordered.weights < count)

    def _cut(self, rows: Delta) -> Delta:
        """The part of the sorted rows that is the answer; of equal rows, as many copies as fall into it."""
        ordered = rows.take(sorted_rows(rows.rows, self.order))
        end = np.cumsum(ordered.weights)
        upper = end if self._wanted is None else np.minimum(end, self._wanted)
        inside = np.maximum(upper - np.maximum(end - ordered.weights, self.offset), 0)
        return Delta(ordered.rows, inside).where(inside > 0)
