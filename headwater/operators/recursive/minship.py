"""MinShip (Algorithm 3): lets the first derivation of a row pass to another place, and holds the others back.

    new row                    sent[u] = f, and is shipped at once
    known row                  pending[u] ∨= f, unless sent[u] absorbs it
    eager                      what is pending is shipped after every `batch` rows, and at the end of an epoch
    lazy                       … only when the derivation that was sent is gone: the alternative first, then the row would go

A batch of one holds nothing back, not even what the other side will absorb: it is a plain ship. One place knows nothing of
what another sends, so the same row may come from several. Deletions are told to all places by the variables that became
false, once an epoch; here they restrict what was sent and what is pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.functions import Annotated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.annotations.absorption import Functions
    from headwater.operators.recursive.network import Update
    from headwater.operators.recursive.places import Counters


class MinShip:
    """One edge of the network, for all places that send on it."""

    def __init__(self, counters: Counters, functions: Functions, batch: int | None) -> None:
        """`batch` is how many rows wait at most; None is lazy."""
        self._counters = counters
        self._functions = functions
        self._batch = batch
        self._sent = Annotated(functions)
        self._pending = Annotated(functions)
        self._targets: dict[Any, Any] = {}

    def ship(self, updates: list[tuple[Update, Any]]) -> list[Update]:
        """What of the updates, each with the place it is meant for, goes there now."""
        shipped: list[Update] = []
        for update, target in updates:
            row, annotation, place = update
            key = place, row
            if annotation is None:
                self._sent.kept.pop(key, None)
                self._pending.kept.pop(key, None)
                shipped.append((row, None, target))
                continue
            sent = self._sent.kept.get(key)
            if sent is None or self._batch == 1:
                self._send(key, annotation, target, shipped)
            elif not annotation[0] <= sent[0]:
                self._pending.add(key, annotation)
                self._targets[key] = target
                if self._batch is not None and len(self._pending.kept) >= self._batch:
                    shipped += self.flush()
        return shipped

    def flush(self) -> list[Update]:
        """All that is pending, where that is to be shipped at all."""
        shipped: list[Update] = []
        if self._batch is None:
            return shipped
        waiting, self._pending = self._pending.kept, Annotated(self._functions)
        for key, annotation in waiting.items():
            self._send(key, annotation, self._targets.pop(key), shipped)
        return shipped

    def without(self, variables: Iterable[int], absent: Any, mask: int) -> list[Update]:  # noqa: ANN401  (a function)
        """Sets variables to false; gives the alternatives of what was sent and is gone."""
        shipped: list[Update] = []
        for key, gone in self._pending.without(variables, absent, mask):
            if gone:
                del self._targets[key]
        for key, gone in self._sent.without(variables, absent, mask):
            alternative = self._pending.kept.pop(key, None) if gone else None
            if alternative is not None:
                self._send(key, alternative, self._targets.pop(key), shipped)
        return shipped

    def _send(self, key: Any, annotation: Any, target: Any, shipped: list[Update]) -> None:  # noqa: ANN401
        place, row = key
        self._sent.add(key, annotation)
        if target != place:
            self._counters.count(row, annotation)
        shipped.append((row, annotation, target))

    @property
    def rows(self) -> int:
        return len(self._sent.kept) + len(self._pending.kept)

    def nbytes(self) -> int:
        return self._sent.nbytes() + self._pending.nbytes()
