"""Linear nodes to stages: which engine evaluates what, and what runs together.

Catalyst gives a chain such as Project(Filter(Project(…))). A node whose expressions all have kernels is computed, a filter
together with the projection above it; nodes whose expressions all have translations become one DuckDB statement; column picking
and NULL filters need no engine at all; the rest goes to Spark, node by node.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.annotations.fragments import Marking
from headwater.evaluation.computed import Computed
from headwater.evaluation.duckdb_sql import Untranslatable, translate
from headwater.evaluation.kernels import Kernel, compile_kernel
from headwater.evaluation.stages import Columns, Explode, NotNull, OnSpark, Replicate, Sequence, Several, Sql, Stage

if TYPE_CHECKING:
    from headwater.algebra.plan import Types
    from headwater.evaluation.duckdb_sql import Connection
    from headwater.evaluation.spark import SparkEvaluator

_EXPLODING = {"Explode": False, "PosExplode": True, "Inline": False}


@dataclass(frozen=True)
class Engines:
    """What evaluates expressions."""

    duckdb: Connection
    spark: SparkEvaluator

    def type_of(self, expression: Expression) -> pa.DataType:
        """The type of an expression's values."""
        match expression:
            case Column(type=kind) | Literal(type=kind):
                return kind
            case Call(type=kind) if kind is not None:
                return kind
            case Call(origin=None, function="AggregateExpression"):
                return pa.int64()
            case Call(origin=None):
                return translate(expression).type
        return self.spark.type_of(expression)


@dataclass(frozen=True)
class _Part:
    """A node or a piece of one: as a stage of its own, and if possible as a clause of a statement and as kernels.

    In the clause, `{}` stands for what it reads.
    """

    stage: Stage
    types: Types
    clause: str | None = None
    computed: Computed | None = None


def is_linear(node: plan.Node) -> bool:
    """Whether the node treats each row by itself."""
    by_row = isinstance(node, plan.Opaque) and node.by_row
    return by_row or isinstance(node, plan.Project | plan.Filter | plan.Generate | plan.Expand | plan.Annotate)


def stage_for(chain: list[plan.Node], engines: Engines) -> Stage:
    """One stage for the nodes, the first of which is the lowest."""
    parts = [part for node in chain for part in _parts(node, engines)]
    stages = [stage for run in _runs(parts) for stage in _together(run, engines)]
    return stages[0] if len(stages) == 1 else Sequence(tuple(stages))


def mask_for(condition: Expression, engines: Engines) -> Stage:
    """A stage that gives the truth of a condition as its only column."""
    return stage_for([_projection((condition,), (pa.bool_(),))], engines)


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The parts of a condition all of which must be true."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.function == "And":
        return [part for argument in condition.arguments for part in conjuncts(argument)]
    return [condition]


def _runs(parts: list[_Part]) -> list[list[_Part]]:
    """The parts in runs that are computed as one, and those between that are not computed at all."""
    runs: list[list[_Part]] = []
    open_ = False
    for part in parts:
        if open_ and (part.computed is None) == (runs[-1][-1].computed is None):
            runs[-1].append(part)
        else:
            runs.append([part])
        # What reads computed columns starts a run of its own.
        open_ = part.computed is None or part.computed.outputs is None
    return runs


def _together(run: list[_Part], engines: Engines) -> list[Stage]:
    """A run as one stage of kernels, if it is one; its nodes in DuckDB and Spark are what decides where kernels refuse."""
    computed = run[0].computed
    for part in run[1:]:
        computed = computed and part.computed and computed.then(part.computed)
    stages = _stages(run, engines)
    if computed is None or (len(run) == 1 and not computed.has_kernels):
        return stages
    otherwise = stages[0] if len(stages) == 1 else Sequence(tuple(stages))
    return [replace(computed, otherwise=otherwise)]


def _stages(parts: list[_Part], engines: Engines) -> list[Stage]:
    """The parts without kernels: neighbours that have clauses are one statement."""
    stages: list[Stage] = []
    for has_clause, group in groupby(parts, key=lambda part: part.clause is not None):
        run = list(group)
        stages += [_statement(run, engines)] if has_clause else [part.stage for part in run]
    return stages


def _statement(parts: list[_Part], engines: Engines) -> Stage:
    statement = "delta"
    for part in parts:
        assert part.clause is not None
        statement = part.clause.format(statement if statement == "delta" else f"({statement})")
    otherwise = Sequence(tuple(part.stage for part in parts))
    return Sql(engines.duckdb, statement, parts[-1].types, otherwise)


def _parts(node: plan.Node, engines: Engines) -> list[_Part]:
    match node:
        case plan.Project():
            return [_project(node.expressions, node.types, engines)]
        case plan.Filter():
            return _filter(node, engines)
        case plan.Expand():
            stages = (stage_for([_projection(p, node.types)], engines) for p in node.projections)
            return [_Part(Several(tuple(stages)), node.types)]
        case plan.Generate():
            return _generate(node, engines)
        case plan.Annotate():
            return [_Part(Marking(node.column, node.partition, node.types), node.types)]
    return [_Part(_whole_node(node, engines), node.types)]


def _whole_node(node: plan.Node, engines: Engines) -> Stage:
    origin = node.origin
    assert origin is not None
    return OnSpark(lambda rows: engines.spark.node(origin, [rows]), node.types)


def _projection(expressions: tuple[Expression, ...], types: Types) -> plan.Project:
    return plan.Project(types=types, child=plan.Node(types=()), expressions=expressions)


def _project(expressions: tuple[Expression, ...], types: Types, engines: Engines) -> _Part:
    plain = [e.index if isinstance(e, Column) else None for e in expressions if isinstance(e, Column) or _is_null(e)]
    if len(plain) == len(expressions):
        columns = tuple(plain)
        return _Part(Columns(columns, types), types, computed=Computed(types, outputs=columns))
    on_spark = OnSpark(lambda rows: engines.spark.project(expressions, rows), types)
    clause, computed = None, None
    with suppress(Untranslatable):
        names = [f"{_escaped(translate(e).sql)} AS c{i}" for i, e in enumerate(expressions)]
        clause = f"SELECT {', '.join([*names, 'w'])} FROM {{}}"
    with suppress(Untranslatable):
        outputs = [_output(e, kind) for e, kind in zip(expressions, types, strict=True)]
        computed = Computed(types, outputs=tuple(outputs))
    return _Part(on_spark, types, clause, computed)


def _output(expression: Expression, kind: pa.DataType) -> Kernel | int | None:
    if isinstance(expression, Column):
        return expression.index
    if _is_null(expression):
        return None
    kernel = compile_kernel(expression)
    if kernel.type != kind:
        raise Untranslatable(f"{kernel.type} where {kind} is expected")
    return kernel


def _filter(node: plan.Filter, engines: Engines) -> list[_Part]:
    parts = conjuncts(node.condition)
    not_null = tuple(p.arguments[0].index for p in parts if _is_null_check(p))  # type: ignore[union-attr]
    rest = [part for part in parts if not _is_null_check(part)]
    found = []
    if not_null:
        found.append(_Part(NotNull(not_null), node.types, computed=Computed(node.types, not_null)))
    if rest:
        on_spark = OnSpark(lambda rows: engines.spark.filter(node.condition, rows), node.types)
        clause, computed = None, None
        with suppress(Untranslatable):
            condition = " AND ".join(f"({_escaped(translate(part).sql)})" for part in rest)
            clause = f"SELECT * FROM {{}} WHERE {condition}"
        with suppress(Untranslatable):
            computed = Computed(node.types, conditions=tuple(map(_condition, rest)))
        found.append(_Part(on_spark, node.types, clause, computed))
    return found


def _condition(expression: Expression) -> Kernel:
    kernel = compile_kernel(expression)
    if kernel.constant is not None:
        raise Untranslatable("a condition that is constant")
    return kernel


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _is_null_check(part: Expression) -> bool:
    return isinstance(part, Call) and part.function == "IsNotNull" and isinstance(part.arguments[0], Column)


def _generate(node: plan.Generate, engines: Engines) -> list[_Part]:
    generator = node.generator
    if generator.function == "ReplicateRows" and all(isinstance(a, Column) for a in generator.arguments):
        count, *columns = (argument.index for argument in generator.arguments)  # type: ignore[union-attr]
        return [_Part(Replicate(count, (*node.kept, *columns)), node.types)]
    if generator.function not in _EXPLODING:
        return [_Part(_whole_node(node, engines), node.types)]
    collection = generator.arguments[0]
    kind = node.collection
    assert kind is not None
    below = node.child.types
    widened = tuple(Column(i, kind) for i, kind in enumerate(below))
    first = _project((*widened, collection), (*below, kind), engines)
    if first.clause is None and first.computed is None:
        return [_Part(_whole_node(node, engines), node.types)]
    explode = Explode(node.kept, _EXPLODING[generator.function], node.outer, generator.function == "Inline", node.types)
    return [first, _Part(explode, node.types)]


def _escaped(sql: str) -> str:
    """A piece of SQL as part of a template."""
    return sql.replace("{", "{{").replace("}", "}}")
