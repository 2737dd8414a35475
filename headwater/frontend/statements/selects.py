"""The SELECTs that answer which rows a statement touches: old values, new values, both in the order of the table's columns.

    UPDATE t SET b = b + 1 WHERE a > 0
      →  SELECT t.a, t.b, t.a, CAST(b + 1 AS INT) FROM t AS t WHERE (a > 0)       named o0, o1, n0, n1

Values are cast to the columns' types, as Spark's store assignment does (ANSI casts raise when a value does not fit). Users'
texts stand in parentheses, on lines of their own, and in scopes where exactly the tables are visible that Spark lets them see.

MERGE is a UNION ALL of up to three parts, one for each kind of WHEN, as these differ in what they see: pairs of the join see
both sides; source rows without a match (an anti join) see the source alone; target rows without a match the target alone.
A column `row` numbers the copies of target rows, so that a table without key is fine (equal rows are changed alike), and a
number that comes twice is a target row matched twice, which Spark forbids: see `merged_actions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import UnknownName

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql.types import DataType, StructType

    from headwater.frontend.statements.syntax import Assignment, Clause, Delete, Insert, Merge, Update

_ROW = "__headwater_row"


class TargetColumn(NamedTuple):
    """A column of the table that changes: its name, and its type as Spark's DDL writes it."""

    name: str
    type: str


def target_columns(schema: StructType) -> list[TargetColumn]:
    """The columns of a table with this schema."""
    return [TargetColumn(field.name, _ddl(field.dataType)) for field in schema.fields]


def quote(identifier: str) -> str:
    """The identifier in backquotes."""
    return f"`{identifier.replace('`', '``')}`"


def select_inserted(insert: Insert, columns: Sequence[TargetColumn]) -> str:
    """The rows to insert (n0, n1, …): the columns not named are NULL."""
    named = [column.name for column in columns] if insert.columns is None else list(insert.columns)
    positions = _positions(named, columns, insert.table)
    inner = _list(f"i{i}" for i in range(len(named)))
    values = [
        _cast(f"q.i{positions[i]}" if i in positions else "NULL", column) + f" AS n{i}" for i, column in enumerate(columns)
    ]
    return f"SELECT {_list(values)} FROM (\n{insert.query}\n) AS q({inner})"


def select_updated(update: Update, columns: Sequence[TargetColumn]) -> str:
    """For every row to change, all old values and all new values (o0, o1, …, n0, n1, …)."""
    target = update.alias or update.table
    old = _qualified(target, columns)
    new = _assigned(update.assignments, columns, update.table, old)
    names = _names("o", columns) + _names("n", columns)
    return _named([*old, *new], _target(update), update.condition, names)


def select_deleted(delete: Delete, columns: Sequence[TargetColumn]) -> str:
    """The rows to delete (o0, o1, …)."""
    old = _qualified(delete.alias or delete.table, columns)
    return _named(old, _target(delete), delete.condition, _names("o", columns))


def select_merged(merge: Merge, columns: Sequence[TargetColumn]) -> str:
    """What happens to which row (action, row, o0, o1, …, n0, n1, …), where action is 'D', 'U', 'I', or NULL for none."""
    parts = [_merged_part(merge, when, columns) for when in ("matched", "not matched", "not matched by source")]
    return "\nUNION ALL\n".join(part for part in parts if part)


def _merged_part(merge: Merge, when: str, columns: Sequence[TargetColumn]) -> str:
    clauses = [clause for clause in merge.clauses if clause.when == when]
    if not clauses:
        return ""
    alias = quote(merge.alias or merge.table)
    target = f"{quote(merge.table)} AS {alias}"
    source_columns = f"({_list(map(quote, merge.source_columns))})" if merge.source_columns else ""
    source = f"{merge.source} AS {quote(merge.source_alias)}{source_columns}"
    numbered = f"(SELECT *, monotonically_increasing_id() AS {_ROW} FROM {target}) AS {alias}"
    old = _qualified(merge.alias or merge.table, columns)
    row = "CAST(NULL AS BIGINT)"
    if when == "not matched":
        old, joined = _nulls(columns), f"{source} LEFT ANTI JOIN {target}"
    elif when == "not matched by source":
        joined = f"{target} LEFT ANTI JOIN {source}"
    elif [(clause.action, clause.condition) for clause in clauses] == [("delete", None)]:
        # Spark lets a row be deleted by many matches
        joined = f"{target} LEFT SEMI JOIN {source}"
    else:
        row, joined = f"{alias}.{_ROW}", f"{numbered} JOIN {source}"
    outcome = _outcome(clauses, merge, columns, old)
    pairs = _named(
        [outcome, row, *old], f"{joined} ON (\n{merge.condition}\n)", None, ["outcome", "row", *_names("o", columns)]
    )
    shown = ["outcome.action", "row", *_names("o", columns), *(f"outcome.{name}" for name in _names("n", columns))]
    # a pair without an action still counts as a match of its row
    kept = "" if row.endswith(_ROW) else " WHERE outcome IS NOT NULL"
    return f"SELECT {_list(shown)} FROM ({pairs}){kept}"


def _outcome(clauses: list[Clause], merge: Merge, columns: Sequence[TargetColumn], old: list[str]) -> str:
    """A struct of the action and the new values, by the first clause that applies; NULL if none does."""
    branches = []
    for clause in clauses:
        if clause.action == "delete":
            new = _nulls(columns)
        elif clause.assignments is None:
            new = [_cast(f"{quote(merge.source_alias)}.{quote(column.name)}", column) for column in columns]
        else:
            new = _assigned(clause.assignments, columns, merge.table, old)
        fields = [f"'n{i}', {value}" for i, value in enumerate(new)]
        branches.append(
            f"WHEN {_condition(clause.condition)} THEN named_struct('action', '{clause.action[0].upper()}', {_list(fields)})"
        )
    return f"CASE {' '.join(branches)} END"


def _assigned(
    assignments: Sequence[Assignment], columns: Sequence[TargetColumn], table: str, otherwise: list[str]
) -> list[str]:
    """The new value of each column; those without an assignment get the other one."""
    positions = _positions([assignment.column for assignment in assignments], columns, table)
    return [
        _cast(assignments[positions[i]].expression, column) if i in positions else otherwise[i]
        for i, column in enumerate(columns)
    ]


def _positions(named: list[str], columns: Sequence[TargetColumn], table: str) -> dict[int, int]:
    """Index of a column in the table → index in the list of names given. Names differ by more than case, as in Spark."""
    known = {column.name.lower(): i for i, column in enumerate(columns)}
    unknown = [name for name in named if name.lower() not in known]
    if unknown:
        raise UnknownName(f"table {table!r} has no column {unknown[0]!r}; it has {_list(column.name for column in columns)}")
    return {known[name.lower()]: i for i, name in enumerate(named)}


def _ddl(kind: DataType) -> str:
    """A type as Spark's parser reads it; `simpleString` leaves the names of a struct's fields unquoted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case StructType():
            return f"STRUCT<{_list(f'{quote(field.name)}: {_ddl(field.dataType)}' for field in kind.fields)}>"
        case ArrayType():
            return f"ARRAY<{_ddl(kind.elementType)}>"
        case MapType():
            return f"MAP<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return kind.simpleString()


def _named(expressions: Sequence[str], source: str, condition: str | None, names: Sequence[str]) -> str:
    # named from outside: an alias within could be seen by the user's expressions
    where = "" if condition is None else f" WHERE {_condition(condition)}"
    return f"SELECT * FROM (SELECT {_list(expressions)} FROM {source}{where}) AS q({_list(names)})"


def _target(statement: Update | Delete) -> str:
    return f"{quote(statement.table)} AS {quote(statement.alias or statement.table)}"


def _condition(condition: str | None) -> str:
    return "TRUE" if condition is None else f"(\n{condition}\n)"


def _cast(expression: str, column: TargetColumn) -> str:
    return f"CAST(\n{expression}\nAS {column.type})"


def _nulls(columns: Sequence[TargetColumn]) -> list[str]:
    return [f"CAST(NULL AS {column.type})" for column in columns]


def _qualified(table: str, columns: Sequence[TargetColumn]) -> list[str]:
    return [f"{quote(table)}.{quote(column.name)}" for column in columns]


def _names(letter: str, columns: Sequence[TargetColumn]) -> list[str]:
    return [f"{letter}{i}" for i in range(len(columns))]


def _list(items: Iterable[str]) -> str:
    return ", ".join(items)
