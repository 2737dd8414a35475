"""Aggregate: one row per group, from sums that merge by + and un-merge by −.

    state(g)  =  Σ over the rows of g of weight · contribution(row)          a vector of integers, exact
    Δ output  =  −finish(state) + finish(state')                             for the groups that the delta touches

A group is there while the sum of its rows' weights is not 0; without keys there is always one group, also of no rows.

Least and greatest values cannot be un-merged. Each group keeps its present one; only when that value itself is deleted is the
group looked through again. Distinct aggregates count every value, and add its contribution when the count leaves 0, subtract it
when it returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta, without_columns
from headwater.operators.operator import Input, Operator, beside, schema_of
from headwater.operators.ordering import column_ranks
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate, group_rows, sum_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.operators.accumulators import Accumulator
    from headwater.operators.operator import Key, State
    from headwater.state.consolidation import Groups

# Numbers up to so many times as large as there are of them are counted rather than sorted.
_DENSE = 4


@dataclass(frozen=True)
class Measure:
    """An aggregate function of some columns of the rows for which `condition`, a Boolean column, is true (None: of all)."""

    accumulator: Accumulator
    inputs: Key
    condition: int | None = None
    distinct: bool = False

    @property
    def type(self) -> pa.DataType:
        return self.accumulator.type


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest value of a column."""

    column: int
    greatest: bool
    type: pa.DataType
    condition: int | None = None


@dataclass(frozen=True)
class Sums:
    """State rows of some groups: row j adds `values[j]` to the group with the number `groups[j]`, in a bucket."""

    groups: NDArray[np.int64]
    buckets: NDArray[np.int64]
    values: NDArray[np.int64]

    def __add__(self, other: Sums) -> Sums:
        groups = np.concatenate([self.groups, other.groups])
        buckets = np.concatenate([self.buckets, other.buckets])
        return Sums(groups, buckets, np.concatenate([self.values, other.values])).merged()

    def merged(self) -> Sums:
        """One row for each pair of group and bucket."""
        if not len(self.groups):
            return self
        low = int(self.buckets.min())
        span = int(self.buckets.max()) - low + 1
        codes = self.groups * span + (self.buckets - low)
        size = int(codes.max()) + 1
        if size <= _DENSE * len(codes):
            distinct = np.flatnonzero(np.bincount(codes, minlength=size))
            sums = sum_by(codes, size, self.values)[distinct]
        else:
            distinct, ids = np.unique(codes, return_inverse=True)
            sums = sum_by(ids, len(distinct), self.values)
        return Sums(distinct // span, distinct % span + low, sums)


@dataclass(frozen=True)
class Aggregate(Operator):
    """Groups by the first `keys` columns; gives the keys, then the value of each function."""

    input_types: Types
    keys: int
    functions: tuple[Measure | Extreme, ...]
    rule = "state' = state + Σ weight · contribution;  Δ = −finish(state) + finish(state')"

    @cached_property
    def types(self) -> Types:  # type: ignore[override]
        return self.input_types[: self.keys] + tuple(function.type for function in self.functions)

    @property
    def monoid(self) -> str:
        parts = [f.accumulator.monoid if isinstance(f, Measure) else ("max" if f.greatest else "min") for f in self.functions]
        return f"↑({', '.join(parts)})" if parts else "↑+ (row counts)"

    @property
    def lineage(self) -> Key:
        return tuple(range(self.keys))

    def arranged_by(self) -> tuple[Key | None, ...]:
        return (tuple(range(self.keys)) if self._extremes else None,)

    def start(self) -> tuple[State, Delta]:
        keys = self.input_types[: self.keys]
        every = tuple(range(self.keys))
        state = [Arrangement.empty(schema_of((*keys, pa.int64())), every, self._width)]
        if self._extremes:
            state.append(Arrangement.empty(schema_of((*keys, *(e.type for e in self._extremes))), every))
        for columns in self._distinct_inputs:
            types = tuple(self.input_types[i] for i in columns)
            state.append(Arrangement.empty(schema_of(types), tuple(range(len(types)))))
        if self.keys:
            return tuple(state), self.nothing()
        none = np.empty(0, np.int64)
        sums = Sums(none, none, np.empty((0, self._width), np.int64))
        values = self._finish(1, sums, [pa.nulls(1, extreme.type) for extreme in self._extremes])
        rows = pa.RecordBatch.from_arrays(values, schema=schema_of(self.types)) if values else without_columns(1)
        return tuple(state), Delta.inserting(rows)

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        delta = inputs[0].delta
        groups = group_rows(delta.rows, range(self.keys))
        representatives = normalised(delta.rows.select(range(self.keys)).take(pa.array(groups.representatives)))
        distinct_state, contributions = self._contributions(state, delta, groups)
        old = self._look_up(state[0], representatives)
        new = old + contributions
        sums = state[0].insert(Delta(self._state_rows(representatives, contributions), contributions.values))
        old_extremes, new_extremes, extremes_state = self._extreme_values(state, inputs[0], groups, representatives, new)
        out = self._difference(representatives, (old, old_extremes), (new, new_extremes))
        return (sums, *extremes_state, *distinct_state), out

    # -- sums

    @cached_property
    def _measures(self) -> tuple[Measure, ...]:
        return tuple(f for f in self.functions if isinstance(f, Measure))

    @cached_property
    def _extremes(self) -> tuple[Extreme, ...]:
        return tuple(f for f in self.functions if isinstance(f, Extreme))

    @cached_property
    def _distinct_inputs(self) -> tuple[Key, ...]:
        """For each distinct measure the columns whose combinations it counts: keys and inputs."""
        return tuple((*range(self.keys), *m.inputs) for m in self._measures if m.distinct)

    @cached_property
    def _width(self) -> int:
        return 1 + sum(measure.accumulator.width for measure in self._measures)

    def _contributions(self, state: State, delta: Delta, groups: Groups) -> tuple[State, Sums]:
        """What the delta adds to the sums: the first slot counts rows, then come the measures."""
        count = np.zeros((groups.count, self._width), np.int64)
        count[:, 0] = sum_by(groups.ids, groups.count, delta.weights)
        parts = [Sums(np.arange(groups.count), np.zeros(groups.count, np.int64), count)]
        seen = list(state[2 if self._extremes else 1 :])
        distinct = iter(range(len(seen)))
        slot = 1
        for measure in self._measures:
            rows, ids = _where(delta, groups.ids, measure.condition)
            inputs = measure.inputs
            if measure.distinct:
                at = next(distinct)
                seen[at], rows = _appearing(seen[at], rows.select(self._distinct_inputs[at]))
                ids = _group_numbers(rows, self.keys, delta, groups)
                inputs = tuple(range(self.keys, rows.rows.num_columns))
            part = measure.accumulator.contribute([rows.rows.column(i) for i in inputs], rows.weights)
            narrow = Sums(ids[part.rows], part.buckets, part.values).merged()
            values = np.zeros((len(narrow.groups), self._width), np.int64)
            values[:, slot : slot + measure.accumulator.width] = narrow.values
            parts.append(Sums(narrow.groups, narrow.buckets, values))
            slot += measure.accumulator.width
        joined = Sums(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("groups", "buckets", "values")))
        return tuple(seen), joined.merged()

    def _look_up(self, state: Arrangement, representatives: pa.RecordBatch) -> Sums:
        if representatives.num_rows and not self.keys:
            found = state.lookup(representatives, ())
        else:
            found = state.lookup(representatives, range(self.keys))
        return Sums(found.probe, found.rows.column(self.keys).to_numpy(), found.weights).merged()

    def _state_rows(self, representatives: pa.RecordBatch, sums: Sums) -> pa.RecordBatch:
        keys = representatives.take(pa.array(sums.groups))
        return beside(keys, pa.RecordBatch.from_arrays([pa.array(sums.buckets)], names=["bucket"]))

    def _finish(self, size: int, sums: Sums, extremes: Sequence[pa.Array]) -> list[pa.Array]:
        """The value of every function for each of `size` groups."""
        columns = []
        slot = 1
        remaining = iter(extremes)
        for function in self.functions:
            if isinstance(function, Extreme):
                columns.append(next(remaining))
                continue
            width = function.accumulator.width
            values = sums.values[:, slot : slot + width]
            columns.append(function.accumulator.finish(size, sums.groups, sums.buckets, values))
            slot += width
        return columns

    def _difference(self, keys: pa.RecordBatch, old: tuple[Sums, list[pa.Array]], new: tuple[Sums, list[pa.Array]]) -> Delta:
        parts = []
        for (sums, extremes), sign in ((old, -1), (new, 1)):
            there = self._present(keys.num_rows, sums)
            values = self._finish(keys.num_rows, sums, extremes)
            columns = [*keys.columns, *values]
            rows = pa.RecordBatch.from_arrays(columns, schema=schema_of(self.types)) if columns else keys
            parts.append(Delta(rows, np.full(keys.num_rows, sign)).where(there))
        return consolidate(Delta.concat(parts))

    def _present(self, size: int, sums: Sums) -> NDArray[np.bool_]:
        if not self.keys:
            return np.ones(size, bool)
        return sum_by(sums.groups, size, sums.values[:, 0]) != 0

    # -- least and greatest values

    def _extreme_values(
        self, state: State, changed: Input, groups: Groups, keys: pa.RecordBatch, sums: Sums
    ) -> tuple[list[pa.Array], list[pa.Array], State]:
        if not self._extremes:
            return [], [], ()
        size = keys.num_rows
        found = state[1].lookup(keys, range(self.keys)).consolidated()
        where = np.full(size, -1)
        where[found.probe] = np.arange(len(found))
        index = pa.array(where, mask=where < 0)
        old = [found.rows.column(self.keys + i).take(index) for i in range(len(self._extremes))]
        after = changed.arranged[1]
        new = [
            self._new_extreme(e, value, changed.delta, groups, keys, after)
            for e, value in zip(self._extremes, old, strict=True)
        ]
        before = Delta(
            beside(keys, pa.RecordBatch.from_arrays(old, names=[f"e{i}" for i in range(len(old))])), np.full(size, -1)
        )
        now = Delta(beside(keys, pa.RecordBatch.from_arrays(new, names=[f"e{i}" for i in range(len(new))])), np.full(size, 1))
        change = Delta.concat([before.where(where >= 0), now.where(self._present(size, sums))])
        return old, new, (state[1].insert(consolidate(change)),)

    def _new_extreme(  # noqa: PLR0913, PLR0917  (all of one computation)
        self, extreme: Extreme, old: pa.Array, delta: Delta, groups: Groups, keys: pa.RecordBatch, after: Arrangement
    ) -> pa.Array:
        rows, ids = _where(delta, groups.ids, extreme.condition)
        values = rows.rows.column(extreme.column)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        size = len(old)
        added = valid & (rows.weights > 0)
        removed = valid & (rows.weights < 0)
        candidates = pa.concat_arrays([old, values.filter(pa.array(added))])
        owners = np.concatenate([np.arange(size), ids[added]])
        new = best(candidates, owners, size, greatest=extreme.greatest)
        if removed.any():
            again = self._losing(extreme, old, values.filter(pa.array(removed)), ids[removed])
            if len(again):
                rescanned = self._rescan(extreme, keys.take(pa.array(again)), after)
                place = np.arange(size)
                place[again] = size + np.arange(len(again))
                new = pa.concat_arrays([new, rescanned]).take(pa.array(place))
        return new

    def _losing(self, extreme: Extreme, old: pa.Array, removed: pa.Array, owners: NDArray[np.int64]) -> NDArray[np.int64]:
        """The groups from which a value is removed that is as good as the one they had, or which had none."""
        held = old.take(pa.array(owners))
        ranks = column_ranks(pa.concat_arrays([held, removed]), descending=extreme.greatest, nulls_first=False)
        return np.unique(owners[ranks[len(held) :] <= ranks[: len(held)]])

    def _rescan(self, extreme: Extreme, keys: pa.RecordBatch, after: Arrangement) -> pa.Array:
        found = after.lookup(keys, range(self.keys)).consolidated()
        rows, ids = _where(Delta(found.rows, found.weights), found.probe, extreme.condition)
        return best(rows.rows.column(extreme.column), ids, keys.num_rows, greatest=extreme.greatest)


def best(values: pa.Array, owners: NDArray[np.int64], size: int, *, greatest: bool) -> pa.Array:
    """The least, or greatest, value of each of `size` owners; NULL for one that has none."""
    ranks = column_ranks(values, descending=greatest, nulls_first=False)
    order = np.lexsort((ranks, owners))
    first = np.ones(len(order), bool)
    first[1:] = owners[order][1:] != owners[order][:-1]
    chosen = np.full(size, -1)
    chosen[owners[order[first]]] = order[first]
    return values.take(pa.array(chosen, mask=chosen < 0))


def normalised(keys: pa.RecordBatch) -> pa.RecordBatch:
    """Grouping keys as Spark gives them: −0.0 becomes 0.0."""
    columns = [
        pc.add(column, 0.0).cast(column.type) if pa.types.is_floating(column.type) else column for column in keys.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=keys.schema.names) if columns else keys


def _where(delta: Delta, ids: NDArray[np.int64], condition: int | None) -> tuple[Delta, NDArray[np.int64]]:
    if condition is None:
        return delta, ids
    mask = delta.rows.column(condition).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
    return delta.where(mask), ids[mask]


def _appearing(seen: Arrangement, delta: Delta) -> tuple[Arrangement, Delta]:
    """The rows whose count leaves 0, with weight 1, and those whose count returns to it, with weight −1."""
    groups = group_rows(delta.rows, range(delta.rows.num_columns))
    rows = normalised(delta.rows.take(pa.array(groups.representatives)))
    change = sum_by(groups.ids, groups.count, delta.weights)
    found = seen.lookup(rows, range(rows.num_columns))
    before = sum_by(found.probe, groups.count, found.weights)
    turns = ((before + change) > 0).astype(np.int64) - (before > 0).astype(np.int64)
    return seen.insert(Delta(rows, change)), Delta(rows, turns).where(turns != 0)


def _group_numbers(rows: Delta, keys: int, delta: Delta, groups: Groups) -> NDArray[np.int64]:
    """The group numbers, as in `groups`, of rows whose first columns are keys of the delta."""
    representatives = delta.rows.select(range(keys)).take(pa.array(groups.representatives))
    both = pa.concat_batches([representatives, rows.rows.select(range(keys))])
    joint = group_rows(both, range(keys))
    number = np.empty(joint.count, np.int64)
    number[joint.ids[: groups.count]] = np.arange(groups.count)
    return number[joint.ids[groups.count :]]
