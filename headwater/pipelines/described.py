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

Everything that can be told to be wrong without running it is refused at once, with the place where it stands: the file, the
section and the key.
"""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.errors import (
    DamagedFile,
    DirectoryInUse,
    HeadwaterError,
    InvalidPipeline,
    InvalidTransaction,
    LostState,
    ReadOnly,
    SessionClosed,
    StorageFailed,
)
from headwater.redaction import redacted, shown_cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Kind = TypeVar("Kind")

# Whatever is described, these may happen.
OF_THE_SESSION = (DamagedFile, DirectoryInUse, InvalidTransaction, LostState, ReadOnly, SessionClosed, StorageFailed)


@dataclass(frozen=True)
class TableOf:
    """A table: its columns as in CREATE TABLE, and its key."""

    columns: str
    key: str | tuple[str, ...] | None = None


class _WithoutPasswords:
    """Shown as data classes are, but for passwords."""

    def __repr__(self) -> str:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in values)
        return f"{type(self).__name__}({shown})"


@dataclass(frozen=True, repr=False)
class SourceOf(_WithoutPasswords):
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


@dataclass(frozen=True, repr=False)
class SinkOf(_WithoutPasswords):
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
    file: Path | None = field(default=None, compare=False)
    """Where the description stands, if it is read from a file."""

    def __post_init__(self) -> None:
        self._require_names()
        for name, source in self.sources.items():
            if (source.table is None) == (not source.tables):
                raise InvalidPipeline(
                    f"{self.at('sources', name)}: say which table follows it with table, or with tables if it is of several"
                )
            key = "tables" if source.table is None else "table"
            for table in [source.table] if source.table is not None else source.tables.values():
                if table not in self.tables:
                    raise InvalidPipeline(f"{self.at('sources', name, key)}: there is no tables.{table}; {_there(self.tables)}")
        for name, sink in self.sinks.items():
            if sink.view not in self.views:
                raise InvalidPipeline(f"{self.at('sinks', name, 'view')}: there is no views.{sink.view}; {_there(self.views)}")
        both = {name.lower() for name in self.tables} & {name.lower() for name in self.views}
        if both:
            raise InvalidPipeline(f"{self.at(', '.join(sorted(both)))}: a table and a view cannot have the same name")

    def _require_names(self) -> None:
        for section in ("tables", "sources", "views", "sinks"):
            for name in getattr(self, section):
                if not isinstance(name, str) or not name.strip():
                    raise InvalidPipeline(f"{self.at(section)}: {name!r} cannot be a name: a name is text that is not blank")

    def at(self, *keys: str) -> str:
        """A place of the description, as errors tell it."""
        return _place(self.file, ".".join(keys))

    @contextmanager
    def located(self, *keys: str) -> Iterator[None]:
        """What goes wrong within is told with its place; what has a place already is told as it is."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from headwater.evaluation.spark import failure

        try:
            yield
        except (InvalidPipeline, *OF_THE_SESSION):
            raise
        except HeadwaterError as error:
            raise InvalidPipeline(f"{self.at(*keys)}: {error}") from error
        except (PySparkException, Py4JError) as error:
            raise InvalidPipeline(f"{self.at(*keys)}: {failure(error)}") from shown_cause(error)

    def place(self, path: str) -> str:
        """A path as it is meant; an address is one already."""
        return path if "://" in path else str(self.base / path)


def read(file: Path) -> Pipeline:
    """The pipeline that a file describes."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidPipeline(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidPipeline(f"{str(file)!r} is no TOML: it is not in UTF-8, at byte {error.start}") from error
    return parse(text, file.absolute().parent, file)


def parse(text: str, base: Path, file: Path | None = None) -> Pipeline:
    """The pipeline that a text, read from a file if one is named, describes; paths are meant from a folder."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPipeline(f"{_place(file, 'this')} is no TOML: {error}") from error
    parts = {"tables": TableOf, "sources": SourceOf, "views": ViewOf, "sinks": SinkOf}
    found: dict[str, Any] = {}
    for part, kind in parts.items():
        section = said.pop(part, {})
        if not isinstance(section, dict) or not all(isinstance(each, dict) for each in section.values()):
            raise InvalidPipeline(_place(file, f"[{part}.name] begins what is called name among the {part}"))
        found[part] = {name: _made(kind, each, _place(file, f"{part}.{name}")) for name, each in section.items()}
    where = "the file" if file is None else str(file)
    return _made(Pipeline, {**said, **found}, where, {"base": base, "file": file})


def _made(kind: type[Kind], said: Mapping[str, Any], where: str, given: Mapping[str, Any] | None = None) -> Kind:
    """What is described, with what is `given` beside it."""
    given = given or {}
    known = {each.name: each for each in fields(kind) if each.name not in given}  # type: ignore[arg-type]
    for name in said:
        if name not in known:
            raise InvalidPipeline(f"{where}: {name!r} is not known; there are {', '.join(known)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    for name, value in values.items():
        allowed = str(known[name].type)
        kinds = {"str": str, "Mapping": dict, "int": int, "tuple": tuple}
        if not any(word in allowed and isinstance(value, each) for word, each in kinds.items()):
            raise InvalidPipeline(f"{where}: {name} cannot be {value!r}")
    try:
        return kind(**values, **given)
    except TypeError as error:
        missing = ", ".join(str(error).partition(": ")[2].replace("'", "").split(" and ")) or str(error)
        raise InvalidPipeline(f"{where}: {missing} is missing") from error


def _place(file: Path | None, what: str) -> str:
    return what if file is None else f"{file}: {what}"


def _shown(value: object) -> str:
    return redacted(repr(value))


def _there(names: Mapping[str, object]) -> str:
    return f"there are: {', '.join(names) or 'none'}"
