"""The lock of those who make epochs. Users' code runs while it is held, in the block of a transaction, and may do anything.

    again      a thread that holds it may take it again
    the dead   a thread that has ended holds nothing: whoever waits takes the lock over
    Ctrl-C     waits while the lock is held, but not in the user's block, and is raised at safe moments

A thread that has ended in the block of a transaction has changed nothing but that transaction, which is void.
"""

from __future__ import annotations

from threading import Lock, current_thread
from typing import TYPE_CHECKING

from headwater.interrupts import Deferral, check

if TYPE_CHECKING:
    from threading import Thread

# Whoever waits looks so often, in seconds, whether the holder is alive.
_INTERVAL = 0.05


class WriterLock:
    """A reentrant lock that outlives its holders."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._freeing = Lock()
        self._holder: Thread | None = None
        self._depth = 0
        self._deferral = Deferral()

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return self._holder is current_thread()

    def __enter__(self) -> None:
        me = current_thread()
        if self._holder is me:
            self._depth += 1
            return
        deferral = Deferral()
        deferral.start()
        try:
            while not self._lock.acquire(timeout=_INTERVAL):
                check()
                holder = self._holder
                if holder is not None and not holder.is_alive():
                    self.free_from(holder)
        except BaseException:
            deferral.stop()
            raise
        self._holder, self._depth, self._deferral = me, 1, deferral

    def __exit__(self, *_: object) -> None:
        if self._holder is not current_thread():
            # It was taken over.
            return
        self._depth -= 1
        if not self._depth:
            deferral, self._holder = self._deferral, None
            self._lock.release()
            deferral.stop()

    def free_from(self, holder: Thread) -> None:
        """Lets others in, if the lock is held by a thread that will not come back."""
        with self._freeing:
            if self._holder is holder:
                self._holder, self._depth = None, 0
                self._lock.release()

    def interruptible(self) -> Interruptible:
        """Ctrl-C does not wait within, where this thread holds the lock."""
        return Interruptible(self._deferral)


class Interruptible:
    """A part of what is done under the lock that may be left at any moment."""

    def __init__(self, deferral: Deferral) -> None:
        self._deferral = deferral

    def __enter__(self) -> None:
        self._deferral.stop()

    def __exit__(self, *_: object) -> None:
        self._deferral.start()
