"""What a step evaluates, as data: nodes of the plan and expressions, beside the engines that run them.

A recipe is equal to another that says the same, and means the same with the engines of another session. What the engines make
of it (kernels, statements, closures) is made at its first use. Of the nodes below its own it keeps no more than their types.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column
from headwater.compiler.linear import Engines, mask_for, stage_for
from headwater.delta import Delta
from headwater.evaluation.duckdb_sql import Untranslatable
from headwater.evaluation.sessions import MERGED_SESSION, merged_sessions
from headwater.evaluation.stages import run_sql, typed
from headwater.evaluation.windows import window_sql

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.algebra.expressions import Expression
    from headwater.evaluation.stages import Stage
    from headwater.operators.regroup import Evaluate


@dataclass(frozen=True)
class Fused:
    """Linear nodes as one stage; the first is the lowest."""

    chain: tuple[plan.Node, ...]
    engines: Engines = field(compare=False, repr=False)

    @cached_property
    def stage(self) -> Stage:
        return stage_for(list(self.chain), self.engines)

    @property
    def engine(self) -> str:
        return self.stage.engine

    def run(self, delta: Delta) -> Delta:
        return self.stage.run(delta)


def fused(chain: Iterable[plan.Node], engines: Engines) -> Fused:
    """One stage for the nodes, the first of which is the lowest."""
    return Fused(tuple(map(plan.cut, chain)), engines)


@dataclass(frozen=True)
class Mask:
    """For which rows a condition is true."""

    condition: Expression
    engines: Engines = field(compare=False, repr=False)

    @cached_property
    def _stage(self) -> Stage:
        return mask_for(self.condition, self.engines)

    def __call__(self, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        numbered = self._stage.run(Delta(rows, np.arange(rows.num_rows)))
        truth = numbered.rows.column(0).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        found = np.zeros(rows.num_rows, bool)
        found[numbered.weights] = truth
        return found


@dataclass(frozen=True)
class OfNode:
    """Spark's evaluation of a node over given rows."""

    node: plan.Node
    engines: Engines = field(compare=False, repr=False)

    def __call__(self, inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
        assert self.node.origin is not None
        found = self.engines.spark.node(self.node.origin, inputs)
        return typed(found.columns, self.node.types, found.num_rows)


@dataclass(frozen=True)
class OfGroups:
    """Spark's evaluation of aggregate calls for each group by the first `keys` columns."""

    keys: int
    calls: tuple[Call, ...]
    types: plan.Types
    engines: Engines = field(compare=False, repr=False)

    def __call__(self, inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
        found = self.engines.spark.aggregate(self.keys, self.calls, inputs[0])
        return typed(found.columns, self.types, found.num_rows)


@dataclass(frozen=True)
class OfWindows:
    """Windows one upon another over whole partitions, the first the lowest, and the filter above them if there is one."""

    windows: tuple[plan.Window, ...]
    passing: plan.Filter | None
    engines: Engines = field(compare=False, repr=False)

    @property
    def engine(self) -> str:
        if None in self._statements:
            return "spark"
        return "duckdb" if any(self._statements) else "arrow"

    def __call__(self, inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
        for evaluate in self._evaluations:
            inputs = [evaluate(inputs)]
        if self._filter is None or not len(inputs[0]):
            return inputs[0]
        return self._filter.run(Delta.inserting(inputs[0])).rows

    @cached_property
    def _filter(self) -> Stage | None:
        return None if self.passing is None else stage_for([self.passing], self.engines)

    @cached_property
    def _statements(self) -> list[str | None]:
        """For each window what DuckDB is asked; nothing for merged sessions; None if only Spark knows."""
        found: list[str | None] = []
        for window in self.windows:
            found.append("" if _session_of(window) is not None else None)
            with suppress(Untranslatable):
                found[-1] = found[-1] if found[-1] is not None else window_sql(window)
        return found

    @cached_property
    def _evaluations(self) -> list[Evaluate]:
        return [self._evaluation(*pair) for pair in zip(self.windows, self._statements, strict=True)]

    def _evaluation(self, window: plan.Window, statement: str | None) -> Evaluate:
        """The statement over given rows; should DuckDB raise, Spark decides."""
        session = _session_of(window)
        if session is not None:
            keys = [part.index for part in window.partition if isinstance(part, Column)]
            return lambda inputs: typed(merged_sessions(inputs[0], keys, session).columns, window.types, len(inputs[0]))
        on_spark = OfNode(window, self.engines)
        if statement is None:
            return on_spark

        def evaluate(inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
            try:
                found = run_sql(self.engines.duckdb, statement, Delta.inserting(inputs[0]))
            except duckdb.Error:
                return on_spark(inputs)
            return typed(found.columns, window.types, found.num_rows)

        return evaluate


def _session_of(window: plan.Window) -> int | None:
    """The column of session windows that are merged, if that is what the window is for."""
    function = window.functions[0]
    if not isinstance(function, Call) or function.function != MERGED_SESSION:
        return None
    (session,) = function.arguments
    assert isinstance(session, Column)
    return session.index


def windowed(windows: Iterable[plan.Window], passing: plan.Filter | None, engines: Engines) -> OfWindows:
    """The windows, the first of which is the lowest, and the filter above them."""
    return OfWindows(tuple(map(plan.cut, windows)), None if passing is None else plan.cut(passing), engines)
