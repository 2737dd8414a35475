"""Fixpoint: relations defined by themselves, exact under insertions and deletions, at a cost that follows the change.

    derivations   D(x, s) = how many ways there are to derive x from rows of which the latest has rank s − 1
    rank          ρ(x)    = the round in which x was believed;   x is believed  iff  Σ D(x, s) over s ≤ ρ(x)  is positive

A row is believed because of rows that were believed before it, never because of itself: that is what a count alone cannot say
where rows support each other in a circle. Ranks travel through the body as one more column, of which a join takes the greater.

    an epoch      the changes of the inputs go through the body once and change D, as does each row that is believed or dropped;
                  rounds are done in ascending order, each over the rows of which a derivation changed there; once nothing waits
                  to be dropped, all that is derived may be believed at once, whatever its round
    round r       x, believed at ρ ≤ r, without derivations from before ρ  →  dropped;  x believed at ρ > r waits for round ρ
                  x, not believed                                          →  believed at its earliest derivation s, in round s

Ranks stay as they are while they hold, though there may be a shorter way by now: an insertion touches only rows that are new, a
deletion only rows all of whose earlier derivations are gone. Whether a row is there does not depend on the ranks:

    proof    when nothing is left to do, all that is derivable from believed rows is believed, so they contain the least
             fixpoint; and by induction over ranks each of them is derivable, so it contains them.

The best of a group (MIN, MAX) is the same with values: the group believes its best derived value, with the rank of that, and
a better one replaces it: when nothing waits to be dropped, so that all that is believed is derivable, and the best ones first,
as Dijkstra does. By monotony (the compiler sees to it) a better value below never makes a worse one above, so what is believed
in the end is again both closed and derivable by induction over ranks, which only the least fixpoint is.

UNION ALL keeps no ranks: what changes goes round, Δ ← body(Δ), until nothing is left.

The trap: differences that do not cancel would go round for ever. Whatever is believed or dropped is emitted once, and a limit
on rounds and rows ends a recursion that has no end, with nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.errors import RecursionLimit
from headwater.operators.bodies import Program, program_of
from headwater.operators.going_round import GoingRound
from headwater.operators.linear import Linear
from headwater.operators.operator import Input, Operator, schema_of
from headwater.state.arrangement import Arrangement

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from headwater.algebra.plan import Types
    from headwater.delta import Delta
    from headwater.operators.operator import Choice, Key, State


RANK = pa.int64()


@dataclass(frozen=True)
class Rows(Operator):
    """Where the rows so far of a relation enter the body, with their ranks."""

    types: Types
    relation: int
    maintenance = "linear"
    rule = "the rows so far"

    def arranged_by(self) -> tuple[Key | None, ...]:
        return ()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        return state, inputs[0].delta


@dataclass(frozen=True)
class Believed:
    """A relation within the fixpoint: a set; or the best value (the last column) of each group; or a bag."""

    name: str
    types: Types
    kind: str

    @property
    def keys(self) -> int:
        return len(self.types) - (self.kind in ("min", "max"))


@dataclass(frozen=True)
class Line:
    """An operator of the body: inputs are relations and then lines by number, or inputs of the fixpoint as −1, −2 and so on."""

    operator: Operator
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Fixpoint(Operator):
    """Gives the rows of relation `result`; `bodies` are the lines that derive the rows of each, with their ranks."""

    types: Types
    relations: tuple[Believed, ...]
    lines: tuple[Line, ...]
    bodies: tuple[int, ...]
    result: int
    inputs: int
    rounds: int
    rows: int
    choice: Choice
    rule = "x ∈ X iff x has a derivation from rows believed before it;  rounds in ascending order, over what changed"

    @property
    def monoid(self) -> str:
        return "+ (derivations by round)"

    @property
    def lineage(self) -> Key:
        return tuple(range(len(self.types)))

    def arranged_by(self) -> tuple[Key | None, ...]:
        return (None,) * self.inputs

    @property
    def together(self) -> tuple[Key | None, ...]:
        """One task does all rounds: what is derived in one of them is looked up in the next."""
        return ((),) * self.inputs

    def meets_new(self, changed: Collection[int]) -> Collection[int]:
        """Joins of the body look up inputs as they are after the epoch."""
        return changed

    def start(self) -> tuple[State, Delta]:
        kept = [Arrangement.empty(self.schemas[i], range(relation.keys)) for i, relation in enumerate(self.relations)]
        figures = Arrangement.empty(schema_of((pa.int64(), pa.int64())), ())
        return (*kept, *(part for line in self.lines for part in line.operator.start()[0]), figures), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        return GoingRound(self, state, inputs).run()

    def decision(self) -> Choice:
        return self.choice

    def progress(self, state: State) -> tuple[str, ...]:
        """How many rounds the last change took."""
        figures = state[-1].contents().rows.to_pylist() if state else []
        return tuple(f"rounds: {each['c0']} for the last change, ranks up to {each['c1']}" for each in figures)

    def endless(self, relation: int, row: tuple[object, ...], *, of_rows: bool) -> RecursionLimit:
        """What is said of a recursion that goes on where it should have ended, about to add a row."""
        what = f"{self.rows} rows" if of_rows else f"{self.rounds} rounds"
        return RecursionLimit(
            f"the recursion of {self.relations[relation].name!r} has not ended after {what}, and nothing was changed. "
            f"It was about to add {row!r}. Bound it (a condition on the row that grows, or MIN), "
            "or raise the limit: WITH RECURSIVE r MAX RECURSION LEVEL n AS …, or spark.sql.cteRecursionRowLimit for rows"
        )

    def circular(self, relation: int, row: tuple[object, ...]) -> RecursionLimit:
        """What is said of a recursion that goes in a circle, with a row that contends for ever."""
        settings = self.relations[relation]
        return RecursionLimit(
            f"the recursion of {settings.name!r} would never end, and nothing was changed: in the group of {row!r}, the "
            f"{settings.kind.upper()} makes a better value of itself, as on a cycle of costs that add up to less than nothing. "
            "Leave such values out by a condition"
        )

    @cached_property
    def schemas(self) -> tuple[pa.Schema, ...]:
        """Of the derivations of each relation: its columns and the round."""
        return tuple(schema_of((*relation.types, RANK)) for relation in self.relations)

    @cached_property
    def program(self) -> Program | None:
        """What compiled rounds run in place of the body; None if it is not for them."""
        return program_of(self)

    @cached_property
    def arranging(self) -> frozenset[int]:
        """The lines that keep rows, and those that lead to them."""
        found: set[int] = set()
        for i, line in reversed(list(enumerate(self.lines))):
            if i in found or line.operator.keeps_rows:
                found |= {i, *(source - len(self.relations) for source in line.inputs)}
        return frozenset(i for i in found if i >= 0)

    @cached_property
    def passed_on(self) -> dict[int, int]:
        """The lines that nothing reads but one linear operator, and which line that is."""
        first = len(self.relations)
        readers: dict[int, list[int]] = {}
        for i, line in enumerate(self.lines):
            for source in line.inputs:
                readers.setdefault(source - first, []).append(i)
        linear = {i for i, line in enumerate(self.lines) if isinstance(line.operator, Linear)}
        read = {body - first for body in self.bodies}
        return {i: by[0] for i, by in readers.items() if i >= 0 and i not in read and len(by) == 1 and by[0] in linear}

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Where the states of each line are."""
        ends = np.cumsum([len(self.relations), *(len(line.operator.start()[0]) for line in self.lines)]).tolist()
        return tuple(pairwise(ends))
