"""What changed in tables and views, epoch by epoch, as far back as memory holds it.

Deltas are kept as they came; who reads them consolidates. Of each view there are the changes of the last 10 000 epochs that
touched it, or fewer if they have more than a million rows in all; the very last change is there whatever its size. Of a table,
a change of more rows is not kept. So a session that runs for ever needs no more memory than that.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta
from headwater.errors import HistoryGone

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.state.arrangement import Arrangement

    # Rows at hand, or in files until somebody asks for them.
    Change = Delta | Arrangement

EPOCHS = 10_000
ROWS = 1_000_000
# Rows that are a slice of something larger hold all of it.
_SLACK = 1 << 20


def history_gone(name: str, after: int, earliest: int) -> HistoryGone:
    """The error for changes that are longer ago than they are kept."""
    return HistoryGone(
        f"the changes of {name!r} are kept from epoch {earliest + 1} on, and those after epoch {after} were asked for; "
        f"read it whole, and its changes since {earliest} or later"
    )


class History:
    """The latest changes of every table and view, by its name in lower case."""

    def __init__(self, start: int = 0, rows: int | None = None) -> None:
        """Knows nothing of the epochs up to `start`; keeps so many rows of each, if another limit is given."""
        self._lock = Lock()
        self._start = start
        self._most = ROWS if rows is None else rows
        self._relations: dict[str, _Changes] = {}

    def restart(self, epoch: int, began: Mapping[str, int]) -> None:
        """From here on, nothing is known of the epochs up to this one, but with which of them tables and views `began`."""
        with self._lock:
            self._start = epoch
            self._relations = {name: _Changes(self._most, gone=epoch, began=first) for name, first in began.items()}

    def begin(self, names: Collection[str], epoch: int) -> None:
        """Tables and views that are new, or begin anew, with an epoch."""
        with self._lock:
            self._relations.update((name, _Changes(self._most, began=epoch)) for name in names)

    def add(self, name: str, epoch: int, delta: Change) -> None:
        with self._lock:
            self._changes(name).add(epoch, delta)

    def add_if_few(self, name: str, epoch: int, delta: Delta) -> None:
        """The same for a change that, with very many rows, is not worth the memory."""
        with self._lock:
            if len(delta) > self._most:
                self._relations[name] = _Changes(self._most, gone=epoch, began=self._changes(name).began)
            else:
                self._changes(name).add(epoch, delta)

    def since(self, name: str, epoch: int) -> list[tuple[int, Delta]] | None:
        """What changed in a table or view after an epoch; None if that is not known any more."""
        with self._lock:
            changes = self._changes(name)
            found = None if epoch < changes.gone else [change for change in changes.kept if change[0] > epoch]
        return None if found is None else [(at, read(change)) for at, change in found]

    def earliest(self, name: str) -> int:
        """The epoch after which all changes are known."""
        with self._lock:
            return self._changes(name).gone

    def began(self, name: str) -> int:
        """The epoch with which a table or view came to be, as far as that is known."""
        with self._lock:
            return self._changes(name).began

    def forget(self, names: Collection[str]) -> None:
        """Drops all that is known of these tables and views."""
        with self._lock:
            for name in names:
                self._relations.pop(name, None)

    def _changes(self, name: str) -> _Changes:
        return self._relations.setdefault(name, _Changes(self._most, gone=self._start))


class _Changes:
    """The latest changes of a table or view, the epoch of the last one that is not kept any more, and that of its beginning."""

    def __init__(self, most: int, gone: int = 0, began: int = 0) -> None:
        self._most = most
        self.kept: deque[tuple[int, Change]] = deque()
        self.gone = gone
        self.began = began
        self._rows = 0

    def add(self, epoch: int, delta: Change) -> None:
        self.kept.append((epoch, _compact(delta) if isinstance(delta, Delta) else delta))
        self._rows += len(delta)
        while len(self.kept) > EPOCHS or (self._rows > self._most and len(self.kept) > 1):
            self.gone, oldest = self.kept.popleft()
            self._rows -= len(oldest)


def read(change: Change) -> Delta:
    """A change as rows."""
    return change if isinstance(change, Delta) else change.contents()


def _compact(delta: Delta) -> Delta:
    held = delta.rows.get_total_buffer_size()
    return delta if held < _SLACK or held < 2 * delta.rows.nbytes else delta.take(np.arange(len(delta)))
