"""Aggregate: one row per group, from sums that merge by + and un-merge by −.

    state(g)  =  Σ over the rows of g of weight · contribution(row)          a vector of integers, exact
    Δ output  =  −finish(state) + finish(state')                             for the groups that the delta touches

A group is there while the sum of its rows' weights is not 0; without keys there is always one group, also of no rows.

Least and greatest values cannot be un-merged: see `extremes`. Distinct aggregates count every value, and add its contribution
when the count leaves 0, subtract it when it returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta, without_columns
from headwater.operators.accumulators import Cells
from headwater.operators.accumulators.cells import chosen, count
from headwater.operators.buffers import buffered
from headwater.operators.difference import appearance, difference
from headwater.operators.extremes import Best, Extreme, renewed
from headwater.operators.operator import Input, Summing, schema_of
from headwater.picking import picked, picked_or_null
from headwater.state import slicing
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import group_rows, sum_by
from headwater.state.loops import add_lines_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headwater.algebra.plan import Types
    from headwater.operators.accumulators import Accumulator, States
    from headwater.operators.operator import Key, State
    from headwater.state.consolidation import Groups

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["Aggregate", "Extreme", "Measure"]

# Rows are summed up in pieces small enough for the cells they meet to stay in the cache from one function to the next.
_PIECE = 1 << 14


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
class Aggregate(Summing):
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
        return (tuple(range(self.keys)) if any(extreme.best is None for extreme in self._extremes) else None,)

    def refilled_by(self) -> Key | None:
        return tuple(range(self.keys))

    @property
    def together(self) -> tuple[Key | None, ...]:
        return (tuple(range(self.keys)),)

    def start(self) -> tuple[State, Delta]:
        every = tuple(range(self.keys))
        state = [Arrangement.empty(self._sums_schema, every, self._width)]
        if self._extremes:
            state.append(Arrangement.empty(self._extremes_schema, every))
            for extreme in self._buffers:
                state.append(Arrangement.empty(schema_of((*self.input_types[: self.keys], extreme.type)), every))  # noqa: PERF401
        for columns in self._distinct_inputs:
            types = tuple(self.input_types[i] for i in columns)
            state.append(Arrangement.empty(schema_of(types), tuple(range(len(types)))))
        if self.keys:
            return tuple(state), self.nothing()
        nothing = Cells(1, self._width).alone()
        values = self._finish(nothing, [pa.nulls(1, extreme.type) for extreme in self._extremes])
        return tuple(state), appearance(self._schema, [], values, np.ones(1, bool))

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        delta = inputs[0].delta
        groups, keys, cells = self._grouped(delta)
        distinct_state = self._add(state[self._before_counts :], delta, groups.ids, cells)
        batch, states = self._before_and_after(state, keys, cells)
        there = self._there(states)
        extremes, extremes_state = self._renew_extremes(state, inputs[0], groups.ids, batch, there)
        sums = state[0].insert(self._state_rows(keys, cells))
        return (sums, *extremes_state, *distinct_state), self._change(states, keys, there, extremes)

    @property
    def takes_slices(self) -> bool:
        return not self._extremes

    @property
    def combines(self) -> bool:
        return not (self._extremes or self._distinct)

    def step_in_slices(self, state: State, slices: Iterable[Delta]) -> tuple[State, Delta]:
        """`step` for a delta that comes in slices; what one of them does to the output is not asked."""
        added, counts = self._summed_up(state[1:], slices)
        if added is None:
            return state, self.nothing()
        (sums, *_), output = self.step_of_sums(state, added)
        return (sums, *counts), output

    def step_of_sums(self, state: State, sums: Delta) -> tuple[State, Delta]:
        """`step` for the sums of all slices of a delta, wherever they were made."""
        keys, cells = self._cells(sums)
        _, states = self._before_and_after(state, keys, cells)
        return (state[0].insert(self._state_rows(keys, cells)),), self._change(states, keys, self._there(states), [])

    def _before_and_after(self, state: State, keys: list[pa.Array], cells: Cells) -> tuple[pa.RecordBatch, States]:
        """The groups as a batch, and their states: with what was known of them and, if that was anything, without."""
        batch = pa.RecordBatch.from_arrays(keys, schema=self._key_schema) if keys else without_columns(1)
        found = state[0].lookup(batch, range(self.keys), (self.keys,) if self._bucketed else ())
        if not len(found) and self.keys:
            return batch, cells.alone()
        places = cells.place(found.probe, found.rows.column(0).to_numpy()) if self._bucketed else found.probe
        return batch, cells.before_and_after(places, found.weights)

    def _change(self, states: States, keys: list[pa.Array], there: list[Bools], extremes: Sequence[pa.Array]) -> Delta:
        """The change of the output from one version of the states to the next, or from nothing."""
        values = self._finish(states, extremes)
        return (appearance if len(there) == 1 else difference)(self._schema, keys, values, *there)

    def absorb(self, state: State, delta: Delta) -> State:
        """The state with a delta added; what that does to the output is not asked, so no sum in between can be too large."""
        sums, counts = self._summed(state[1:], delta)
        return (state[0].insert(sums), *counts)

    def present(self, state: State) -> Delta:
        """The whole output."""
        sums = state[0].contents()
        if not len(sums):
            return self.start()[1]
        keys, cells = self._cells(sums)
        states = cells.alone()
        return self._change(states, keys, self._there(states), [])

    def sums(self, slices: Iterable[Delta]) -> Delta | None:
        """What a delta in slices adds to the state: rows with vectors for weights."""
        return self._summed_up((), slices)[0]

    def _summed_up(self, counts: State, parts: Iterable[Delta]) -> tuple[Delta | None, State]:
        """The same, None if there are no parts, and the new counts of distinct values."""
        found: list[Delta] = []
        limit = slicing.PAIRS
        for part in parts:
            added, counts = self._summed(counts, part)
            found.append(added)
            if sum(map(len, found)) > limit:
                # The same groups come again and again.
                found = [self._merged(found)]
                limit = max(slicing.PAIRS, 2 * len(found[0]))
        return Delta.concat(found) if found else None, counts

    def _summed(self, counts: State, delta: Delta) -> tuple[Delta, State]:
        """The same for one part."""
        groups, keys, cells = self._grouped(delta)
        after = self._add(counts, delta, groups.ids, cells)
        return self._state_rows(keys, cells), after

    def _merged(self, sums: Sequence[Delta]) -> Delta:
        """Several of them as one."""
        return self._state_rows(*self._cells(Delta.concat(sums)))

    def _cells(self, sums: Delta) -> tuple[list[pa.Array], Cells]:
        """The groups of rows of state, and cells with their sums."""
        groups, keys, cells = self._grouped(sums)
        places = cells.place(groups.ids, sums.rows.column(self.keys).to_numpy()) if self._bucketed else groups.ids
        add_lines_at(cells.sums, places, sums.weights)
        return keys, cells

    def _grouped(self, delta: Delta) -> tuple[Groups, list[pa.Array], Cells]:
        """The groups of some rows, their keys, and cells for what the rows contribute to them."""
        groups = group_rows(delta.rows, range(self.keys))
        keys = normalised(delta.rows.columns[: self.keys], groups)
        room = self._bucketed * min(len(delta), _PIECE) if self._bucketed else None
        return groups, keys, Cells(groups.count, self._width, room)

    @cached_property
    def _schema(self) -> pa.Schema:
        return schema_of(self.types)

    @cached_property
    def _key_schema(self) -> pa.Schema:
        return schema_of(self.input_types[: self.keys])

    @cached_property
    def _sums_schema(self) -> pa.Schema:
        """Of a row of state: the keys and the bucket."""
        return schema_of((*self.input_types[: self.keys], pa.int64()))

    @cached_property
    def _extremes_schema(self) -> pa.Schema:
        kept = [(extreme.type, pa.int64()) if extreme.counted else (extreme.type,) for extreme in self._extremes]
        return schema_of((*self.input_types[: self.keys], *(each for types in kept for each in types)))

    # -- sums

    @cached_property
    def _measures(self) -> tuple[Measure, ...]:
        return tuple(f for f in self.functions if isinstance(f, Measure))

    @cached_property
    def _extremes(self) -> tuple[Extreme, ...]:
        return tuple(f for f in self.functions if isinstance(f, Extreme))

    @cached_property
    def _buffers(self) -> tuple[Extreme, ...]:
        """The extremes of which buffers are kept."""
        return tuple(extreme for extreme in self._extremes if extreme.best is not None)

    @cached_property
    def _plain(self) -> tuple[tuple[Measure, int], ...]:
        """The measures of all rows, and where their slots begin."""
        return tuple((m, slot) for m, slot in zip(self._measures, self._slots, strict=False) if not m.distinct)

    @cached_property
    def _distinct(self) -> tuple[tuple[Measure, int], ...]:
        """The measures of distinct values, and where their slots begin."""
        return tuple((m, slot) for m, slot in zip(self._measures, self._slots, strict=False) if m.distinct)

    @cached_property
    def _distinct_inputs(self) -> tuple[Key, ...]:
        """For each distinct measure the columns whose combinations it counts: keys and inputs."""
        return tuple((*range(self.keys), *m.inputs) for m, _ in self._distinct)

    @cached_property
    def _slots(self) -> tuple[int, ...]:
        """Where the slots of each measure begin; slot 0 counts rows."""
        return tuple(np.cumsum([1, *(measure.accumulator.width for measure in self._measures)]).tolist())

    @cached_property
    def _width(self) -> int:
        return self._slots[-1]

    @cached_property
    def _bucketed(self) -> int:
        """How many measures have buckets."""
        return sum(measure.accumulator.buckets for measure in self._measures)

    @cached_property
    def _before_counts(self) -> int:
        """Where, in the state, the counts of distinct values begin."""
        return 2 + len(self._buffers) if self._extremes else 1

    def _add(self, seen: State, delta: Delta, ids: Int64s, cells: Cells) -> State:
        """Adds the delta to the cells, given the counts of distinct values; the new counts."""
        for rows, weights, owners in _pieces(delta, ids):
            count(weights, owners, cells.sums, 0)
            for measure, slot in self._plain:
                kept = weights if measure.condition is None else chosen(rows.column(measure.condition), weights)
                measure.accumulator.add([rows.column(i) for i in measure.inputs], kept, owners, cells, slot)
        after = []
        for (measure, slot), columns, counts in zip(self._distinct, self._distinct_inputs, seen, strict=True):
            rows, owners = delta, ids
            if measure.condition is not None:
                kept = chosen(delta.rows.column(measure.condition), delta.weights) != 0
                rows, owners = delta.where(kept), ids[kept]
            counts_after, turned, owners = _appearing(counts, rows.select(columns), owners)
            after.append(counts_after)
            values = turned.rows.columns[self.keys :]
            measure.accumulator.add(values, turned.weights, owners, cells, slot)
        return tuple(after)

    def _state_rows(self, keys: Sequence[pa.Array], cells: Cells) -> Delta:
        if cells.used > cells.size:
            keys = picked(keys, cells.groups)
        buckets = pa.array(cells.buckets) if self._bucketed else _no_buckets(cells.used)
        return Delta(pa.RecordBatch.from_arrays([*keys, buckets], schema=self._sums_schema), cells.sums[: cells.used])

    def _there(self, states: States) -> list[Bools]:
        """For each version which groups have a row."""
        if not self.keys:
            return [np.ones(1, bool) for _ in states.values]
        return list(states.values[:, : states.size, 0] != 0)

    def _finish(self, states: States, extremes: Sequence[pa.Array]) -> list[pa.Array]:
        """The value of every function for each group in each version."""
        remaining, slots = iter(extremes), iter(self._slots)
        return [
            next(remaining) if isinstance(f, Extreme) else f.accumulator.finish(states, next(slots)) for f in self.functions
        ]

    # -- least and greatest values

    def _renew_extremes(
        self, state: State, changed: Input, ids: Int64s, keys: pa.RecordBatch, there: list[Bools]
    ) -> tuple[list[pa.Array], State]:
        """The extremes of each group in each version, and the new state."""
        if not self._extremes:
            return [], ()
        size = keys.num_rows
        found = state[1].lookup(keys, range(self.keys)).consolidated()
        where = np.full(size, -1)
        where[found.probe] = np.arange(len(found))
        kept = iter(picked_or_null(found.rows.columns[self.keys :], where))
        outputs: list[pa.Array] = []
        states: list[pa.Array] = []
        buffers: list[Arrangement] = []
        for extreme in self._extremes:
            values = next(kept)
            counts = pc.fill_null(next(kept), 0).to_numpy() if extreme.counted else np.ones(size, np.int64)
            old = Best(values, counts)
            if extreme.best is None:
                new = renewed(extreme, old, delta=changed.delta, ids=ids, keys=keys, after=changed.arranged[1])
            else:
                buffer = state[2 + len(buffers)]
                new, buffer = buffered(extreme, old, buffer, delta=changed.delta, ids=ids, keys=keys, after=changed.after)
                buffers.append(buffer)
            both = pa.concat_arrays([old.values, new.values])
            states += [both, pa.array(np.concatenate([old.counts, new.counts]))] if extreme.counted else [both]
            outputs.append(both if len(there) == 2 else new.values)
        change = difference(self._extremes_schema, keys.columns, states, where >= 0, there[-1])
        return outputs, (state[1].insert(change), *buffers)


def normalised(keys: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
    """The keys of the groups as Spark gives them: −0.0 becomes 0.0."""
    # Groups are numbered in the order of their first rows: where each row is one, they are the rows.
    chosen = keys if groups.count == len(groups.ids) else picked(keys, groups.representatives)
    return [pc.add(key, 0.0).cast(key.type) if pa.types.is_floating(key.type) else key for key in chosen]


def _no_buckets(count: int) -> pa.Array:
    return _ZEROS.slice(0, count) if count <= len(_ZEROS) else pa.array(np.zeros(count, np.int64))


_ZEROS = pa.array(np.zeros(_PIECE, np.int64))


def _pieces(delta: Delta, ids: Int64s) -> Iterator[tuple[pa.RecordBatch, Int64s, Int64s]]:
    for i, piece in enumerate(delta.in_slices(_PIECE)):
        yield piece.rows, np.ascontiguousarray(piece.weights), ids[i * _PIECE : (i + 1) * _PIECE]


def _appearing(seen: Arrangement, delta: Delta, ids: Int64s) -> tuple[Arrangement, Delta, Int64s]:
    """The rows whose count leaves 0, with weight 1, and those whose count returns to it, with weight −1.

    Beside them the new counts, and the groups that the rows are of, given the groups of the delta's rows.
    """
    groups = group_rows(delta.rows, range(delta.rows.num_columns))
    columns = normalised(delta.rows.columns, groups)
    rows = pa.RecordBatch.from_arrays(columns, schema=delta.schema)
    change = sum_by(groups.ids, groups.count, delta.weights)
    found = seen.lookup(rows, range(rows.num_columns))
    before = sum_by(found.probe, groups.count, found.weights)
    turns = ((before + change) > 0).astype(np.int64) - (before > 0).astype(np.int64)
    turning = turns != 0
    return seen.insert(Delta(rows, change)), Delta(rows, turns).where(turning), ids[groups.representatives[turning]]
