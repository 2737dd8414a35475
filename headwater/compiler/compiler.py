"""The compiler: one dataflow for all views, in which equal parts of different queries are one step with one state."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb

from headwater.algebra import plan
from headwater.algebra.expressions import Column, Expression
from headwater.compiler import aggregates, joins
from headwater.compiler.dataflow import Step
from headwater.compiler.linear import Engines, is_linear, mask_for, stage_for
from headwater.delta import Delta
from headwater.errors import NotSupported, UnknownName
from headwater.evaluation.duckdb_sql import Untranslatable
from headwater.evaluation.stages import run_sql, typed
from headwater.evaluation.windows import window_sql
from headwater.operators.aggregate import Aggregate
from headwater.operators.arrange import Arrange
from headwater.operators.join import Join, JoinKey
from headwater.operators.linear import Linear, Union
from headwater.operators.match import Match
from headwater.operators.ordering import Order, is_ordered
from headwater.operators.regroup import Regroup
from headwater.operators.scalar import Scalar
from headwater.operators.topk import TopK
from headwater.operators.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.operators.operator import Key
    from headwater.operators.regroup import Evaluate


class Compiler:
    """Compiles nodes of the algebra into steps."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._sources: Mapping[str, Step] = {}
        self._steps: dict[plan.Node, Step] = {}
        self._arranged: dict[tuple[Step, Key], Step] = {}

    def root(self, node: plan.Node, sources: Mapping[str, Step]) -> Step:
        """The step that gives the rows of a query over these tables and views, by their names in lower case."""
        self._sources = sources
        return self.compile(node)

    def fork(self) -> Compiler:
        """A compiler that knows the same steps; what it learns and forgets, this one does not."""
        made = Compiler(self._engines)
        made._steps, made._arranged = dict(self._steps), dict(self._arranged)
        return made

    def compile(self, node: plan.Node) -> Step:
        """The step that gives the node's rows."""
        known = self._steps.get(node)
        if known is None:
            known = self._compile(node)
            self._steps[node] = known
        return known

    def arrange(self, step: Step, key: Key) -> Step:
        """The step that keeps the rows of another by a key."""
        known = self._arranged.get((step, key))
        if known is None:
            known = Step(Arrange(step.types, key), (step,), "Arrange")
            self._arranged[step, key] = known
        return known

    def forget(self, live: Iterable[Step]) -> None:
        """Drops what no live step needs."""
        kept = set(live)
        self._steps = {node: step for node, step in self._steps.items() if step in kept}
        self._arranged = {key: step for key, step in self._arranged.items() if step in kept}

    def forget_if(self, stale: Callable[[plan.Node], bool]) -> None:
        """Drops the steps of stale nodes, so that they are compiled anew."""
        self._steps = {node: step for node, step in self._steps.items() if not stale(node)}

    def _compile(self, node: plan.Node) -> Step:  # noqa: C901, PLR0911  (one case a kind)
        if is_linear(node):
            return self._linear(node)
        match node:
            case plan.Scan(source=source):
                if source.lower() not in self._sources:
                    raise UnknownName(f"there is no table or view {source!r}")
                return self._sources[source.lower()]
            case plan.Values(rows=rows):
                return Step(Values(node.types, rows), (), "Values")
            case plan.Union():
                return Step(Union(node.types, len(node.inputs)), tuple(map(self.compile, node.inputs)), "Union")
            case plan.Join():
                return self._join(node)
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.Window():
                return self._window(node)
            case plan.Sort():
                return self.compile(node.child)
            case plan.Limit():
                return self._limit(node)
            case plan.Scalar():
                return self._step(Scalar(node.types), (node.child,), "Scalar")
            case plan.Opaque():
                return self._opaque(node)
        raise TypeError(type(node).__name__)

    def _step(
        self, operator: Join | Match | Aggregate | TopK | Regroup | Scalar, inputs: Iterable[plan.Node], label: str
    ) -> Step:
        """A step whose inputs are arranged as the operator asks."""
        steps = []
        for child, key in zip(inputs, operator.arranged_by(), strict=True):
            step = self.compile(child)
            steps.append(step if key is None else self.arrange(step, key))
        return Step(operator, tuple(steps), label)

    def _linear(self, node: plan.Node) -> Step:
        chain = [node]
        while is_linear(chain[-1].children[0]) and chain[-1].children[0] not in self._steps:
            chain.append(chain[-1].children[0])
        below = self.compile(chain[-1].children[0])
        label = " ∘ ".join(type(part).__name__ if not isinstance(part, plan.Opaque) else part.name for part in chain)
        return Step(Linear(node.types, stage_for(chain[::-1], self._engines)), (below,), label)

    # -- joins

    def _join(self, node: plan.Join) -> Step:
        if node.kind in ("left", "right", "full", "single"):
            return self.compile(joins.expand_outer(node))
        not_in = joins.null_aware(node)
        if not_in is not None:
            return self.compile(not_in)
        condition = joins.analyse(node)
        if node.kind != "inner":
            return self._match(node, condition)
        if condition.rest is not None and condition.left:
            inner = replace(node, condition=condition.equalities)
            return self.compile(plan.Filter(types=node.types, child=inner, condition=condition.rest))
        left, left_key = self._keyed(node.left, condition.left)
        right, right_key = self._keyed(node.right, condition.right)
        stage = None
        if condition.rest is not None:
            stage = stage_for([plan.Filter(types=node.types, child=node, condition=condition.rest)], self._engines)
        key = JoinKey(left_key, right_key, condition.null_safe)
        operator = Join(node.types, key, len(node.left.types), len(node.right.types), stage)
        return self._step(operator, (left, right), "Join")

    def _match(self, node: plan.Join, condition: joins.Condition) -> Step:
        left, left_key = self._keyed(node.left, condition.left)
        width = len(node.left.types)
        if condition.rest is None:
            types = tuple(self._engines.type_of(part) for part in condition.right)
            right: plan.Node = plan.Project(types=types, child=node.right, expressions=condition.right)
            right_key = tuple(range(len(types)))
            fits = None
        else:
            right, right_key = self._keyed(node.right, condition.right)
            fits = self._mask(condition.rest)
        key = JoinKey(left_key, right_key, condition.null_safe)
        labels = {"semi": "Semi join", "anti": "Anti join", "existence": "Existence join", "check": "At most one match"}
        label = labels[node.kind]
        return self._step(Match(node.types, node.kind, key, width, fits, len(node.right.types)), (left, right), label)

    def _mask(self, condition: Expression) -> Callable[[pa.RecordBatch], NDArray[np.bool_]]:
        stage = mask_for(condition, self._engines)

        def mask(rows: pa.RecordBatch) -> NDArray[np.bool_]:
            import numpy as np

            numbered = stage.run(Delta(rows, np.arange(rows.num_rows)))
            truth = numbered.rows.column(0).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
            found = np.zeros(rows.num_rows, bool)
            found[numbered.weights] = truth
            return found

        return mask

    def _keyed(self, node: plan.Node, key: tuple[Expression, ...]) -> tuple[plan.Node, Key]:
        """The node with a column for each expression of the key, and where these are."""
        extra = [part for part in key if not isinstance(part, Column)]
        if not extra:
            return node, tuple(part.index for part in key)  # type: ignore[union-attr]
        width = len(node.types)
        types = node.types + tuple(self._engines.type_of(part) for part in extra)
        columns = tuple(Column(i, kind) for i, kind in enumerate(node.types))
        places = iter(range(width, len(types)))
        keyed = plan.Project(types=types, child=node, expressions=columns + tuple(extra))
        return keyed, tuple(part.index if isinstance(part, Column) else next(places) for part in key)

    # -- aggregates, windows, limits

    def _aggregate(self, node: plan.Aggregate) -> Step:
        lowered = aggregates.lower(node, self._engines.type_of)
        functions, holistic = aggregates.functions_for(lowered, node)
        if holistic is None:
            operator: Aggregate | Regroup = Aggregate(lowered.below.types, lowered.keys, functions)
        else:
            operator = self._regrouped_aggregate(lowered, holistic)
        step = self._step(operator, (lowered.below,), "Aggregate" if node.outputs else "Distinct")
        for scalar in lowered.scalars:
            step = self._beside(step, self.compile(scalar))
        picked = plan.Project(types=node.types, child=plan.Node(types=step.types), expressions=lowered.above)
        if all(isinstance(e, Column) and e.index == i for i, e in enumerate(lowered.above)) and node.types == step.types:
            return step
        return Step(Linear(node.types, stage_for([picked], self._engines)), (step,), "Project")

    def _regrouped_aggregate(self, lowered: aggregates.Lowered, holistic: str) -> Regroup:
        keys, calls, spark = lowered.keys, lowered.calls, self._engines.spark
        types = lowered.below.types[:keys] + tuple(self._engines.type_of(call) for call in calls)

        def evaluate(inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
            found = spark.aggregate(keys, calls, inputs[0])
            return typed(found.columns, types, found.num_rows)

        key = tuple(range(keys))
        why = f"{holistic} has no inverse: only the groups that changed are evaluated again"
        return Regroup(types, (lowered.below.types,), key, key, evaluate, why, "spark")

    def _beside(self, left: Step, right: Step) -> Step:
        operator = Join(left.types + right.types, JoinKey((), (), ()), len(left.types), len(right.types))
        return Step(operator, (self.arrange(left, ()), self.arrange(right, ())), "Join")

    def _window(self, node: plan.Window) -> Step:
        key = tuple(part.index for part in node.partition if isinstance(part, Column))
        evaluate, engine = self._on_spark(node), "spark"
        with suppress(Untranslatable):
            evaluate, engine = self._in_duckdb(window_sql(node), node.types, evaluate), "duckdb"
        why = "window functions: only the partitions that changed are evaluated again"
        return self._step(Regroup(node.types, (node.child.types,), key, key, evaluate, why, engine), (node.child,), "Window")

    def _on_spark(self, node: plan.Node) -> Evaluate:
        """Spark's evaluation of the node over given rows."""
        origin, spark = node.origin, self._engines.spark
        assert origin is not None

        def evaluate(inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
            found = spark.node(origin, inputs)
            return typed(found.columns, node.types, found.num_rows)

        return evaluate

    def _in_duckdb(self, statement: str, types: plan.Types, otherwise: Evaluate) -> Evaluate:
        """A statement over given rows; should DuckDB raise, the other evaluation decides."""
        connection = self._engines.duckdb

        def evaluate(inputs: list[pa.RecordBatch]) -> pa.RecordBatch:
            try:
                found = run_sql(connection, statement, Delta.inserting(inputs[0]))
            except duckdb.Error:
                return otherwise(inputs)
            return typed(found.columns, types, found.num_rows)

        return evaluate

    def _limit(self, node: plan.Limit) -> Step:
        child, key = self._keyed(node.child, tuple(sort.expression for sort in node.order))
        if not all(is_ordered(child.types[i]) for i in key):
            raise NotSupported("ORDER BY a nested value with LIMIT is not supported; order by a field of it")
        order = tuple(Order(i, s.descending, s.nulls_first) for i, s in zip(key, node.order, strict=True))
        limited = self._step(TopK(child.types, order, node.count, node.offset), (child,), "Top-k")
        if child is node.child:
            return limited
        width = len(node.types)
        columns = tuple(Column(i, kind) for i, kind in enumerate(node.types))
        picked = plan.Project(types=node.types, child=plan.Node(types=child.types), expressions=columns[:width])
        return Step(Linear(node.types, stage_for([picked], self._engines)), (limited,), "Project")

    def _opaque(self, node: plan.Opaque) -> Step:
        types = tuple(child.types for child in node.inputs)
        why = f"{node.name} has no incremental rule: Spark recomputes it"
        operator = Regroup(node.types, types, (), (), self._on_spark(node), why, "spark", whole=True)
        return self._step(operator, node.inputs, node.name)
