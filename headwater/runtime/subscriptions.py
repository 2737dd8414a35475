"""Who wants to be told of changes. A subscriber is called after the commit, from a thread of its own.

    order     each subscriber is told of epochs one after another, and of each one once; there is no order among subscribers
    waiting   commits and other subscribers never wait for a call, whatever it does: it may commit, define, block
    memory    so many epochs and rows wait for a subscriber; what is more is read again from the history when its turn comes

A subscriber that is so slow that the history has forgotten what comes next is ended, with an error in the log.
"""

from __future__ import annotations

import atexit
import logging
from collections import deque
from functools import cached_property
from threading import Condition, Lock, Thread, current_thread
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakSet

from headwater.errors import HeadwaterError
from headwater.interrupts import uninterrupted
from headwater.ownership import Owner
from headwater.runtime.history import with_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    import pyarrow as pa

    from headwater.delta import Delta
    from headwater.runtime.history import Changed

    Subscriber = Callable[["News"], None]
    # What changed in a view after an epoch.
    Changes = Callable[[str, int], list[Changed]]

# What may wait for a subscriber before it is read from the history instead.
EPOCHS = 1_000
ROWS = 1_000_000
# A thread that has nothing to tell ends after so many seconds; the next epoch starts another one.
_LINGER = 1.0
# Who closes a session waits so many seconds at most for subscribers to end.
PATIENCE = 10.0

_log = logging.getLogger("headwater")


class News:
    """What an epoch changed in a view, for all its subscribers."""

    def __init__(self, changed: Changed, names: pa.Schema) -> None:
        self.epoch = changed.epoch
        self.rows = changed.size
        self.names = names
        self._changed = changed

    @cached_property
    def parts(self) -> list[tuple[Delta, pa.Schema]]:
        """One part for each schema that the view had at the epoch, under the users' names."""
        return self._changed.parts(self.names)


class Subscription:
    """A subscriber, what it is still to be told, and the thread that tells it."""

    def __init__(self, name: str, subscriber: Subscriber, changes: Changes) -> None:
        self._name = name
        self._subscriber = subscriber
        self._changes = changes
        self._changed = Condition()
        self._waiting: deque[News] = deque()
        self._rows = 0
        self._thread: Thread | None = None
        self._is_calling = False
        self._is_over = False
        self._reached = -1
        """The last epoch that it was told of."""
        self._behind: News | None = None
        """The last epoch that is to be read from the history, if one is."""

    def put(self, news: News) -> None:
        """One more epoch is to be told; waits for nobody."""
        with self._changed:
            if self._is_over:
                return
            if self._reached < 0:
                self._reached = news.epoch - 1
            self._waiting.append(news)
            self._rows += news.rows
            is_full = len(self._waiting) > 1 and (len(self._waiting) > EPOCHS or self._rows > ROWS)
            if is_full or self._behind is not None:
                self._behind, self._rows = news, 0
                self._waiting.clear()
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"headwater-subscriber-{self._name}", daemon=True)
                self._thread.start()
            else:
                self._changed.notify_all()

    def await_idle(self, timeout: float | None = None) -> bool:
        """Waits until there is nothing left to tell, unless this is the thread that tells it; whether that was reached."""
        with self._changed:
            if self._thread is current_thread():
                return True
            return self._changed.wait_for(lambda: self._is_idle, timeout)

    def end(self) -> None:
        """No epoch after this is told. Those before are, when this returns, unless it is called by the subscriber itself."""
        with self._changed:
            if self._thread is not current_thread():
                self._changed.wait_for(lambda: self._is_idle)
        self.drop()

    def drop(self) -> None:
        """Nothing more is told from here on."""
        with self._changed:
            self._is_over, self._behind, self._rows = True, None, 0
            self._waiting.clear()
            self._changed.notify_all()

    @property
    def _is_idle(self) -> bool:
        return not (self._waiting or self._is_calling) and self._behind is None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_calling = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_idle or self._is_over, _LINGER)
                if self._is_idle or self._is_over:
                    self._thread = None
                    return
                self._is_calling = True
                behind, self._behind = self._behind, None
                waiting = [self._waiting.popleft()] if behind is None else []
                self._rows -= sum(news.rows for news in waiting)
            try:
                for news in waiting if behind is None else self._missed(behind):
                    self._tell(news)
            except HeadwaterError:
                _log.exception(
                    "A subscriber of view %r was told of epoch %d last, and can be told no more: read the view whole, and "
                    "subscribe again",
                    self._name,
                    self._reached,
                )
                self.drop()

    def _missed(self, last: News) -> Iterable[News]:
        """What the history says of the epochs that could not wait."""
        changes = [changed for changed in self._changes(self._name, self._reached) if changed.epoch <= last.epoch]
        return [News(changed, names) for changed, names in with_names(changes, last.names, last.epoch)]

    def _tell(self, news: News) -> None:
        if self._is_over or news.epoch <= self._reached:
            return
        self._reached = news.epoch
        try:
            self._subscriber(news)
        except Exception:  # noqa: BLE001  (whatever a user's function may raise)
            _log.exception("A subscriber of view %r failed; epoch %d is committed all the same", self._name, news.epoch)


class Subscriptions:
    """The subscribers of every view, by its name in lower case."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._lock = Lock()
        self._owner = Owner()
        self._subscribers: dict[str, tuple[Subscription, ...]] = {}
        self._notices: dict[str, tuple[Callable[[], None], ...]] = {}
        self._announced: deque[tuple[str, News]] = deque()
        self._dropped: deque[str] = deque()
        _every.add(self)

    def add(self, name: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls the subscriber after each epoch that changes the view; the answer ends that."""
        made = Subscription(name, subscriber, self._changes)
        with self._lock:
            self._subscribers[name] = (*self._subscribers.get(name, ()), made)

        def end() -> None:
            self._owner.require()
            made.end()
            with self._lock:
                self._subscribers[name] = tuple(each for each in self._subscribers.get(name, ()) if each is not made)

        return end

    def add_notice(self, name: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls something that does not wait, in the thread of the commit, when a view of that name changes, comes or goes."""
        with self._lock:
            self._notices[name] = (*self._notices.get(name, ()), callback)

        def end() -> None:
            with self._lock:
                self._notices[name] = tuple(each for each in self._notices.get(name, ()) if each is not callback)

        return end

    def announce(self, name: str, changed: Changed, names: pa.Schema) -> None:
        """Notes what is to be told at the next `tell`, of the columns that have names."""
        if self._subscribers.get(name) or self._notices.get(name):
            self._announced.append((name, News(changed, names)))

    def forget(self, names: Collection[str]) -> None:
        """Ends the subscriptions of views that are dropped; who asked for notices gets one at the next `tell`."""
        with self._lock:
            for name in names:
                for subscription in self._subscribers.pop(name, ()):
                    subscription.drop()
            self._dropped.extend(name for name in names if self._notices.get(name))

    @uninterrupted
    def tell(self) -> None:
        """Hands what was announced to the subscribers, and goes on."""
        if not (self._announced or self._dropped):
            return
        with self._lock:
            while self._announced:
                name, news = self._announced.popleft()
                for subscription in self._subscribers.get(name, ()):
                    subscription.put(news)
                self._notice(name)
            while self._dropped:
                self._notice(self._dropped.popleft())

    def _notice(self, name: str) -> None:
        for notice in self._notices.get(name, ()):
            notice()

    def await_idle(self, timeout: float | None = None) -> bool:
        """Waits until all subscribers have been told everything, also of what they commit themselves; whether they have."""
        end = None if timeout is None else monotonic() + timeout
        self.tell()
        while busy := self._busy():
            for subscription in busy:
                if not subscription.await_idle(None if end is None else max(0.0, end - monotonic())):
                    return False
        return True

    def finish(self) -> None:
        """Lets subscribers be told everything, but does not wait for ever."""
        if self._owner.is_here and not self.await_idle(PATIENCE):
            _log.warning("A subscriber has not ended after %.0f s, so it may miss the last epochs", PATIENCE)

    def drop(self) -> None:
        """Nobody is told any more."""
        self.forget([*self._subscribers])
        with self._lock:
            self._notices.clear()

    def _busy(self) -> list[Subscription]:
        """The subscribers that are being told something, but for the one whose thread this is."""
        with self._lock:
            found = [each for subscriptions in self._subscribers.values() for each in subscriptions]
        return [each for each in found if not each.await_idle(0)]


# Threads that tell do not keep a process from ending, so at its end someone must wait for them.
_every: WeakSet[Subscriptions] = WeakSet()


@atexit.register
def _finish() -> None:
    for subscriptions in list(_every):
        subscriptions.finish()
