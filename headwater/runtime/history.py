"""What changed in the views, epoch by epoch, as far back as it is kept.

Deltas are kept as they came and consolidated when someone reads them. Of each view there are the changes of the last 10 000
epochs that touched it, or fewer if they have more than a million rows in all; the very last change is there whatever its size.
So a session that runs for ever needs no more memory than that.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from headwater.errors import HistoryGone
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.delta import Delta

EPOCHS = 10_000
ROWS = 1_000_000
# Rows that are a slice of something larger hold all of it.
_SLACK = 1 << 20


class History:
    """The latest changes of every view, by its name in lower case."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._views: dict[str, _Changes] = {}

    def add(self, name: str, epoch: int, delta: Delta) -> None:
        with self._lock:
            self._views.setdefault(name, _Changes()).add(epoch, delta)

    def since(self, name: str, epoch: int) -> list[tuple[int, Delta]]:
        """What changed in a view after an epoch."""
        with self._lock:
            changes = self._views.get(name)
            kept = [] if changes is None else [change for change in changes.kept if change[0] > epoch]
        if changes is not None and epoch < changes.gone:
            raise HistoryGone(
                f"the changes of view {name!r} are kept from epoch {changes.gone + 1} on, and those after epoch {epoch} were "
                f"asked for; read the view whole, and its changes since {changes.gone} or later"
            )
        settled = ((at, consolidate(delta)) for at, delta in kept)
        return [(at, delta) for at, delta in settled if len(delta)]

    def forget(self, names: Collection[str]) -> None:
        """Drops all that is known of these views."""
        with self._lock:
            for name in names:
                self._views.pop(name, None)


class _Changes:
    """The latest changes of one view, and the epoch of the last one that is not kept any more."""

    def __init__(self) -> None:
        self.kept: deque[tuple[int, Delta]] = deque()
        self.gone = 0
        self._rows = 0

    def add(self, epoch: int, delta: Delta) -> None:
        self.kept.append((epoch, _compact(delta)))
        self._rows += len(delta)
        while len(self.kept) > EPOCHS or (self._rows > ROWS and len(self.kept) > 1):
            self.gone, oldest = self.kept.popleft()
            self._rows -= len(oldest)


def _compact(delta: Delta) -> Delta:
    held = delta.rows.get_total_buffer_size()
    return delta if held < _SLACK or held < 2 * delta.rows.nbytes else delta.take(np.arange(len(delta)))
