"""A scenario: tables, live views and transactions, drawn at random or written down.

Its `repr` is Python that makes it again, so one that fails can be pasted into `test_regressions.py` as it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st
from random_queries import Queries, columns_of_table
from random_values import KINDS, Row, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import DrawFn

MOST_ROWS_AT_FIRST = 10
MOST_ROWS_AT_ONCE = 4


@dataclass(frozen=True)
class Table:
    """A table's columns as name and type in SQL, its key if it has one, and the rows it has before there are any views."""

    columns: Mapping[str, str]
    rows: list[Row] = field(default_factory=list)
    key: str | None = None

    @property
    def ddl(self) -> str:
        return ", ".join(f"{column} {kind}" for column, kind in self.columns.items())


@dataclass(frozen=True)
class Change:
    """One change of a table: `insert`, `delete` or `upsert` of rows."""

    action: str
    table: str
    rows: list[Row]


@dataclass(frozen=True)
class Scenario:
    """Tables, views by name with their queries, and transactions, each a list of changes and one epoch."""

    tables: Mapping[str, Table]
    views: Mapping[str, str]
    transactions: list[list[Change]]

    def __repr__(self) -> str:
        lines = ["Scenario(", "    tables={"]
        for name, table in self.tables.items():
            lines.append(f"        {name!r}: Table({dict(table.columns)!r}, [")
            lines += [f"            {written(row)}," for row in table.rows]
            lines.append(f"        ], key={table.key!r}),")
        lines += ["    },", "    views={"]
        lines += [f'        {name!r}: r"""{sql}""",' for name, sql in self.views.items()]
        lines += ["    },", "    transactions=["]
        for transaction in self.transactions:
            lines.append("        [")
            lines += [f"            Change({c.action!r}, {c.table!r}, {written(c.rows)})," for c in transaction]
            lines.append("        ],")
        return "\n".join([*lines, "    ],", ")"])


def written(value: Any) -> str:
    """The value as Python writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float):
        return f"float({str(value)!r})"
    if isinstance(value, date):
        return f"{type(value).__name__}.fromisoformat({value.isoformat()!r})"
    return repr(value)


# -- drawing one


@st.composite
def scenarios(draw: DrawFn, *, failing: bool = False) -> Scenario:
    """Tables with rows, views over them and over each other, and transactions that fit the rows there are.

    If `failing`, some queries raise an error for some rows.
    """
    assume(draw(st.booleans()))  # not the simplest of all, with which every search starts
    kinds = {f"t{i}": draw(_kinds_of_columns()) for i in range(draw(st.integers(1, 3)))}
    keyed = {name for name in kinds if draw(st.integers(0, 9)) >= 8}
    for name in keyed:
        kinds[name] = {"id": "int", **kinds[name]}
    contents = _Contents(draw, kinds, keyed)
    tables = {
        name: Table(
            {column: KINDS[kind].ddl for column, kind in columns.items()},
            contents.start(name),
            "id" if name in keyed else None,
        )
        for name, columns in kinds.items()
    }
    relations = {name: columns_of_table(columns) for name, columns in kinds.items()}
    queries = {}
    for i in range(draw(st.integers(4, 7))):
        # no two views share a name of a column: in HAVING the one below would win
        query = Queries(draw, relations, first_name=100 * i, failing=failing).query()
        queries[f"v{i}"] = query.sql
        if draw(st.integers(0, 9)) >= 9:
            relations[f"v{i}"] = query.columns
    changes = [contents.transaction() for _ in range(draw(st.integers(2, 4)))]
    return Scenario(tables, queries, changes)


@st.composite
def _kinds_of_columns(draw: DrawFn) -> dict[str, str]:
    # the common kinds are the first: most columns should meet another of their kind
    common = ["int", "string", "int", "double", "string", "decimal", "date", "bigint", "boolean"]
    kinds = draw(st.lists(st.sampled_from([*common, *common, *KINDS]), min_size=1, max_size=5))
    return {f"{kind[:2]}{i}": kind for i, kind in enumerate(kinds)}


class _Contents:
    """The rows of the tables while transactions are drawn, and those that were there once."""

    def __init__(self, draw: DrawFn, kinds: Mapping[str, Mapping[str, str]], keyed: set[str]) -> None:
        self.draw = draw
        self.kinds = kinds
        self.keyed = keyed
        self.rows: dict[str, list[Row]] = {name: [] for name in kinds}
        self.gone: dict[str, list[Row]] = {name: [] for name in kinds}

    def start(self, table: str) -> list[Row]:
        self.rows[table] = self._new(table, self.draw(st.sampled_from([4, 4, 4, 0])), MOST_ROWS_AT_FIRST)
        return list(self.rows[table])

    def transaction(self) -> list[Change]:
        changes = []
        for _ in range(self.draw(st.integers(1, 3))):
            changes += self._change(self.draw(st.sampled_from(list(self.kinds))))
        return changes

    def _change(self, table: str) -> list[Change]:
        kinds: list[Callable[[str], list[Change]]] = [self._insert, self._delete, self._update, self._repeat]
        kinds += [self._leave_alone, self._empty_group, self._refill, self._delete_all]
        return self.draw(st.sampled_from(kinds))(table)

    def _new(self, table: str, least: int, most: int) -> list[Row]:
        columns = self.kinds[table]
        rows = self.draw(st.lists(st.tuples(*map(values_of, columns.values())), min_size=least, max_size=most))
        return self._with_keys(table, rows)

    def _with_keys(self, table: str, rows: list[Row]) -> list[Row]:
        if table not in self.keyed:
            return rows
        first = 1 + max((row[0] for row in self.rows[table] + self.gone[table]), default=0)
        return [(first + i, *row[1:]) for i, row in enumerate(rows)]

    def _some(self, table: str) -> list[Row]:
        rows = self.rows[table]
        if not rows:
            return []
        places = self.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=MOST_ROWS_AT_ONCE, unique=True))
        return [rows[place] for place in places]

    def _apply(self, action: str, table: str, rows: list[Row]) -> Change:
        if action == "insert":
            self.rows[table] = self.rows[table] + rows
        elif action == "delete":
            left = list(self.rows[table])
            for row in rows:
                del left[next(i for i, other in enumerate(left) if other is row)]
            self.rows[table] = left
            self.gone[table] = self.gone[table] + rows
        else:
            keys = {row[0] for row in rows}
            self.rows[table] = [row for row in self.rows[table] if row[0] not in keys] + rows
        return Change(action, table, rows)

    def _insert(self, table: str) -> list[Change]:
        return [self._apply("insert", table, self._new(table, 1, MOST_ROWS_AT_ONCE))]

    def _delete(self, table: str) -> list[Change]:
        return [self._apply("delete", table, self._some(table))]

    def _delete_all(self, table: str) -> list[Change]:
        return [self._apply("delete", table, list(self.rows[table]))]

    def _update(self, table: str) -> list[Change]:
        """One column of some rows gets other values."""
        old = self._some(table)
        columns = list(self.kinds[table].values())
        place = self.draw(st.integers(1 if table in self.keyed and len(columns) > 1 else 0, len(columns) - 1))
        new = [(*row[:place], self.draw(values_of(columns[place])), *row[place + 1 :]) for row in old]
        if table in self.keyed:
            return [self._apply("upsert", table, new)]
        return [self._apply("delete", table, old), self._apply("insert", table, new)]

    def _leave_alone(self, table: str) -> list[Change]:
        """An update that changes nothing."""
        rows = self._some(table)
        if table in self.keyed:
            return [self._apply("upsert", table, [tuple(row) for row in rows])]
        return [self._apply("delete", table, rows), self._apply("insert", table, [(*row,) for row in rows])]

    def _repeat(self, table: str) -> list[Change]:
        """The same rows once more."""
        return [self._apply("insert", table, self._with_keys(table, [(*row,) for row in self._some(table)]))]

    def _empty_group(self, table: str) -> list[Change]:
        """All rows go that agree with one in a column."""
        rows = self.rows[table]
        if not rows:
            return []
        place = self.draw(st.integers(0, len(rows[0]) - 1))
        value = repr(self.draw(st.sampled_from(rows))[place])
        return [self._apply("delete", table, [row for row in rows if repr(row[place]) == value])]

    def _refill(self, table: str) -> list[Change]:
        """Rows come back that were there before."""
        if not self.gone[table]:
            return self._insert(table)
        places = self.draw(st.lists(st.integers(0, len(self.gone[table]) - 1), min_size=1, max_size=MOST_ROWS_AT_ONCE))
        return [self._apply("insert", table, self._with_keys(table, [(*self.gone[table][i],) for i in places]))]
