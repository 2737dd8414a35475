"""Provenance-aware join (PipelinedHashJoin, Algorithm 2): pairs with equal keys, true when both of them are.

    insert u into R     p_R[u] ∨= f;  if that changed it:  emit (u ⋈ t, f ∧ p_S[t])  for every t of S with the key of u
    base deletion       every function is restricted; rows whose function is false are gone from the indexes

Both sides may change in one round: the left is taken first, so that a pair of two new rows is made once. What expires is
deleted from the inputs, and reaches the join as any deletion does.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.functions import Annotated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headwater.operators.recursive.functions import AnyFunctions
    from headwater.operators.recursive.network import Meet, Row, Update


def key_of(columns: Sequence[int]) -> Callable[[Row], Any]:
    """A function that takes a key out of a row."""
    return itemgetter(*columns) if columns else lambda _: ()


class PipelinedHashJoin:
    """Two indexes by key, and the functions of the rows in them."""

    def __init__(self, spec: Meet, functions: AnyFunctions, shared: Sequence[Annotated | None] = (None, None)) -> None:
        """`shared` are functions that somebody else keeps for the rows of a side, and restricts."""
        self._functions = functions
        self._keys = [key_of(columns) for columns in spec.keys]
        self._widths = spec.widths
        self._shared = shared
        self._sides = [Annotated(functions) if side is None else side for side in shared]
        self._indexes: tuple[dict[Any, dict[Row, None]], dict[Any, dict[Row, None]]] = ({}, {})

    def push(self, left: Sequence[Update], right: Sequence[Update]) -> list[Update]:
        return [*self._pushed(0, left), *self._pushed(1, right)]

    def _pushed(self, side: int, updates: Sequence[Update]) -> list[Update]:
        mine, other = self._sides[side], self._sides[1 - side].kept
        shared = self._shared[side] is not None
        index, partners = self._indexes[side], self._indexes[1 - side]
        key_of_row = self._keys[side]
        own, theirs = self._widths[side], self._widths[1 - side]
        found: list[Update] = []
        for row, annotation, place in updates:
            key = key_of_row(row)
            if annotation is None:
                self._forget(side, row)
                continue
            if not shared and not mine.add(row, annotation):
                continue
            rows = index.get(key)
            if rows is None:
                index[key] = {row: None}
            else:
                rows[row] = None
            kept = row[:own]
            for partner in list(partners.get(key, ())):
                met = other.get(partner)
                if met is None:
                    # Somebody else knows already that it is gone.
                    self._unlist(1 - side, partner)
                    continue
                # Monotone functions are true together, where all variables are.
                pair = kept + partner[:theirs] if side == 0 else partner[:theirs] + kept
                found.append((pair, annotation & met, place))
        return found

    def without(self, variables: Iterable[int], absent: Any) -> None:  # noqa: ANN401  (a function)
        for side, kept in enumerate(self._sides):
            if self._shared[side] is not None:
                continue
            for row, gone in kept.without(variables, absent):
                if gone:
                    self._unlist(side, row)

    def _forget(self, side: int, row: Row) -> None:
        if self._shared[side] is None:
            self._sides[side].kept.pop(row, None)
        self._unlist(side, row)

    def _unlist(self, side: int, row: Row) -> None:
        key = self._keys[side](row)
        rows = self._indexes[side].get(key)
        if rows is not None:
            rows.pop(row, None)
            if not rows:
                del self._indexes[side][key]

    @property
    def rows(self) -> int:
        return sum(len(side.kept) for side, shared in zip(self._sides, self._shared, strict=True) if shared is None)

    def nbytes(self) -> int:
        return sum(side.nbytes() for side, shared in zip(self._sides, self._shared, strict=True) if shared is None)
