"""Changes that are held until the transaction that they belong to is complete; in the directory, with the epoch that read them.

    epoch of batch n   applies what is complete, keeps the rest of the batch, and notes that batch n was read

So nothing need be read again: what a batch began and a later one ends is in a table that users do not see, a row for each batch
of which something is held, with the changes as Arrow. Beside them are the names of the transactions that were applied last: a
connector that was restarted tells some of them again, or parts of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UnendedTransaction
from headwater.sources import wholes
from headwater.sources.envelopes import UNREAD, after, before
from headwater.sources.frames import record_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.runtime.catalog import TableEntry
    from headwater.runtime.transactions import Staging
    from headwater.sources.events import Places
    from headwater.sources.frames import Batch

TABLE = "held changes"
COLUMNS = "stream STRING, batch BIGINT, changes BINARY"
KEY = (0, 1)
# So many changes wait at most for an end that may never come.
MOST = 1_000_000
# So many transactions are known as applied if they are told again.
REMEMBERED = 1_000
_DONE = -1


@dataclass(frozen=True, eq=False)
class Pool:
    """All changes that have come and were not applied, the oldest first, with the batch and the row that each was."""

    rows: pa.Table
    batch: Batch
    """The one that has come last."""
    known: dict[int, int]
    """Of earlier batches of which something is kept, how many changes."""
    done: list[str]
    """Transactions that were applied, the last of them at the end."""

    def origin(self, at: int) -> tuple[int, int, str | None]:
        number, row = (int(self.rows.column(name)[at].as_py()) for name in (wholes.BATCH, wholes.ROW))
        return number, row, self.batch.file_of(row) if number == self.batch.number else None

    def record(self, at: int) -> str:
        unread = self.rows.column(UNREAD)[at].as_py()
        names = [name for name in self.rows.column_names if name not in {wholes.BATCH, wholes.ROW}]
        return str(unread) if unread is not None else record_of(self.rows.select(names), at, all_columns=False)

    def of_table(self, i: int, chosen: Places) -> pa.Table:
        """Envelopes of a table."""
        return self.rows.select(["op", before(i), after(i)]).rename_columns(["op", "before", "after"]).take(pa.array(chosen))


def pooled(staging: Staging, table: TableEntry, stream: str, batch: Batch, *, begins: bool) -> Pool:
    """What is held of a stream, and the batch; what an earlier stream of that name left does not count for one that begins."""
    count = batch.rows.num_rows
    rows = batch.rows.append_column(wholes.BATCH, pa.array(np.full(count, batch.number)))
    rows = rows.append_column(wholes.ROW, pa.array(np.arange(count)))
    kept = dict(_kept(staging, table, stream))
    known = {number: 0 if begins else part.num_rows for number, part in kept.items()}
    if begins:
        return Pool(rows, batch, known, [])
    done = kept.pop(_DONE, None)
    if done is not None:
        again = pc.is_in(rows.column("xid"), pc.drop_null(done.column("xid").combine_chunks()))
        rows = rows.filter(pc.invert(again))
    pieces = [kept[number] for number in sorted(kept)]
    pool = pa.concat_tables([*pieces, rows], promote_options="permissive")
    return Pool(pool, batch, known, [] if done is None else done.column("xid").to_pylist())


def hold(  # noqa: PLR0913, PLR0917  (what was found of a pool)
    staging: Staging, table: TableEntry, stream: str, pool: Pool, held: Places, applied: Places
) -> None:
    """Keeps what waits, and the names of what was applied, and nothing else."""
    if len(held) > MOST:
        raise _unended(stream, pool, held)
    numbers = pool.rows.column(wholes.BATCH).to_numpy()[held]
    left = dict(zip(*(each.tolist() for each in np.unique(numbers, return_counts=True)), strict=True))
    written: list[Any] = []
    for number, count in left.items():
        # What was held before and still is stays as it is written.
        if pool.known.get(number) != count:
            written.append((stream, number, _bytes(pool.rows.take(pa.array(held[numbers == number])))))
    names = pc.drop_null(pool.rows.column("xid").take(pa.array(applied))).unique().to_pylist()
    if names:
        left[_DONE] = len(names)
        written.append((stream, _DONE, _bytes(pa.table({"xid": [*pool.done, *names][-REMEMBERED:]}))))
    elif pool.done:
        left[_DONE] = len(pool.done)
    gone = [(stream, number, None) for number in pool.known if number not in left]
    if written or gone:
        staging.merge(table, _rows(table, written), _rows(table, gone))


def drop(staging: Staging, table: TableEntry, stream: str) -> None:
    """Nothing is held of a stream any more."""
    gone = [(stream, number, None) for number, _ in _kept(staging, table, stream)]
    staging.merge(table, _rows(table, []), _rows(table, gone))


def _kept(staging: Staging, table: TableEntry, stream: str) -> Iterator[tuple[int, pa.Table]]:
    content = staging.kept(table).contents()
    names, numbers, changes = content.rows.columns
    for at in np.flatnonzero(pc.equal(names, stream).to_numpy(zero_copy_only=False) & (content.weights > 0)):
        with pa.ipc.open_stream(changes[int(at)].as_buffer()) as reader:
            yield int(numbers[int(at)].as_py()), reader.read_all()


def _rows(table: TableEntry, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, table.rows, strict=True)], schema=table.rows
    )


def _bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _unended(stream: str, pool: Pool, held: Places) -> UnendedTransaction:
    first = int(held[0])
    number, _, _ = pool.origin(first)
    return UnendedTransaction(
        f"stream {stream!r} holds {len(held):,} changes of transactions that are not complete, the first of them of "
        f"transaction {pool.rows.column('xid')[first].as_py()!r} in batch {number}: its end, or some of its changes, did not "
        "come. The topic of transactions and those of all the tables belong to the stream; without them, have the connector "
        "tell no transactions (provide.transaction.metadata=false)"
    )
