"""Linear steps: filter, project, explode — and union, which is linear in all its inputs.

Δf(R) = f(ΔR)          Δ(R ⊎ S) = ΔR ⊎ ΔS

The trap: an update of a column that `f` drops becomes a row that goes and comes again. Merged here, it costs nobody above;
but of many rows, to find those that are equal costs more than most steps above take for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta
from headwater.evaluation.stages import typed
from headwater.operators.operator import Input, Operator
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.algebra.plan import Types
    from headwater.evaluation.stages import Stage
    from headwater.operators.operator import Key, State

_FEW = 1 << 14


@dataclass(frozen=True)
class Linear(Operator):
    """Fused row functions."""

    types: Types
    stage: Stage
    maintenance = "linear"
    rule = "Δf(R) = f(ΔR)"
    passes_slices = True
    keeps_size = True

    @property
    def monoid(self) -> str:
        return "none"

    @property
    def evaluated_by(self) -> str:
        return self.stage.engine

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        found = self.stage.run(inputs[0].delta)
        return state, consolidate(found) if len(found) <= _FEW and np.count_nonzero(found.weights < 0) else found


@dataclass(frozen=True)
class Union(Operator):
    """All rows of all inputs."""

    types: Types
    count: int
    maintenance = "linear"
    rule = "Δ(R ⊎ S) = ΔR ⊎ ΔS"
    passes_slices = True

    @property
    def monoid(self) -> str:
        return "none"

    def arranged_by(self) -> tuple[Key | None, ...]:
        return (None,) * self.count

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        parts = [Delta(typed(i.delta.rows.columns, self.types, len(i.delta)), i.delta.weights) for i in inputs if len(i.delta)]
        return state, Delta.concat(parts) if parts else self.nothing()
