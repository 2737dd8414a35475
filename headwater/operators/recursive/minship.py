"""MinShip (Algorithm 3): lets the first derivation of a row pass to another place, and holds the others back.

    new row                    sent[u] = f, and is shipped at once
    known row                  f waits in pending[u], unless sent[u], or what waits there, absorbs it
    eager                      what is pending is shipped after every `batch` rows, or `interval` seconds, and at the end of an
                               epoch
    lazy                       … only when the derivation that was sent is gone: one alternative, before the row would go

A batch of one holds nothing back, not even what the other side will absorb: it is a plain ship. One place knows nothing of
what another sends, so the same row may come from several. Deletions are told to all places by the variables that became
false, once an epoch; here they restrict what was sent and what is pending.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from headwater.operators.recursive.functions import Annotated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.operators.recursive.functions import AnyFunctions
    from headwater.operators.recursive.network import Update
    from headwater.operators.recursive.places import Counters


class MinShip:
    """One edge of the network, for all places that send on it."""

    def __init__(
        self,
        counters: Counters,
        functions: AnyFunctions,
        batch: int | None,
        interval: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`batch` is how many rows wait at most, `interval` for how many seconds, by a clock; without both it is lazy."""
        self._counters = counters
        self._functions = functions
        self._batch = batch
        self._interval = interval
        self._eager = batch is not None or interval is not None
        self._clock = clock
        self._flushed = clock()
        self._sent = Annotated(functions)
        # Beside each the place that it is meant for. What waits is restricted when it is looked at, or swept.
        self._pending: dict[Any, tuple[list[Any], Any]] = {}
        self._absent = functions.true

    def ship(self, updates: list[tuple[Update, Any]]) -> list[Update]:
        """What of the updates, each with the place it is meant for, goes there now."""
        shipped: list[Update] = []
        sent = self._sent.kept
        for update, target in updates:
            row, function, place = update
            key = place, row
            if function is None:
                sent.pop(key, None)
                self._pending.pop(key, None)
                shipped.append((row, None, target))
                continue
            known = sent.get(key)
            if known is None or self._batch == 1:
                self._first(key, function, target, shipped)
                continue
            if function <= known:
                continue
            self._hold(key, function, target)
            if self._is_due():
                shipped += self.flush()
        return shipped

    def flush(self) -> list[Update]:
        """All that is pending, where that is to be shipped at all."""
        shipped: list[Update] = []
        if not self._eager:
            return shipped
        self._flushed = self._clock()
        waiting, self._pending = self._pending, {}
        for key, (waits, target) in waiting.items():
            function = waits[0]
            for other in waits[1:]:
                function |= other
            self._send(key, function, target, shipped)
        return shipped

    def without(self, variables: Iterable[int], absent: Any) -> list[Update]:  # noqa: ANN401  (a function)
        """Sets variables to false; gives the alternatives of what was sent and is gone."""
        shipped: list[Update] = []
        self._absent &= absent
        for key, gone in self._sent.without(variables, absent):
            waiting = self._pending.pop(key, None) if gone else None
            left = [] if waiting is None else self._left(waiting[0])
            if waiting is None or not left:
                continue
            shortest = min(range(len(left)), key=lambda i: len(self._functions.support(left[i])))
            self._first(key, left.pop(shortest), waiting[1], shipped)
            for function in left:
                self._hold(key, function, waiting[1])
        return shipped

    def sweep(self) -> None:
        """Sets all that was ever said to be false so where it waits; then nothing here depends on it any more."""
        restricted = ((key, self._left(waits), target) for key, (waits, target) in self._pending.items())
        self._pending = {key: (left, target) for key, left, target in restricted if left}
        self._absent = self._functions.true

    def _is_due(self) -> bool:
        """Whether enough is pending, or has been for long enough."""
        if self._batch is not None and len(self._pending) >= self._batch:
            return True
        return self._interval is not None and self._clock() - self._flushed >= self._interval

    def _first(self, key: Any, function: Any, target: Any, shipped: list[Update]) -> None:  # noqa: ANN401
        """Ships a row that is new; if lazy, with one derivation only, and the others wait."""
        one = function if self._eager else self._functions.one_of(function)
        self._send(key, one, target, shipped)
        if one is not function:
            self._hold(key, function, target)

    def _hold(self, key: Any, function: Any, target: Any) -> None:  # noqa: ANN401  (a key, a function, a place)
        """Holds a derivation back, beside others: as long as they wait, there is no need for one function of them all."""
        waiting = self._pending.get(key)
        if waiting is None:
            self._pending[key] = [function], target
        elif not any(function <= known for known in waiting[0]):
            waiting[0].append(function)

    def _left(self, waits: list[Any]) -> list[Any]:
        """What is left of derivations where all that was said to be false is."""
        restricted = (self._functions.without(function, self._absent) for function in waits)
        return [function for function in restricted if function != self._functions.false]

    def _send(self, key: Any, function: Any, target: Any, shipped: list[Update]) -> None:  # noqa: ANN401
        place, row = key
        self._sent.add(key, function)
        if target != place:
            self._counters.count(row, function)
        shipped.append((row, function, target))

    @property
    def rows(self) -> int:
        return len(self._sent.kept) + sum(len(waits) for waits, _ in self._pending.values())

    def nbytes(self) -> int:
        waiting = (function for waits, _ in self._pending.values() for function in waits)
        return self._sent.nbytes() + sum(map(self._functions.nbytes, waiting))
