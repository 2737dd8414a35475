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
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

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


@dataclass(frozen=True)
class Choice:
    """What `explain` shows of a decision: what was decided, the ways that changes take, and how many rows were expected."""

    text: str | None
    ways: tuple[str, ...]
    rows: int | None


class Operator(ABC):
    """One node of a dataflow. It declares what it can do, so that who places, feeds or explains it knows none by name."""

    maintenance: ClassVar[str] = "stateful"
    rule: ClassVar[str]
    types: Types
    keeps_rows: ClassVar[bool] = False
    """Whether its state is one arrangement of all rows of its output, by `lineage`."""
    passes_slices: ClassVar[bool] = False
    """Whether it has no state, and gives for all rows the sum of what it gives for slices of them, one input after another."""
    keeps_size: ClassVar[bool] = False
    """Whether it gives about as many rows as come to it, or fewer."""
    annotating: ClassVar[tuple[int, ...]] = ()
    """The inputs that change nothing of the output: they keep something beside it."""

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

    @property
    def sides(self) -> tuple[int, ...]:
        """For each input the relation that it arranges, where a change meets all relations but its own; else nothing."""
        return ()

    @property
    def evaluated_by(self) -> str:
        """The engine that evaluates its expressions."""
        return "arrow"

    @property
    def needs_driver(self) -> bool:
        """Whether only the driver can run it: it asks Spark, or keeps more than arrangements."""
        return self.evaluated_by == "spark"

    def reason(self) -> str | None:
        """Why the operator recomputes, where it does."""
        return None

    def decision(self) -> Choice | None:
        """What the compiler decided, where it had a choice."""
        return None

    def progress(self, state: State) -> tuple[str, ...]:  # noqa: ARG002
        """What a state tells of the last change, in words."""
        return ()

    def figures(self, state: State) -> dict[str, Any]:  # noqa: ARG002
        """What is counted beside the state, if anything is."""
        return {}


class Joining(Operator):
    """An operator whose change may be many more rows than come to it: it gives them in slices."""

    @abstractmethod
    def slices(self, inputs: Sequence[Input]) -> Iterator[Delta]:
        """The change in slices of a bounded number of rows each; none of them is empty."""

    @property
    def driving(self) -> int:
        """The input whose rows pass by, slice by slice, while all others stay."""
        return 0


class Summing(Operator):
    """An operator whose state is a sum over its only input's rows.

    state(Σ slices) = Σ state(slice)
    """

    @property
    @abstractmethod
    def takes_slices(self) -> bool:
        """Whether `step_in_slices`, `absorb` and `present` may be used: where nothing has to be looked for among all rows."""

    @property
    @abstractmethod
    def combines(self) -> bool:
        """Whether, beyond that, `sums` may be made wherever rows are: where states are nothing but sums."""

    @abstractmethod
    def step_in_slices(self, state: State, slices: Iterable[Delta]) -> tuple[State, Delta]:
        """`step` for a delta that comes in slices."""

    @abstractmethod
    def step_of_sums(self, state: State, sums: Delta) -> tuple[State, Delta]:
        """`step` for the sums of all slices of a delta, wherever they were made."""

    @abstractmethod
    def absorb(self, state: State, delta: Delta) -> State:
        """The state with a delta added; what that does to the output is not asked."""

    @abstractmethod
    def present(self, state: State) -> Delta:
        """The whole output."""

    @abstractmethod
    def sums(self, slices: Iterable[Delta]) -> Delta | None:
        """What a delta in slices adds to the state."""


def schema_of(types: Sequence[pa.DataType]) -> pa.Schema:
    """The engine's schema for columns of these types."""
    return pa.schema([pa.field(f"c{i}", kind) for i, kind in enumerate(types)])
