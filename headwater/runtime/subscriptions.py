"""Who wants to be told of changes: subscribers are called after the commit, epoch by epoch, when the session holds no lock.

So a subscriber may commit, and create and drop views; what it commits is told to everybody after what is being told now.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import cache
from threading import Lock, RLock
from typing import TYPE_CHECKING

from headwater.runtime.history import read
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import pyarrow as pa

    from headwater.delta import Delta
    from headwater.runtime.history import Change

    # Gets the epoch, what changed if it asks for it, and the view's columns under the users' names.
    Subscriber = Callable[[int, Callable[[], Delta], pa.Schema], None]

_log = logging.getLogger("headwater")


class Subscriptions:
    """The subscribers of every view, by its name in lower case, and what they are still to be told."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._subscribers: dict[str, tuple[Subscriber, ...]] = {}
        self._calls: deque[tuple[str, tuple[Subscriber, ...], int, Delta, pa.Schema]] = deque()
        self._telling = RLock()
        self._busy = False

    def add(self, name: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls the subscriber after each epoch that changes the view; the answer ends that."""
        with self._lock:
            self._subscribers[name] = (*self._subscribers.get(name, ()), subscriber)

        def end() -> None:
            with self._lock, suppress(ValueError):
                remaining = list(self._subscribers.get(name, ()))
                remaining.remove(subscriber)
                self._subscribers[name] = tuple(remaining)

        return end

    def announce(self, name: str, epoch: int, change: Change, names: pa.Schema) -> None:
        """Notes what is to be told at the next `tell`, of the columns that have names."""
        subscribers = self._subscribers.get(name)
        if subscribers:
            self._calls.append((name, subscribers, epoch, read(change), names))

    def forget(self, names: Collection[str]) -> None:
        """Ends the subscriptions of these views."""
        with self._lock:
            for name in names:
                self._subscribers.pop(name, None)

    def tell(self) -> None:
        """Calls the subscribers, in the order of epochs; within a subscriber's own commit, the calls that run go on instead."""
        if not self._calls:
            return
        with self._telling:
            if self._busy:
                return
            self._busy = True
            try:
                while self._calls:
                    self._tell(*self._calls.popleft())
            finally:
                self._busy = False

    def _tell(self, name: str, subscribers: tuple[Subscriber, ...], epoch: int, raw: Delta, names: pa.Schema) -> None:
        changed = cache(lambda: consolidate(raw.select(range(len(names)))))
        for subscriber in subscribers:
            try:
                subscriber(epoch, changed, names)
            except Exception:  # noqa: BLE001  (whatever a user's function may raise)
                _log.exception("A subscriber of view %r failed; epoch %d is committed all the same", name, epoch)
