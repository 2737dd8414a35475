"""A join of rows with weights, for strategies that keep no functions.

    Δ(L ⋈ R)  =  ΔL ⋈ R  +  L' ⋈ ΔR        weights multiply

Rows may have a hidden column behind those that are joined, in which a derivation travels along: first the left, then the right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.join import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.operators.recursive.network import Meet, Row, Update


class WeightedJoin:
    """Two indexes: key → row → weight."""

    def __init__(self, spec: Meet, hidden: int = 0) -> None:
        self._keys = [key_of(columns) for columns in spec.keys]
        self._widths = spec.widths
        self._hidden = hidden
        self._indexes: tuple[dict[Any, dict[Row, int]], dict[Any, dict[Row, int]]] = ({}, {})

    def push(self, left: Sequence[Update], right: Sequence[Update]) -> list[Update]:
        return [*self._pushed(0, left), *self._pushed(1, right)]

    def _pushed(self, side: int, updates: Sequence[Update]) -> list[Update]:
        index, partners = self._indexes[side], self._indexes[1 - side]
        key_of_row = self._keys[side]
        own, theirs = self._widths[side], self._widths[1 - side]
        found: list[Update] = []
        for row, weight, place in updates:
            key = key_of_row(row)
            rows = index.setdefault(key, {})
            total = rows.get(row, 0) + weight
            if total:
                rows[row] = total
            else:
                del rows[row]
                if not rows:
                    del index[key]
            kept = row[:own]
            for partner, other in partners.get(key, {}).items():
                pair = kept + partner[:theirs] if side == 0 else partner[:theirs] + kept
                if self._hidden:
                    # Left before right, whichever arrived: a deletion must name the derivation as the insertion did.
                    pair = (*pair, row[-1] + partner[-1] if side == 0 else partner[-1] + row[-1])
                found.append((pair, weight * other, place))
        return found

    @property
    def rows(self) -> int:
        return sum(len(rows) for index in self._indexes for rows in index.values())
