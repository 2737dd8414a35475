"""MinShip (Algorithm 3): lets the first derivation of a row pass to another place, and holds the others back.

    new row                    sent[u] = f, and is shipped at once
    known row                  pending[u] ∨= f, unless sent[u] absorbs it
    eager                      what is pending is shipped after every `batch` rows, and at the end of an epoch
    lazy                       … only when the derivation that was sent is gone: one alternative, before the row would go

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
        # Beside each the place that it is meant for. What waits is restricted when it is looked at, or swept.
        self._pending: dict[Any, tuple[Any, int, Any]] = {}
        self._absent = functions.true
        self._gone = 0

    def ship(self, updates: list[tuple[Update, Any]]) -> list[Update]:
        """What of the updates, each with the place it is meant for, goes there now."""
        shipped: list[Update] = []
        sent = self._sent.kept
        for update, target in updates:
            row, annotation, place = update
            key = place, row
            if annotation is None:
                sent.pop(key, None)
                self._pending.pop(key, None)
                shipped.append((row, None, target))
                continue
            known = sent.get(key)
            if known is None or self._batch == 1:
                self._send(key, annotation, target, shipped)
                continue
            function, mask = annotation
            if function <= known[0]:
                continue
            waiting = self._pending.get(key)
            if waiting is not None:
                # Where one of both absorbs the other, nothing has to be made.
                if function <= waiting[0]:
                    continue
                function, mask = self._functions.checked(function | waiting[0]), mask | waiting[1]
            self._pending[key] = function, mask, target
            if self._batch is not None and len(self._pending) >= self._batch:
                shipped += self.flush()
        return shipped

    def flush(self) -> list[Update]:
        """All that is pending, where that is to be shipped at all."""
        shipped: list[Update] = []
        if self._batch is None:
            return shipped
        waiting, self._pending = self._pending, {}
        for key, (function, mask, target) in waiting.items():
            self._send(key, (function, mask), target, shipped)
        return shipped

    def without(self, variables: Iterable[int], absent: Any, mask: int) -> list[Update]:  # noqa: ANN401  (a function)
        """Sets variables to false; gives the alternatives of what was sent and is gone."""
        shipped: list[Update] = []
        self._absent &= absent
        self._gone |= mask
        for key, gone in self._sent.without(variables, absent, mask):
            waiting = self._pending.pop(key, None) if gone else None
            if waiting is None:
                continue
            left = self._functions.without(waiting[0], self._absent)
            if left == self._functions.false:
                continue
            alternative = self._functions.one_of(left)
            self._send(key, alternative, waiting[2], shipped)
            if alternative[0] != left:
                self._pending[key] = left, waiting[1] & ~self._gone, waiting[2]
        return shipped

    def sweep(self) -> None:
        """Sets all that was ever said to be false so where it waits; then nothing here depends on it any more."""
        false = self._functions.false
        for key, (function, mask, target) in list(self._pending.items()):
            if mask & self._gone:
                left = self._functions.without(function, self._absent)
                if left == false:
                    del self._pending[key]
                else:
                    self._pending[key] = left, mask & ~self._gone, target
        self._absent, self._gone = self._functions.true, 0

    def _send(self, key: Any, annotation: Any, target: Any, shipped: list[Update]) -> None:  # noqa: ANN401
        place, row = key
        self._sent.add(key, annotation)
        if target != place:
            self._counters.count(row, annotation)
        shipped.append((row, annotation, target))

    @property
    def rows(self) -> int:
        return len(self._sent.kept) + len(self._pending)

    def nbytes(self) -> int:
        return self._sent.nbytes() + sum(self._functions.nbytes(function) for function, _, _ in self._pending.values())
