"""What the footers of Parquet files say of an attribute: which files and row groups can have rows in some ranges.

    a row group is needed  ⇔  [least, greatest] meets an interval,  or it has NULLs and these are needed,  or nothing is known

Footers leave NaN out of least and greatest values, so for floating-point attributes the last range is taken to be everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from headwater.annotations.fragments import Partition
    from headwater.skipping.reading import Ranges


@dataclass(frozen=True)
class Group:
    """A row group: its rows, the least and greatest value of the attribute (None: not known), and whether it has NULLs."""

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
        found = {}
        for file, groups in self.groups.items():
            kept = [group for group, meets in zip(groups, _meet(groups, ranges.partition, ranges.coarse), strict=True) if meets]
            if kept:
                found[file] = kept
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


def read_footers(files: Sequence[str], column: str, kind: pa.DataType) -> Footers | None:
    """The footers of Parquet files; None if they cannot be read here, or the attribute is no column of that type in them."""
    from pyarrow import fs, parquet

    found: dict[str, tuple[Group, ...]] = {}
    for file in files:
        try:
            system, path = fs.FileSystem.from_uri(file)
            described = parquet.read_metadata(path, filesystem=system)
        except (OSError, pa.ArrowException, ValueError):
            return None
        names = [described.schema.column(i).path.lower() for i in range(described.num_columns)]
        if column.lower() not in names:
            return None
        place = names.index(column.lower())
        if described.schema.to_arrow_schema().field(described.schema.column(place).path).type != kind:
            return None
        found[file] = tuple(_group(described.row_group(i), place) for i in range(described.num_row_groups))
    return Footers(found)


def _group(described: Any, place: int) -> Group:  # noqa: ANN401  (of pyarrow)
    stated = described.column(place).statistics
    if stated is None or not stated.has_min_max:
        return Group(described.num_rows, None, None, has_null=True)
    has_null = not stated.has_null_count or stated.null_count > 0
    return Group(described.num_rows, stated.min, stated.max, has_null=has_null)
