"""Scalar: the value of a scalar subquery, as a relation of exactly one row.

output  =  the row of the input;  NULL if there is none;  an error if there are several
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.delta import Delta
from headwater.errors import EvaluationFailed
from headwater.operators.operator import Input, Operator, schema_of
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State


@dataclass(frozen=True)
class Scalar(Operator):
    """One row always."""

    types: Types
    rule = "output = the one row, or NULL"

    @property
    def monoid(self) -> str:
        return "□ (one value)"

    @property
    def lineage(self) -> Key:
        return ()

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ((),)

    def start(self) -> tuple[State, Delta]:
        return (), self._value(self.nothing())

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        before, after = inputs[0].arranged
        return state, consolidate(Delta.concat([-self._value(before.contents()), self._value(after.contents())]))

    def _value(self, contents: Delta) -> Delta:
        if not len(contents):
            columns = [pa.nulls(1, kind) for kind in self.types]
            return Delta.inserting(pa.RecordBatch.from_arrays(columns, schema=schema_of(self.types)))
        if contents.weights.sum() > 1:
            raise too_many_rows()
        return contents


def too_many_rows() -> EvaluationFailed:
    return EvaluationFailed(
        "[SCALAR_SUBQUERY_TOO_MANY_ROWS] a subquery used as an expression gave more than one row; "
        "make it give one at most (with an aggregate, or LIMIT 1)"
    )
