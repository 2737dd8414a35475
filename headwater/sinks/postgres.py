"""Tables of PostgreSQL: each epoch is one transaction of the server's, which changes rows and the epoch's number together.

    what went    is copied into a temporary table and deleted by its key
    what came    is copied into another and put in place of what has its key

The number of the last epoch is in the table `headwater_exports` of the same database. Who and where the server is, and the
password, come by libpq's usual means: the address, PGPASSFILE, a service file, the environment.
"""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from headwater.errors import InvalidTarget
from headwater.redaction import hiding
from headwater.sinks.keyed import last_by_key, require_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOTES = "headwater_exports"
_AT_ONCE = 1 << 20


class Postgres:
    """A table that has the rows of a view, by key; it is created if it is not there."""

    def __init__(self, address: str, table: str, name: str, key: Sequence[str]) -> None:
        self._address = address
        self._table = tuple(table.split("."))
        self._name = name
        self._key = list(key)
        if not self._key:
            raise InvalidTarget("rows of a PostgreSQL table are replaced by a key: write_to(…, key=…) names its columns")
        try:
            import psycopg
        except ImportError as error:
            raise InvalidTarget("PostgreSQL is reached with the package psycopg: pip install headwater[postgres]") from error
        self._psycopg: Any = psycopg
        self._sql: Any = psycopg.sql

    def position(self) -> int | None:
        with self._transaction() as cursor:
            cursor.execute("SELECT to_regclass(%s)", [_NOTES])
            if cursor.fetchone()[0] is None:
                return None
            cursor.execute(self._text("SELECT epoch FROM {notes} WHERE name = %s"), [self._name])
            found = cursor.fetchone()
        return None if found is None else int(found[0])

    def begin(self, epoch: int, rows: pa.Table) -> None:
        require_key(rows, self._key)
        with self._transaction() as cursor:
            cursor.execute(self._text("CREATE TABLE IF NOT EXISTS {notes} (name TEXT PRIMARY KEY, epoch BIGINT NOT NULL)"))
            columns = [
                self._sql.SQL("{} {}").format(self._sql.Identifier(field.name), self._sql.SQL(_type(field.type)))
                for field in rows.schema
            ]
            text = self._sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}, PRIMARY KEY ({}))")
            cursor.execute(text.format(self._target, self._sql.SQL(", ").join(columns), self._names(self._key)))
            cursor.execute(self._text("DELETE FROM {target}"))
            self._copy(cursor, self._target, rows)
            self._note(cursor, epoch)

    def write(self, epoch: int, changes: pa.Table) -> None:
        went, came = last_by_key(changes, self._key)
        with self._transaction() as cursor:
            if went.num_rows:
                self._beside(cursor, "headwater_went", went)
                same = self._sql.SQL(" AND ").join(
                    self._sql.SQL("t.{0} = w.{0}").format(self._sql.Identifier(name)) for name in self._key
                )
                cursor.execute(self._sql.SQL("DELETE FROM {} t USING headwater_went w WHERE {}").format(self._target, same))
            if came.num_rows:
                self._beside(cursor, "headwater_came", came)
                self._put(cursor, came.column_names)
            self._note(cursor, epoch)

    def _put(self, cursor: Any, names: Sequence[str]) -> None:  # noqa: ANN401  (a class of an optional package)
        others = [name for name in names if name.lower() not in {each.lower() for each in self._key}]
        text = self._sql.SQL("INSERT INTO {} ({}) SELECT {} FROM headwater_came ON CONFLICT ({}) DO ")
        text = text.format(self._target, self._names(names), self._names(names), self._names(self._key))
        if others:
            values = [self._sql.SQL("{0} = EXCLUDED.{0}").format(self._sql.Identifier(name)) for name in others]
            text += self._sql.SQL("UPDATE SET ") + self._sql.SQL(", ").join(values)
        else:
            text += self._sql.SQL("NOTHING")
        cursor.execute(text)

    def _beside(self, cursor: Any, name: str, rows: pa.Table) -> None:  # noqa: ANN401
        """Rows in a temporary table like the target."""
        beside = self._sql.Identifier(name)
        text = self._sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WHERE false")
        cursor.execute(text.format(beside, self._names(rows.column_names), self._target))
        self._copy(cursor, beside, rows)

    def _copy(self, cursor: Any, into: Any, rows: pa.Table) -> None:  # noqa: ANN401
        text = self._sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(into, self._names(rows.column_names))
        with cursor.copy(text) as copy:
            copy.write(_as_csv(rows))

    def _note(self, cursor: Any, epoch: int) -> None:  # noqa: ANN401
        text = "INSERT INTO {notes} VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET epoch = EXCLUDED.epoch"
        cursor.execute(self._text(text), [self._name, epoch])

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with hiding(self._address):
            connected = self._psycopg.connect(self._address)
        with connected as connection, connection.cursor() as cursor:
            yield cursor

    @property
    def _target(self) -> Any:  # noqa: ANN401
        return self._sql.Identifier(*self._table)

    def _names(self, names: Sequence[str]) -> Any:  # noqa: ANN401
        return self._sql.SQL(", ").join(map(self._sql.Identifier, names))

    def _text(self, text: str) -> Any:  # noqa: ANN401
        return self._sql.SQL(text).format(notes=self._sql.Identifier(_NOTES), target=self._target)


def _type(kind: pa.DataType) -> str:  # noqa: PLR0911  (one case a kind)
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_integer(kind):
        return {1: "SMALLINT", 2: "SMALLINT", 4: "INTEGER"}.get(kind.byte_width, "BIGINT")
    if pa.types.is_floating(kind):
        return "REAL" if kind.bit_width == 32 else "DOUBLE PRECISION"
    if pa.types.is_decimal(kind):
        return f"NUMERIC({kind.precision}, {kind.scale})"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "BYTEA"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "TEXT"
    return "JSONB"


def _as_csv(rows: pa.Table) -> bytes:
    """The rows as COPY reads them: NULL is nothing, and a text is in quotes, even an empty one."""
    columns = [_as_text(column) for column in rows.columns]
    out = io.BytesIO()
    options = pa_csv.WriteOptions(include_header=False, quoting_style="all_valid", batch_size=_AT_ONCE)
    pa_csv.write_csv(pa.Table.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))]), out, options)
    return out.getvalue()


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _type(column.type)
    if kind == "BYTEA":
        texts = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if kind == "JSONB":
        texts = [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return pc.cast(column, pa.string())
