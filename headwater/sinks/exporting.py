"""Exports: a view is written to a target, epoch after epoch, by a thread of its own; commits never wait for it.

    first        the whole content, as of one epoch
    then         each epoch that changed the view, in order, once

How far it is, is known to the target itself, in the same transaction as the rows, or by the same rename; so an epoch that was
written is not written again, whenever either side is killed. A target that only takes calls is told each epoch's number, by
which it can recognise an epoch that it is told again, after a kill in the wrong moment.

What fails is tried again, at longer and longer intervals; commits go on, and the lag grows. Where changes are longer ago than
they are kept, or the view was dropped and created again, a target of content gets the whole content anew, and one of changes
stops with the error.

An epoch that gives the view other columns takes back all rows that were there and brings all new ones. A target of which all
rows have the same columns is made anew by that; `progress` says so.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from headwater.errors import DamagedFile, ExportFailed, HistoryGone, InvalidOption, InvalidTarget, UnknownName
from headwater.ownership import Owner
from headwater.redaction import redacted, shown_cause
from headwater.runtime.history import history_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from headwater.answers import Told
    from headwater.relations import View

OF = ("content", "changes")
# Seconds in which epochs come together, so that a quick succession of commits wakes the thread now and then, and not each time.
_GATHERING = 0.01
# Nothing of this passes by itself.
_FINAL = (HistoryGone, InvalidTarget, DamagedFile, UnknownName)
_log = logging.getLogger("headwater")


class Sink(Protocol):
    """A target. What raises has written nothing."""

    def position(self) -> int | None:
        """The last epoch that was written; None if none was. Raises `InvalidTarget` if the target is not the export's own."""
        ...

    def begin(self, epoch: int, rows: pa.Table) -> None:
        """Makes the rows all that there is, as of an epoch."""
        ...

    def write(self, epoch: int, changes: pa.Table) -> None:
        """What an epoch changed: rows with a `_weight`."""
        ...

    def reshape(self, epoch: int, former: pa.Table, changes: pa.Table) -> bool:
        """An epoch that gave the view other columns: all rows it had go, under the former columns, all that it has come.

        Tells whether the target was made anew, so that nothing of what it was is there.
        """
        ...


@dataclass(frozen=True)
class Retry:
    """How often a write is tried, and for how many seconds it waits in between: twice as long each time."""

    attempts: int = 10
    pause: float = 0.1
    longest: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.pause < 0 or self.longest < self.pause:
            raise InvalidOption(
                "a write is tried at least once, and the pause between two attempts is no longer than the longest"
            )

    def after(self, failures: int) -> float | None:
        """The pause after so many failures; None if that is enough."""
        return None if failures >= self.attempts else min(self.pause * 2 ** (failures - 1), self.longest)


@dataclass(frozen=True)
class Written:
    """How far an export is."""

    state: str
    """writing, idle (all is written), retrying, stopped, or failed"""
    epoch: int | None
    """The last epoch of the view that was written."""
    lag: int
    """Epochs that are committed and not yet looked at."""
    seconds: float
    """For how long something has been waiting."""
    failures: int
    """Attempts in a row that have failed."""
    restarted: int | None = None
    """The epoch with which the target was last made anew, in this session, as changes alone did not lead there."""
    error: str | None = None


class Export:
    """A view on its way to a target; `View.write_to` makes them."""

    def __init__(  # noqa: PLR0913
        self, name: str, view: View, sink: Sink, of: str, *, now: Callable[[], int], retry: Retry, address: str = ""
    ) -> None:
        """`now` gives the last epoch that outlives the process; secrets of the target's `address` are not repeated."""
        self.name = name
        self.view = view.name
        self.description: object = None
        """What a pipeline writes it by; None if it was begun by hand."""
        self._view = view
        self._sink = sink
        self._of = of
        self._now = now
        self._retry = retry
        self._owner = Owner()
        self._address = address
        self._changed = Condition()
        self._thread: Thread | None = None
        self._over = True
        self._told = self._awaited = 0
        self._written: int | None = None
        self._restarted: int | None = None
        self._reached = -1
        self._failures = 0
        self._error: Exception | None = None
        self._since = monotonic()

    def resume(self) -> None:
        """Goes on after the last epoch that was written; nothing happens if it is at it."""
        self._owner.require()
        if self._thread is not None and self._thread.is_alive():
            return
        self._over, self._error, self._failures, self._since = False, None, 0, monotonic()
        self._unsubscribe = self._view.noticing(self._notice)
        self._thread = Thread(target=self._run, name=f"headwater-export-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops after what is being written."""
        self._owner.require()
        with self._changed:
            self._over = True
            self._changed.notify_all()
        if self._thread is not None:
            self._unsubscribe()
            self._thread.join()

    def await_idle(self) -> int:
        """Waits until all that is committed now is written; gives the epoch. Raises if the export has failed or is stopped."""
        self._owner.require()
        wanted = self._now()
        with self._changed:
            self._told += 1
            self._awaited += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._reached >= wanted or self._over or self._error is not None)
            self._awaited -= 1
        if self._error is not None:
            told = redacted(str(self._error), self._address)
            raise ExportFailed(f"export {self.name!r} has stopped: {told}; resume it when that is mended") from shown_cause(
                self._error, self._address
            )
        if self._over:
            written = "nothing" if self._written is None else f"epoch {self._written}"
            raise ExportFailed(f"export {self.name!r} was stopped, and has written {written} last; resume it to go on")
        return self._reached

    @property
    def progress(self) -> Written:
        lag = max(self._now() - max(self._reached, 0), 0)
        state = "stopped" if self._over else "retrying" if self._failures else "writing" if lag else "idle"
        waiting = monotonic() - self._since if lag else 0.0
        error = None if self._error is None else redacted(str(self._error), self._address)
        state = "failed" if error else state
        return Written(state, self._written, lag, waiting, self._failures, self._restarted, error)

    def _notice(self) -> None:
        with self._changed:
            self._told += 1
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while not self._over:
                told = self._told
                if self._attempted():
                    with self._changed:
                        self._changed.notify_all()
                        self._changed.wait_for(lambda told=told: self._told != told or self._over)  # type: ignore[misc]
                        self._changed.wait_for(lambda: self._awaited or self._over, _GATHERING)
        finally:
            with self._changed:
                self._changed.notify_all()

    def _attempted(self) -> bool:
        """Whether all is written that was there; after a failure, waits."""
        try:
            self._catch_up()
        except Exception as error:  # noqa: BLE001  (whatever a target or a user's function may raise)
            self._failures += 1
            pause = self._retry.after(self._failures)
            if pause is None or isinstance(error, _FINAL):
                told = redacted(str(error), self._address)
                _log.warning("Export %r has stopped: %s", self.name, told, exc_info=shown_cause(error, self._address))
                self._error, self._over = error, True
                return False
            with self._changed:
                self._changed.wait_for(lambda: self._over, pause)
            return False
        self._failures, self._since = 0, monotonic()
        return True

    def _catch_up(self) -> None:
        if self._written is None:
            self._written = self._sink.position()
        wanted = self._now()
        if self._written is None:
            self._begin()
            return
        try:
            for told in self._told_after(self._written, wanted):
                if self._over or told.epoch > wanted:
                    return
                self._write(told)
                self._written = told.epoch
                self._failures = 0
        except HistoryGone:
            if self._of == "changes":
                raise
            self._begin()
            self._restarted = self._written
            return
        self._reached = wanted

    def _told_after(self, written: int, wanted: int) -> Iterator[Told]:
        """What changed; raises unless that leads from what was written to what there is."""
        if written > wanted:
            raise HistoryGone(
                f"the target has epoch {written}, and the last one here is {wanted}: it is of another past. Write to another "
                "target, or by another name"
            )
        for told in self._view.told(since=written):
            if told.anew:
                raise history_gone(self._view.name, written, told.epoch)
            yield told

    def _write(self, told: Told) -> None:
        if told.former is None:
            if told.changes.num_rows:
                self._sink.write(told.epoch, told.changes)
        elif self._sink.reshape(told.epoch, told.former, told.changes):
            self._restarted = told.epoch

    def _begin(self) -> None:
        epoch, rows = self._view.whole()
        self._now()
        self._sink.begin(epoch, rows)
        self._written = self._reached = epoch
