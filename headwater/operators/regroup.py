"""Regroup: the universal middle way, for functions that no sum can maintain — windows, percentiles, collected lists, UDAFs.

    Δ output  =  −(old output of the touched groups) + f(rows of the touched groups)

Only groups with a changed row are evaluated again. What a group gave last time is kept, and exactly that is taken back: `f` may
order ties as it likes without leaving anything behind. With no key there is one group, the whole input: that is recomputing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.operators.operator import Input, Operator, schema_of
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate, group_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State

    # From the rows of some whole groups, one batch for each input, to what they give.
    Evaluate = Callable[[list[pa.RecordBatch]], pa.RecordBatch]


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
        rows = []
        for changed_input in inputs:
            found = changed_input.arranged[1].lookup(touched, every).consolidated()
            rows.append(found.rows.take(pa.array(np.repeat(np.arange(len(found)), found.weights))))
        new = Delta.inserting(self.evaluate(rows))
        old = state[0].lookup(touched, every)
        change = consolidate(Delta.concat([Delta(old.rows, -old.weights), new]))
        return (state[0].insert(change),), change
