"""The plan: what it takes to get from what a session has to what a pipeline describes, said before it is done.

    +  is to be created        ~  is to become another        −  is to go        !  stays, though it is not described

Nothing that holds rows of its own goes by itself: a table that is not described any more stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import InvalidPipeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.types import StructField, StructType

    from headwater.pipelines.described import Pipeline, TableOf


@dataclass(frozen=True)
class Step:
    """One change: its sign, what it is of, its name, and how it is told."""

    sign: str
    kind: str
    name: str
    told: str = ""

    def __str__(self) -> str:
        lines = self.told.splitlines()
        return "\n".join([f"{self.sign} {self.kind} {self.name}", *(f"    {line}" for line in lines)])


@dataclass(frozen=True)
class There:
    """What there is: columns and keys of tables, and queries of views, by their names."""

    tables: Mapping[str, tuple[StructType, tuple[str, ...] | None]]
    views: Mapping[str, str | None]


def plan(wanted: Pipeline, there: There, columns: Mapping[str, StructType]) -> list[Step]:
    """The changes, in the order in which they can be made; `columns` are those that the tables are described with."""
    return [*_tables(wanted, there, columns), *_views(wanted, there)]


def _tables(wanted: Pipeline, there: There, columns: Mapping[str, StructType]) -> Iterator[Step]:
    for name, table in wanted.tables.items():
        if name not in there.tables:
            yield Step("+", "table", name, table.columns + ("" if table.key is None else f"\nkey {', '.join(keys(table))}"))
            continue
        added = [f"{field.name} {field.dataType.simpleString()}" for field in added_columns(wanted, name, there, columns[name])]
        if added:
            yield Step("~", "table", name, "\n".join(f"+ {each}" for each in added))
    letters = {f"{name}_dead_letters" for name in wanted.tables}
    for name in there.tables:
        if name not in wanted.tables and name not in letters:
            yield Step("!", "table", name, "is not described, and stays: drop it yourself if its rows are not needed")


def added_columns(wanted: Pipeline, name: str, there: There, described: StructType) -> list[StructField]:
    """Columns that a table is to get; any other difference is refused."""
    (present, key), described_key = there.tables[name], keys(wanted.tables[name])
    place = wanted.at("tables", name, "columns")
    if tuple(each.lower() for each in key or ()) != tuple(each.lower() for each in described_key):
        raise InvalidPipeline(
            f"{wanted.at('tables', name, 'key')}: its key is {key}, and cannot become {described_key or None}; "
            "give the table another name"
        )
    known = {field.name.lower(): field for field in present.fields}
    for field in described.fields:
        old = known.get(field.name.lower())
        if old is not None and old.dataType != field.dataType:
            raise InvalidPipeline(
                f"{place}: column {field.name!r} is {old.dataType.simpleString()}, and cannot become "
                f"{field.dataType.simpleString()}; give the table another name"
            )
    names = {field.name.lower() for field in described.fields}
    gone = [field.name for field in present.fields if field.name.lower() not in names]
    if gone:
        raise InvalidPipeline(f"{place}: {', '.join(gone)} cannot go; give the table another name")
    return [field for field in described.fields if field.name.lower() not in known]


def _views(wanted: Pipeline, there: There) -> Iterator[Step]:
    for name, query in there.views.items():
        if name not in wanted.views:
            yield Step("−", "view", name, "" if query is None else f"- {_line(query)}")
    for name, view in wanted.views.items():
        if name not in there.views:
            yield Step("+", "view", name, _line(view.query))
        elif there.views[name] is None or _line(there.views[name] or "") != _line(view.query):
            yield Step("~", "view", name, f"- {_line(there.views[name] or '(a DataFrame)')}\n+ {_line(view.query)}")


def keys(table: TableOf) -> tuple[str, ...]:
    return () if table.key is None else (table.key,) if isinstance(table.key, str) else tuple(table.key)


def _line(query: str) -> str:
    return " ".join(query.split()).removesuffix(";")
