"""Goals: which rows of a node are asked for, as values that some of its columns must have.

A goal is handed down through the plan: a row of the answer asks for the rows that it can come from, and no others. Values are
equal as keys are (NULL is NULL, NaN is NaN), so that a goal never loses a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, beside
from headwater.operators.operator import schema_of
from headwater.picking import picked
from headwater.state import slicing
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import group_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Goal:
    """Rows whose `columns` have the values of one of the rows of `values`; with no columns, all rows."""

    columns: tuple[int, ...]
    values: pa.RecordBatch

    @staticmethod
    def everything() -> Goal:
        return Goal((), beside([], 1))

    @staticmethod
    def of(columns: Sequence[int], arrays: Sequence[pa.Array], count: int) -> Goal:
        """Values for columns; of several for one column the first counts, and equal rows are one."""
        places = {column: place for place, column in reversed(list(enumerate(columns)))}
        chosen = tuple(sorted(places))
        values = beside([arrays[places[column]] for column in chosen], count)
        if not chosen:
            return Goal.everything()
        groups = group_rows(values, range(len(chosen)))
        return Goal(chosen, beside(picked(values.columns, groups.representatives), groups.count))

    def through(self, places: Mapping[int, int]) -> Goal:
        """The goal for an input, in which some of the columns have the given places."""
        kept = [(places[column], self.values.column(i)) for i, column in enumerate(self.columns) if column in places]
        return Goal.of([place for place, _ in kept], [values for _, values in kept], self.values.num_rows)

    def among(self, rows: pa.RecordBatch) -> Indices:
        """Which rows are asked for."""
        if not self.columns:
            return np.arange(rows.num_rows)
        return np.unique(pairs(rows, self.columns, self.values, range(len(self.columns)))[0])


def pairs(
    left: pa.RecordBatch, left_columns: Sequence[int], right: pa.RecordBatch, right_columns: Sequence[int]
) -> tuple[Indices, Indices]:
    """All pairs of a row of the left and one of the right that are equal on the columns; without columns, all pairs."""
    found = list(pairs_in_slices(left, left_columns, right, right_columns))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([met for met, _ in found]), np.concatenate([partners for _, partners in found])


def pairs_in_slices(
    left: pa.RecordBatch, left_columns: Sequence[int], right: pa.RecordBatch, right_columns: Sequence[int]
) -> Iterator[tuple[Indices, Indices]]:
    """The same, some at a time."""
    if not left_columns:
        every = left.num_rows * right.num_rows
        for start in range(0, every, slicing.PAIRS):
            numbers = np.arange(start, min(start + slicing.PAIRS, every))
            yield numbers // right.num_rows, numbers % right.num_rows
        return
    width = len(right_columns)
    numbered = beside([*(right.column(i) for i in right_columns), pa.array(np.arange(right.num_rows))], right.num_rows)
    index = Arrangement.empty(schema_of(numbered.schema.types), range(width)).insert(Delta.inserting(numbered))
    for found in slicing.lookup_slices(index, left, left_columns, (width,)):
        yield found.probe, found.rows.column(0).to_numpy()
