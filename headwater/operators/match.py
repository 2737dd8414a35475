"""Match: which rows of the left have a partner on the right — semi, anti and existence joins, and the padding of outer joins.

    m(l)  =  Σ weights of the rows of R that match l            the row l is matched  iff  m(l) > 0

A left row that comes looks its partners up in R', one that goes in R. A changed right row touches left rows that stay and whose
m(l) becomes or leaves 0. So no rows are compared that were together neither before nor after: a condition might fail on them.

Without a condition beyond the key, m depends on the key alone, and of the right side no more is needed than keys and counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.operators.operator import Input, Operator, beside
from headwater.operators.scalar import too_many_rows
from headwater.state.consolidation import consolidate, group_rows, sum_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.operators.join import JoinKey
    from headwater.operators.operator import Key, State
    from headwater.state.arrangement import Arrangement

    # Which of the pairs (left columns, then right columns) meet the rest of the condition.
    Condition = Callable[[pa.RecordBatch], NDArray[np.bool_]]


@dataclass(frozen=True)
class Match(Operator):
    """The first `width` columns of left rows: the matched ones (semi), the others (anti), or all with a flag (existence).

    Or no rows at all, but an error if a left row has more than one partner (check).
    """

    types: Types
    kind: str
    key: JoinKey
    width: int
    condition: Condition | None
    right_width: int
    rule = "l ∈ output iff m(l) > 0 (semi), m(l) = 0 (anti);  m(l) = Σ weights of partners"

    @property
    def monoid(self) -> str:
        return "+ (match counts)"

    @property
    def lineage(self) -> Key:
        return self.key.left

    def arranged_by(self) -> tuple[Key | None, ...]:
        return self.key.left, self.key.right

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        left, right = inputs
        before, after = right.arranged
        if self.kind == "check":
            return state, self._checked(left, right, after)
        if not len(right.delta):
            return state, self._emit(left.delta, self._matched(left.delta.rows, after))
        come, go = left.delta.where(left.delta.weights > 0), left.delta.where(left.delta.weights < 0)
        touched = self._touched(left.arranged[0].insert(go), right.delta)
        was, now = self._matched(touched.rows, before), self._matched(touched.rows, after)
        changed = was != now
        touched = touched.where(changed)
        parts = [
            self._emit(come, self._matched(come.rows, after)),
            self._emit(go, self._matched(go.rows, before)),
            -self._emit(touched, was[changed]),
            self._emit(touched, now[changed]),
        ]
        return state, Delta.concat(parts)

    def _checked(self, left: Input, right: Input, after: Arrangement) -> Delta:
        touched = self._touched(left.arranged[1], right.delta)
        for rows in (left.delta.where(left.delta.weights > 0).rows, touched.rows):
            if (self._partners(rows, after) > 1).any():
                raise too_many_rows()
        return self.nothing()

    def _matched(self, rows: pa.RecordBatch, right: Arrangement) -> NDArray[np.bool_]:
        return self._partners(rows, right) > 0

    def _partners(self, rows: pa.RecordBatch, right: Arrangement) -> NDArray[np.int64]:
        """How many rows of the right each row matches."""
        probe = self.key.matchable(Delta(rows, np.arange(rows.num_rows)), self.key.left)
        matches = right.lookup(probe.rows, self.key.left)
        if self.condition is not None:
            matches = matches.existing()
        partners, weights = probe.weights[matches.probe], matches.weights
        if self.condition is not None and len(matches):
            fits = self._fits(rows.take(pa.array(partners)), matches.rows)
            partners, weights = partners[fits], weights[fits]
        return sum_by(partners, rows.num_rows, weights)

    def _touched(self, left: Arrangement, changes: Delta) -> Delta:
        """Those of the left rows that a changed right row may match."""
        changes = self.key.matchable(changes, self.key.right)
        if self.condition is None:
            keys = group_rows(changes.rows, self.key.right)
            changes = changes.take(keys.representatives)
        matches = left.lookup(changes.rows, self.key.right).existing()
        found = Delta(matches.rows, matches.weights)
        if self.condition is None or not len(matches):
            return found
        fits = self._fits(matches.rows, changes.rows.take(pa.array(matches.probe)))
        # Found once for every partner that changed, but touched only once.
        groups = group_rows(found.rows, range(found.rows.num_columns))
        hit = np.zeros(groups.count, bool)
        hit[groups.ids[fits]] = True
        first_probe = np.full(groups.count, len(changes))
        np.minimum.at(first_probe, groups.ids, matches.probe)
        once = hit[groups.ids] & (matches.probe == first_probe[groups.ids])
        return consolidate(found.where(once))

    def _fits(self, left: pa.RecordBatch, right: pa.RecordBatch) -> NDArray[np.bool_]:
        assert self.condition is not None
        return self.condition(beside(left.select(range(self.width)), right.select(range(self.right_width))))

    def _emit(self, rows: Delta, matched: NDArray[np.bool_]) -> Delta:
        if self.kind == "existence":
            flag = pa.RecordBatch.from_arrays([pa.array(matched)], names=["flag"])
            return Delta(beside(rows.rows.select(range(self.width)), flag), rows.weights)
        chosen = rows.where(matched if self.kind == "semi" else ~matched)
        return chosen.select(range(self.width))
