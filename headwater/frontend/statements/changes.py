"""Reads UPDATE, DELETE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headwater.errors import InvalidQuery, NotSupported
from headwater.frontend.statements.syntax import Assignment, Clause, Delete, Merge, Update

if TYPE_CHECKING:
    from headwater.frontend.statements.reader import Reader

# how a source query without an alias is called in the composed SELECTs
_UNNAMED_SOURCE = "__headwater_source"

_When = Literal["matched", "not matched", "not matched by source"]


def read_update(reader: Reader) -> Update:
    """Take all that follows UPDATE."""
    table = reader.name("a table name")
    alias = reader.alias("SET")
    reader.expect("SET")
    assignments = _read_assignments(reader, alias or table, "WHERE")
    return Update(table, alias, assignments, _read_where(reader))


def read_delete(reader: Reader) -> Delete:
    """Take all that follows DELETE FROM."""
    table = reader.name("a table name")
    alias = reader.alias("WHERE")
    return Delete(table, alias, _read_where(reader))


def read_merge(reader: Reader) -> Merge:
    """Take all that follows MERGE INTO."""
    table = reader.name("a table name")
    alias = reader.alias("USING")
    reader.expect("USING")
    start = reader.position
    named = None if reader.at("(") else reader.name("a table or view name")
    reader.position = start
    source = reader.cut(reader.find(")") + 1 if named is None else start + 1)
    source_alias = reader.alias("ON")
    columns = reader.names("a column name") if source_alias and reader.at("(") else None
    reader.expect("ON")
    condition = reader.until("a condition", "WHEN")
    clauses = []
    while reader.accept("WHEN"):
        clauses.append(_read_clause(reader, alias or table))
    if not clauses:
        raise reader.unexpected("WHEN MATCHED … or WHEN NOT MATCHED …")
    reader.expect_end()
    _refuse_hidden(clauses)
    return Merge(table, alias, source, source_alias or named or _UNNAMED_SOURCE, columns, condition, tuple(clauses))


def _read_where(reader: Reader) -> str | None:
    condition = reader.until("a condition") if reader.accept("WHERE") else None
    reader.expect_end()
    return condition


def _read_assignments(reader: Reader, target: str, stop: str) -> tuple[Assignment, ...]:
    """Take `column = expression, …` up to a stop word; the column may be qualified by the target's name."""
    found: list[Assignment] = []
    while True:
        column = _read_target_column(reader, target)
        reader.expect("=")
        found.append(Assignment(column, reader.until("an expression", ",", stop)))
        if not reader.accept(","):
            break
    _refuse_doubles([assignment.column for assignment in found])
    return tuple(found)


def _read_target_column(reader: Reader, target: str) -> str:
    parts = [reader.part("a column name")]
    while reader.accept("."):
        parts.append(reader.part("a column name"))
    if len(parts) > 1 and parts[0].lower() == target.lower():
        parts = parts[1:]
    if len(parts) > 1:
        raise NotSupported(
            f"{'.'.join(parts)} is not a column of {target}: whole columns are assigned, also those that hold a struct"
        )
    return parts[0]


def _read_clause(reader: Reader, target: str) -> Clause:
    when = _read_when(reader)
    condition = reader.until("a condition", "THEN") if reader.accept("AND") else None
    reader.expect("THEN")
    if when == "not matched":
        reader.expect("INSERT")
        return Clause(when, condition, "insert", _read_inserted(reader, target))
    if reader.choice("UPDATE", "DELETE") == "DELETE":
        return Clause(when, condition, "delete")
    reader.expect("SET")
    if when == "matched" and reader.accept("*"):
        return Clause(when, condition, "update", None)
    return Clause(when, condition, "update", _read_assignments(reader, target, "WHEN"))


def _read_when(reader: Reader) -> _When:
    if reader.accept("MATCHED"):
        return "matched"
    reader.expect("NOT", "MATCHED")
    if not reader.accept("BY"):
        return "not matched"
    return "not matched by source" if reader.choice("TARGET", "SOURCE") == "SOURCE" else "not matched"


def _read_inserted(reader: Reader, target: str) -> tuple[Assignment, ...] | None:
    if reader.accept("*"):
        return None
    reader.expect("(")
    columns = [_read_target_column(reader, target)]
    while reader.accept(","):
        columns.append(_read_target_column(reader, target))
    reader.expect(")")
    reader.expect("VALUES", "(")
    values = [reader.until("an expression", ",")]
    while reader.accept(","):
        values.append(reader.until("an expression", ","))
    reader.expect(")")
    _refuse_doubles(columns)
    if len(columns) != len(values):
        raise InvalidQuery(f"INSERT names {len(columns)} columns but gives {len(values)} values")
    return tuple(Assignment(column, value) for column, value in zip(columns, values, strict=True))


def _refuse_doubles(columns: list[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise InvalidQuery(f"column {column!r} is given two values")
        seen.add(column.lower())


def _refuse_hidden(clauses: list[Clause]) -> None:
    """Only the last clause of each kind may have no condition: Spark refuses those that could never apply."""
    unconditional: set[str] = set()
    for clause in clauses:
        if clause.when in unconditional:
            kind = clause.when.upper()
            raise InvalidQuery(f"a WHEN {kind} follows one without a condition, so it can never apply")
        if clause.condition is None:
            unconditional.add(clause.when)
