"""Tables and views put together by hand, without Spark: what the tests of the runtime run on."""

from __future__ import annotations

from collections import Counter
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql.types import NullType, StructField, StructType

from headwater.compiler.dataflow import Step
from headwater.operators.arrange import Arrange
from headwater.operators.operator import schema_of
from headwater.operators.values import Source
from headwater.runtime.catalog import Catalog, TableEntry, ViewEntry
from headwater.runtime.epochs import Epochs
from headwater.runtime.transactions import Staging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.delta import Delta
    from headwater.operators.operator import Operator
    from headwater.runtime.catalog import Entry

Row = tuple[Any, ...]


def table(name: str, columns: Mapping[str, pa.DataType], key: tuple[int, ...] | None = None) -> TableEntry:
    kinds = tuple(columns.values())
    source = Step(Source(kinds, name), (), f"Table {name}")
    contents = Step(Arrange(kinds, tuple(range(len(kinds))) if key is None else key), (source,), "Arrange")
    # Of Spark's types only nullability counts here.
    schema = StructType([StructField(column, NullType()) for column in columns])
    return TableEntry(name, schema, pa.schema(columns.items()), key, source, contents)


def view(name: str, operator: Operator, inputs: Sequence[Step]) -> ViewEntry:
    """A view of one operator."""
    output = Step(operator, tuple(inputs), name)
    contents = Step(Arrange(operator.types, ()), (output,), "Arrange")
    query: Any = None
    return ViewEntry(name, query, StructType(), schema_of(operator.types), "auto", output, contents, ())


def arranged(step: Step, key: tuple[int, ...]) -> Step:
    return Step(Arrange(step.types, key), (step,), "Arrange")


def catalog(*entries: Entry) -> Catalog:
    return Catalog({entry.name: entry for entry in entries})


def batch(rows: Sequence[Row], kinds: Sequence[pa.DataType]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(kinds))


def bag(delta: Delta) -> Counter[Row]:
    """The rows as often as they are there; −0.0 is not 0.0."""
    found: Counter[Row] = Counter()
    columns = (column.to_pylist() for column in delta.rows.columns)
    for row, weight in zip(zip(*columns, strict=True), delta.weights.tolist(), strict=True):
        found[tuple(map(cell, row))] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def cell(value: object) -> object:
    return ("float", value.hex()) if isinstance(value, float) else value


def kept(epochs: Epochs, name: str) -> Counter[Row]:
    return bag(epochs.now.contents(epochs.now.entries[name]))


PAIRS = {"k": pa.int64(), "x": pa.int64()}
KINDS = tuple(PAIRS.values())
ROWS = st.tuples(st.integers(0, 3), st.integers(0, 3))
EDIT = st.tuples(st.sampled_from("rs"), st.lists(ROWS, max_size=4), st.lists(st.integers(0, 20), max_size=3))
EDITS = st.lists(EDIT, max_size=4)


class Line:
    """Two tables on a line of epochs, with what they should hold."""

    def __init__(self) -> None:
        self.epochs = Epochs()
        self.tables = {name: table(name, PAIRS) for name in "rs"}
        self.rows: dict[str, list[Row]] = {"r": [], "s": []}
        self.views: list[ViewEntry] = []
        self.define()

    def define(self, *views: ViewEntry, rebuilt: Sequence[str] = ()) -> None:
        self.epochs.define(catalog(*self.tables.values(), *views), rebuilt)
        self.views = list(views)

    def edit(self, name: str, inserted: list[Row], deleted: list[int]) -> None:
        entry, present = self.tables[name], self.rows[name]
        gone = [present.pop(place % len(present)) for place in deleted if present]
        staging = Staging(self.epochs.now)
        staging.delete(entry, batch(gone, KINDS))
        staging.insert(entry, batch(inserted, KINDS))
        present += inserted
        self.epochs.commit(*staging.net())

    def beside(self, edits: list[Any]) -> None:
        """Commits in another thread, and waits for it."""
        thread = Thread(target=lambda: [self.edit(*edit) for edit in edits])
        thread.start()
        thread.join()

    def interrupt(self, pending: list[Any]) -> None:
        """Commits the next edits, unless this is the end of the build, for which writers wait."""
        if pending and not self.epochs.writing.is_mine:
            self.beside(pending.pop())

    def joined(self) -> Counter[Row]:
        return Counter((*left, *right) for left in self.rows["r"] for right in self.rows["s"] if left[0] == right[0])

    def check(self, name: str, expected: Counter[Row]) -> None:
        assert kept(self.epochs, name) == expected
        replayed: Counter[Row] = Counter()
        for changed in self.epochs.changes(name, 0):
            replayed.update(bag(changed.delta))
        assert Counter({row: weight for row, weight in replayed.items() if weight}) == expected
