"""Columns that a table of the server's gets while it is captured: what is new since the stream began is taken along.

    had when the stream began      wanted if the table here has it, and else not
    came later, NULL in old rows   the table here gets it, too
    came later with values         the log does not tell what old rows have in it: the stream stops

Which columns there were is noted with the stream's position, as the server only knows which there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.errors import SchemaChanged
from headwater.sources.postgres import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    # Gives a table more columns, which are told as CREATE TABLE has them.
    Widen = Callable[[str, Mapping[str, str]], None]

_TYPES = {
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "bytea": "BINARY",
    "timestamp with time zone": "TIMESTAMP",
    "timestamp without time zone": "TIMESTAMP_NTZ",
}


@dataclass
class Known:
    """The columns that tables of a server had, by the names of these tables."""

    # It may have a password in it.
    address: str = field(repr=False)
    columns: dict[str, list[str]] = field(default_factory=dict)

    def begin(self, source: str) -> None:
        """Notes the columns that a table has now, unless it is known which it had."""
        if source not in self.columns:
            with capture.connected(self.address) as connection:
                self.columns[source] = sorted(_columns(connection, source))

    def follow(self, source: str, sent: Collection[str], has: Collection[str], widen: Widen, table: str) -> None:
        """Takes along what is sent and was not known; `has` are the columns of the table here."""
        new = sorted(set(sent) - set(self.columns[source]))
        if not new:
            return
        wanted = [name for name in new if name.lower() not in {each.lower() for each in has}]
        with capture.connected(self.address) as connection:
            found = _columns(connection, source)
        for name in wanted:
            if found.get(name, ("", False))[1]:
                raise SchemaChanged(
                    f"column {name!r} of {source} was added with a value for the rows that were there, which the server's log "
                    f"does not tell; add it to table {table!r} yourself, and begin anew: forget the stream"
                )
        if wanted:
            widen(table, {name: _type(found.get(name, ("text", False))[0]) for name in wanted})
        self.columns[source] = sorted({*self.columns[source], *new})


def _columns(connection: capture.Connection, source: str) -> dict[str, tuple[str, bool]]:
    """The columns of a table, with their types and whether rows have had values in them from the beginning."""
    schema, table = source.split(".")
    rows = connection.execute(
        """SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull OR a.atthasdef
           FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped""",
        [schema, table],
    ).fetchall()
    return {name: (kind, has_values) for name, kind, has_values in rows}


def _type(kind: str) -> str:
    """Spark's type for one of PostgreSQL's; texts for what has none."""
    if kind.endswith("[]"):
        return f"ARRAY<{_type(kind.removesuffix('[]'))}>"
    if kind.startswith("numeric("):
        return f"DECIMAL{kind.removeprefix('numeric')}"
    return _TYPES.get(kind, "STRING")
