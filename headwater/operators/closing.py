"""Closing: one relation of a fixpoint while it only grows, round by round.

    D' = D + ΔD          Δoutput = the rows of ΔD that nobody believed, each with the round of its earliest derivation

It keeps the derivations and marks that `Fixpoint` keeps of the relation, so that the fixpoint goes on from its state. Rows of
different keys have nothing to do with each other: so shards close a relation side by side, and what they give goes round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta
from headwater.operators.operator import Input, Operator, schema_of
from headwater.operators.settling import Found, normal, settled
from headwater.picking import rows_at
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State

# All rounds have come: nothing that is derived has to wait.
_ANY = (1 << 62) - 1


@dataclass(frozen=True)
class Closing(Operator):
    """New rows of a set; the last of `types` is the rank, in what comes and what goes."""

    types: Types
    rule = "D' = D + ΔD;  a row is given when it is first derived"

    @property
    def monoid(self) -> str:
        return "+ (derivations by round)"

    @property
    def together(self) -> tuple[Key | None, ...]:
        return (self._key,)

    @property
    def _key(self) -> Key:
        return tuple(range(len(self.types) - 1))

    def start(self) -> tuple[State, Delta]:
        return (Arrangement.empty(schema_of(self.types), self._key),), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        delta = inputs[0].delta
        *values, ranks = delta.rows.columns
        schema = schema_of(self.types)
        derived = pa.RecordBatch.from_arrays([*map(normal, values), pc.add(ranks, 1)], schema=schema)
        known = state[0].insert(Delta(derived, delta.weights))
        keys = rows_at(derived, group_rows(derived, self._key).representatives).select(self._key)
        found = known.lookup(keys, self._key)
        rounds = found.rows.columns[-1].to_numpy()
        derivations = Found(found.probe, rounds, rounds, found.weights)
        at, first, weights, *_ = settled(derivations, keys.num_rows, _ANY, valued=False, eager=False)
        new = rows_at(found.rows, at).columns[:-1]
        marks = pa.RecordBatch.from_arrays([*new, pa.array(np.negative(first))], schema=schema)
        believed = pa.RecordBatch.from_arrays([*new, pa.array(first)], schema=schema)
        return (known.insert(Delta(marks, weights)),), Delta(believed, weights)
