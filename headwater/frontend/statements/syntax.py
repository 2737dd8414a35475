"""One frozen dataclass a statement. Queries, conditions and expressions are slices of the user's text; names are unquoted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Query:
    """`SELECT …`: an answer over tables and views at one epoch."""

    text: str


@dataclass(frozen=True)
class CreateTable:
    """`CREATE TABLE`: `columns_ddl` is what Spark reads as a schema, without the key clause."""

    name: str
    columns_ddl: str
    key: tuple[str, ...] | None
    if_not_exists: bool
    ttl: str | None = None
    event_time: str | None = None


@dataclass(frozen=True)
class CreateView:
    """`CREATE LIVE VIEW`."""

    name: str
    query: str
    replace: bool
    if_not_exists: bool
    refresh: Literal["auto", "incremental", "full"]
    strategy: str = "auto"


@dataclass(frozen=True)
class CreateSketch:
    """`CREATE SKETCH`: `on` are tables, each with the columns by which it is sketched."""

    name: str
    on: tuple[tuple[str, tuple[str, ...]], ...]
    query: str
    if_not_exists: bool
    options: tuple[tuple[str, int | str | bool], ...] = ()


@dataclass(frozen=True)
class Insert:
    """`INSERT INTO`: `columns` are the ones named, in the order of the query's; None means all, in the table's order."""

    table: str
    columns: tuple[str, ...] | None
    query: str


@dataclass(frozen=True)
class Assignment:
    """`column = expression`."""

    column: str
    expression: str


@dataclass(frozen=True)
class Update:
    """`UPDATE`: no condition means every row."""

    table: str
    alias: str | None
    assignments: tuple[Assignment, ...]
    condition: str | None


@dataclass(frozen=True)
class Delete:
    """`DELETE FROM`: no condition means every row."""

    table: str
    alias: str | None
    condition: str | None


@dataclass(frozen=True)
class Clause:
    """One `WHEN … THEN …` of a MERGE; `assignments` None means `*`: each column from the source's column of its name."""

    when: Literal["matched", "not matched", "not matched by source"]
    condition: str | None
    action: Literal["update", "delete", "insert"]
    assignments: tuple[Assignment, ...] | None = ()


@dataclass(frozen=True)
class Merge:
    """`MERGE INTO`: `source` is the text between FROM and its alias, a quoted name or a query in parentheses."""

    table: str
    alias: str | None
    source: str
    source_alias: str
    source_columns: tuple[str, ...] | None
    condition: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Drop:
    """`DROP TABLE`, `DROP LIVE VIEW` or `DROP SKETCH`."""

    kind: Literal["table", "view", "sketch"]
    name: str
    if_exists: bool


@dataclass(frozen=True)
class Describe:
    """`DESCRIBE`: kind None means whichever of the two has that name."""

    kind: Literal["table", "view"] | None
    name: str


@dataclass(frozen=True)
class Explain:
    """`EXPLAIN LIVE VIEW`."""

    name: str
    format: Literal["text", "json", "mermaid"]


@dataclass(frozen=True)
class ShowTables:
    """`SHOW TABLES`."""


@dataclass(frozen=True)
class ShowViews:
    """`SHOW LIVE VIEWS`."""


@dataclass(frozen=True)
class ShowSketches:
    """`SHOW SKETCHES`."""


Change = Insert | Update | Delete | Merge
Show = ShowTables | ShowViews | ShowSketches
Statement = Query | CreateTable | CreateView | CreateSketch | Change | Drop | Describe | Explain | Show
