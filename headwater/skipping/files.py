"""The Parquet files of attached tables: what sketches leave of them, for Spark, or read here where it is little.

    rows  =  σ ranges (row groups that can meet the ranges)  +  σ ranges (changes)          columns that nothing reads are NULL

Files are listed once, and their footers read once, as they stay as they are. What Spark may read as other values than Arrow
does, by other types, by names in paths or by calendars of old, is left to Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.delta import Delta, one_batch
from headwater.rows import widened
from headwater.runtime.outside import Content
from headwater.skipping.footers import described, footers_of
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.runtime.outside import Outside
    from headwater.skipping.footers import Described, Footers
    from headwater.skipping.reading import Ranges

# Spark may shift earlier days and times from one calendar to another.
_OLD = {"date": date(1900, 1, 1), "timestamp": datetime(1900, 1, 2, tzinfo=UTC)}


@dataclass
class Listed:
    """The files at a place, the columns that Spark finds in them, and what their footers say."""

    columns: StructType
    files: Mapping[str, Described] | None
    names: tuple[str, ...]
    footers: dict[str, Footers | None] = field(default_factory=dict)


@dataclass
class Files:
    """What a session knows of the files of its attached tables."""

    spark: Callable[[], SparkSession]
    known: dict[Outside, Listed] = field(default_factory=dict)

    def _listed(self, outside: Outside) -> Listed | None:
        """The files of a table; None if they are not Parquet files."""
        place = outside.place
        if place is None or place.format != "parquet":
            return None
        if outside not in self.known:
            whole = outside.read()
            names = tuple(whole.inputFiles())
            self.known[outside] = Listed(whole.schema, described(names), names)
        return self.known[outside]

    def footers(self, content: Content, ranges: Ranges) -> Footers | None:
        """What footers say of an attribute of a table."""
        listed = self._listed(content.outside)
        if listed is None or listed.files is None:
            return None
        # Not the column of the partition, which may be of a table that this one is joined with.
        name = content.outside.schema.names[ranges.column]
        if name not in listed.footers:
            listed.footers[name] = footers_of(listed.files, name, ranges.partition.type)
        return listed.footers[name]

    def _needed(self, content: Content, ranges: Sequence[Ranges]) -> dict[str, set[int]] | None:
        """The row groups, by file, that can have rows in all of the ranges; None if nothing is known of them."""
        needed: dict[str, set[int]] | None = None
        for part in ranges:
            footers = self.footers(content, part)
            if footers is not None:
                found = {file: {group.number for group in groups} for file, groups in footers.needed(part).items()}
                both = found if needed is None else {file: needed.get(file, set()) & found[file] for file in found}
                needed = {file: groups for file, groups in both.items() if groups}
        return needed

    def groups(self, content: Content, ranges: Sequence[Ranges]) -> int | None:
        """How many row groups of a table have to be read; None if nothing is known of them."""
        needed = self._needed(content, ranges)
        return None if needed is None else sum(map(len, needed.values()))

    def total(self, content: Content) -> int | None:
        """How many row groups a table has."""
        listed = self._listed(content.outside)
        if listed is None or listed.files is None:
            return None
        return sum(file.footer.num_row_groups for file in listed.files.values())

    def pruned(self, content: Content, ranges: Sequence[Ranges]) -> Content:
        """The content of a table without the files that cannot have rows in the ranges."""
        outside = content.outside
        needed = self._needed(content, ranges)
        if needed is None or outside.place is None:
            return content
        listed = self.known[outside]
        kept = [file for file in listed.names if file in needed]
        path = outside.place.path
        if any("%" in file for file in kept):
            # Spark gives addresses, and takes paths.
            return content

        def read() -> DataFrame:
            if not kept:
                return self.spark().createDataFrame([], listed.columns)
            return self.spark().read.schema(listed.columns).option("basePath", path).parquet(*kept)

        return Content(replace(outside, read=read), content.changes)

    def fetched(
        self, content: Content, accesses: Sequence[Sequence[Ranges]], columns: Collection[int], most: int
    ) -> Delta | None:
        """The rows in the ranges of one of the accesses, with some of the columns; None if that is more than `most` to read.

        Also where it takes Spark to read them as Spark does.
        """
        listed = self._listed(content.outside)
        if listed is None or listed.files is None or any("=" in name for name in listed.names):
            return None
        chosen: dict[str, set[int]] = {}
        for ranges in accesses:
            needed = self._needed(content, ranges)
            if needed is None:
                needed = {file: set(range(found.footer.num_row_groups)) for file, found in listed.files.items()}
            for file, numbers in needed.items():
                chosen.setdefault(file, set()).update(numbers)
        rows = sum(listed.files[file].footer.row_group(i).num_rows for file, numbers in chosen.items() for i in numbers)
        wanted = sorted({*columns, *(part.column for ranges in accesses for part in ranges)}) or [0]
        types = content.outside.columns.arrow.types
        if rows > most:
            return None
        found = _read({file: (listed.files[file], sorted(chosen[file])) for file in chosen}, content.outside, wanted)
        if found is None:
            return None
        every = [Delta.inserting(widened(found, wanted, types))]
        changes = None if content.changes is None else content.changes.contents()
        if changes is not None and len(changes):
            some = pa.RecordBatch.from_arrays([changes.rows.column(i) for i in wanted], names=found.schema.names)
            every.append(Delta(widened(some, wanted, types), changes.weights))
        parts = [part.where(inside(part.rows, accesses)) for part in every]
        return parts[0] if len(parts) == 1 else consolidate(Delta.concat(parts))


def inside(rows: pa.RecordBatch, accesses: Sequence[Sequence[Ranges]]) -> NDArray[np.bool_]:
    """Which rows of a table one of its accesses needs: those in all of its ranges."""
    if not all(accesses):
        return np.ones(rows.num_rows, np.bool_)
    each = (np.logical_and.reduce([part.inside(rows.column(part.column)) for part in ranges]) for ranges in accesses)
    return np.logical_or.reduce(list(each))


def _read(files: Mapping[str, tuple[Described, list[int]]], outside: Outside, columns: Sequence[int]) -> pa.RecordBatch | None:
    """Some columns of row groups of files; None if they are not there as the table has them."""
    from pyarrow import fs, parquet

    fields = [outside.columns.arrow.field(i) for i in columns]
    names = [f"c{i}" for i in range(len(fields))]
    parts = [pa.Table.from_arrays([pa.array([], each.type) for each in fields], names=names)]
    for file, (description, numbers) in files.items():
        stored = [description.columns.get(each.name.lower(), ("", None)) for each in fields]
        if any(kind != each.type or "." in name for (name, kind), each in zip(stored, fields, strict=True)):
            return None
        try:
            system, path = fs.FileSystem.from_uri(file)
            with parquet.ParquetFile(path, metadata=description.footer, filesystem=system) as opened:
                found = opened.read_row_groups(numbers, columns=[name for name, _ in stored])
        except (OSError, pa.ArrowException):
            return None
        arrays = [found.column(name) for name, _ in stored]
        if any(map(_may_be_shifted, arrays)):
            return None
        parts.append(pa.Table.from_arrays(arrays, names=names))
    whole = pa.concat_tables(parts)
    return one_batch(whole)


def _may_be_shifted(values: pa.ChunkedArray) -> bool:
    """Whether Spark may read some of the values as others, because they are older than the calendar."""
    if not pa.types.is_date(values.type) and not pa.types.is_timestamp(values.type):
        return False
    since = _OLD["date" if pa.types.is_date(values.type) else "timestamp"]
    if isinstance(since, datetime) and values.type.tz is None:
        since = since.replace(tzinfo=None)
    return bool(pc.any(pc.less(values, pa.scalar(since, values.type))).as_py())
