"""A pipeline as it is described: in a file of TOML, or by the same values in Python.

    directory = "state"                          where everything is kept; paths are meant from where the file is

    [tables.orders]
    columns = "id BIGINT, customer STRING, amount INT"
    key = "id"

    [sources.orders]                             what the table follows: any format of Spark's
    table = "orders"
    format = "json"
    path = "incoming"

    [views.totals]
    query = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"

    [sinks.totals]                               where the view is written to
    view = "totals"
    target = "out/totals"
    format = "parquet"

Everything that can be told to be wrong without running it is refused at once, with the place where it stands.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.errors import InvalidPipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    Kind = TypeVar("Kind")


@dataclass(frozen=True)
class TableOf:
    """A table: its columns as in CREATE TABLE, and its key."""

    columns: str
    key: str | tuple[str, ...] | None = None


@dataclass(frozen=True)
class SourceOf:
    """What a table follows: a format of Spark's with its options."""

    format: str
    table: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    """For a stream of several tables: their names here, by those at the source."""
    path: str | None = None
    schema: str | None = None
    """The columns of the stream; those of the table, unless others are given."""
    options: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "append"
    on_error: str = "dead-letter"
    every: str | None = None
    """How often Spark looks for more, such as "10 seconds"."""


@dataclass(frozen=True)
class ViewOf:
    """A live view."""

    query: str
    refresh: str = "auto"
    strategy: str = "auto"


@dataclass(frozen=True)
class SinkOf:
    """Where a view is written to."""

    view: str
    target: str
    format: str | None = None
    of: str | None = None
    table: str | None = None
    key: str | tuple[str, ...] | None = None
    replace: bool = False
    """Whether what is at the target goes, if this sink has not made it."""


@dataclass(frozen=True)
class Pipeline:
    """A whole pipeline, by names."""

    directory: str
    tables: Mapping[str, TableOf] = field(default_factory=dict)
    sources: Mapping[str, SourceOf] = field(default_factory=dict)
    views: Mapping[str, ViewOf] = field(default_factory=dict)
    sinks: Mapping[str, SinkOf] = field(default_factory=dict)
    retain: int | str = 10_000
    durability: str = "sync"
    base: Path = field(default_factory=Path)
    """Where paths are meant from."""

    def __post_init__(self) -> None:
        for name, source in self.sources.items():
            if (source.table is None) == (not source.tables):
                raise InvalidPipeline(
                    f"sources.{name}: say which table follows it with table, or with tables if it is of several"
                )
            for table in [source.table] if source.table is not None else source.tables.values():
                if table not in self.tables:
                    raise InvalidPipeline(f"sources.{name}: there is no tables.{table}; {_there(self.tables)}")
        for name, sink in self.sinks.items():
            if sink.view not in self.views:
                raise InvalidPipeline(f"sinks.{name}: there is no views.{sink.view}; {_there(self.views)}")
        both = {name.lower() for name in self.tables} & {name.lower() for name in self.views}
        if both:
            raise InvalidPipeline(f"{', '.join(sorted(both))}: a table and a view cannot have the same name")

    def place(self, path: str) -> str:
        """A path as it is meant; an address is one already."""
        return path if "://" in path else str(self.base / path)


def read(file: Path) -> Pipeline:
    """The pipeline that a file describes."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidPipeline(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
    return parse(text, file.absolute().parent)


def parse(text: str, base: Path) -> Pipeline:
    """The pipeline that a text describes; paths are meant from a folder."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPipeline(f"this is no TOML: {error}") from error
    parts = {"tables": TableOf, "sources": SourceOf, "views": ViewOf, "sinks": SinkOf}
    found: dict[str, Any] = {}
    for part, kind in parts.items():
        section = said.pop(part, {})
        if not isinstance(section, dict) or not all(isinstance(each, dict) for each in section.values()):
            raise InvalidPipeline(f"[{part}.name] begins what is called name among the {part}")
        found[part] = {name: _made(kind, each, f"{part}.{name}") for name, each in section.items()}
    return _made(Pipeline, {**said, **found, "base": base}, "the file")


def _made(kind: type[Kind], said: Mapping[str, Any], where: str) -> Kind:
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for name in said:
        if name not in known:
            raise InvalidPipeline(f"{where}: {name!r} is not known; there are {', '.join(known)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    for name, value in values.items():
        allowed = str(known[name].type)
        kinds = {"str": str, "Mapping": dict, "int": int, "tuple": tuple, "Path": Path}
        if not any(word in allowed and isinstance(value, each) for word, each in kinds.items()):
            raise InvalidPipeline(f"{where}: {name} cannot be {value!r}")
    try:
        return kind(**values)
    except TypeError as error:
        missing = ", ".join(str(error).partition(": ")[2].replace("'", "").split(" and ")) or str(error)
        raise InvalidPipeline(f"{where}: {missing} is missing") from error


def _there(names: Mapping[str, object]) -> str:
    return f"there are: {', '.join(names) or 'none'}"
