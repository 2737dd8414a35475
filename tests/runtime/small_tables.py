"""Tables and views put together by hand, without Spark: what the tests of the runtime run on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import NullType, StructField, StructType

from headwater.compiler.dataflow import Step
from headwater.operators.arrange import Arrange
from headwater.operators.operator import schema_of
from headwater.operators.values import Source
from headwater.runtime.catalog import Catalog, TableEntry, ViewEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.delta import Delta
    from headwater.operators.operator import Operator
    from headwater.runtime.catalog import Entry
    from headwater.runtime.epochs import Epochs

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
