"""Drafts: tables and views that are defined together become one epoch, or nothing if anything fails.

    catalog now  →  with the first definition  →  with the second  →  …  →  the catalog of the next epoch

Each definition is analysed against the catalog that the ones before it lead to, so a view may read a table of the same draft.
Until the end nothing is changed, and nobody sees any of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.definitions import Definition
from headwater.errors import DependentViews, NotSupported

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headwater.compiler.dataflow import Step
    from headwater.engine import Engine
    from headwater.frontend.catalyst import Query
    from headwater.operators.operator import Key
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.runtime.driver import Outer
    from headwater.runtime.outside import Content
    from headwater.workplace import Workplace


class Draft:
    """The catalog in the making; `Session.drafting` makes one, and defines what it has come to."""

    def __init__(self, workplace: Workplace, engine: Engine, now: Snapshot) -> None:
        self._workplace = workplace
        self._engine = engine
        self._now = now
        self._then = now
        self._rebuilt: dict[str, None] = {}
        self._loads: dict[Step, Content] = {}

    @property
    def catalog(self) -> Catalog:
        """Tables and views as they would be."""
        return self._then.catalog

    @property
    def is_empty(self) -> bool:
        return self.catalog is self._now.catalog

    def definition(self) -> tuple[Definition, Outer]:
        """What is to be defined, and the rows with which tables begin."""
        rebuilt = tuple(name for name in self._rebuilt if name in self.catalog.views)
        return Definition(self.catalog, rebuilt), self._loads

    def create_table(self, name: str, columns: StructType, key: Key | None) -> None:
        self._workplace._require_free(name, self._then)  # noqa: SLF001  (a part of the session)
        self._follow(self._engine.definitions.table(self.catalog, name, columns, key))

    def add_columns(self, table: str, columns: StructType) -> None:
        """Gives a table more columns, in which its rows are NULL; nobody may commit until the draft is defined."""
        entry = self._workplace.table_entry(table)
        if entry.attached is not None:
            raise NotSupported(f"table {entry.name!r} is attached to rows outside, and has the columns that these have")
        if entry.times is not None:
            raise NotSupported(f"rows of table {entry.name!r} expire by when they were inserted, which would be forgotten")
        outside = self._engine.widened(entry, self._workplace.rows_of(entry, self._now), columns)
        self._follow(*self._engine.definitions.widened(self._then, entry, outside, self._engine.read_again))

    def analysed(self, name: str, query: str) -> Query:
        """What Spark makes of the query of a view."""
        if name.lower() not in self.catalog.views:
            self._workplace._require_free(name, self._then)  # noqa: SLF001
        analysed = self._engine.analyse(query, self.catalog, name)
        self._workplace._require_no_cycle(name, analysed.sources, self._then)  # noqa: SLF001
        return analysed

    def with_strategy(self, query: Query, strategy: str) -> Query:
        return self._engine.with_strategy(query, strategy)

    def put_view(self, name: str, query: Query, refresh: str) -> None:
        """A new view, or another query for the one of that name."""
        self._follow(self._engine.definitions.view(self._then, name, query, refresh))

    def drop_view(self, name: str) -> None:
        readers = ", ".join(repr(view.name) for view in self.catalog.readers(name))
        if readers:
            raise DependentViews(f"{name!r} cannot be dropped, because {readers} read it; drop them first")
        self._follow(self._engine.definitions.without(self.catalog, name))

    def _follow(self, definition: Definition, loads: Outer | None = None) -> None:
        self._then = replace(self._then, catalog=definition.catalog)
        # A view that is built again stands after what it reads.
        for name in definition.rebuilt:
            self._rebuilt.pop(name, None)
            self._rebuilt[name] = None
        self._loads.update(loads or {})
