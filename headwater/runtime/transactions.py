"""Transactions: changes of tables are checked and collected, and become one epoch or nothing.

Each change sees the ones before it in the same transaction. What is kept of them is, for each table, its net delta.

A change *waits* until a later one has to see it; then it is inserted into a copy of the table, which is the table's new state.
So one insert, or one delete and one insert of other keys, needs no copy at all, and a thousand statements make each row's way
into the state only once.

Whether keys are new, or rows there, is a question of sums, for which nothing need be consolidated: in a table with a key, the
weights of all that is found under a key add up to 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.errors import DuplicateKey, InvalidRows, MissingKey, MissingRow, NullKey
from headwater.interrupts import uninterrupted
from headwater.runtime.driver import Backfill
from headwater.runtime.lifetimes import stamped, withdrawn
from headwater.runtime.outside import Content
from headwater.state import sharing
from headwater.state.consolidation import consolidate, group_rows
from headwater.state.hashing import hash_rows
from headwater.state.sorting import ascending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Snapshot, TableEntry
    from headwater.state.arrangement import Arrangement, Matches

# Of more rows than this, hashes are sorted to see that there are no equal ones, which takes less memory than a table of them.
_FEW = 1 << 16


@dataclass(frozen=True, eq=False)
class Staged:
    """One table as it will be: its rows with the changes `seen` so far, and the changes that wait."""

    contents: Arrangement
    seen: tuple[Delta, ...] = ()
    waiting: tuple[Delta, ...] = ()
    deletes: bool = False
    """Something waits, and it is nothing but deletes."""
    cancels: bool = False
    """Some changes may cancel others out."""

    def settled(self) -> Staged:
        """The same with nothing waiting."""
        if not self.waiting:
            return self
        contents = self.contents.insert(Delta.concat(self.waiting))
        return Staged(contents, self.seen + self.waiting, cancels=True)

    def net(self) -> Delta:
        """All changes as one."""
        changes = self.seen + self.waiting
        delta = Delta.concat(changes)
        sharing.joined(delta.rows, [change.rows for change in changes])
        return consolidate(delta) if self.cancels else delta


class Staging:
    """The tables as they will be, beside a snapshot that stays as it is; what is inserted, is so at the time `now`."""

    def __init__(self, snapshot: Snapshot, now: int = 0) -> None:
        self._snapshot = snapshot
        self._now = now
        self._staged: dict[str, Staged] = {}

    @uninterrupted
    def net(self) -> tuple[dict[str, Delta], dict[Step, State]]:
        """The net change of each table that has one, and the new states that are known already."""
        changes = {name: staged.net() for name, staged in self._staged.items() if staged.seen or staged.waiting}
        changes = {name: delta for name, delta in changes.items() if len(delta)}
        advanced: dict[Step, State] = {}
        for name in changes:
            if self._staged[name].seen:
                advanced[self._snapshot.tables[name].contents] = (self._staged[name].settled().contents,)
        return changes, advanced

    @property
    def content(self) -> Backfill:
        """What tables and views would hold if the changes were committed now."""
        if not self._staged:
            return self._snapshot.content
        tables = self._snapshot.tables.values()
        states = {table.contents: (self._settled(table).contents,) for table in tables}
        outer = {
            table.source: Content(table.attached, states[table.contents][0]) for table in tables if table.attached is not None
        }
        return Backfill(states, {table.source: table.contents for table in tables if table.attached is None}, outer=outer)

    @uninterrupted
    def insert(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        self._require_values(table, rows)
        sharing.prepare(rows)
        staged = self._state(table)
        if table.key is not None:
            self._require_distinct(table, rows)
        if table.attached is not None:
            # What is there is outside, and not looked at.
            staged = replace(staged, cancels=True)
        elif table.key is not None:
            staged = self._require_new(table, rows, staged)
        elif staged.deletes:
            staged = replace(staged, cancels=True)
        self._add(table, staged, Delta.inserting(rows))
        self._time(table, came=Delta.inserting(rows))

    @uninterrupted
    def delete(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        """Removes rows; each must be there, as often as it is removed, which is only known of tables that are not attached."""
        sharing.prepare(rows)
        wanted = Delta.inserting(rows)
        if not _distinct(rows, table.indexed):
            wanted = consolidate(wanted)
        if table.attached is not None:
            self._add(table, replace(self._state(table), cancels=True), -wanted)
            return
        staged = self._settled(table)
        present = staged.contents.weights_of(wanted.rows)
        missing = np.flatnonzero(present < wanted.weights)
        if len(missing):
            first = missing[0]
            raise MissingRow(
                f"table {table.name!r} has {max(int(present[first]), 0)} of the row {_shown(table, wanted.rows, first)}, "
                f"and {int(wanted.weights[first])} should be deleted; {_count(len(missing))} like this. Nothing was changed"
            )
        self._add(table, staged, -wanted, deletes=True)
        self._time(table, gone=wanted)

    @uninterrupted
    def upsert(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        """Inserts rows, each in place of the one with the same key, if there is one."""
        if table.key is None:
            raise MissingKey(f"table {table.name!r} has no key, so nothing says which rows to replace; create it with key=…")
        self._require_values(table, rows)
        self._require_distinct(table, rows)
        self.merge(table, rows, rows.slice(0, 0))

    @uninterrupted
    def merge(self, table: TableEntry, rows: pa.RecordBatch, gone: pa.RecordBatch) -> None:
        """Inserts rows in place of those with their keys, and removes those with the keys of others, where there are any.

        No key comes twice in both.
        """
        assert table.key is not None
        sharing.prepare(rows)
        staged = self._settled(table)
        sought = pa.concat_batches([rows, gone]) if gone.num_rows else rows
        found: Matches | Delta
        if table.attached is None:
            found = staged.contents.lookup(sought, table.key).existing()
        else:
            found = Content(table.attached, staged.contents).found(sought)
        delta = Delta.inserting(rows)
        if len(found):
            # A row that is replaced by its like is no change.
            delta = consolidate(Delta.concat([Delta(found.rows, -found.weights), delta]))
        self._add(table, staged, delta)
        self._time(table, gone=Delta(found.rows, found.weights), came=Delta.inserting(rows))

    @uninterrupted
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

    @uninterrupted
    def empty(self, table: TableEntry) -> None:
        """Removes all rows."""
        staged = self._settled(table)
        content = staged.contents.contents() if table.attached is None else Content(table.attached, staged.contents).delta()
        self._add(table, replace(staged, cancels=True), -content)

    @uninterrupted
    def change(self, table: TableEntry, delta: Delta) -> None:
        """Changes rows as a delta says that is known to fit."""
        self._add(table, replace(self._state(table), cancels=True), delta)
        self._time(table, gone=-delta.where(delta.weights < 0), came=delta.where(delta.weights > 0))

    @uninterrupted
    def kept(self, table: TableEntry) -> Arrangement:
        """What is kept of a table, with all changes so far."""
        return self._settled(table).contents

    def _add(self, table: TableEntry, staged: Staged, delta: Delta, *, deletes: bool = False) -> None:
        if len(delta):
            staged = replace(staged, waiting=(*staged.waiting, delta), deletes=deletes)
        self._staged[table.name.lower()] = staged

    def _time(self, table: TableEntry, gone: Delta | None = None, came: Delta | None = None) -> None:
        """Keeps the times at which rows were inserted, where how long they live depends on it."""
        if table.times is None:
            return
        times = self._snapshot.tables[table.times]
        if gone is not None and len(gone):
            staged = self._settled(times)
            change = withdrawn(staged.contents, gone.select(table.indexed))
            self._add(times, replace(staged, cancels=True), change)
        if came is not None and len(came):
            self._add(times, replace(self._state(times), cancels=True), stamped(came.select(table.indexed), self._now))

    def _state(self, table: TableEntry) -> Staged:
        return self._staged.get(table.name.lower()) or Staged(self._snapshot.kept(table))

    def _settled(self, table: TableEntry) -> Staged:
        name = table.name.lower()
        if name in self._staged:
            self._staged[name] = self._staged[name].settled()
        return self._state(table)

    def _require_values(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        for i, column in enumerate(rows.columns):
            if not column.null_count:
                continue
            name = table.arrow.field(i).name
            if table.key is not None and i in table.key:
                raise NullKey(f"column {name!r} is in the key of table {table.name!r} and cannot be NULL. Nothing was changed")
            if not table.schema.fields[i].nullable:
                raise InvalidRows(f"column {name!r} of table {table.name!r} is NOT NULL. Nothing was changed")

    def _require_new(self, table: TableEntry, rows: pa.RecordBatch, staged: Staged) -> Staged:
        """The table in a state in which the keys are known to be new."""
        assert table.key is not None
        if staged.deletes and not staged.contents.lookup(rows, table.key).weights.sum():
            return staged
        staged = staged.settled()
        found = staged.contents.lookup(rows, table.key)
        if found.weights.sum():
            first = found.consolidated()
            raise DuplicateKey(
                f"table {table.name!r} has a row with the key {_shown(table, first.rows, 0, table.key)} already; "
                f"{_count(len(first))} like this. Use upsert to replace rows. Nothing was changed"
            )
        return staged

    def _require_distinct(self, table: TableEntry, rows: pa.RecordBatch) -> None:
        assert table.key is not None
        if not _distinct(rows, table.key):
            groups = group_rows(rows, table.key)
            again = np.flatnonzero(np.bincount(groups.ids) > 1)[0]
            shown = _shown(table, rows, int(groups.representatives[again]), table.key)
            raise DuplicateKey(f"the key {shown} of table {table.name!r} comes more than once in the rows. Nothing was changed")


def _distinct(rows: pa.RecordBatch, columns: Sequence[int]) -> bool:
    """Whether no two rows are equal on these columns."""
    if rows.num_rows <= 1:
        return True
    first = rows.column(columns[0])
    if pa.types.is_integer(first.type) and not first.null_count:
        numbers = first.to_numpy()
        if np.count_nonzero(numbers[1:] > numbers[:-1]) == len(numbers) - 1:
            return True
    if rows.num_rows > _FEW:
        hashes = ascending(hash_rows(rows, columns))
        if not (hashes[1:] == hashes[:-1]).any():
            return True
    return group_rows(rows, columns).count == rows.num_rows


def _shown(table: TableEntry, rows: pa.RecordBatch, index: int, columns: tuple[int, ...] | None = None) -> str:
    chosen = range(len(table.arrow)) if columns is None else columns
    values = {table.arrow.field(i).name: rows.column(i)[int(index)].as_py() for i in chosen}
    text = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"({text[:200]}…)" if len(text) > 200 else f"({text})"


def _count(number: int) -> str:
    return "1 row is" if number == 1 else f"{number} rows are"
