"""Applying a batch: its events become changes of a table within a transaction, and what the table cannot take is given back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.errors import DuplicateKey
from headwater.sources import sifting
from headwater.sources.filling import filled
from headwater.state.consolidation import group_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headwater.runtime.catalog import TableEntry
    from headwater.runtime.transactions import Staging
    from headwater.sources.events import Events, Places
    from headwater.sources.sifting import Bad


@dataclass(frozen=True, eq=False)
class Applied:
    """What came of a batch."""

    rows: int
    bad: Bad
    """Places in the batch of rows that were not taken, and why."""


def apply(
    staging: Staging, table: TableEntry, events: Events, mode: str, absent: Mapping[int, NDArray[np.bool_]] | None = None
) -> Applied:
    """Changes a table as the events say; a mode is append, upsert or cdc.

    `absent` says by column in which events it has no value, though its row has: the one that it had before.
    """
    rows, bad = sifting.in_types_of(table, events.rows, events.read)
    if absent:
        rows, unknown = filled(staging.kept(table), table, rows, events, absent)
        bad |= unknown
    came = ~events.went
    sifting.require_values(table, rows, sifting.required(table), bad, came)
    # Of a row that goes, the key is enough.
    sifting.require_values(table, rows, table.key or (), bad, events.went)
    good = _without(len(events), bad)
    if mode == "append":
        good = _inserted(staging, table, rows, good, bad)
    elif table.key is None:
        missing = _net(staging, table, rows, events, good)
        bad |= dict.fromkeys(map(int, missing), "it went, but is not there")
        good = _without(len(events), bad)
    else:
        last = _last_of_each(rows, table.key, good)
        comes, goes = last[came[last]], last[~came[last]]
        staging.merge(table, _at(rows, comes), _at(rows, goes))
    told = {int(events.places[at]): why for at, why in bad.items()} | dict(events.bad)
    return Applied(len(good), told)


def _at(rows: pa.RecordBatch, places: Places) -> pa.RecordBatch:
    """The rows at ascending places."""
    return rows if len(places) == rows.num_rows else rows.take(pa.array(places))


def _without(count: int, bad: Bad) -> Places:
    mask = np.ones(count, np.bool_)
    mask[list(bad)] = False
    return np.flatnonzero(mask)


def _inserted(staging: Staging, table: TableEntry, rows: pa.RecordBatch, good: Places, bad: Bad) -> Places:
    """Inserts the rows whose keys are new, and gives their places; keys are looked at one by one only if some are not."""
    try:
        staging.insert(table, _at(rows, good))
    except DuplicateKey:
        good = _new(staging, table, rows, good, bad)
        staging.insert(table, _at(rows, good))
    return good


def _new(staging: Staging, table: TableEntry, rows: pa.RecordBatch, good: Places, bad: Bad) -> Places:
    """The rows whose keys are new, in the table and in the batch."""
    assert table.key is not None
    first = _first_of_each(rows, table.key, good)
    again = np.zeros(rows.num_rows, np.bool_)
    again[good] = True
    again[first] = False
    for at in np.flatnonzero(again):
        bad[int(at)] = "its key comes more than once in the batch; only the first row was taken. Mode upsert replaces rows"
    if table.attached is not None:
        return first
    found = staging.kept(table).lookup(_at(rows, first), table.key).existing()
    there = np.zeros(len(first), np.bool_)
    there[found.probe] = True
    for at in first[there]:
        bad[int(at)] = "a row with its key is there already; mode upsert replaces it"
    return first[~there]


def _net(staging: Staging, table: TableEntry, rows: pa.RecordBatch, events: Events, good: Places) -> Places:
    """Changes a bag by what came and went; more cannot go than is there, and the places of what does are given back."""
    missing = np.empty(0, np.int64)
    chosen = _at(rows, good)
    went = events.went[good]
    groups = group_rows(chosen, range(chosen.num_columns), signed_zeros=True)
    net = np.bincount(groups.ids, np.where(went, -1, 1), groups.count).astype(np.int64)
    different = chosen.take(pa.array(groups.representatives))
    there = staging.kept(table).weights_of(different) if table.attached is None else np.maximum(-net, 0)
    short = np.minimum(there + net, 0)
    if short.any():
        # The last ones that went have nothing left to go.
        missing = _last_of_groups(groups.ids, went, -short)
        net -= short
    changed = np.flatnonzero(net)
    staging.change(table, Delta(different.take(pa.array(changed)), net[changed]))
    return good[missing]


def _last_of_groups(ids: Places, went: NDArray[np.bool_], wanted: Places) -> Places:
    """Of each group, so many of the last rows that went."""
    candidates = np.flatnonzero(went & (wanted[ids] > 0))[::-1]
    order = candidates[np.argsort(ids[candidates], kind="stable")]
    starts = np.searchsorted(ids[order], ids[order])
    return order[np.arange(len(order)) - starts < wanted[ids[order]]]


def _first_of_each(rows: pa.RecordBatch, key: tuple[int, ...], among: Places) -> Places:
    return among[np.sort(group_rows(_at(rows, among), key).representatives)]


def _last_of_each(rows: pa.RecordBatch, key: tuple[int, ...], among: Places) -> Places:
    """Of the rows with one key, the last."""
    groups = group_rows(_at(rows, among), key)
    if groups.count == len(among):
        return among
    last = np.zeros(groups.count, np.int64)
    last[groups.ids] = np.arange(len(among))
    return among[np.sort(last)]
