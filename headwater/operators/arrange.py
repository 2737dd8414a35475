"""Arrange: keeps an input indexed by some columns, for all operators that look rows up in it.

A' = A + ΔA;   the delta passes through unchanged
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.operators.operator import Input, Operator, schema_of
from headwater.state.arrangement import Arrangement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Types
    from headwater.delta import Delta
    from headwater.operators.operator import Key, State


@dataclass(frozen=True)
class Arrange(Operator):
    """The input's rows by `key`."""

    types: Types
    key: Key
    rule = "A' = A + ΔA"
    keeps_rows = True
    keeps_size = True

    @property
    def lineage(self) -> Key:
        return self.key

    def start(self) -> tuple[State, Delta]:
        return (Arrangement.empty(schema_of(self.types), self.key),), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        delta = inputs[0].delta
        return (state[0].insert(delta),), delta
