"""The oracle of explanations: a query over some of the base rows, evaluated from scratch by DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]


class Subsets:
    """Answers of queries over subsets of the rows of tables."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._connection = duckdb.connect()
        self._schemas = schemas

    def answer(self, query: str, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
        for name, schema in self._schemas.items():
            chosen = rows.get(name, ())
            columns = [pa.array([row[i] for row in chosen], field.type) for i, field in enumerate(schema)]
            self._connection.register(name, pa.Table.from_arrays(columns, schema=schema))
        return self._connection.sql(query).fetchall()


def without_one(rows: Rows) -> Iterator[Rows]:
    """The same rows without one of them, for each of them."""
    for table, those in rows.items():
        for i in range(len(those)):
            yield {**rows, table: those[:i] + those[i + 1 :]}


def check_sets(subsets: Subsets, query: str, row: Row, sets: Sequence[Rows]) -> None:
    """Each set must suffice for the row, none must be larger than it has to be, and all must be different."""
    assert sets, f"no set for {row}"
    for rows in sets:
        assert row in subsets.answer(query, rows), f"{row} does not follow from {rows}"
        for fewer in without_one(rows):
            assert row not in subsets.answer(query, fewer), f"{row} follows from {fewer}, less than {rows}"
    seen = {frozenset((table, row) for table, those in rows.items() for row in those) for rows in sets}
    assert len(seen) == len(sets)
