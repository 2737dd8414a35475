"""Tables of PostgreSQL: each epoch is one transaction of the server's, which changes rows and the epoch's number together.

    what went    is copied into a temporary table and deleted by its key
    what came    is copied into another and put in place of what has its key

The number of the last epoch is in the table `headwater_exports` of the same database. The comment of the table says which
export it is of; a table without that is left alone. When the view is given other columns, one transaction empties the table,
replaces its columns, and fills it; who may read it, and its name, stay. Who and where the server is, and the password, come by
libpq's usual means: the address, PGPASSFILE, a service file, the environment.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from headwater.answers import rows_of_changes
from headwater.errors import InvalidTarget
from headwater.redaction import hiding
from headwater.sinks.json_forms import texts
from headwater.sinks.keyed import last_by_key, require_key
from headwater.sinks.ownership import foreign, taken_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOTES = "headwater_exports"
# Seconds for which a server that does not answer is waited for, unless the address says otherwise.
_PATIENCE = 10
_MARK = "Kept by Headwater's export {}"
_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_KEY = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype = 'p'"
_AT_ONCE = 1 << 20


class Postgres:
    """A table that has the rows of a view, by key; it is created if it is not there."""

    def __init__(self, address: str, table: str, name: str, key: Sequence[str], owner: str, *, replace: bool) -> None:  # noqa: PLR0913
        self._address = address
        self._table = tuple(table.split("."))
        self._name = name
        self._key = list(key)
        self._owner = owner
        self._replace = replace
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
            table, is_own = self._admitted(cursor)
            if not is_own or not self._has_notes(cursor):
                return None
            cursor.execute(self._text("SELECT epoch FROM {notes} WHERE owner = %s AND target = %s"), [self._owner, table])
            found = cursor.fetchone()
        return None if found is None else int(found[0])

    def begin(self, epoch: int, rows: pa.Table) -> None:
        require_key(rows, self._key)
        refusals = self._psycopg.errors
        try:
            with self._transaction() as cursor:
                self._begin(cursor, epoch, rows)
        except (
            refusals.InsufficientPrivilege,
            refusals.DependentObjectsStillExist,
            refusals.FeatureNotSupported,
            refusals.WrongObjectType,
        ) as error:
            raise InvalidTarget(f"table {self._place!r} cannot be given the columns of the view: {error}") from error
        # What is there from here on is ours.
        self._replace = False

    def _begin(self, cursor: Any, epoch: int, rows: pa.Table) -> None:  # noqa: ANN401  (a class of an optional package)
        if not self._has_notes(cursor):
            cursor.execute(self._text("CREATE TABLE IF NOT EXISTS {notes} (name TEXT NOT NULL, epoch BIGINT NOT NULL)"))
            # Notes of an earlier release do not say whose tables they are of, and there is one for each name.
            cursor.execute(self._text("ALTER TABLE {notes} ADD COLUMN IF NOT EXISTS owner TEXT NOT NULL DEFAULT ''"))
            cursor.execute(self._text("ALTER TABLE {notes} ADD COLUMN IF NOT EXISTS target OID NOT NULL DEFAULT 0"))
            cursor.execute(self._text("ALTER TABLE {notes} DROP CONSTRAINT IF EXISTS headwater_exports_pkey"))
        table, is_own = self._admitted(cursor)
        if table is None:
            self._create(cursor, "CREATE TABLE {} ({}, PRIMARY KEY ({}))", self._target, rows)
        else:
            cursor.execute(self._text("DELETE FROM {target}"))
            self._give_columns(cursor, rows)
        if not is_own:
            cursor.execute(self._text("COMMENT ON TABLE {target} IS {mark}"))
        table, *_ = self._found(cursor)
        cursor.execute(self._text("DELETE FROM {notes} WHERE target = %s"), [table])
        self._copy(cursor, self._target, rows)
        cursor.execute(self._text("INSERT INTO {notes} VALUES (%s, %s, %s, %s)"), [self._name, epoch, self._owner, table])

    def _create(self, cursor: Any, text: str, name: Any, rows: pa.Table) -> None:  # noqa: ANN401
        columns = self._sql.SQL(", ").join(map(self._column, rows.schema))
        cursor.execute(self._sql.SQL(text).format(name, columns, self._names(self._key)))

    def _give_columns(self, cursor: Any, rows: pa.Table) -> None:  # noqa: ANN401
        """Replaces the columns of the empty table, unless it has just those of the rows."""
        wanted = self._sql.Identifier("headwater_wanted")
        self._create(cursor, "CREATE TEMPORARY TABLE {} ({}, PRIMARY KEY ({})) ON COMMIT DROP", wanted, rows)
        both = []
        for name in (self._place, "pg_temp.headwater_wanted"):
            columns, key = cursor.execute(_COLUMNS, [name]).fetchall(), cursor.execute(_KEY, [name]).fetchall()
            both.append((columns, key))
        if both[0] == both[1]:
            return
        drops = [self._sql.SQL("DROP COLUMN {}").format(self._sql.Identifier(name)) for name, _ in both[0][0]]
        adds = [self._sql.SQL("ADD COLUMN {}").format(self._column(field)) for field in rows.schema]
        adds.append(self._sql.SQL("ADD PRIMARY KEY ({})").format(self._names(self._key)))
        for parts in (drops, adds):
            if parts:
                cursor.execute(self._sql.SQL("ALTER TABLE {} {}").format(self._target, self._sql.SQL(", ").join(parts)))

    def _column(self, field: pa.Field) -> Any:  # noqa: ANN401
        return self._sql.SQL("{} {}").format(self._sql.Identifier(field.name), self._sql.SQL(_type(field.type)))

    def reshape(self, epoch: int, former: pa.Table, changes: pa.Table) -> bool:  # noqa: ARG002  (what was there goes anyway)
        self.begin(epoch, rows_of_changes(changes))
        return True

    def write(self, epoch: int, changes: pa.Table) -> None:
        went, came = last_by_key(changes, self._key)
        with self._transaction() as cursor:
            table, is_own, _ = self._found(cursor)
            text = self._text("UPDATE {notes} SET epoch = %s WHERE owner = %s AND target = %s AND epoch < %s")
            if not is_own or cursor.execute(text, [epoch, self._owner, table, epoch]).rowcount != 1:
                raise taken_over(self._place)
            if went.num_rows:
                self._beside(cursor, "headwater_went", went)
                same = self._sql.SQL(" AND ").join(
                    self._sql.SQL("t.{0} = w.{0}").format(self._sql.Identifier(name)) for name in self._key
                )
                cursor.execute(self._sql.SQL("DELETE FROM {} t USING headwater_went w WHERE {}").format(self._target, same))
            if came.num_rows:
                self._beside(cursor, "headwater_came", came)
                self._put(cursor, came.column_names)

    def _found(self, cursor: Any) -> tuple[int | None, bool, bool]:  # noqa: ANN401
        """The number of what is there by the name, whether it is this export's, and whether it is a table at all."""
        text = (
            "SELECT oid::bigint, obj_description(oid, 'pg_class'), relkind IN ('r', 'p') "
            "FROM pg_class WHERE oid = to_regclass(%s)"
        )
        table, comment, is_table = cursor.execute(text, [self._place]).fetchone() or (None, None, True)
        return table, comment is not None and self._mark in comment, is_table

    def _admitted(self, cursor: Any) -> tuple[int | None, bool]:  # noqa: ANN401
        """The number of the table, if there is one, and whether it is this export's; raises if it is neither that nor to go."""
        table, is_own, is_table = self._found(cursor)
        if not is_table:
            raise InvalidTarget(f"{self._place!r} is there, and is no table; give another name")
        if table is not None and not is_own and not self._replace:
            raise foreign(self._place, "is a table")
        return table, is_own

    def _has_notes(self, cursor: Any) -> bool:  # noqa: ANN401
        """Whether there are notes that say whose tables they are of."""
        return "owner" in {name for name, _ in cursor.execute(_COLUMNS, [_NOTES]).fetchall()}

    def _put(self, cursor: Any, names: Sequence[str]) -> None:  # noqa: ANN401
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

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with hiding(self._address):
            said = self._psycopg.conninfo.conninfo_to_dict(self._address)
            patience = {} if "connect_timeout" in said else {"connect_timeout": _PATIENCE}
            connected = self._psycopg.connect(self._address, **patience)
        with connected as connection, connection.cursor() as cursor:
            yield cursor

    @property
    def _mark(self) -> str:
        return _MARK.format(self._owner)

    @property
    def _place(self) -> str:
        """The table's name, as the server reads it."""
        return str(self._target.as_string(None))

    @property
    def _target(self) -> Any:  # noqa: ANN401
        return self._sql.Identifier(*self._table)

    def _names(self, names: Sequence[str]) -> Any:  # noqa: ANN401
        return self._sql.SQL(", ").join(map(self._sql.Identifier, names))

    def _text(self, text: str) -> Any:  # noqa: ANN401
        mark = self._sql.Literal(self._mark)
        return self._sql.SQL(text).format(notes=self._sql.Identifier(_NOTES), target=self._target, mark=mark)


def _type(kind: pa.DataType) -> str:  # noqa: C901, PLR0911  (one case a kind)
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
    if pa.types.is_duration(kind):
        return "INTERVAL"
    if pa.types.is_time(kind):
        return "TIME"
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
        return _strings([None if value is None else "\\x" + value.hex() for value in column.to_pylist()])
    if kind == "INTERVAL":
        counts = pc.cast(pc.cast(column, pa.duration("us")), pa.int64()).to_pylist()
        return _strings([None if count is None else f"{count} microseconds" for count in counts])
    if kind == "JSONB":
        valid = column.is_valid().to_pylist()
        return _strings([text if there else None for text, there in zip(texts(column), valid, strict=True)])
    return pc.cast(column, pa.string())


def _strings(values: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.string())])
