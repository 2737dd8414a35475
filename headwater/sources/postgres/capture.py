"""Change capture: the slot and the publication on the server, a snapshot, and the changes between two places of its log.

    snapshot   rows of all tables as one transaction sees them, which says which transactions it sees
    changes    transactions that end after one place of the log and not after another, but for those that the snapshot has seen

So nothing is missing between the two and nothing is there twice, if the slot was made before the snapshot.
Transactions are whole: the server gives a transaction when it has committed, all of it.

Where the server is, and who asks, is an address of libpq's, or its usual means; passwords are best left to these. Whatever is
shown of an address has no password in it.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from headwater.errors import InvalidOption, InvalidStream
from headwater.redaction import hiding
from headwater.sources.postgres import messages
from headwater.sources.postgres.captured import qualified

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

# A class of an optional package.
Connection = Any

# The slot may still be held by a task that was killed.
_PATIENCE = 60.0
_PAUSE = 0.05
_SLOT = re.compile(r"[a-z0-9_]{1,63}")
_PLUGIN = "pgoutput"
# Bytes of the log that are gone through again without need, at most.
_FAR = 8 << 20


@dataclass(frozen=True)
class Capture:
    """What is captured: tables by schema and name, through a slot and a publication of one name."""

    address: str
    tables: tuple[str, ...]
    slot: str

    def __repr__(self) -> str:
        return f"Capture({', '.join(self.tables)}, slot {self.slot})"

    @staticmethod
    def of(address: str, tables: str, slot: str) -> Capture:
        names = tuple(qualified(name.strip()) for name in tables.split(",") if name.strip())
        if not names:
            raise InvalidOption('the option tables names what is captured, such as "public.orders, public.items"')
        if not _SLOT.fullmatch(slot):
            raise InvalidOption(f"a slot's name has small letters, digits and underscores, and {slot!r} has others")
        return Capture(address, names, slot)


def prepare(capture: Capture) -> None:
    """Makes the publication and the slot, if they are not there."""
    from psycopg import sql

    with connected(capture.address) as connection:
        level = connection.execute("SHOW wal_level").fetchone()[0]
        if level != "logical":
            raise InvalidStream(f"the server has wal_level = {level}, and changes can be captured with wal_level = logical")
        tables = sql.SQL(", ").join(sql.Identifier(*name.split(".")) for name in capture.tables)
        published = connection.execute(
            "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s", [capture.slot]
        ).fetchall()
        if not connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [capture.slot]).fetchall():
            connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(capture.slot), tables))
        elif {name for (name,) in published} != set(capture.tables):
            raise InvalidStream(
                f"the publication {capture.slot!r} is of other tables: {', '.join(name for (name,) in published)}; "
                "give the option slot another name, or release it first"
            )
        if not connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [capture.slot]).fetchall():
            connection.execute("SELECT pg_create_logical_replication_slot(%s, %s)", [capture.slot, _PLUGIN])


def release_slot(address: str, slot: str) -> None:
    """Removes a slot and its publication: nothing is kept for it on the server any more."""
    from psycopg import sql

    with connected(address) as connection:
        if connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [slot]).fetchall():
            _patiently(connection, "SELECT pg_drop_replication_slot(%s)", [slot])
        connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(slot)))


def end_of_log(connection: Connection) -> int:
    """The place up to which the server's log is safe."""
    return place_of(connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()[0])


def has_changes(connection: Connection, capture: Capture) -> bool:
    """Whether the slot has something to tell."""
    found = _patiently(
        connection,
        "SELECT 1 FROM pg_logical_slot_peek_binary_changes(%s, NULL, 1, 'proto_version', '1', 'publication_names', %s) LIMIT 1",
        [capture.slot, _publication(capture)],
    )
    return bool(found)


def read_until(connection: Connection, capture: Capture) -> int:
    """The place of the log before which the slot has nothing any more."""
    known = connection.execute(
        "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s", [capture.slot]
    ).fetchone()
    if known is None:
        raise InvalidStream(
            f"the slot {capture.slot!r} is gone, and with it what has happened since; begin anew: forget the stream"
        )
    return place_of(known[0])


def require_unread(connection: Connection, capture: Capture, place: int) -> None:
    """Refuses to go on at a place that the slot is past: something would be missing."""
    if read_until(connection, capture) > place:
        raise InvalidStream(
            f"the slot {capture.slot!r} was read beyond {_words(place)}, by another stream or before a restore, so what has "
            "happened in between is not known any more; begin anew: forget the stream"
        )


def advance(connection: Connection, capture: Capture, place: int) -> None:
    """What comes before a place of the log is not needed any more."""
    if read_until(connection, capture) < place:
        _patiently(connection, "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", [capture.slot, _words(place)])
        _let_begin_later(connection, capture, place)


def _let_begin_later(connection: Connection, capture: Capture, place: int) -> None:
    """Has the server note which transactions are under way, where it would else go through much of its log again.

    It does so by itself every fifteen seconds; whoever may not ask for it, or asks an older server, waits for that.
    """
    from psycopg.errors import InsufficientPrivilege, UndefinedFunction

    begins = connection.execute("SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = %s", [capture.slot]).fetchone()
    if begins is not None and place - place_of(begins[0]) > _FAR:
        with suppress(InsufficientPrivilege, UndefinedFunction):
            connection.execute("SELECT pg_log_standby_snapshot()")


def changes(connection: Connection, capture: Capture, after: int, until: int, seen: str) -> pa.RecordBatch:
    """The transactions that end after a place of the log and not after another, and that the snapshot has not `seen`."""
    from psycopg import sql

    text = sql.SQL(
        "COPY (SELECT data FROM pg_logical_slot_peek_binary_changes({}, {}::pg_lsn, NULL, 'proto_version', '1', "
        "'publication_names', {})) TO STDOUT (FORMAT binary)"
    ).format(sql.Literal(capture.slot), sql.Literal(_words(until)), sql.Literal(_publication(capture)))
    copied = _patiently(connection, text, None, copy=True)
    parsed = messages.parse(copied)
    ends = parsed.changes[:, 0]
    chosen = (ends > after) & (ends <= until) & ~visible(seen, parsed.changes[:, 1])
    return messages.as_arrow(copied, parsed, chosen)


def snapshot(capture: Capture, table: str, exported: str, at: int) -> Iterator[pa.RecordBatch]:
    """The rows of a table, as a transaction that is open elsewhere sees them."""
    from psycopg import sql

    name = sql.Identifier(*table.split("."))
    with connected(capture.address, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(exported)))
        cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(name))
        columns = [column.name for column in cursor.description]
        with cursor.copy(sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT csv)").format(name)) as copy:
            data = b"".join(map(bytes, copy))
    if not data:
        return
    rows = pa_csv.read_csv(
        io.BytesIO(data),
        read_options=pa_csv.ReadOptions(column_names=columns),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in rows.to_batches(max_chunksize=1 << 14):
        yield _inserted(batch, table, at)


def visible(seen: str, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which transactions a snapshot has seen, which is told as xmin:xmax:those between that were under way."""
    least, end, *rest = seen.split(":")
    under_way = [int(each) & 0xFFFFFFFF for each in rest[0].split(",") if each] if rest else []
    # Numbers of transactions in the log have 32 bits, and go round: half of them are before any of them.
    before = ((int(end) & 0xFFFFFFFF) - numbers - 1) & 0xFFFFFFFF < 1 << 31
    assert int(least) <= int(end)
    return before & ~np.isin(numbers, under_way)


@contextmanager
def connected(address: str, *, autocommit: bool = True) -> Iterator[Connection]:
    """A connection whose texts do not depend on where the server is."""
    connection = connect(address, autocommit=autocommit)
    try:
        yield connection
    finally:
        connection.close()


def connect(address: str, *, autocommit: bool = True) -> Connection:
    try:
        import psycopg
    except ImportError as error:
        raise InvalidOption("PostgreSQL is reached with the package psycopg: pip install headwater[postgres]") from error
    options = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c bytea_output=hex -c extra_float_digits=3"
    with hiding(address):
        return psycopg.connect(address, autocommit=autocommit, options=options, application_name="headwater")


def _patiently(connection: Connection, text: Any, values: Sequence[Any] | None, *, copy: bool = False) -> Any:  # noqa: ANN401
    """Runs a statement on a slot, which one at a time can use."""
    from psycopg.errors import ObjectInUse

    end = monotonic() + _PATIENCE
    while True:
        try:
            if not copy:
                return connection.execute(text, values).fetchall()
            with connection.cursor() as cursor, cursor.copy(text) as copied:
                return b"".join(map(bytes, copied))
        except ObjectInUse:
            if monotonic() > end:
                raise
            sleep(_PAUSE)


def _inserted(batch: pa.RecordBatch, table: str, at: int) -> pa.RecordBatch:
    count, width = batch.num_rows, batch.num_columns
    names = pa.array(batch.schema.names, pa.string()).take(pa.array(np.tile(np.arange(width), count)))
    order = np.arange(count * width).reshape(width, count).T.ravel()
    values = pa.concat_arrays(batch.columns).take(pa.array(order))
    maps = pa.MapArray.from_arrays(pa.array(np.arange(count + 1) * width, pa.int32()), names, values)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(table, count),
            pa.repeat("r", count),
            pa.array(np.zeros(count, np.int64)),
            pa.array(np.full(count, at)),
            pa.nulls(count, pa.timestamp("us", tz="UTC")),
            pa.nulls(count, maps.type),
            maps,
        ],
        names=["table", "op", "xid", "lsn", "ts", "before", "after"],
    )


def _publication(capture: Capture) -> str:
    return '"' + capture.slot + '"'


def place_of(words: str) -> int:
    high, low = words.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def _words(place: int) -> str:
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"
