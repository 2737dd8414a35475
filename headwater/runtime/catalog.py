"""What there is at an epoch: tables, views and the states of all steps, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.operators.arrange import Arrange
from headwater.runtime.driver import Backfill

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.frontend.catalyst import Query
    from headwater.operators.operator import Key, State
    from headwater.operators.ordering import Order


@dataclass(frozen=True, eq=False)
class TableEntry:
    """A table: where its changes enter, and where its rows are kept."""

    name: str
    schema: StructType
    arrow: pa.Schema
    key: Key | None
    source: Step
    contents: Step

    @property
    def output(self) -> Step:
        return self.source


@dataclass(frozen=True, eq=False)
class ViewEntry:
    """A view: the step that gives its rows, and where these are kept, with columns that only serve to order them."""

    name: str
    query: Query
    schema: StructType
    arrow: pa.Schema
    refresh: str
    output: Step
    contents: Step
    order: tuple[Order, ...]
    created: int


Entry = TableEntry | ViewEntry


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything at one epoch; names are keys in lower case, as Spark resolves them."""

    epoch: int = 0
    entries: Mapping[str, Entry] = field(default_factory=dict)
    states: Mapping[Step, State] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, TableEntry]:
        return {name: entry for name, entry in self.entries.items() if isinstance(entry, TableEntry)}

    @property
    def views(self) -> dict[str, ViewEntry]:
        return {name: entry for name, entry in self.entries.items() if isinstance(entry, ViewEntry)}

    def contents(self, entry: Entry) -> Delta:
        """The rows of a table or view, consolidated."""
        return self.states[entry.contents][0].contents()

    @property
    def content(self) -> Backfill:
        """What steps give at this epoch, taken from the arrangements there are."""
        arranged = {step.inputs[0]: step for step in self.states if isinstance(step.operator, Arrange)}
        return Backfill(self.states, arranged, {})

    def readers(self, name: str) -> list[ViewEntry]:
        """The views that read a table or view directly."""
        return [view for view in self.views.values() if name.lower() in {source.lower() for source in view.query.sources}]
