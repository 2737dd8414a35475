"""Streams that tables follow: each batch becomes one epoch, exactly once.

    batch n  →  one epoch that changes the tables and notes "batch n, with these offsets, is applied"

A batch that comes again, because whoever reads does not know that it was done, is recognised by that note. All streams of a
session go through the one lock of its writers, and a stream's next batch begins when its last one is committed: who is slow
slows its source down.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, StreamFailed
from headwater.ownership import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.sources.frames import Batch
    from headwater.sources.reading import Position, Reading, Running

    # Commits a batch, with the position of its stream; gives how many rows were taken, and how many were not.
    Commit = Callable[[Batch, Position], tuple[int, int]]

_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class Progress:
    """How far a stream is."""

    state: str
    """running, idle (all there was is applied), stopped, or failed"""
    batch: int | None
    """The last batch that was applied."""
    rows: int
    """Rows that were taken since the stream was started."""
    dead: int
    """Rows that were not, and are among the dead letters."""
    rows_per_second: float
    """Of the last batch, from its planning to its commit."""
    lag: float
    """Seconds for which something has been waiting; 0 if nothing is."""
    held: int
    """Changes that were read, and wait until the transaction that they belong to is complete."""
    offsets: tuple[str, ...]
    """Where each source is, in the words of its connector."""
    error: str | None = None


class Stream:
    """A stream that is followed; `Session.follow` makes them."""

    def __init__(
        self,
        name: str,
        reading: Reading,
        commit: Commit,
        applied: Callable[[], Mapping[str, Any]],
        make_certain: Callable[[], object],
    ) -> None:
        """`applied` gives the positions of all streams as of the last epoch, `make_certain` sees to it that the disk has it."""
        self.name = name
        self.description: object = None
        """What a pipeline follows it by; None if it is followed by hand."""
        self._reading = reading
        self._commit = commit
        self._applied = applied
        self._make_certain = make_certain
        self._owner = Owner()
        # Held while a batch is applied.
        self._busy = RLock()
        self._running: Running | None = None
        self._rows = self._dead = 0
        self._error: BaseException | None = None
        self._told_to_stop = False
        self._seen = monotonic()

    def resume(self) -> None:
        """Goes on after the last batch that was applied; nothing happens if the stream is running."""
        self._owner.require()
        if self.is_running:
            return
        self._error, self._told_to_stop, self._seen = None, False, monotonic()
        # A source that is told where to go on forgets what is before that.
        self._make_certain()
        self._running = self._reading.start(self.name, self._position, self._take)

    def stop(self) -> None:
        """Stops after the batch that is being applied; `resume` goes on from there."""
        self._owner.require()
        if self._running is not None:
            self._told_to_stop = True
            self._running.stop()
            with self._busy:
                # A batch that was being applied is, or is not, by now.
                pass

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.is_active

    def await_idle(self) -> None:
        """Waits until all that was there when this was called is applied; raises if the stream has failed or is stopped."""
        self._owner.require()
        if self._running is None:
            return
        self._running.await_idle()
        failed = self._failure
        if failed is not None:
            raise failed
        if self._told_to_stop:
            raise StreamFailed(f"stream {self.name!r} was stopped, and its source may have more; resume it to go on")
        self._seen = monotonic()

    @property
    def progress(self) -> Progress:
        failed, position = self._failure, self._position
        state, lag = self._state(failed)
        return Progress(
            state=state,
            batch=None if position is None else int(position["batch"]),
            rows=self._rows,
            dead=self._dead,
            rows_per_second=0.0 if self._running is None else self._running.rows_per_second,
            lag=lag,
            held=0 if position is None else int(position.get("held", 0)),
            offsets=() if position is None else tuple(position["offsets"]),
            error=None if failed is None else str(failed),
        )

    def _state(self, failed: HeadwaterError | None) -> tuple[str, float]:
        if failed is not None:
            return "failed", monotonic() - self._seen
        if self._running is None or not self._running.is_active:
            return "stopped", 0.0
        if not self._running.has_more:
            self._seen = monotonic()
            return "idle", 0.0
        return "running", monotonic() - self._seen

    @property
    def _position(self) -> dict[str, Any] | None:
        return self._applied().get(self.name)

    @property
    def _failure(self) -> HeadwaterError | None:
        """Why the stream has stopped, if it did not stop because it was told to."""
        from headwater.evaluation.spark import failure

        if self._told_to_stop:
            return None
        raised = self._error or (None if self._running is None else self._running.failure)
        if raised is None or isinstance(raised, HeadwaterError):
            return raised
        return StreamFailed(f"stream {self.name!r} has stopped: {failure(raised)}; resume it when that is mended")

    def _take(self, number: int, read: Callable[[], tuple[Batch, Position]]) -> None:
        """Applies a batch, unless it was applied before."""
        with self._busy:
            try:
                position = self._position
                if position is not None and number <= position["batch"]:
                    _log.info("Batch %d of stream %r was applied before", number, self.name)
                    return
                taken, dead = self._commit(*read())
                self._rows += taken
                self._dead += dead
            except BaseException as error:
                self._error = error
                raise

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {self.progress.state})"
