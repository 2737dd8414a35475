"""Values: rows that never change.

Δ = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.operators.operator import Input, Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State


@dataclass(frozen=True)
class Values(Operator):
    """The given rows, once."""

    types: Types
    rows: pa.RecordBatch
    maintenance = "linear"
    rule = "Δ = 0"

    @property
    def monoid(self) -> str:
        return "□ (constant)"

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ()

    def start(self) -> tuple[State, Delta]:
        return (), Delta.inserting(self.rows)

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:  # noqa: ARG002
        return state, self.nothing()


@dataclass(frozen=True)
class Source(Operator):
    """Where the changes of a table enter the dataflow."""

    types: Types
    table: str
    maintenance = "linear"
    rule = "Δ = what the transaction changed"

    @property
    def monoid(self) -> str:
        return "⊎"

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        return state, inputs[0].delta
