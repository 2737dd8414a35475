"""Match: which rows of the left have a partner on the right — semi, anti and existence joins, and the padding of outer joins.

    m(l)  =  Σ weights of the rows of R that match l            the row l is matched  iff  m(l) > 0

A left row that comes looks its partners up in R', one that goes in R. A changed right row touches left rows that stay and whose
m(l) becomes or leaves 0. So no rows are compared that were together neither before nor after: a condition might fail on them.

Without a condition beyond the key, m depends on the key alone, and of the right side no more is needed than keys and counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, beside, taken
from headwater.operators.operator import Input, Operator
from headwater.operators.scalar import too_many_rows
from headwater.picking import picked
from headwater.state import slicing
from headwater.state.consolidation import consolidate, group_rows, sum_by
from headwater.state.loops import add_at
from headwater.state.slicing import lookup_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.operators.join import JoinKey
    from headwater.operators.operator import Key, State
    from headwater.state.arrangement import Arrangement

    Bools = NDArray[np.bool_]
    # Which of the pairs (left columns, then right columns) meet the rest of the condition.
    Condition = Callable[[pa.RecordBatch], Bools]


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
            return state, self._checked(left, right)
        if not len(right.delta):
            return state, self._emit(left.delta, self._partners(left.delta.rows, after) > 0)
        come, go = left.delta.where(left.delta.weights > 0), left.delta.where(left.delta.weights < 0)
        turned, now = self._turned(left.arranged[0].insert(go), right)
        parts = [
            *(self._emit(rows, self._partners(rows.rows, at) > 0) for rows, at in ((come, after), (go, before)) if len(rows)),
            *((-self._emit(turned, ~now), self._emit(turned, now)) if len(turned) else ()),
        ]
        parts = [part for part in parts if len(part)]
        return state, Delta.concat(parts) if parts else self.nothing()

    def _checked(self, left: Input, right: Input) -> Delta:
        come = left.delta.where(left.delta.weights > 0)
        for rows in chain([come], self._touched(left.arranged[1], right.delta)):
            if (self._partners(rows.rows, right.arranged[1]) > 1).any():
                raise too_many_rows()
        return self.nothing()

    def _turned(self, left: Arrangement, right: Input) -> tuple[Delta, Bools]:
        """The left rows that the changes of the right make matched, or unmatched, and which of them are matched now."""
        before, after = right.arranged
        if self.condition is not None:
            touched = _once(self._touched(left, right.delta), Delta.empty(left.schema))
            was, now = (self._partners(touched.rows, at) > 0 for at in (before, after))
            return touched.where(was != now), now[was != now]
        if not len(left):
            return Delta(left.contents().rows, np.empty(0, np.int64)), np.empty(0, bool)
        # By key alone: a few keys tell about all the rows that have them.
        changes = self.key.matchable(right.delta, self.key.right)
        groups = group_rows(changes.rows, self.key.right)
        keys = beside(picked([changes.rows.column(i) for i in self.key.right], groups.representatives), groups.count)
        every = range(len(self.key.right))
        partners = self._counted(keys, every, before)
        was, now = partners > 0, partners + sum_by(groups.ids, groups.count, changes.weights) > 0
        turning = np.flatnonzero(was != now)
        matches = left.lookup(beside(picked(keys.columns, turning), len(turning)), every).existing()
        return Delta(matches.rows, matches.weights), now[turning[matches.probe]]

    def _partners(self, rows: pa.RecordBatch, right: Arrangement) -> NDArray[np.int64]:
        """How many rows of the right each row matches."""
        probe = self.key.matchable(Delta(rows, np.arange(rows.num_rows)), self.key.left)
        if self.condition is None:
            counts = self._counted(probe.rows, self.key.left, right)
            return counts if len(probe) == rows.num_rows else sum_by(probe.weights, rows.num_rows, counts)
        partners = np.zeros(rows.num_rows, np.int64)
        for matches in lookup_slices(right, probe.rows, self.key.left):
            asked = probe.weights[matches.probe]
            met = picked(rows.columns[: self.width], asked)
            fits = np.flatnonzero(self._fits(met, matches.rows.columns[: self.right_width], len(matches)))
            add_at(partners, asked[fits], np.ascontiguousarray(taken(matches.weights, fits)))
        return partners

    def _counted(self, keys: pa.RecordBatch, columns: Sequence[int], right: Arrangement) -> NDArray[np.int64]:
        """How many rows of the right have each key."""
        if not columns:
            return np.full(keys.num_rows, right.total)
        found = right.lookup(keys, columns)
        return sum_by(found.probe, keys.num_rows, found.weights)

    def _touched(self, left: Arrangement, changes: Delta) -> Iterator[Delta]:
        """Those of the left rows that a changed right row may match, in slices; a row may be in several of these."""
        changes = self.key.matchable(changes, self.key.right)
        if self.condition is None:
            changes = changes.take(group_rows(changes.rows, self.key.right).representatives)
        for matches in lookup_slices(left, changes.rows, self.key.right):
            found = Delta(matches.rows, matches.weights)
            if self.condition is None:
                yield found
                continue
            met = picked(changes.rows.columns[: self.right_width], matches.probe)
            fits = self._fits(matches.rows.columns[: self.width], met, len(matches))
            # Found once for every partner that changed, but touched only once.
            groups = group_rows(found.rows, range(found.rows.num_columns), signed_zeros=True)
            hit = np.zeros(groups.count, bool)
            hit[groups.ids[fits]] = True
            first_probe = np.full(groups.count, len(changes))
            np.minimum.at(first_probe, groups.ids, matches.probe)
            once = hit[groups.ids] & (matches.probe == first_probe[groups.ids])
            yield consolidate(found.where(once))

    def _fits(self, left: Sequence[pa.Array], right: Sequence[pa.Array], count: int) -> Bools:
        assert self.condition is not None
        return self.condition(beside([*left, *right], count))

    def _emit(self, rows: Delta, matched: Bools) -> Delta:
        columns = rows.rows.columns[: self.width]
        if self.kind == "existence":
            return Delta(beside([*columns, pa.array(matched)], len(rows)), rows.weights)
        chosen = matched if self.kind == "semi" else ~matched
        if chosen.all():
            return Delta(beside(columns, len(rows)), rows.weights)
        places = np.flatnonzero(chosen)
        return Delta(beside(picked(columns, places), len(places)), rows.weights[places])


def _once(slices: Iterator[Delta], nothing: Delta) -> Delta:
    """Rows that may be in several slices, always with the same weight, once."""
    found = next(slices, nothing)
    rest: list[Delta] = []
    for part in slices:
        rest.append(part)
        if sum(map(len, rest)) > max(slicing.PAIRS, len(found)):
            found, rest = _first_ones([found, *rest]), []
    return _first_ones([found, *rest]) if rest else found


def _first_ones(parts: Sequence[Delta]) -> Delta:
    rows = Delta.concat(parts)
    return rows.take(group_rows(rows.rows, range(rows.rows.num_columns), signed_zeros=True).representatives)
