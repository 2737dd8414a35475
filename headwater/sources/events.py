"""Events: what a batch of a stream says of one table, in the order in which it happened.

    append, upsert        every row is there afterwards
    cdc, keyed table      of each key, the last event counts: its row is there afterwards, or none is
    cdc, table of a bag   a row that came is +1, one that went −1, and what is left of both is the change

The forms in which changes are told differ; what they tell does not:

    Spark's change tables   `_change_type` (insert, delete, update_preimage, update_postimage), by `_commit_version`
    Debezium                `op` (c, r, u, d), `before` and `after`; a tombstone, which has none of them, says nothing
    signs                   `_op` or `op`: + or −, or insert, update, delete, or their first letters
    weights                 `_weight`: so many copies came, or went if it is below 0
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.conversion import converted
from headwater.errors import InvalidStream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    Places = NDArray[np.int64]

_CHANGE_TYPE, _VERSION, _TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
_WEIGHT = "_weight"
_SIGNS = ("_op", "op", "operation")
CAME = frozenset({"+", "i", "c", "r", "u", "insert", "update", "upsert", "update_postimage"})
WENT = frozenset({"-", "−", "d", "delete", "update_preimage"})
_SILENT = frozenset({"m", "t"})
"""Debezium's messages, and truncations of tables that Kafka's rows cannot tell."""


@dataclass(frozen=True, eq=False)
class Events:
    """Rows under the stream's names, each with whether it went, and its place in the batch."""

    rows: pa.Table
    went: NDArray[np.bool_]
    places: Places
    bad: tuple[tuple[int, str], ...] = ()
    """Places of rows that say nothing that can be understood, and why."""
    read: Callable[[pa.Array, pa.DataType], pa.Array] = converted
    """What makes a column of a table's type of one of the rows'; raises one of `rows.UNFIT`."""

    def __len__(self) -> int:
        return len(self.places)

    def take(self, chosen: Places) -> Events:
        return replace(self, rows=self.rows.take(pa.array(chosen)), went=self.went[chosen], places=self.places[chosen])


def coming(batch: pa.Table) -> Events:
    """Every row comes."""
    return Events(batch, np.zeros(batch.num_rows, np.bool_), np.arange(batch.num_rows))


def form_of(names: Collection[str]) -> Callable[[pa.Table], Events]:
    """How changes are told by a stream with these columns."""
    known = {name.lower() for name in names}
    if _CHANGE_TYPE in known:
        return _from_change_types
    if {"op", "before", "after"} <= known:
        return from_envelopes
    if _WEIGHT in known:
        return _from_weights
    if known.intersection(_SIGNS):
        return _from_signs
    raise InvalidStream(
        f"no column says what a row does: a stream with mode cdc has {_CHANGE_TYPE}, or op with before and after, or _op, "
        f"or {_WEIGHT}, and this one has {', '.join(names)}"
    )


def describing(names: Sequence[str]) -> list[str]:
    """The columns of a change stream that are not the table's, but say what happens to its rows."""
    known = {name.lower() for name in names}
    if _CHANGE_TYPE in known:
        return [name for name in names if name.lower() in (_CHANGE_TYPE, _VERSION, _TIMESTAMP)]
    if _WEIGHT in known:
        return [name for name in names if name.lower() == _WEIGHT]
    sign = next(sign for sign in _SIGNS if sign in known)
    return [name for name in names if name.lower() == sign]


def _from_change_types(batch: pa.Table) -> Events:
    kinds = _column(batch, _CHANGE_TYPE)
    found = _signed(_rest(batch), kinds)
    if _has(batch, _VERSION):
        versions = _column(batch, _VERSION).to_numpy(zero_copy_only=False)[found.places]
        # What goes with a version goes before what comes with it.
        found = found.take(np.lexsort((~found.went, versions)))
    return found


def _from_signs(batch: pa.Table) -> Events:
    return _signed(_rest(batch), _column(batch, next(sign for sign in _SIGNS if _has(batch, sign))))


def _from_weights(batch: pa.Table) -> Events:
    weights = pc.fill_null(_column(batch, _WEIGHT), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    events = Events(_rest(batch), weights < 0, np.arange(len(weights)))
    return events.take(np.repeat(np.arange(len(weights)), np.abs(weights)))


def from_envelopes(batch: pa.Table) -> Events:
    kinds = _lower(_column(batch, "op"))
    before, after = _column(batch, "before"), _column(batch, "after")
    names = kinds.to_numpy(zero_copy_only=False)
    had, has = before.is_valid().to_numpy(zero_copy_only=False), after.is_valid().to_numpy(zero_copy_only=False)
    told = kinds.is_valid().to_numpy(zero_copy_only=False)
    changes = told & ~np.isin(names, list(_SILENT))
    comes = changes & has & np.isin(names, ["c", "r", "u"])
    goes = changes & had & np.isin(names, ["u", "d"])
    places = np.concatenate([np.flatnonzero(goes), np.flatnonzero(comes)])
    went = np.repeat([True, False], [np.count_nonzero(goes), np.count_nonzero(comes)])
    rows = pa.concat_tables([_fields(before, goes), _fields(after, comes)])
    bad = np.flatnonzero((changes & ~comes & ~goes) | (~told & (had | has)))
    found = Events(rows, went, places, tuple((int(at), "op is none of c, r, u and d with a row") for at in bad))
    # An update is the end of what was before and the beginning of what is after.
    return found.take(np.lexsort((~went, places, *moments(batch, places))))


def moments(batch: pa.Table, places: Places) -> list[NDArray[np.int64]]:
    """When things happened at the source of Debezium, where it tells; else they happened in the order of the batch."""
    if not _has(batch, "source") or not pa.types.is_struct(_column(batch, "source").type):
        return []
    source = _column(batch, "source")
    for name in ("lsn", "ts_ms"):
        if source.type.get_field_index(name) >= 0:
            moments = pc.struct_field(source, name)
            if pa.types.is_integer(moments.type) and not moments.null_count:
                return [moments.to_numpy(zero_copy_only=False)[places]]
    return []


def _signed(rows: pa.Table, kinds: pa.Array) -> Events:
    names = _lower(kinds).to_numpy(zero_copy_only=False)
    comes, goes = np.isin(names, list(CAME)), np.isin(names, list(WENT))
    bad = tuple((int(at), f"{names[at]!r} is no change that is known") for at in np.flatnonzero(~comes & ~goes))
    known = np.flatnonzero(comes | goes)
    return Events(rows.take(pa.array(known)), goes[known], known, bad)


def _fields(rows: pa.Array, mask: NDArray[np.bool_]) -> pa.Table:
    chosen = rows.filter(pa.array(mask))
    return pa.Table.from_arrays(
        [pc.struct_field(chosen, [i]) for i in range(chosen.type.num_fields)], schema=pa.schema(list(chosen.type))
    )


def _rest(batch: pa.Table) -> pa.Table:
    return batch.drop_columns(describing(batch.column_names))


def _lower(kinds: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.utf8_trim_whitespace(kinds.cast(pa.string())))


def _has(batch: pa.Table, name: str) -> bool:
    return name in (each.lower() for each in batch.column_names)


def _column(batch: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    found = batch.column([each.lower() for each in batch.column_names].index(name))
    return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
