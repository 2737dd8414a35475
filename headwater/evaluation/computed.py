"""A linear stage that kernels run: which rows are kept, and what is computed of them.

The conditions are evaluated for all rows, the outputs for those that are kept, and only the columns that they name are taken.
Where a kernel refuses, another stage for the same nodes of the plan has the answer, or the right error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.delta import Delta
from headwater.evaluation.kernels import Frame, Kernel, Unusual, both
from headwater.evaluation.stages import typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.plan import Types
    from headwater.evaluation.kernels import Validity
    from headwater.evaluation.stages import Stage


@dataclass(frozen=True)
class Computed:
    """The rows in which no column of `not_null` is NULL and every condition is true, and what `outputs` makes of them.

    An output is a kernel, a column by its index, or None for NULL. Without outputs the rows are left as they are.
    """

    types: Types
    not_null: tuple[int, ...] = ()
    conditions: tuple[Kernel, ...] = ()
    outputs: tuple[Kernel | int | None, ...] | None = None
    otherwise: Stage | None = None
    engine = "arrow"

    def then(self, after: Computed) -> Computed | None:
        """Both as one, unless `after` reads what this one computes."""
        if self.outputs is not None:
            return None
        return replace(after, not_null=self.not_null + after.not_null, conditions=self.conditions + after.conditions)

    @property
    def has_kernels(self) -> bool:
        return bool(self.conditions) or any(isinstance(output, Kernel) for output in self.outputs or ())

    def run(self, delta: Delta) -> Delta:
        if not len(delta):
            return self._nothing
        try:
            return self._run(delta)
        except (Unusual, pa.ArrowException):
            if self.otherwise is None:
                raise
            return self.otherwise.run(delta)

    def _run(self, delta: Delta) -> Delta:
        frame = Frame(delta.rows)
        mask = self._mask(frame)
        if mask is None:
            return Delta(self._rows(frame), delta.weights)
        indices = mask.nonzero()[0]
        if len(indices) == frame.count:
            return Delta(self._rows(frame), delta.weights)
        if not len(indices):
            return self._nothing
        return Delta(self._rows(frame.take(indices)), delta.weights[indices])

    def _mask(self, frame: Frame) -> Validity:
        """Which rows are kept; None if all are."""
        mask: Validity = None
        for index in self.not_null:
            mask = both(mask, frame.there(index))
        for condition in self.conditions:
            true, known = condition.evaluate(frame)
            mask = both(both(mask, known), true)
        return mask

    def _rows(self, frame: Frame) -> pa.RecordBatch:
        if self.outputs is None:
            return frame.batch()
        plain = frame.select(self._plain) if self._plain else None
        if not self._made and plain is not None:
            return plain.rename_columns(self._names)
        columns = [] if plain is None else plain.columns
        # In the order of the outputs, so that each comes to its place.
        for place, make in self._made:
            columns.insert(place, make(frame))
        if self._nested or not columns:
            return typed(columns, self.types, frame.count)
        return pa.RecordBatch.from_arrays(columns, names=self._names)

    @cached_property
    def _plain(self) -> tuple[int, ...]:
        return tuple(output for output in self.outputs or () if isinstance(output, int))

    @cached_property
    def _made(self) -> tuple[tuple[int, Callable[[Frame], pa.Array]], ...]:
        """The places of the outputs that are not columns, and what makes them."""
        found = []
        for place, (output, kind) in enumerate(zip(self.outputs or (), self.types, strict=True)):
            if isinstance(output, Kernel):
                found.append((place, output.column()))
            elif output is None:
                found.append((place, partial(_nulls, kind)))
        return tuple(found)

    @cached_property
    def _names(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.types))]

    @cached_property
    def _nested(self) -> bool:
        """Whether columns may have to be cast: names of fields, and whether they can be NULL, are part of a nested type."""
        return any(pa.types.is_nested(kind) for kind in self.types)

    @cached_property
    def _nothing(self) -> Delta:
        return Delta.empty(pa.schema([(f"c{i}", kind) for i, kind in enumerate(self.types)]))


def _nulls(kind: pa.DataType, frame: Frame) -> pa.Array:
    return pa.nulls(frame.count, kind)
