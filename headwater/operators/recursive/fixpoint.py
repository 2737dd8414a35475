"""Fixpoint with provenance (Algorithm 1): a relation's rows, each with the function of the base rows that derive it.

    insert u      new row: P[u] = f, and u goes on          known row: P[u] ∨= f, and u goes on with f, unless f is absorbed
    deletion      P[t] is restricted for every t; rows whose function is false are gone

What goes on is the derivation that came, f, with  new ∧ ¬old  ≤  f  ≤  new:  the difference itself would not be monotone, and
larger. The recursion ends when every derivation that comes is absorbed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.functions import Annotated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.operators.recursive.functions import AnyFunctions
    from headwater.operators.recursive.network import Row, Update


class Fixpoint:
    """One relation."""

    def __init__(self, functions: AnyFunctions) -> None:
        self.rows = Annotated(functions)
        self._before: dict[Row, bool] = {}

    def insert(self, updates: list[Update]) -> list[Update]:
        """The updates that go on; one without an annotation takes a row back."""
        found = []
        for update in updates:
            row, annotation, _ = update
            there = row in self.rows.kept
            if annotation is None:
                if there:
                    self._before.setdefault(row, True)
                    del self.rows.kept[row]
                    found.append(update)
            elif self.rows.add(row, annotation):
                if not there:
                    self._before.setdefault(row, False)
                found.append(update)
        return found

    def without(self, variables: Iterable[int], absent: Any) -> None:  # noqa: ANN401  (a function)
        for row, gone in self.rows.without(variables, absent):
            if gone:
                self._before.setdefault(row, True)

    def changed(self) -> tuple[list[Row], list[Row]]:
        """The rows that came and that went since this was asked last."""
        before, self._before = self._before, {}
        come = [row for row, there in before.items() if not there and row in self.rows.kept]
        gone = [row for row, there in before.items() if there and row not in self.rows.kept]
        return come, gone
