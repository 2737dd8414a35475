"""Transactions of a source that are kept whole: which of the changes that have come may be applied, and in which order.

    complete    its end was told, and of each table that is followed as many changes have come as the end says
    applied     in the order of the ends: all before the first that is not complete; a change without a transaction, unless a
                change that waits has come before it
    held        every other change of a table that is followed, and every other end, until a later batch

Ends are told in the order of commits, so what is applied is always a prefix of the source's history. A source tells a
transaction's changes table by table, and each table in its own time: its end may come before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sources.envelopes import target_of
from headwater.sources.events import moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.sources.events import Places

BATCH, ROW = "_batch", "_row"


@dataclass(frozen=True, eq=False)
class Sorted:
    """What is to be done with the changes that have come, by their places in the order in which they came."""

    ready: Places
    """To be applied, in this order."""
    held: Places
    targets: Places
    """By place: which table is meant; −1 for none."""


@dataclass(frozen=True, eq=False)
class _Ends:
    """Of each transaction, by its number: when its end was told, among all ends (−1 if it was not), and if all has come."""

    rank: Places
    complete: NDArray[np.bool_]


def sort(pool: pa.Table, keys: Sequence[str]) -> Sorted:
    """Sorts what has come, the oldest first, for tables by these names."""
    targets = _targets(_whole(pool, "table"), keys)
    codes, count = _codes(_whole(pool, "xid"))
    told = _whole(pool, "status").is_valid().to_numpy(zero_copy_only=False)
    changes = ~told & (_whole(pool, "op").is_valid().to_numpy(zero_copy_only=False))
    ended = _ended(pool)
    ends = _ends(pool, codes, count, targets, changes, ended, keys)
    ranks = np.where(codes >= 0, ends.rank[codes], -1) if count else np.full(len(codes), -1)
    first_open = np.min(ends.rank, where=(ends.rank >= 0) & ~ends.complete, initial=len(codes) + 1) if count else 0
    changes &= targets >= 0
    belongs = codes >= 0
    applies = belongs & (ranks >= 0) & (ranks < first_open)
    waits = np.flatnonzero(belongs & ~applies & changes)
    alone = changes & ~belongs
    # What is alone may follow a change of the same row that waits.
    alone_now = alone & (np.arange(len(codes)) < (waits[0] if len(waits) else len(codes)))
    ready = np.flatnonzero((applies & changes) | alone_now)
    held = np.flatnonzero((belongs & ~applies & (changes | ended)) | (alone & ~alone_now))
    return Sorted(ready[_order(pool, ready, ranks[ready])], held, targets)


def _order(pool: pa.Table, ready: Places, ranks: Places) -> Places:
    """By the ends of transactions, and within each as its source says; what is alone, after what came in earlier batches."""
    numbers = _numbers(_whole(pool, "total_order"))[ready]
    alone = ranks < 0
    batches = _numbers(_whole(pool, BATCH))[ready]
    turn = 2 * ranks + 1
    for batch in np.unique(batches[alone]):
        earlier = ranks[(batches < batch) & ~alone]
        turn[alone & (batches == batch)] = 2 * earlier.max() + 2 if len(earlier) else 0
    source = pool.select(["source"]).take(pa.array(ready[alone]))
    for told in moments(source, np.arange(source.num_rows)):
        numbers[alone] = told
    return np.lexsort((ready, numbers, turn))


def _ends(  # noqa: PLR0913, PLR0917  (columns of one pool)
    pool: pa.Table,
    codes: Places,
    count: int,
    targets: Places,
    changes: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    keys: Sequence[str],
) -> _Ends:
    at = np.flatnonzero(ended & (codes >= 0))
    rank = np.full(count, -1)
    # The first end of each counts: of places that are written several times, the last is kept.
    rank[codes[at][::-1]] = np.arange(len(at))[::-1]
    came = changes & (codes >= 0) & (targets >= 0)
    came[came] = _first_of_each(codes[came], _numbers(_whole(pool, "total_order"))[came])
    width = len(keys) + 1
    received = np.bincount(codes[came] * width + targets[came], minlength=count * width).reshape(count, width)
    expected = np.zeros((count, width), np.int64)
    collections = _whole(pool, "data_collections").take(pa.array(at))
    listed = collections.is_valid().to_numpy(zero_copy_only=False)
    owners = codes[at][pc.list_parent_indices(collections).to_numpy()]
    parts = collections.flatten()
    meant = _targets(pc.struct_field(parts, "data_collection"), keys)
    np.maximum.at(expected, (owners, meant % width), _numbers(pc.struct_field(parts, "event_count")))
    # What nobody follows need not come.
    expected[:, width - 1] = 0
    complete = (received >= expected).all(1)
    totals = np.zeros(count, np.int64)
    totals[codes[at[~listed]]] = _numbers(_whole(pool, "event_count").take(pa.array(at)))[~listed]
    return _Ends(rank, complete & (received.sum(1) >= totals))


def _first_of_each(codes: Places, numbers: Places) -> NDArray[np.bool_]:
    """Whether a change is the first one with its number in its transaction; a source may tell one again."""
    order = np.lexsort((numbers, codes))
    first = np.ones(len(order), np.bool_)
    first[order[1:]] = (np.diff(codes[order]) != 0) | (np.diff(numbers[order]) != 0) | (numbers[order][1:] == 0)
    return first


def _ended(pool: pa.Table) -> NDArray[np.bool_]:
    status = pc.utf8_upper(_whole(pool, "status"))
    return np.asarray(pc.fill_null(pc.equal(status, "END"), fill_value=False).to_numpy(zero_copy_only=False))


def _targets(names: pa.Array, keys: Sequence[str]) -> Places:
    encoded = names.dictionary_encode()
    meant = np.array([*(target_of(name, keys) for name in encoded.dictionary.to_pylist()), -1], np.int64)
    return meant[pc.fill_null(encoded.indices, len(meant) - 1).to_numpy()]


def _codes(names: pa.Array) -> tuple[Places, int]:
    """Texts as numbers from 0 on, −1 for NULL; how many there are."""
    encoded = names.dictionary_encode()
    return pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64), len(encoded.dictionary)


def _numbers(column: pa.Array) -> Places:
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy().copy()


def _whole(pool: pa.Table, name: str) -> pa.Array:
    return pool.column(name).combine_chunks() if pool.column(name).num_chunks else pa.array([], pool.schema.field(name).type)
