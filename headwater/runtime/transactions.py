"""Transactions: changes of tables are checked and collected, and become one epoch or nothing.

Each change sees the ones before it in the same transaction. What is kept of them is, for each table, its net delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.errors import DuplicateKey, InvalidRows, MissingKey, MissingRow, NullKey
from headwater.runtime.driver import Backfill
from headwater.state.consolidation import consolidate, group_rows, sum_by

if TYPE_CHECKING:
    from headwater.runtime.catalog import Snapshot, TableEntry
    from headwater.state.arrangement import Arrangement


class Staging:
    """The tables as they will be, beside a snapshot that stays as it is."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._staged: dict[str, tuple[Arrangement, list[Delta]]] = {}

    @property
    def changes(self) -> dict[str, Delta]:
        """The net change of each table."""
        net = {name: consolidate(Delta.concat(deltas)) for name, (_, deltas) in self._staged.items() if deltas}
        return {name: delta for name, delta in net.items() if len(delta)}

    @property
    def content(self) -> Backfill:
        """What tables and views would hold if the changes were committed now."""
        if not self._staged:
            return self._snapshot.content
        tables = self._snapshot.tables.values()
        return Backfill({}, {}, {table.source: self._state(table)[0].contents() for table in tables})

    def insert(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        self._require_values(table, rows)
        if table.key is not None:
            self._require_new(table, rows)
        self._add(table, Delta.inserting(rows))

    def delete(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        """Removes rows; each must be there, as often as it is removed."""
        wanted = consolidate(Delta.inserting(rows))
        key = tuple(range(len(table.arrow)))
        found = self._lookup(table, wanted.rows, table.key if table.key is not None else key)
        groups = group_rows(pa.concat_batches([wanted.rows, found.rows]), key, signed_zeros=True)
        present = sum_by(groups.ids[len(wanted) :], groups.count, found.weights)[groups.ids[: len(wanted)]]
        missing = np.flatnonzero(present < wanted.weights)
        if len(missing):
            first = missing[0]
            raise MissingRow(
                f"table {table.name!r} has {max(int(present[first]), 0)} of the row {_shown(table, wanted.rows, first)}, "
                f"and {int(wanted.weights[first])} should be deleted; {_count(len(missing))} like this. Nothing was changed"
            )
        self._add(table, -wanted)

    def upsert(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        """Inserts rows, each in place of the one with the same key, if there is one."""
        if table.key is None:
            raise MissingKey(f"table {table.name!r} has no key, so nothing says which rows to replace; create it with key=…")
        self._require_values(table, rows)
        self._require_distinct(table, rows)
        found = self._lookup(table, rows, table.key)
        old = consolidate(Delta(found.rows, -found.weights))
        self._add(table, Delta.concat([old, Delta.inserting(rows)]))

    def replace(self, table: TableEntry, old: pa.RecordBatch, new: pa.RecordBatch) -> None:
        """Removes rows and inserts others at once, so that keys may be exchanged between rows."""
        staged = dict(self._staged)
        try:
            self.delete(table, old)
            self.insert(table, new)
        except BaseException:
            # Who catches this may commit what came before, but no half of it.
            self._staged = staged
            raise

    def _add(self, table: TableEntry, delta: Delta) -> None:
        contents, deltas = self._state(table)
        self._staged[table.name.lower()] = (contents.insert(delta), [*deltas, delta])

    def _state(self, table: TableEntry) -> tuple[Arrangement, list[Delta]]:
        return self._staged.get(table.name.lower()) or (self._snapshot.states[table.contents][0], [])

    def _lookup(self, table: TableEntry, rows: pa.RecordBatch, columns: tuple[int, ...]) -> Delta:
        found = self._state(table)[0].lookup(rows, columns)
        return Delta(found.rows, found.weights)

    def _require_values(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        for i, column in enumerate(rows.columns):
            if not column.null_count:
                continue
            name = table.arrow.field(i).name
            if table.key is not None and i in table.key:
                raise NullKey(f"column {name!r} is in the key of table {table.name!r} and cannot be NULL. Nothing was changed")
            if not table.schema.fields[i].nullable:
                raise InvalidRows(f"column {name!r} of table {table.name!r} is NOT NULL. Nothing was changed")

    def _require_new(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        assert table.key is not None
        self._require_distinct(table, rows)
        found = consolidate(self._lookup(table, rows, table.key))
        if len(found):
            raise DuplicateKey(
                f"table {table.name!r} has a row with the key {_shown(table, found.rows, 0, table.key)} already; "
                f"{_count(len(found))} like this. Use upsert to replace rows. Nothing was changed"
            )

    def _require_distinct(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        assert table.key is not None
        groups = group_rows(rows, table.key)
        if groups.count < rows.num_rows:
            again = np.flatnonzero(np.bincount(groups.ids) > 1)[0]
            shown = _shown(table, rows, int(groups.representatives[again]), table.key)
            raise DuplicateKey(f"the key {shown} of table {table.name!r} comes more than once in the rows. Nothing was changed")


def _shown(table: TableEntry, rows: pa.RecordBatch, index: int, columns: tuple[int, ...] | None = None) -> str:
    chosen = range(len(table.arrow)) if columns is None else columns
    values = {table.arrow.field(i).name: rows.column(i)[int(index)].as_py() for i in chosen}
    text = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"({text[:200]}…)" if len(text) > 200 else f"({text})"


def _count(number: int) -> str:
    return "1 row is" if number == 1 else f"{number} rows are"
