"""Aggregate selection (AggSel, Algorithm 4): of each group only the rows that are best by one of several MIN and MAX go on.

    insert u      u better than the best of its group by some aggregate   →  u goes on, and what it displaces is taken back
                  u the best already, with another derivation              →  the derivation goes on
                  otherwise                                                →  u is kept, and nothing goes on
    deletion      every function is restricted; where a best row is gone, the next best of its group goes on

Right where what is above looks only at these aggregates, and a better row never derives a worse one; the compiler sees to both.
Of equally good rows the first stays. NULL is worse than any value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.functions import Annotated
from headwater.operators.recursive.join import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.operators.recursive.functions import AnyFunctions
    from headwater.operators.recursive.network import Row, Update
    from headwater.operators.recursive.places import Places


class AggSel:
    """Rows by group, and the best row of each group for each aggregate."""

    def __init__(
        self, keys: tuple[int, ...], best: tuple[tuple[int, bool], ...], functions: AnyFunctions, places: Places
    ) -> None:
        """`best` has a column for each aggregate, and whether more of it is better."""
        self._key = key_of(keys)
        self._best = best
        self._places = places
        self._rows = Annotated(functions)
        self._groups: dict[Any, dict[Row, None]] = {}
        self._chosen: dict[Any, list[Row | None]] = {}

    def select(self, updates: list[Update]) -> list[Update]:
        """The updates that go on, and rows without annotation that are taken back."""
        found: list[Update] = []
        for update in updates:
            row, annotation, _ = update
            if not self._rows.add(row, annotation):
                continue
            key = self._key(row)
            self._groups.setdefault(key, {})[row] = None
            chosen = self._chosen.setdefault(key, [None] * len(self._best))
            before = tuple(chosen)
            for i in range(len(self._best)):
                if self._is_better(i, row, chosen[i]):
                    chosen[i] = row
            displaced = {old for old in before if old is not None and old not in chosen}
            found += [(old, None, self._places.home(old)) for old in displaced]
            if row in chosen:
                # A row that goes on for the first time takes all that is known of it along.
                found.append(update if row in before else (row, self._rows.kept[row], update[2]))
        return found

    def without(self, variables: Iterable[int], absent: Any) -> list[Update]:  # noqa: ANN401  (a function)
        """Sets variables to false; gives the rows that are best now."""
        touched: dict[Any, None] = {}
        for row, gone in self._rows.without(variables, absent):
            if gone:
                key = self._key(row)
                del self._groups[key][row]
                touched[key] = None
        found: dict[Row, None] = {}
        for key in touched:
            chosen = self._chosen[key]
            remaining = self._groups[key]
            if not remaining:
                del self._groups[key], self._chosen[key]
                continue
            for i, row in enumerate(chosen):
                if row not in remaining:
                    chosen[i] = None
                    for other in remaining:
                        if self._is_better(i, other, chosen[i]):
                            chosen[i] = other
                    found |= dict.fromkeys(new for new in chosen[i : i + 1] if new is not None)
        return [(row, self._rows.kept[row], self._places.home(row)) for row in found]

    def _is_better(self, aggregate: int, row: Row, than: Row | None) -> bool:
        if than is None:
            return True
        column, more = self._best[aggregate]
        new, old = row[column], than[column]
        if new is None or old is None:
            return new is not None
        return bool(new > old if more else new < old)

    @property
    def rows(self) -> int:
        return len(self._rows.kept)

    def nbytes(self) -> int:
        return self._rows.nbytes()
