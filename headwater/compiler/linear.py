"""Linear nodes to stages: which engine evaluates what, and what runs as one statement.

Catalyst gives a chain such as Project(Filter(Project(…))). Nodes whose expressions all have verified translations become one
DuckDB statement; column picking and NULL filters need no engine at all; the rest goes to Spark, node by node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.evaluation.duckdb_sql import Untranslatable, translate
from headwater.evaluation.stages import Columns, Explode, NotNull, OnSpark, Replicate, Sequence, Several, Sql, Stage

if TYPE_CHECKING:
    import duckdb

    from headwater.algebra.plan import Types
    from headwater.evaluation.spark import SparkEvaluator

_EXPLODING = {"Explode": False, "PosExplode": True, "Inline": False}


@dataclass(frozen=True)
class Engines:
    """What evaluates expressions."""

    duckdb: duckdb.DuckDBPyConnection
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
class _Clause:
    """A stage that is part of a statement: `{}` in the template stands for what it reads."""

    template: str
    types: Types
    on_spark: Stage


def is_linear(node: plan.Node) -> bool:
    """Whether the node treats each row by itself."""
    by_row = isinstance(node, plan.Opaque) and node.by_row
    return by_row or isinstance(node, plan.Project | plan.Filter | plan.Generate | plan.Expand)


def stage_for(chain: list[plan.Node], engines: Engines) -> Stage:
    """One stage for the nodes, the first of which is the lowest."""
    parts = [part for node in chain for part in _parts(node, engines)]
    stages: list[Stage] = []
    clauses: list[_Clause] = []
    for part in [*parts, None]:
        if isinstance(part, _Clause):
            clauses.append(part)
            continue
        if clauses:
            stages.append(_statement(clauses, engines))
            clauses = []
        if part is not None:
            stages.append(part)
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


def _statement(clauses: list[_Clause], engines: Engines) -> Stage:
    statement = "delta"
    for clause in clauses:
        statement = clause.template.format(statement if statement == "delta" else f"({statement})")
    otherwise = Sequence(tuple(clause.on_spark for clause in clauses))
    return Sql(engines.duckdb, statement, clauses[-1].types, otherwise)


def _parts(node: plan.Node, engines: Engines) -> list[Stage | _Clause]:
    match node:
        case plan.Project():
            return [_project(node.expressions, node.types, engines)]
        case plan.Filter():
            return _filter(node, engines)
        case plan.Expand():
            stages = (stage_for([_projection(p, node.types)], engines) for p in node.projections)
            return [Several(tuple(stages))]
        case plan.Generate():
            return _generate(node, engines)
    return [_whole_node(node, engines)]


def _whole_node(node: plan.Node, engines: Engines) -> Stage:
    origin = node.origin
    assert origin is not None
    return OnSpark(lambda rows: engines.spark.node(origin, [rows]), node.types)


def _projection(expressions: tuple[Expression, ...], types: Types) -> plan.Project:
    return plan.Project(types=types, child=plan.Node(types=()), expressions=expressions)


def _project(expressions: tuple[Expression, ...], types: Types, engines: Engines) -> Stage | _Clause:
    if all(isinstance(e, Column) or (isinstance(e, Literal) and e.value is None) for e in expressions):
        return Columns(tuple(e.index if isinstance(e, Column) else None for e in expressions), types)
    on_spark = OnSpark(lambda rows: engines.spark.project(expressions, rows), types)
    try:
        columns = [f"{_escaped(translate(e).sql)} AS c{i}" for i, e in enumerate(expressions)]
    except Untranslatable:
        return on_spark
    return _Clause(f"SELECT {', '.join([*columns, 'w'])} FROM {{}}", types, on_spark)


def _filter(node: plan.Filter, engines: Engines) -> list[Stage | _Clause]:
    parts = conjuncts(node.condition)
    not_null = [p.arguments[0].index for p in parts if _is_null_check(p)]  # type: ignore[union-attr]
    rest = [part for part in parts if not _is_null_check(part)]
    stages: list[Stage | _Clause] = [NotNull(tuple(not_null))] if not_null else []
    if rest:
        on_spark = OnSpark(lambda rows: engines.spark.filter(node.condition, rows), node.types)
        try:
            condition = " AND ".join(f"({_escaped(translate(part).sql)})" for part in rest)
        except Untranslatable:
            return [*stages, on_spark]
        stages.append(_Clause(f"SELECT * FROM {{}} WHERE {condition}", node.types, on_spark))
    return stages


def _is_null_check(part: Expression) -> bool:
    return isinstance(part, Call) and part.function == "IsNotNull" and isinstance(part.arguments[0], Column)


def _generate(node: plan.Generate, engines: Engines) -> list[Stage | _Clause]:
    generator = node.generator
    if generator.function == "ReplicateRows" and all(isinstance(a, Column) for a in generator.arguments):
        count, *columns = (argument.index for argument in generator.arguments)  # type: ignore[union-attr]
        return [Replicate(count, (*node.kept, *columns))]
    if generator.function not in _EXPLODING:
        return [_whole_node(node, engines)]
    collection = generator.arguments[0]
    kind = engines.type_of(collection)
    below = node.child.types
    widened = tuple(Column(i, kind) for i, kind in enumerate(below))
    first = _project((*widened, collection), (*below, kind), engines)
    if isinstance(first, OnSpark):
        return [_whole_node(node, engines)]
    explode = Explode(node.kept, _EXPLODING[generator.function], node.outer, generator.function == "Inline", node.types)
    return [first, explode]


def _escaped(sql: str) -> str:
    """A piece of SQL as part of a template."""
    return sql.replace("{", "{{").replace("}", "}}")
