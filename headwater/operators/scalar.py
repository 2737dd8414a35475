"""Scalar: the value of a scalar subquery, as a relation of exactly one row.

output  =  the row of the input;  NULL if there is none;  an error if there are several
Δ output  =  Δ input,  − NULL if there was no row,  + NULL if there is none now
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
        return (), self._null

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        before, after = (arranged.total for arranged in inputs[0].arranged)
        if after > 1:
            raise too_many_rows()
        parts = [inputs[0].delta]
        if not before:
            parts.append(-self._null)
        if not after:
            parts.append(self._null)
        return state, consolidate(Delta.concat(parts))

    @cached_property
    def _null(self) -> Delta:
        """What is there while there is no row."""
        columns = [pa.nulls(1, kind) for kind in self.types]
        return Delta.inserting(pa.RecordBatch.from_arrays(columns, schema=schema_of(self.types)))


def too_many_rows() -> EvaluationFailed:
    return EvaluationFailed(
        "[SCALAR_SUBQUERY_TOO_MANY_ROWS] a subquery used as an expression gave more than one row; "
        "make it give one at most (with an aggregate, or LIMIT 1)"
    )
