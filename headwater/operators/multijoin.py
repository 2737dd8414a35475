"""Inner join of many inputs on equal columns, with no state but the arrangements of the inputs: a delta query.

    Δ(R₁ ⋈ … ⋈ Rₖ)  =  Σᵢ  R'₁ ⋈ … ⋈ R'ᵢ₋₁ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ ⋈ … ⋈ Rₖ        (R' = R + ΔR)

Each term starts from a change and looks up one relation after another, in the order that is best for it. For two relations
this is Δ(L ⋈ R) = ΔL ⋈ R + L' ⋈ ΔR.

The trap: where several relations change, a row that goes may meet one that comes; the term that adds the two is undone by
another term. The sum is right, but what is above may fail on rows that never were (`a / b`) and refuse a good transaction. So
the sum is merged before anybody sees it. Where only one relation changes, or rows only come or only go, there are no such rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta, beside, products, taken
from headwater.operators.join import growing
from headwater.operators.operator import Input, Operator
from headwater.picking import picked
from headwater.state.consolidation import consolidate
from headwater.state.equality import equal_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.operator import Key, State
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
class Choice:
    """What `explain` shows of a join: how it was decided, the ways that changes take, and how many rows were expected."""

    text: str | None
    ways: tuple[str, ...]
    rows: int | None


@dataclass(frozen=True)
class MultiJoin(Operator):
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
        parts = list(self.parts(inputs))
        if not parts:
            return state, self.nothing()
        total = Delta.concat(parts)
        return state, total if self.is_sum_of_parts(inputs) else consolidate(total)

    def is_sum_of_parts(self, inputs: Sequence[Input]) -> bool:
        """Whether no part has rows that another undoes."""
        deltas = [inputs[path.input].delta for path in self.paths]
        changed = [delta.weights for delta in deltas if len(delta)]
        if len(changed) < 2:
            return True
        return min(int(weights.min()) for weights in changed) > 0 or max(int(weights.max()) for weights in changed) < 0

    def parts(self, inputs: Sequence[Input]) -> Iterator[Delta]:
        """The terms, in parts of a bounded number of rows."""
        for relation, path in enumerate(self.paths):
            if len(inputs[path.input].delta):
                yield from self._follow(path, relation, inputs)

    def _follow(self, path: Path, relation: int, inputs: Sequence[Input]) -> Iterator[Delta]:
        """What the change of one relation does, given those before it as they are and those after it as they were."""
        others = [inputs[lookup.input].arranged[self.relations[lookup.input] < relation] for lookup in path.lookups]
        # While tables are loaded, all terms but one meet a relation that was empty.
        if not all(map(len, others)):
            return
        for part, found in growing(inputs[path.input].delta):
            rows: Delta | None = _columns(part, path.kept)
            for lookup, other in zip(path.lookups, others, strict=True):
                rows = None if rows is None else _met(rows, lookup, other, filtered=self.filtered)
            if rows is not None:
                found.append(len(rows))
                yield _columns(rows, path.outputs)


def _met(rows: Delta, lookup: Lookup, other: Arrangement, *, filtered: bool) -> Delta | None:
    """The rows beside those they meet; None if they meet none."""
    known = _known(rows, lookup.not_null)
    found = other.lookup(known.rows, lookup.probe, lookup.wanted, filtered=filtered).existing()
    mine, theirs = known.rows.columns, found.rows.columns
    probe, weights = found.probe, found.weights
    if lookup.compared and len(found):
        left = beside(picked([mine[i] for i, _ in lookup.compared], probe), len(found))
        same = equal_rows(left, range(len(lookup.compared)), found.rows, [i for _, i in lookup.compared])
        at = np.flatnonzero(same)
        probe, weights = probe[at], taken(weights, at)
        kept = picked([theirs[i] for i in lookup.found], at)
    else:
        kept = [theirs[i] for i in lookup.found]
    if not len(probe):
        return None
    pairs = beside([*picked([mine[i] for i in lookup.kept], probe), *kept], len(probe))
    return Delta(pairs, products(taken(known.weights, probe), weights))


def _known(rows: Delta, columns: Key) -> Delta:
    """The rows without NULL in any of the columns."""
    missing = [array for array in (rows.rows.column(i) for i in columns) if array.null_count]
    if not missing:
        return rows
    return rows.where(np.logical_and.reduce([array.is_valid().to_numpy(zero_copy_only=False) for array in missing]))


def _columns(delta: Delta, chosen: Key) -> Delta:
    return delta if chosen == tuple(range(delta.rows.num_columns)) else delta.select(chosen)
