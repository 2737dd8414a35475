"""Inner join of many inputs on equal columns, with no state but the arrangements of the inputs: a delta query.

    Δ(R₁ ⋈ … ⋈ Rₖ)  =  Σᵢ  R'₁ ⋈ … ⋈ R'ᵢ₋₁ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ ⋈ … ⋈ Rₖ        (R' = R + ΔR)

Each term starts from a change and looks up one relation after another, in the order that is best for it. For two relations
this is Δ(L ⋈ R) = ΔL ⋈ R + L' ⋈ ΔR.

The trap: where several relations change, a row that goes may meet one that comes; the term that adds the two is undone by
another term. The sum is right, but what is above may fail on rows that never were (`a / b`) and refuse a good transaction. So
the sum is merged before anybody sees it. Where only one relation changes, or rows only come or only go, there are no such rows.
A sum too large to be merged is made in two phases: first all rows go, then all come. All that the first makes is of the old
answer, and all that the second makes is of the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta, beside, products, taken
from headwater.operators.operator import Input, Joining
from headwater.picking import picked
from headwater.state import slicing
from headwater.state.consolidation import consolidate
from headwater.state.equality import equal_rows
from headwater.state.slicing import lookup_slices

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Choice, Key, State
    from headwater.state.arrangement import Arrangement


@dataclass(frozen=True)
class Lookup:
    """One more relation for the rows found so far: looked up by `probe` in an input that is arranged by the same values.

    Of the rows found, the columns `wanted` are read (None: all). Of pairs in which columns `compared` (so far, wanted) differ,
    nothing is left; of the others the columns `kept` and, of the wanted ones, `found`. NULL in `not_null` matches nothing.
    """

    input: int
    probe: Key
    not_null: Key
    wanted: Key | None
    compared: tuple[tuple[int, int], ...]
    kept: Key
    found: Key


@dataclass(frozen=True)
class Path:
    """How the change of a relation, as seen by `input`, becomes a change of the join: `kept` columns, lookups, `outputs`."""

    input: int
    kept: Key
    lookups: tuple[Lookup, ...]
    outputs: Key


@dataclass(frozen=True)
class MultiJoin(Joining):
    """Input i is relation `relations[i]` arranged by `keys[i]`; there is one path for each relation."""

    types: Types
    relations: tuple[int, ...]
    keys: tuple[Key, ...]
    paths: tuple[Path, ...]
    lineage: Key | None = None
    choice: Choice | None = None
    filtered: bool = field(default=True, metadata={"later": True})
    """Whether a filter of the keys that are there is asked before they are searched for."""

    @property
    def rule(self) -> str:  # type: ignore[override]
        if len(self.paths) == 2:
            return "Δ(L ⋈ R) = ΔL ⋈ R' + L ⋈ ΔR"
        return "Δ(R₁ ⋈ … ⋈ Rₖ) = Σᵢ R'₁ ⋈ … ⋈ R'ᵢ₋₁ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ ⋈ … ⋈ Rₖ"

    @property
    def monoid(self) -> str:
        return " × ".join("⊎" for _ in self.paths)

    def arranged_by(self) -> tuple[Key | None, ...]:
        return self.keys

    @property
    def together(self) -> tuple[Key | None, ...]:
        """Each row of a change goes its own way: no key is too frequent for one shard."""
        return tuple(None for _ in self.keys)

    def meets_new(self, changed: Collection[int]) -> Collection[int]:
        """A change meets the relations before its own as they are after the epoch, the others as they were."""
        last = max((self.relations[i] for i in changed), default=0)
        return [i for i in changed if self.relations[i] < last]

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        slices = list(self.slices(inputs))
        return state, Delta.concat(slices) if slices else self.nothing()

    @property
    def sides(self) -> tuple[int, ...]:
        return self.relations

    @property
    def driving(self) -> int:
        return self.paths[-1].input

    def decision(self) -> Choice | None:
        return self.choice

    def slices(self, inputs: Sequence[Input]) -> Iterator[Delta]:
        """The change in slices of a bounded number of rows each; none of them is empty, and none undoes another.

        An exception are inputs of a shard: what another shard takes away is not known there.
        """
        if not self._is_mixed(inputs):
            yield from self._terms(_Meeting.of(inputs))
            return
        terms = self._terms(_Meeting.of(inputs))
        few, rows = [], 0
        for part in terms:
            few.append(part)
            rows += len(part)
            if rows > slicing.PAIRS:
                break
        else:
            merged = consolidate(Delta.concat(few)) if few else self.nothing()
            if len(merged):
                yield merged
            return
        if any(each.is_shard for each in inputs):
            yield from few
            del few
            yield from terms
            return
        del few, terms
        for phase in _Meeting.of(inputs).phases():
            yield from self._terms(phase)

    def _is_mixed(self, inputs: Sequence[Input]) -> bool:
        """Whether rows come and go, of several relations: then terms may undo each other."""
        deltas = [inputs[path.input].delta for path in self.paths]
        changed = [delta.weights for delta in deltas if len(delta)]
        if len(changed) < 2:
            return False
        return min(int(weights.min()) for weights in changed) < 0 < max(int(weights.max()) for weights in changed)

    def _terms(self, meeting: _Meeting) -> Iterator[Delta]:
        """What the change of each relation does, given those before it as they are and those after it as they were."""
        for relation, path in enumerate(self.paths):
            delta = meeting.deltas[path.input]
            if not len(delta):
                continue
            others = [
                (meeting.after if self.relations[lookup.input] < relation else meeting.before)[lookup.input]
                for lookup in path.lookups
            ]
            # While tables are loaded, all terms but one meet a relation that was empty.
            if all(map(len, others)):
                hops = list(zip(path.lookups, others, strict=True))
                for rows in self._followed(_columns(delta, path.kept), hops):
                    yield _columns(rows, path.outputs)

    def _followed(self, rows: Delta, hops: Sequence[tuple[Lookup, Arrangement]]) -> Iterator[Delta]:
        """The rows beside all those that they meet, one relation after another."""
        if not hops:
            yield rows
            return
        (lookup, other), *rest = hops
        for met in _met(rows, lookup, other, filtered=self.filtered):
            yield from self._followed(met, rest)


@dataclass(frozen=True, eq=False)
class _Meeting:
    """Changes of inputs, and the inputs before and after them."""

    deltas: Sequence[Delta]
    before: Sequence[Arrangement]
    after: Sequence[Arrangement]

    @staticmethod
    def of(inputs: Sequence[Input]) -> _Meeting:
        arranged = [each.arranged for each in inputs]
        return _Meeting([each.delta for each in inputs], [before for before, _ in arranged], [after for _, after in arranged])

    def phases(self) -> tuple[_Meeting, _Meeting]:
        """First all that goes, then all that comes: so every row that is made is one of the old answer or of the new one."""
        going, coming = ([delta.where(sign * delta.weights > 0) for delta in self.deltas] for sign in (-1, 1))
        between = [before.insert(delta) for before, delta in zip(self.before, going, strict=True)]
        return _Meeting(going, self.before, between), _Meeting(coming, between, self.after)


def _met(rows: Delta, lookup: Lookup, other: Arrangement, *, filtered: bool) -> Iterator[Delta]:
    """The rows beside those they meet, in slices."""
    known = _known(rows, lookup.not_null)
    mine = known.rows.columns
    for found in lookup_slices(other, known.rows, lookup.probe, lookup.wanted, filtered=filtered):
        theirs, probe, weights = found.rows.columns, found.probe, found.weights
        if lookup.compared:
            left = beside(picked([mine[i] for i, _ in lookup.compared], probe), len(found))
            same = equal_rows(left, range(len(lookup.compared)), found.rows, [i for _, i in lookup.compared])
            at = np.flatnonzero(same)
            probe, weights = probe[at], taken(weights, at)
            kept = picked([theirs[i] for i in lookup.found], at)
        else:
            kept = [theirs[i] for i in lookup.found]
        if len(probe):
            pairs = beside([*picked([mine[i] for i in lookup.kept], probe), *kept], len(probe))
            yield Delta(pairs, products(taken(known.weights, probe), weights))


def _known(rows: Delta, columns: Key) -> Delta:
    """The rows without NULL in any of the columns."""
    missing = [array for array in (rows.rows.column(i) for i in columns) if array.null_count]
    if not missing:
        return rows
    return rows.where(np.logical_and.reduce([array.is_valid().to_numpy(zero_copy_only=False) for array in missing]))


def _columns(delta: Delta, chosen: Key) -> Delta:
    return delta if chosen == tuple(range(delta.rows.num_columns)) else delta.select(chosen)
