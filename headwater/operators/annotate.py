"""Annotate: rows, beside which something keeps what they follow from.

Δ = ΔR;   the annotations change by a step of their own, and nothing is read from them unless someone asks
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.operators.operator import Input, Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Types
    from headwater.delta import Delta
    from headwater.operators.operator import Key, State


@dataclass(frozen=True)
class Annotate(Operator):
    """The rows of the first input; the second keeps their annotations."""

    types: Types
    maintenance = "linear"
    rule = "Δ = ΔR"
    annotating = (1,)

    def arranged_by(self) -> tuple[Key | None, ...]:
        return (None, None)

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        return state, inputs[0].delta
