"""What executors read of rows outside: the columns that a step above looks at, of the rows that one of them does not drop.

    π f(σ p (R))  =  π f(σ p (π columns(f, p) (σ p (R))))

Spark's readers skip columns, and whole groups of rows, that nobody asks for; and what is not read need not come to a task. The
steps above filter once more, which changes nothing, and find NULL in the columns that they do not look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, columns_of, never_fails
from headwater.compiler.linear import conjuncts
from headwater.compiler.recipes import Fused
from headwater.errors import LostQuery
from headwater.operators.linear import Linear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame

    from headwater.algebra.expressions import Expression
    from headwater.compiler.dataflow import Step
    from headwater.evaluation.spark import SparkEvaluator
    from headwater.runtime.outside import Outside


@dataclass(frozen=True)
class _Look:
    """What one step sees of a table: some columns, all if None, of the rows that meet all conditions."""

    columns: set[int] | None
    conditions: tuple[Expression, ...] = ()
    spark: SparkEvaluator | None = None


def read(outside: Outside, readers: Iterable[Step]) -> tuple[DataFrame, tuple[int, ...]]:
    """The rows outside that these steps read, and which of the table's columns they have."""
    frame = outside.frame()
    looks = [_look(step) for step in readers]
    kept = _fulfilling(frame, outside, looks)
    every = range(len(outside.schema.fields))
    columns = {i for look in looks for i in (every if look.columns is None else look.columns)}
    # Rows without any column could not be counted.
    chosen = tuple(sorted(columns)) or (0,)
    return kept.select(*(f"c{i}" for i in chosen)), chosen


def _look(step: Step) -> _Look:
    stage = step.operator.stage if isinstance(step.operator, Linear) else None
    if not isinstance(stage, Fused):
        return _Look(None)
    columns: set[int] = set()
    conditions: list[Expression] = []
    for node in stage.chain:
        if isinstance(node, plan.Filter):
            conditions += conjuncts(node.condition)
            columns |= columns_of(node.condition)
        elif isinstance(node, plan.Project):
            columns.update(i for part in node.expressions for i in columns_of(part))
            return _Look(columns, tuple(conditions), stage.engines.spark)
        else:
            break
    return _Look(None, tuple(conditions), stage.engines.spark)


def _fulfilling(frame: DataFrame, outside: Outside, looks: Sequence[_Look]) -> DataFrame:
    """The rows that one of the steps does not drop, as far as conditions tell that have a value for every row.

    A condition on values that Spark reads in another type than the table has is left to the steps.
    """
    read = [field.dataType for field in frame.schema.fields]
    alike = {i for i, field in enumerate(outside.schema.fields) if field.dataType == read[i]}
    wanted = [[part for part in look.conditions if columns_of(part) <= alike and never_fails(part)] for look in looks]
    if not wanted or not all(wanted):
        return frame
    condition = reduce(_call("Or"), (reduce(_call("And"), parts) for parts in wanted))
    spark = looks[0].spark
    assert spark is not None
    try:
        return spark.where(frame, condition)
    except LostQuery:
        return frame


def _call(function: str) -> Callable[[Expression, Expression], Expression]:
    return lambda left, right: Call(function, (left, right))
