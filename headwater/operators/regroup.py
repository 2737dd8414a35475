"""Regroup: the universal middle way, for functions that no sum can maintain — windows, percentiles, collected lists, UDAFs.

    Δ output  =  −(old output of the touched groups) + f(rows of the touched groups)

Only groups with a changed row are evaluated again. What a group gave last time is kept, and exactly that is taken back: `f` may
order ties as it likes without leaving anything behind. With no key there is one group, the whole input: that is recomputing.

Groups are evaluated in slices of a bounded number of rows, a group as a whole: a function may ask for all of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.operators.operator import Input, Operator, schema_of
from headwater.state import slicing
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate, group_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State

    # From the rows of some whole groups, one batch for each input, to what they give.
    Evaluate = Callable[[list[pa.RecordBatch]], pa.RecordBatch]

# An evaluation may be a job of Spark's: so it gets the rows of several slices.
_SLICES = 4


@dataclass(frozen=True)
class Regroup(Operator):
    """Evaluates touched groups: `key` in the inputs, `output_key` in what they give."""

    types: Types
    input_types: tuple[Types, ...]
    key: Key
    output_key: Key
    evaluate: Evaluate
    why: str
    engine: str
    whole: bool = False
    rule = "Δ = −(what touched groups gave) + f(touched groups)"

    @property
    def maintenance(self) -> str:  # type: ignore[override]
        return "recomputed" if self.whole else "touched groups"

    @property
    def monoid(self) -> str:
        return "⊎ (rows of a group)"

    @property
    def lineage(self) -> Key:
        return self.output_key

    @property
    def evaluated_by(self) -> str:
        return self.engine

    def reason(self) -> str | None:
        return self.why

    def arranged_by(self) -> tuple[Key | None, ...]:
        return tuple(self.key for _ in self.input_types)

    def start(self) -> tuple[State, Delta]:
        state = Arrangement.empty(schema_of(self.types), self.output_key)
        if self.key:
            return (state,), self.nothing()
        first = Delta.inserting(self.evaluate([Delta.empty(schema_of(types)).rows for types in self.input_types]))
        return (state.insert(first),), first

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        changed = Delta.concat([i.delta.select(self.key) for i in inputs if len(i.delta)]).rows
        every = tuple(range(len(self.key)))
        touched = changed.take(pa.array(group_rows(changed, every).representatives))
        kept = [*(each.arranged[1] for each in inputs), state[0]]
        change = Delta.concat([self._again(part, kept) for part in _in_slices(touched, kept)])
        return (state[0].insert(change),), change

    def _again(self, touched: pa.RecordBatch, kept: Sequence[Arrangement]) -> Delta:
        """The change of what some groups give, from all rows of the inputs and from what was given last time."""
        *inputs, given = kept
        every = tuple(range(len(self.key)))
        rows = []
        for arranged in inputs:
            found = arranged.lookup(touched, every).consolidated()
            rows.append(found.rows.take(pa.array(np.repeat(np.arange(len(found)), found.weights))))
        new = Delta.inserting(self.evaluate(rows))
        old = given.lookup(touched, every)
        return consolidate(Delta.concat([Delta(old.rows, -old.weights), new]))


def _in_slices(touched: pa.RecordBatch, kept: Sequence[Arrangement]) -> Iterator[pa.RecordBatch]:
    """Groups in slices of so many that their rows are not too many, or one group."""
    most = _SLICES * slicing.PAIRS
    if len(touched) <= 1 or sum(map(len, kept)) <= most:
        yield touched
        return
    every = range(touched.num_columns)
    counts = sum(slicing.counts_of(arranged, touched, every) for arranged in kept)
    for start, stop in pairwise(slicing.bounds_of_slices(np.asarray(counts), most)):
        yield touched.slice(start, stop - start)
