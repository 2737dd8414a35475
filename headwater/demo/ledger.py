"""A ledger: the rows of one table as the shop itself knows them, so that it can say which row to change or to strike out.

Rows have a fixed place, the slot. New ones come at the end, struck-out ones are only marked, and columns have room to spare: a
change costs what the change is and not what the ledger holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


class Ledger:
    """Columns of numbers, and a mark on each row that is still there."""

    def __init__(self, *columns: str) -> None:
        self._columns = {name: np.empty(0, np.int64) for name in columns}
        self._present = np.empty(0, np.bool_)
        self._size = 0

    def __len__(self) -> int:
        """How many slots there are, those of struck-out rows included."""
        return self._size

    def __getitem__(self, column: str) -> Numbers:
        """A column, slot by slot; to write into it is to change the ledger."""
        return self._columns[column][: self._size]

    def present(self) -> Numbers:
        """The slots of all rows that are still there."""
        return np.flatnonzero(self._present[: self._size])

    def append(self, **columns: Numbers) -> Numbers:
        """Adds rows at the end, and says where."""
        added = np.arange(self._size, self._size + len(next(iter(columns.values()))))
        self._size += len(added)
        self._present = _with_room(self._present, self._size)
        self._present[added] = True
        for name, values in columns.items():
            self._columns[name] = _with_room(self._columns[name], self._size)
            self._columns[name][added] = values
        return added

    def strike(self, slots: Numbers) -> None:
        """Takes rows out of the ledger."""
        self._present[slots] = False


def _with_room(column: NDArray[Any], size: int) -> NDArray[Any]:
    if size <= len(column):
        return column
    grown = np.empty(max(size, 2 * len(column)), column.dtype)
    grown[: len(column)] = column
    return grown
