"""What an operator is: a step from state and changed inputs to new state and a changed output.

    step : (state, Δinputs) → (state', Δoutput)     with     output' = output + Δoutput = operator(inputs + Δinputs)

State is made of arrangements, which are values, so a step that fails has changed nothing. An operator may ask that an input is
*arranged* by some columns; that arrangement is kept once for everybody who asks for the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from headwater.delta import Delta

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from headwater.algebra.plan import Types
    from headwater.state.arrangement import Arrangement

    State = tuple[Arrangement, ...]
    Key = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Input:
    """What one input did in this epoch; `before` and `after` only where it is arranged."""

    delta: Delta
    before: Arrangement | None = None
    after: Arrangement | None = None
    is_shard: bool = False
    """Whether other shards have more of the change, and of what is gone `after` it."""

    @property
    def arranged(self) -> tuple[Arrangement, Arrangement]:
        if self.before is None or self.after is None:
            raise ValueError("This input is not arranged.")
        return self.before, self.after


class Exhausted(Exception):
    """A buffer has run empty, and the rows to fill it from are needed: the step is to be taken again with them."""


class Operator(ABC):
    """One node of a dataflow."""

    maintenance: ClassVar[str] = "stateful"
    rule: ClassVar[str]
    types: Types

    @property
    def monoid(self) -> str:
        """What merges the operator's state."""
        return "⊎"

    @property
    def lineage(self) -> Key | None:
        """The columns of the output by which state is partitioned, if there are such."""
        return None

    def arranged_by(self) -> tuple[Key | None, ...]:
        """For each input the columns it must be arranged by, None where its deltas suffice."""
        return (None,)

    def refilled_by(self) -> Key | None:
        """The columns by which the only input is to be arranged where the step raises `Exhausted`."""
        return None

    @property
    def together(self) -> tuple[Key | None, ...]:
        """For each input the columns whose equal values must meet in one shard; None where its rows may be in any."""
        return self.arranged_by()

    def meets_new(self, changed: Collection[int]) -> Collection[int]:  # noqa: ARG002
        """If these inputs change: those whose new rows a shard looks up, in whichever shard they are arranged."""
        return ()

    def start(self) -> tuple[State, Delta]:
        """State and output while all inputs are empty."""
        return (), self.nothing()

    @abstractmethod
    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        """New state and the change of the output."""

    def nothing(self) -> Delta:
        return self._nothing

    @cached_property
    def _nothing(self) -> Delta:
        return Delta.empty(schema_of(self.types))

    def reason(self) -> str | None:
        """Why the operator recomputes, where it does."""
        return None


def schema_of(types: Sequence[pa.DataType]) -> pa.Schema:
    """The engine's schema for columns of these types."""
    return pa.schema([pa.field(f"c{i}", kind) for i, kind in enumerate(types)])
