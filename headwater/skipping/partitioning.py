"""Cuts tables into fragments: a sample of an attribute is taken where the rows are, and bounds are put at equal depths of it.

Any bounds are right; the sample only decides how even the fragments are. It is the same for the same rows, so that a partition
can be made again. The depths that are remembered are those of the sample, scaled to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.annotations.fragments import Partition, equi_depth, is_partitionable
from headwater.delta import one_batch
from headwater.errors import EvaluationFailed, InvalidOption, NotSupported, UnknownName
from headwater.schema import COLLATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from headwater.runtime.catalog import Catalog, TableEntry

MOST = 10_000
_USUAL = 1_000
# Fewer rows than this in a fragment are not worth a range of their own.
_SHALLOWEST = 100
_FEWEST = 10
# So many values of a sample fall into each fragment; of fewer rows than this, all are taken.
_A_FRAGMENT = 20
_SMALL = 100_000
_SEED = 7


def column_of(table: TableEntry, column: str) -> int:
    """The place of a column that a table can be cut by."""
    names = [name.lower() for name in table.arrow.names]
    if not isinstance(column, str) or column.lower() not in names:
        raise UnknownName(f"table {table.name!r} has no column {column!r}; it has {', '.join(table.arrow.names)}")
    place = names.index(column.lower())
    kind = table.arrow.types[place]
    if not is_partitionable(kind) or COLLATED in table.schema.fields[place].dataType.simpleString():
        raise NotSupported(
            f"table {table.name!r} cannot be cut by {column!r}: ranges are of numbers, dates, timestamps and strings, "
            f"not of {table.schema.fields[place].dataType.simpleString()}"
        )
    return place


def require_count(fragments: object) -> None:
    if fragments is not None and (not isinstance(fragments, int) or not 1 <= fragments <= MOST):
        raise InvalidOption(f"fragments is a number from 1 to {MOST:,}, not {fragments!r}")


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column of a table, whose rows are at hand or known to Spark, and how many there are."""

    table: TableEntry
    column: int
    rows: pa.Table | DataFrame
    total: int

    @property
    def name(self) -> str:
        return self.table.arrow.names[self.column]

    @property
    def type(self) -> pa.DataType:
        return self.table.arrow.types[self.column]


def partition_at(now: Catalog, attribute: Attribute, bounds: Sequence[object]) -> Partition:
    """A new partition with given bounds between its ranges."""
    try:
        given = pa.array(list(bounds), attribute.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidOption(f"the bounds of column {attribute.name!r} are values of its type: {error}") from error
    first = given.slice(0, 1)
    if given.null_count or not pa.concat_arrays([first, equi_depth(given, len(given))]).equals(given):
        raise InvalidOption("bounds are different values in ascending order, none of them NULL or NaN")
    return _described(now, attribute, given, _sample(attribute, MOST * _A_FRAGMENT))


def partition_of(now: Catalog, attribute: Attribute, fragments: int | None) -> Partition:
    """A new partition of a table's rows into about so many fragments."""
    count = min(_USUAL, max(_FEWEST, attribute.total // _SHALLOWEST)) if fragments is None else fragments
    sample = _sample(attribute, max(_SMALL, count * _A_FRAGMENT))
    return _described(now, attribute, equi_depth(sample, count), sample)


def _described(now: Catalog, attribute: Attribute, ends: pa.Array, sample: pa.Array) -> Partition:
    bounds = pa.RecordBatch.from_arrays([ends], names=["c0"])
    table = attribute.table.name.lower()
    version = 1 + max((p.version for p in now.partitions if (p.table, p.column) == (table, attribute.name)), default=0)
    cut = Partition(table, attribute.name, version, bounds, ())
    found = np.bincount(cut.fragments(sample), minlength=cut.count)
    depths = np.ceil(found * (attribute.total / max(1, len(sample)))).astype(int)
    return replace(cut, depths=tuple(depths.tolist()))


def _sample(attribute: Attribute, wanted: int) -> pa.Array:
    rows, column = attribute.rows, attribute.column
    if isinstance(rows, pa.Table):
        values = one_batch(rows.select([column])).column(0)
        if len(values) > wanted:
            chosen = np.random.default_rng(_SEED).choice(len(values), wanted, replace=False)
            values = values.take(pa.array(np.sort(chosen)))
        return values
    from pyspark.errors import PySparkException

    from headwater.evaluation.spark import failure

    only = rows.select(rows.columns[column])
    try:
        found = (only.sample(wanted / attribute.total, _SEED) if attribute.total > wanted else only).toArrow()
    except PySparkException as error:
        raise EvaluationFailed(failure(error)) from error
    return one_batch(found).column(0).cast(attribute.type)
