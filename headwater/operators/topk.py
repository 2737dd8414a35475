"""Top-k: the first rows in an order, also when rows above leave.

    output  =  rows offset … offset + count of the sorted input

The operator keeps the first m ≥ k rows, a reserve beyond what is asked for. A change below the last of them cannot matter;
others are applied to them. Only when deletions have used up the reserve is the input looked through again. The input is kept
for that, unless it is said how many of the `best` rows to keep: then it is asked for.

The reserve is state, and an arrangement has an order of its own. So the sorted reserve of the last step is remembered: whoever
steps from that very arrangement need not sort it again, and whoever does not sorts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, without_columns
from headwater.operators.operator import Exhausted, Input, Operator, schema_of
from headwater.operators.ordering import Order, column_ranks, is_ordered, merged_rows, sorted_rows, up_to_first
from headwater.picking import rows_at
from headwater.state import slicing
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Held:
    """The rows of a reserve in order."""

    reserve: Arrangement
    rows: Delta
    size: int


@dataclass(frozen=True)
class TopK(Operator):
    """At most `count` rows (None: all) after the first `offset`, in `order`."""

    types: Types
    order: tuple[Order, ...]
    count: int | None
    offset: int
    best: int | None = field(default=None, metadata={"later": True})
    rule = "output = rows offset … offset + count of the sorted input"

    @property
    def monoid(self) -> str:
        return "⊎ sorted, cut at k"

    @property
    def lineage(self) -> Key:
        return ()

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ((),) if self.best is None else (None,)

    def refilled_by(self) -> Key | None:
        return ()

    @property
    def together(self) -> tuple[Key | None, ...]:
        return ((),)

    def start(self) -> tuple[State, Delta]:
        reserve = Arrangement.empty(schema_of(self.types), ())
        total = Arrangement.empty(schema_of(()), ())
        return (reserve, total), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        delta, held = inputs[0].delta, self._held(state[0])
        total, change = state[1], int(delta.weights.sum())
        before = total.total
        if change:
            total = total.insert(Delta(without_columns(1), np.array([change])))
        reaching = delta if held.size == before else self._above_last(held.rows, delta)
        if not len(reaching):
            return (state[0], total), self.nothing()
        size, wanted = held.size + int(reaching.weights.sum()), self._wanted
        used_up = wanted is not None and size < wanted and size != before + change
        after_all = inputs[0].after
        if used_up and after_all is None:
            raise Exhausted
        if used_up or (wanted is not None and size > 2 * self._reserve) or not self._total_order:
            if used_up and after_all is not None:
                first = self._first_of(after_all)
            else:
                whole = Delta.concat([held.rows, reaching])
                first = self._first(whole) if wanted is not None else whole
            after, out = self._replace(held, first)
        else:
            after, out = self._merge(held, reaching, size)
        self._remembered[:] = [after]
        return (after.reserve, total), out

    @property
    def _wanted(self) -> int | None:
        return None if self.count is None else self.offset + self.count

    @property
    def _reserve(self) -> int:
        wanted = self._wanted or 0
        return 2 * wanted + 256 if self.best is None else max(self.best, wanted)

    @cached_property
    def _total_order(self) -> bool:
        """Whether rows that are different never share a place."""
        return all(is_ordered(kind) for kind in self.types) and bool(self.types)

    @cached_property
    def _remembered(self) -> list[Held]:
        """The reserve of the last step, if there was one."""
        return []

    def _held(self, reserve: Arrangement) -> Held:
        for held in self._remembered:
            if held.reserve is reserve:
                return held
        contents = reserve.contents()
        rows = contents.take(sorted_rows(contents.rows, self.order))
        return Held(reserve, rows, int(rows.weights.sum()))

    def _above_last(self, held: Delta, delta: Delta) -> Delta:
        """The changes that come no later in the order than the last row held."""
        if not len(held):
            return delta.where(np.zeros(len(delta), bool))
        last = held.rows.slice(len(held) - 1)
        return delta.where(up_to_first(pa.concat_batches([last, delta.rows]), self.order)[1:])

    def _merge(self, held: Held, changes: Delta, size: int) -> tuple[Held, Delta]:
        """The reserve with the changes, and what that changes in the answer: rows are told apart by their places."""
        both = Delta.concat([held.rows, changes])
        chosen, weights = merged_rows(both.rows, both.weights, self.order)
        out = np.zeros(len(both), np.int64)
        out[chosen] = self._inside(weights)
        out[: len(held.rows)] -= self._inside(held.rows.weights)
        after = Held(held.reserve.insert(changes), Delta(rows_at(both.rows, chosen), weights), size)
        return after, Delta(both.rows, out).where(out != 0) if out.any() else self.nothing()

    def _replace(self, held: Held, rows: Delta) -> tuple[Held, Delta]:
        """These rows as the reserve, and what that changes in the answer."""
        change = consolidate(Delta.concat([rows, -held.rows]))
        after = self._held(held.reserve.insert(change))
        return after, consolidate(Delta.concat([-self._cut(held.rows), self._cut(after.rows)]))

    def _first_of(self, kept: Arrangement) -> Delta:
        """The same of all rows, looked through slice by slice."""
        found, complete = self.nothing(), True
        for part in kept.in_slices(slicing.PAIRS):
            both = Delta.concat([found, part])
            found = self._first(both, complete=complete)
            complete = complete and len(found) == len(both)
        return found

    def _first(self, rows: Delta, *, complete: bool = True) -> Delta:
        """The first rows in the order, as many as the reserve should have, if there are more than twice as many.

        If the rows are not `complete`, for some before the last of them were left out, there are never more.
        """
        count = self._reserve
        most = 2 * count if complete else count
        if (rows.weights > 0).all() and len(rows) > most and self.order:
            first = self.order[0]
            ranks = column_ranks(rows.rows.column(first.column), descending=first.descending, nulls_first=first.nulls_first)
            rows = rows.where(ranks <= np.partition(ranks, count)[count])
        rows = consolidate(rows)
        if rows.weights.sum() <= most:
            return rows
        ordered = rows.take(sorted_rows(rows.rows, self.order))
        return ordered.where(np.cumsum(ordered.weights) - ordered.weights < count)

    def _cut(self, rows: Delta) -> Delta:
        """The part of the sorted rows that is the answer; of equal rows, as many copies as fall into it."""
        inside = self._inside(rows.weights)
        return Delta(rows.rows, inside).where(inside > 0)

    def _inside(self, weights: Int64s) -> Int64s:
        """How many copies of each of the sorted rows fall into the answer."""
        end = np.cumsum(weights)
        upper = end if self._wanted is None else np.minimum(end, self._wanted)
        inside: Int64s = np.maximum(upper - np.maximum(end - weights, self.offset), 0)
        return inside
