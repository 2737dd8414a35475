"""Who wants to be told of changes: subscribers are called after the commit, epoch by epoch, when the session holds no lock.

So a subscriber may commit, and create and drop views; what it commits is told to everybody after what is being told now.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import cached_property
from threading import Lock, RLock
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.delta import Delta
from headwater.runtime.history import Changed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Subscriber = Callable[["News"], None]

_NO_COLUMNS = pa.schema([])
_log = logging.getLogger("headwater")


class News:
    """What a subscriber is told: an epoch that changed the view, and what it changed, if that is asked for."""

    def __init__(self, changed: Changed, names: pa.Schema) -> None:
        self.epoch = changed.epoch
        self._changed = changed
        self._names = names

    @cached_property
    def parts(self) -> list[tuple[Delta, pa.Schema]]:
        """One part for each schema that the view had at the epoch, under the users' names."""
        return self._changed.parts(self._names)


class Subscriptions:
    """The subscribers of every view, by its name in lower case, and what they are still to be told."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._subscribers: dict[str, tuple[Subscriber, ...]] = {}
        self._watchers: dict[str, tuple[Subscriber, ...]] = {}
        self._calls: deque[tuple[str, tuple[Subscriber, ...], News]] = deque()
        self._telling = RLock()
        self._busy = False

    def add(self, name: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls the subscriber after each epoch that changes the view, until it is dropped; the answer ends that."""
        return self._added(self._subscribers, name, subscriber)

    def watch(self, name: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls back after each epoch that changes, drops or creates a view of that name; the answer ends that."""
        return self._added(self._watchers, name, lambda _news: callback())

    def _added(self, known: dict[str, tuple[Subscriber, ...]], name: str, subscriber: Subscriber) -> Callable[[], None]:
        with self._lock:
            known[name] = (*known.get(name, ()), subscriber)

        def end() -> None:
            with self._lock, suppress(ValueError):
                remaining = list(known.get(name, ()))
                remaining.remove(subscriber)
                known[name] = tuple(remaining)

        return end

    def announce(self, name: str, changed: Changed, names: pa.Schema) -> None:
        """Notes what is to be told at the next `tell`, of the columns that have names."""
        subscribers = (*self._subscribers.get(name, ()), *self._watchers.get(name, ()))
        if subscribers:
            self._calls.append((name, subscribers, News(changed, names)))

    def forget(self, names: Collection[str], epoch: int) -> None:
        """Ends the subscriptions of views that an epoch drops; who watches them is called back."""
        with self._lock:
            for name in names:
                self._subscribers.pop(name, None)
        for name in names:
            if self._watchers.get(name):
                nothing = Changed(epoch, Delta.empty(_NO_COLUMNS))
                self._calls.append((name, self._watchers[name], News(nothing, _NO_COLUMNS)))

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

    def _tell(self, name: str, subscribers: tuple[Subscriber, ...], news: News) -> None:
        for subscriber in subscribers:
            try:
                subscriber(news)
            except Exception:  # noqa: BLE001  (whatever a user's function may raise)
                _log.exception("A subscriber of view %r failed; epoch %d is committed all the same", name, news.epoch)
