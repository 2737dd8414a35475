"""Batches of `headwater_postgres`: the changes of several tables, each of which becomes events of a table here.

a table that was emptied   what came before counts for nothing, and all rows go
an update                  the end of the old row, if it was sent, and the beginning of the new one
a value that was not sent  is taken from the row as it was
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import SchemaChanged
from headwater.sources.events import Events
from headwater.sources.postgres.texts import read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.runtime.catalog import TableEntry

COLUMNS = frozenset({"table", "op", "xid", "lsn", "ts", "before", "after"})


@dataclass(frozen=True, eq=False)
class Captured:
    """What a batch says of one table."""

    events: Events
    """Their rows are texts."""
    absent: dict[str, NDArray[np.bool_]]
    """By column: the events in which it has no value, not even NULL."""
    emptied: bool
    inserted: bool
    """Whether there are whole rows among them, which have all columns."""


def qualified(name: str) -> str:
    """A table's name with its schema."""
    return name if "." in name else f"public.{name}"


def of_table(batch: pa.Table, name: str) -> Captured | None:
    """What a batch says of a table of the server's; None if nothing."""
    places = np.flatnonzero(pc.equal(batch.column("table"), name).to_numpy())
    if not len(places):
        return None
    part = batch.take(pa.array(places))
    ops = _whole(part, "op").to_numpy(zero_copy_only=False)
    emptied = np.flatnonzero(ops == "t")
    if len(emptied):
        later = emptied[-1] + 1
        part, places, ops = part.slice(later), places[later:], ops[later:]
    before, after = _whole(part, "before"), _whole(part, "after")
    had = before.is_valid().to_numpy(zero_copy_only=False)
    has = after.is_valid().to_numpy(zero_copy_only=False)
    where = np.concatenate([np.flatnonzero(had), np.flatnonzero(has)])
    went = np.repeat([True, False], [np.count_nonzero(had), np.count_nonzero(has)])
    order = np.lexsort((~went, where))
    maps = pa.concat_arrays([before.filter(pa.array(had)), after.filter(pa.array(has))]).take(pa.array(order))
    rows, absent = _columns(maps)
    # What a new row does not have, its table did not have then; only updates leave values out.
    left_out = went[order] | (ops == "u")[where[order]]
    absent = {name: mask & left_out for name, mask in absent.items()}
    return Captured(
        Events(rows, went[order], places[where[order]]), absent, bool(len(emptied)), bool(np.isin(ops, ["c", "r"]).any())
    )


def typed(found: Captured, table: TableEntry) -> tuple[Events, dict[int, NDArray[np.bool_]]]:
    """The events with the columns of a table, still as texts, and by column the events in which it has no value.

    Columns that the table does not have are left out.
    """
    given = {name.lower(): name for name in found.events.rows.column_names}
    columns, absent = {}, {}
    for i, field in enumerate(table.arrow):
        name = given.get(field.name.lower())
        if name is None:
            if found.inserted:
                raise SchemaChanged(f"the source has no column {field.name!r} any more, which table {table.name!r} has")
            columns[field.name] = pa.nulls(len(found.events), field.type)
            absent[i] = np.ones(len(found.events), np.bool_)
            continue
        columns[field.name] = _whole(found.events.rows, name)
        if name in found.absent:
            absent[i] = found.absent[name]
    return replace(found.events, rows=pa.table(columns), read=read), absent


def _columns(maps: pa.Array) -> tuple[pa.Table, dict[str, NDArray[np.bool_]]]:
    """Maps as columns of texts, and where a map has no entry for one."""
    count = len(maps)
    offsets = maps.offsets.to_numpy()
    start, stop = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.slice(start, stop - start).dictionary_encode()
    items = maps.items.slice(start, stop - start)
    owners = np.repeat(np.arange(count), np.diff(offsets))
    codes = keys.indices.to_numpy()
    columns, absent = {}, {}
    for code, name in enumerate(keys.dictionary.to_pylist()):
        at = np.flatnonzero(codes == code)
        if len(at) == count:
            columns[name] = items.take(pa.array(at))
            continue
        there = np.zeros(count, np.bool_)
        there[owners[at]] = True
        place = np.zeros(count, np.int64)
        place[owners[at]] = at
        columns[name] = items.take(pa.array(place, mask=~there))
        absent[name] = ~there
    return pa.table(columns) if columns else pa.table({}), absent


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
