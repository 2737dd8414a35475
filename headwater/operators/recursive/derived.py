"""Relations defined by themselves, kept by a strategy with provenance: the operator of the dataflow around it.

    Δoutput  =  rows that the strategy says came − rows that it says went,   for base rows that came and went

The state of a strategy is no arrangement: it is found again from the rows of the inputs, which are arranged. What is kept
beside these is a stamp that says which state of the strategy belongs to it. A strategy that has gone on, because an epoch was
computed and then forgotten, does not have that stamp, and is made anew from the inputs as they were.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from secrets import randbits
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, beside
from headwater.operators.operator import Input, Operator, schema_of
from headwater.operators.recursive.absorption import Absorption
from headwater.operators.recursive.dred import DRed, Recompute
from headwater.operators.recursive.network import batch_of, rows_of
from headwater.operators.recursive.relative import Relative
from headwater.operators.recursive.strategy import no_cycles
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.algebra import plan
    from headwater.algebra.plan import Types
    from headwater.operators.operator import Choice, Key, State
    from headwater.operators.recursive.network import Row
    from headwater.operators.recursive.strategy import Settings, Strategy

STRATEGIES: Mapping[str, Any] = {
    "absorption-lazy": Absorption,
    "absorption-eager": Absorption,
    "relative": Relative,
    "dred": DRed,
    "recompute": Recompute,
}


@dataclass
class Live:
    """The strategy as it is after the epoch with the stamp."""

    strategy: Strategy | None = None
    stamp: int | None = None
    copies: dict[int, Counter[Row]] = field(default_factory=dict)


@dataclass(frozen=True)
class Derived(Operator):
    """The rows of one relation; `sources` are the plans of the inputs, for who asks where a row comes from.

    `identity` is that of the fixpoint it was made of.
    """

    types: Types
    strategy: str
    settings: Settings
    sources: tuple[plan.Node, ...]
    choice: Choice
    identity: str
    rule = "x ∈ X iff the function of its derivations over base rows is not false"

    @property
    def monoid(self) -> str:
        return "∨ (derivations)" if self.strategy.startswith("absorption") else "+ (derivations)"

    @property
    def lineage(self) -> Key:
        return (0,) if self.types else ()

    @property
    def needs_driver(self) -> bool:
        return True

    def decision(self) -> Choice:
        return self.choice

    def arranged_by(self) -> tuple[Key | None, ...]:
        return tuple(tuple(range(len(source.types))) for source in self.sources)

    def start(self) -> tuple[State, Delta]:
        return (Arrangement.empty(schema_of((pa.int64(),)), ()),), self.nothing()

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        with self.lock, no_cycles():
            strategy = self._found(state, inputs)
            self._live.strategy = None
            turned = [self._counted(i, *_turned(each)) for i, each in enumerate(inputs)]
            appeared, vanished = strategy.apply([gone for gone, _ in turned], [come for _, come in turned])
            self._live.strategy, self._live.stamp = strategy, randbits(62)
            stamped = beside([pa.array([self._live.stamp])], 1)
        kept = Arrangement.empty(state[0].schema, ()).insert(Delta.inserting(stamped))
        rows = batch_of([*appeared, *vanished], self.types)
        return (kept,), Delta(rows, np.repeat([1, -1], [len(appeared), len(vanished)]).astype(np.int64))

    def live(self, state: State) -> Strategy | None:
        """The strategy that belongs to a state, if it is at hand."""
        stamps = state[0].contents().rows.column(0).to_pylist() if state else []
        return self._live.strategy if stamps == [self._live.stamp] else None

    def figures(self, state: State) -> dict[str, Any]:
        """What the strategy exchanged and keeps, if it is at hand."""
        with self.lock:
            live = self.live(state)
            found = {} if live is None else live.figures()
        return {"strategy": self.strategy, "shards": self.settings.shards, **found}

    def _found(self, state: State, inputs: Sequence[Input]) -> Strategy:
        known = self.live(state)
        if known is not None:
            return known
        made: Strategy = STRATEGIES[self.strategy.partition(" ")[0]](self.settings)
        self._live.copies.clear()
        before = [self._counted(i, [], rows_of(each.arranged[0].contents().rows))[1] for i, each in enumerate(inputs)]
        if any(before):
            made.apply([[] for _ in inputs], before)
        return made

    def _counted(self, number: int, gone: list[Row], come: list[Row]) -> tuple[list[Row], list[Row]]:
        """What turns out to go and to come where −0.0 and 0.0 are one value: the last of equal rows, and the first."""
        if not any(map(pa.types.is_floating, self.sources[number].types)):
            return gone, come
        copies = self._live.copies.setdefault(number, Counter())
        before = {row: copies[row] > 0 for row in (*gone, *come)}
        copies.update(come)
        copies.subtract(gone)
        now = {row: copies[row] > 0 for row in before}
        return [row for row in before if before[row] and not now[row]], [row for row in before if now[row] and not before[row]]

    @cached_property
    def _live(self) -> Live:
        return Live()

    @cached_property
    def lock(self) -> Lock:
        """Held while the strategy is at work, or is looked at."""
        return Lock()


def _turned(change: Input) -> tuple[list[Any], list[Any]]:
    """The rows of an input that are there no longer, and those that are there now and were not before."""
    if not len(change.delta):
        return [], []
    rows = consolidate(change.delta).rows
    was, now = (arranged.weights_of(rows) > 0 for arranged in change.arranged)
    delta = Delta(rows, np.zeros(rows.num_rows, np.int64))
    return rows_of(delta.where(was & ~now).rows), rows_of(delta.where(~was & now).rows)
