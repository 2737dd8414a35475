"""Answers a query on Spark from no more of its tables than a sketch says it needs.

    Q(R, S)  =  Q(σ a ∈ P (R), S)        P: the fragments of the sketch, neighbouring ranges as one interval

Spark runs the very plan that our algebra was read from, with each access in its place filtered by its own ranges. Limits break
ties as the engine does, by the rest of the row, so that the answer does not depend on which rows were skipped. An access is
known by its place in the plan: columns of a table have the same ids in a scalar subquery as outside of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions

from headwater.algebra import plan
from headwater.delta import one_batch
from headwater.errors import EvaluationFailed
from headwater.evaluation.spark import SparkEvaluator, failure
from headwater.evaluation.stages import typed
from headwater.operators.ordering import is_ordered
from headwater.schema import arrow_schema, collected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

    from headwater.algebra.origin import Way
    from headwater.annotations.fragments import Interval, Partition
    from headwater.frontend.catalyst import Query

    Jvm = Any

# A condition of more intervals than this costs more than it saves.
MOST_INTERVALS = 200
# So many are compared with one by one.
_FEW_INTERVALS = 16
_LIMITS = ("GlobalLimit", "LocalLimit", "Offset", "Project")


@dataclass(frozen=True)
class Ranges:
    """The fragments of an access that are needed, by a column of its table."""

    column: int
    partition: Partition
    fragments: frozenset[int]

    @property
    def share(self) -> float:
        return self.partition.share(self.fragments)

    @property
    def coarse(self) -> frozenset[int]:
        return self.partition.coarsened(self.fragments, MOST_INTERVALS)

    def condition(self, attribute: Column, kind: DataType) -> Column:
        """The condition on the attribute, in its own type."""
        parts = []
        chosen = self.coarse
        for interval in self.partition.intervals(chosen):
            low, high = (None if end is None else constant(end, kind) for end in self.partition.ends(interval))
            above = None if low is None else attribute >= low
            below = None if high is None else attribute < high
            parts.append(above & below if above is not None and below is not None else _either(above, below, attribute))
        if self.partition.null in chosen:
            parts.append(attribute.isNull())
        return _balanced(parts)

    def inside(self, values: pa.Array) -> NDArray[np.bool_]:
        """Which values of the attribute are in the fragments."""
        runs = self.partition.intervals(self.coarse)
        if len(runs) <= _FEW_INTERVALS and _is_whole(values.type):
            return self._between(values, runs)
        chosen = np.zeros(self.partition.count, np.bool_)
        chosen[list(self.coarse)] = True
        return chosen[self.partition.fragments(values)]

    def _between(self, values: pa.Array, runs: Sequence[Interval]) -> NDArray[np.bool_]:
        """The same by comparing values with the ends of few intervals, which is quicker than to look for their fragments."""
        numbers = _numbers(values)
        found = np.zeros(len(values), np.bool_)
        for run in runs:
            low, high = (None if end is None else _number(end) for end in self.partition.ends(run))
            part = np.ones(len(values), np.bool_) if low is None else numbers >= low
            found |= part if high is None else part & (numbers < high)
        if values.null_count:
            missing = values.is_null().to_numpy(zero_copy_only=False)
            found = found | missing if self.partition.null in self.coarse else found & ~missing
        return found

    def kept(self, rows: pa.Table) -> pa.Table:
        """Those of rows of the table that are in the fragments."""
        return rows.filter(pa.array(self.inside(one_batch(rows.select([self.column])).column(0))))


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values are kept as whole numbers that are in the order of the values."""
    return pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)


def _numbers(values: pa.Array) -> NDArray[Any]:
    width = np.int32 if pa.types.is_date32(values.type) else np.int64
    plain = values if pa.types.is_integer(values.type) else values.cast(pa.from_numpy_dtype(width))
    return plain.fill_null(0).to_numpy(zero_copy_only=False) if plain.null_count else plain.to_numpy()


def _number(value: pa.Scalar) -> int:
    if pa.types.is_integer(value.type):
        return int(value.as_py())
    return int(value.cast(pa.int32() if pa.types.is_date32(value.type) else pa.int64()).as_py())


def _either(above: Column | None, below: Column | None, attribute: Column) -> Column:
    if above is not None:
        return above
    return attribute.isNotNull() if below is None else below


def _balanced(parts: Sequence[Column]) -> Column:
    """Either of the parts, as a tree that is not deep."""
    if not parts:
        return functions.lit(False)  # noqa: FBT003  (a column)
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _balanced(parts[:half]) | _balanced(parts[half:])


def constant(value: pa.Scalar, kind: DataType) -> Column:
    """A bound as Spark's constant of the attribute's type."""
    if pa.types.is_timestamp(value.type):
        micros = functions.lit(value.cast(pa.int64()).as_py())
        if value.type.tz is not None:
            return functions.timestamp_micros(micros)
        return functions.lit(value.cast(pa.string()).as_py()).cast(kind)
    if pa.types.is_date(value.type):
        return functions.date_from_unix_date(functions.lit(value.cast(pa.int32()).as_py()))
    return functions.lit(value.as_py()).cast(kind)


def is_possible(root: plan.Node) -> bool:
    """Whether Spark can be given the plan with its accesses replaced, and gives the answer that the engine gives."""
    if plan.is_collated(root):
        return False
    for node in plan.walk(root):
        if isinstance(node, plan.Opaque | plan.Fixpoint | plan.Recursive):
            return False
        if isinstance(node, plan.Limit) and not all(map(is_ordered, node.child.types)):
            return False
    places = [node.origin.steps for node in plan.walk(root) if isinstance(node, plan.Scan) and node.origin is not None]
    return len(places) == len(set(places))


class Skipping:
    """Runs plans of Spark's with other rows at their leaves."""

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._spark = spark
        self._evaluator = SparkEvaluator(spark)

    def frame(self, query: Query, leaves: Mapping[int, DataFrame]) -> DataFrame:
        """The query over other rows: a DataFrame for every scan, by its number from the top, with columns in its order."""
        assert query.root is not None
        scans = [node for node in plan.walk(query.root) if isinstance(node, plan.Scan)]
        assert scans[0].origin is not None
        root: Any = getattr(scans[0].origin, "root")  # noqa: B009  (of the handle that this session made)
        by_place = {scan.origin.steps: leaves[i] for i, scan in enumerate(scans) if scan.origin is not None}
        placing = _Placing(self._evaluator, by_place, _subqueries(root), self._settled)
        logical = placing.replaced(root, ())
        assert placing.placed == set(by_place), "every access has its rows"
        return self._dataset(logical)

    def answer(self, query: Query, frame: DataFrame) -> pa.RecordBatch:
        try:
            found = collected(frame)
        except PySparkException as error:
            raise EvaluationFailed(failure(error)) from error
        return typed(found.columns, arrow_schema(query.schema).types, found.num_rows)

    def _dataset(self, logical: Jvm) -> DataFrame:
        session = self._spark()
        jvm: Any = session._jvm
        of_rows = getattr(jvm.org.apache.spark.sql.classic.Dataset, "ofRows")  # noqa: B009  (py4j)
        return DataFrame(of_rows(session._jsparkSession, logical), session)

    def _settled(self, node: Jvm) -> Jvm:
        """A limit whose order is total: the rest of the row, column by column, ascending, NULL first."""
        name = node.nodeName()
        if name in _LIMITS:
            return node.withNewChildren(self._evaluator.seq([self._settled(node.children().apply(0))]))
        child = node.children().apply(0) if name == "Sort" else node
        order = [node.order().apply(i) for i in range(node.order().size())] if name == "Sort" else []
        output = [child.output().apply(i) for i in range(child.output().size())]
        keys = [key.child() for key in order]
        stated = {int(key.exprId().id()) for key in keys if key.getClass().getSimpleName() == "AttributeReference"}
        rest = [self._ascending(column) for column in output if int(column.exprId().id()) not in stated]
        jvm: Any = self._spark()._jvm
        none = getattr(jvm.scala, "None$").__getattr__("MODULE$")
        return self._evaluator.plans.Sort(self._evaluator.seq([*order, *rest]), True, child, none)  # noqa: FBT003  (py4j)

    def _ascending(self, column: Jvm) -> Jvm:
        jvm: Any = self._spark()._jvm
        catalyst = jvm.org.apache.spark.sql.catalyst.expressions
        ascending = getattr(catalyst, "Ascending$").__getattr__("MODULE$")
        first = getattr(catalyst, "NullsFirst$").__getattr__("MODULE$")
        return catalyst.SortOrder(column, ascending, first, self._evaluator.seq([]))


def _subqueries(root: Jvm) -> dict[int, Way]:
    """The places of scalar subqueries, by the id of their column."""
    every = root.subqueriesAll()
    return {int(every.apply(i).output().apply(0).exprId().id()): ("subqueriesAll", i) for i in range(every.size())}


@dataclass(frozen=True)
class _Placing:
    """Puts other rows at places of a plan."""

    evaluator: SparkEvaluator
    rows: Mapping[Way, DataFrame]
    subqueries: Mapping[int, Way]
    settled: Callable[[Jvm], Jvm]
    placed: set[Way] = field(default_factory=set)

    def replaced(self, node: Jvm, place: Way) -> Jvm:
        """The node at this place, with the rows for all places in it and below."""
        frame = self.rows.get(place)
        if frame is not None:
            self.placed.add(place)
            return self.evaluator.renamed(frame._jdf.queryExecution().analyzed(), node.output())
        children = [node.children().apply(i) for i in range(node.children().size())]
        below = [self.replaced(child, (*place, "children", i)) for i, child in enumerate(children)]
        found = node.withNewChildren(self.evaluator.seq(below)) if children else node
        if node.subqueries().size():
            found = self._with_subqueries(found)
        return self.settled(found) if node.nodeName() in ("GlobalLimit", "Offset") else found

    def _with_subqueries(self, node: Jvm) -> Jvm:
        """The node with the rows for places in the scalar subqueries of its expressions."""
        parts, parameters = [], node.productIterator()
        while parameters.hasNext():
            parts.append(self._part(parameters.next()))
        array = self.evaluator.array(parts)
        return node.makeCopy(array)

    def _part(self, part: Jvm) -> Jvm:
        """What a node is made of: an expression, several, perhaps one, or something else."""
        if self.evaluator.is_a(part, "org.apache.spark.sql.catalyst.expressions.Expression"):
            return self._expression(part)
        if self.evaluator.is_a(part, "scala.collection.immutable.Seq"):
            return self.evaluator.seq([self._part(part.apply(i)) for i in range(part.size())])
        return part

    def _expression(self, expression: Jvm) -> Jvm:
        if expression.getClass().getSimpleName() == "ScalarSubquery":
            inner = expression.plan()
            place = self.subqueries[int(inner.output().apply(0).exprId().id())]
            return expression.withNewPlan(self.replaced(inner, place))
        parts = [expression.children().apply(i) for i in range(expression.children().size())]
        changed = [self._expression(part) for part in parts]
        same = all(one is other for one, other in zip(parts, changed, strict=True))
        return expression if same else expression.withNewChildren(self.evaluator.seq(changed))


def combined(ranges: Collection[Ranges], columns: Sequence[Column], kinds: Sequence[DataType]) -> Column:
    """The condition that all of several sketches of one access make."""
    conditions = [part.condition(columns[part.column], kinds[part.column]) for part in ranges]
    return reduce(and_, conditions)
