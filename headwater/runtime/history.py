"""What changed in tables and views, epoch by epoch, as far back as memory holds it.

An epoch that gives a view other columns, by names or types, changes it in two parts: all rows it had go, under the columns of
before, and all rows it has come, under the new ones. Changes before that epoch have the columns of then.

Deltas are kept as they came; who reads them consolidates. Of each view there are the changes of the last 10 000 epochs that
touched it, or fewer if they have more than a million rows in all; the very last change is there whatever its size. Of a table,
a change of more rows is not kept. So a session that runs for ever needs no more memory than that.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta
from headwater.errors import HistoryGone
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

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


@dataclass(frozen=True, eq=False)
class Former:
    """What a view was until an epoch gave it other columns."""

    gone: Delta
    """All rows that it had, with negative weights."""
    names: pa.Schema
    """Its columns, under the users' names; `gone` may have more, which only ordered the rows."""


@dataclass(frozen=True, eq=False)
class Changed:
    """What an epoch changed in a table or view."""

    epoch: int
    rows: Change
    former: Former | None = None
    """Set if the epoch gave a view other columns; `rows` are then all that it has."""
    anew: bool = False
    """Whether the view came to be with this epoch: what one of its name was before is not told."""

    @property
    def delta(self) -> Delta:
        return read(self.rows)

    @property
    def size(self) -> int:
        return len(self.rows) + (0 if self.former is None else len(self.former.gone))

    def parts(self, names: pa.Schema) -> list[tuple[Delta, pa.Schema]]:
        """The change of the columns that users see, consolidated: one part for each schema, what went first."""
        came = self.delta.select(range(len(names)))
        if self.former is None:
            return [(consolidate(came), names)]
        gone = self.former.gone.select(range(len(self.former.names)))
        if same_columns(self.former.names, names):
            return [(consolidate(Delta.concat([gone, came])), names)]
        return [(consolidate(gone), self.former.names), (consolidate(came), names)]


def same_columns(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether two schemas have the same names and types; where NULL is allowed does not matter."""
    return one.names == other.names and one.types == other.types


def with_names(changes: Sequence[Changed], names: pa.Schema, until: int) -> list[tuple[Changed, pa.Schema]]:
    """The changes until an epoch, each with the columns of its own time; `names` are those of the last epoch."""
    found = []
    for changed in reversed(changes):
        if changed.epoch <= until:
            found.append((changed, names))
        if changed.former is not None:
            names = changed.former.names
    return found[::-1]


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

    def reshape(self, names: Collection[str], epoch: int) -> None:
        """Views whose rows have other columns from an epoch on: what they were before cannot be read, but its end is told."""
        with self._lock:
            for name in names:
                self._changes(name).began = epoch

    def add(self, name: str, changed: Changed) -> None:
        with self._lock:
            self._changes(name).add(changed)

    def add_if_few(self, name: str, epoch: int, delta: Delta) -> None:
        """The same for a change that, with very many rows, is not worth the memory."""
        with self._lock:
            if len(delta) > self._most:
                self._relations[name] = _Changes(self._most, gone=epoch, began=self._changes(name).began)
            else:
                self._changes(name).add(Changed(epoch, delta))

    def since(self, name: str, epoch: int) -> list[Changed] | None:
        """What changed in a table or view after an epoch; None if that is not known any more."""
        with self._lock:
            changes = self._changes(name)
            return None if epoch < changes.gone else [changed for changed in changes.kept if changed.epoch > epoch]

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
        self.kept: deque[Changed] = deque()
        self.gone = gone
        self.began = began
        self._rows = 0

    def add(self, changed: Changed) -> None:
        rows = _compact(changed.rows) if isinstance(changed.rows, Delta) else changed.rows
        self.kept.append(changed if rows is changed.rows else replace(changed, rows=rows))
        self._rows += changed.size
        while len(self.kept) > EPOCHS or (self._rows > self._most and len(self.kept) > 1):
            oldest = self.kept.popleft()
            self.gone = oldest.epoch
            self._rows -= oldest.size


def read(change: Change) -> Delta:
    """A change as rows."""
    return change if isinstance(change, Delta) else change.contents()


def _compact(delta: Delta) -> Delta:
    held = delta.rows.get_total_buffer_size()
    return delta if held < _SLACK or held < 2 * delta.rows.nbytes else delta.take(np.arange(len(delta)))
