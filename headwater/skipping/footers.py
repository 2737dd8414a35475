"""What the footers of Parquet files say of an attribute: which files and row groups can have rows in some ranges.

    a row group is needed  ⇔  [least, greatest] meets an interval,  or it has NULLs and these are needed,  or nothing is known

Footers leave NaN out of least and greatest values, so for floating-point attributes the last range is taken to be everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyarrow.parquet import FileMetaData

    from headwater.annotations.fragments import Partition
    from headwater.skipping.reading import Ranges


@dataclass(frozen=True)
class Group:
    """A row group: its rows, the least and greatest value of the attribute (None: not known), and whether it has NULLs."""

    number: int
    rows: int
    least: Any
    greatest: Any
    has_null: bool

    def is_known(self) -> bool:
        return self.least is not None and self.greatest is not None


@dataclass(frozen=True)
class Footers:
    """The row groups of files, by the address of the file, as to one attribute."""

    groups: Mapping[str, tuple[Group, ...]]

    @property
    def count(self) -> int:
        return sum(map(len, self.groups.values()))

    def needed(self, ranges: Ranges) -> dict[str, list[Group]]:
        """The row groups that can have rows in the ranges, of those files that have any."""
        every = [(file, group) for file, groups in self.groups.items() for group in groups]
        found: dict[str, list[Group]] = {}
        meets = _meet([group for _, group in every], ranges.partition, ranges.coarse)
        for (file, group), is_met in zip(every, meets, strict=True):
            if is_met:
                found.setdefault(file, []).append(group)
        return found


def _meet(groups: Sequence[Group], partition: Partition, fragments: Collection[int]) -> list[bool]:
    """Which row groups can have a row in one of the fragments."""
    chosen = np.zeros(partition.count + 1, np.int64)
    chosen[[fragment + 1 for fragment in fragments]] = 1
    before = np.cumsum(chosen)
    last = partition.null - 1
    floating = pa.types.is_floating(partition.type)
    known = [group.is_known() for group in groups]
    ends = [(group.least, group.greatest) if known[i] else (None, None) for i, group in enumerate(groups)]
    low = partition.fragments(pa.array([end[0] for end in ends], partition.type))
    high = partition.fragments(pa.array([end[1] for end in ends], partition.type))
    found = []
    for i, group in enumerate(groups):
        meets = not known[i] or before[high[i] + 1] > before[low[i]]
        meets = meets or (group.has_null and partition.null in fragments) or (floating and last in fragments)
        found.append(bool(meets))
    return found


@dataclass(frozen=True)
class Described:
    """A Parquet file: what its footer says."""

    footer: FileMetaData

    @cached_property
    def columns(self) -> dict[str, tuple[str, pa.DataType]]:
        """Its columns, and their types, by their names in lower case; none if two differ in nothing but case."""
        fields = list(self.footer.schema.to_arrow_schema())
        found = {field.name.lower(): (field.name, field.type) for field in fields}
        return found if len(found) == len(fields) else {}

    def groups(self, column: str, kind: pa.DataType) -> tuple[Group, ...] | None:
        """Its row groups, as to a column; None if that is not there in this type."""
        name, found = self.columns.get(column.lower(), (column, None))
        if found != kind:
            return None
        places = [i for i in range(self.footer.num_columns) if self.footer.schema.column(i).path == name]
        return tuple(_group(number, self.footer.row_group(number), places[0]) for number in range(self.footer.num_row_groups))


def described(files: Sequence[str]) -> dict[str, Described] | None:
    """The footers of Parquet files; None if they cannot be read here."""
    from pyarrow import fs, parquet

    found = {}
    for file in files:
        try:
            system, path = fs.FileSystem.from_uri(file)
            found[file] = Described(parquet.read_metadata(path, filesystem=system))
        except (OSError, pa.ArrowException, ValueError):
            return None
    return found


def footers_of(files: Mapping[str, Described], column: str, kind: pa.DataType) -> Footers | None:
    """What files say of an attribute; None if it is no column of that type in one of them."""
    found = {}
    for file, description in files.items():
        groups = description.groups(column, kind)
        if groups is None:
            return None
        found[file] = groups
    return Footers(found)


def _group(number: int, described: Any, place: int) -> Group:  # noqa: ANN401  (of pyarrow)
    stated = described.column(place).statistics
    if stated is None or not stated.has_min_max:
        return Group(number, described.num_rows, None, None, has_null=True)
    has_null = not stated.has_null_count or stated.null_count > 0
    return Group(number, described.num_rows, stated.min, stated.max, has_null=has_null)
