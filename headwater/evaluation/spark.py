"""Evaluation by Spark itself, for whatever has no verified translation: exact by construction, at the price of a Spark query.

Two ways in. `node` runs a node of the optimised plan with its children replaced by given rows. `build` makes a Catalyst
expression again from one of ours — every part of ours knows the Catalyst expression it came from — bound to given rows.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JJavaError

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.delta import one_batch
from headwater.errors import EvaluationFailed
from headwater.evaluation.settings import asked_while_running, set_to, settings_for, settings_of
from headwater.schema import COLLATED, arrow_type, collected, is_collated, loosened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.algebra.origin import Origin
    from headwater.evaluation.settings import Settings

    Jvm = Any

_FEW = 10_000
_FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
}


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """The session as the one that is active in this thread.

    Catalyst asks the active session for its settings, whatever session a plan belongs to; and that is the one in which someone
    made a DataFrame last.
    """
    kind: Any = type(session)
    states = kind._get_j_spark_session_class(session._jvm)
    before, known = states.getActiveSession(), kind._activeSession
    states.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        kind._activeSession = known
        if before.isDefined():
            states.setActiveSession(before.get())
        else:
            states.clearActiveSession()


@dataclass(frozen=True)
class SparkEvaluator:
    """Runs pieces of Catalyst plans on rows that the driver holds; Spark starts with the first of them."""

    spark: Callable[[], SparkSession]

    def node(self, origin: Origin, inputs: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """The rows that the node gives when its children give `inputs`."""
        node = origin.get()
        children = node.children()
        schemas = [self._schema_of(children.apply(i).output()) for i in range(len(inputs))]
        leaves = [self._under(children.apply(i).output(), schemas[i], rows) for i, rows in enumerate(inputs)]
        collated = any(COLLATED in schema.simpleString() for schema in schemas)
        settings = () if origin.reading is None else asked_while_running(origin.reading.settings)
        logical = node.withNewChildren(self.seq(leaves))
        return self.run(logical, sum(rows.num_rows for rows in inputs), settings, collated=collated)

    def project(self, expressions: Sequence[Expression], rows: pa.RecordBatch) -> pa.RecordBatch:
        """One row of the expressions' values for each row."""
        leaf, attributes = self.leaf(rows)
        logical = self.plans.Project(self._aliases(expressions, attributes), leaf)
        return self.run(logical, rows.num_rows, settings_for(expressions))

    def filter(self, condition: Expression, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which the condition is true."""
        leaf, attributes = self.leaf(rows)
        logical = self.plans.Filter(self.build(condition, attributes), leaf)
        return self.run(logical, rows.num_rows, settings_for([condition]))

    def aggregate(self, keys: int, calls: Sequence[Call], rows: pa.RecordBatch) -> pa.RecordBatch:
        """For each group by the first `keys` columns: the key, then the value of every aggregate call."""
        leaf, attributes = self.leaf(rows)
        grouping = [attributes.apply(i) for i in range(keys)]
        outputs = [*grouping, *self._alias_list(calls, attributes)]
        none = getattr(self._jvm.scala, "None$").__getattr__("MODULE$")
        logical = self.plans.Aggregate(self.seq(grouping), self.seq(outputs), leaf, none)
        # Spark has checked the calls already; where it checks listagg(DISTINCT …) once more, no task could read it.
        logical.setAnalyzed()
        collated = any(call.option("collation") for call in calls)
        return self.run(logical, rows.num_rows, settings_for(calls), collated=collated)

    def run(self, logical: Jvm, rows: int, settings: Settings = (), *, collated: bool = False) -> pa.RecordBatch:
        """The answer of a logical plan over so many rows, under settings that differ from Spark's usual ones.

        Where Spark compiles no code, its aggregates of strings with a collation are wrong: it does not copy what it keeps.
        """
        session = self._session(settings, few=rows <= _FEW and not collated)
        with spark_failing(), active(session):
            return one_batch(collected(self._frame(logical, session)))

    def where(self, frame: DataFrame, condition: Expression) -> DataFrame:
        """The rows of a frame for which the condition is true."""
        logical = frame._jdf.queryExecution().analyzed()
        return self._frame(self.plans.Filter(self.build(condition, logical.output()), logical), frame.sparkSession)

    def build(self, expression: Expression, attributes: Jvm) -> Jvm:
        """The Catalyst expression that `expression` stands for, over the given attributes."""
        match expression:
            case Column(index):
                return attributes.apply(index)
            case Literal(origin=origin) if origin is not None:
                return origin.get()
            case Literal(value=value, type=kind):
                return self._constant(value, kind)
            case Call(origin=origin) if origin is not None:
                return self._from_template(origin.get(), expression, attributes)
        return self._own(expression, attributes)

    def _from_template(self, template: Jvm, call: Call, attributes: Jvm) -> Jvm:
        """Spark's expression with other arguments."""
        if not call.arguments:
            return template
        if call.option("collation") is None:
            return template.withNewChildren(self.seq([self.build(part, attributes) for part in call.arguments]))
        stated = template.children()
        parts = [self._typed(part, attributes, stated.apply(i)) for i, part in enumerate(call.arguments)]
        return template.withNewChildren(self.seq(parts))

    def _own(self, call: Call, attributes: Jvm) -> Jvm:
        """An expression that only we have: nothing but its arguments matters, and the collation of a `CollationKey`."""
        package = self._jvm.org.apache.spark.sql.catalyst.expressions
        if call.function == "AggregateExpression":
            (function,) = call.arguments
            assert isinstance(function, Call)
            make = getattr(package.aggregate, function.function)
            return make(*(self.build(part, attributes) for part in function.arguments)).toAggregateExpression()
        parts = [self.build(part, attributes) for part in call.arguments]
        if call.function == "If":
            # The compiler's own condition has a NULL of the other branch's type.
            condition, then, _ = parts
            return package.If(condition, then, package.Literal.create(None, then.dataType()))
        collation = call.option("collation")
        if call.function == "CollationKey" and collation is not None:
            parts = [self._cast(parts[0], self._jvm.org.apache.spark.sql.types.DataType.fromJson(collation))]
        return getattr(package, call.function)(*parts)

    def _constant(self, value: str | None, kind: pa.DataType) -> Jvm:
        """A constant of the compiler's own: NULL, or a number as text."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StringType

        named = self._jvm.org.apache.spark.sql.types.DataType.fromJson
        literal, wanted = self.expressions.Literal.create, named(from_arrow_type(kind).json())
        return literal(None, wanted) if value is None else self._cast(literal(value, named(StringType().json())), wanted)

    def _typed(self, part: Expression, attributes: Jvm, stated: Jvm) -> Jvm:
        """A part of a call that compares strings by a collation: Arrow's types, which given rows have, do not tell it."""
        built = self.build(part, attributes)
        if not isinstance(part, Column):
            return built
        kind = stated.dataType()
        described = json.loads(kind.json())
        is_same = is_collated(json.dumps(described)) and arrow_type(described) == part.type
        return self._cast(built, kind) if is_same else built

    def _cast(self, child: Jvm, kind: Jvm) -> Jvm:
        cast = self._jvm.org.apache.spark.sql.catalyst.expressions.Cast
        none = getattr(self._jvm.scala, "None$").__getattr__("MODULE$")
        mode = getattr(self._jvm.org.apache.spark.sql.catalyst.expressions, "EvalMode$").__getattr__("MODULE$").ANSI()
        return cast(child, kind, none, mode)

    def leaf(self, rows: pa.RecordBatch, schema: StructType | None = None) -> tuple[Jvm, Jvm]:
        """The rows as a logical plan, and its attributes."""
        table = pa.Table.from_batches([rows])
        schema = _schema_of(rows.schema) if schema is None else schema
        with active(self.spark()):
            logical = self.spark().createDataFrame(table, schema)._jdf.queryExecution().analyzed()
        return logical, logical.output()

    def type_of(self, expression: Call) -> pa.DataType:
        """The type that Spark gives an expression."""
        assert expression.origin is not None
        return arrow_type(json.loads(expression.origin.get().dataType().json()))

    def seq(self, items: Sequence[Jvm]) -> Jvm:
        return self._jvm.PythonUtils.toSeq(list(items))

    def array(self, items: Sequence[Jvm]) -> Jvm:
        """Items as an array of objects."""
        found = self._gateway.new_array(self._jvm.java.lang.Object, len(items))
        for i, item in enumerate(items):
            found[i] = item
        return found

    def is_a(self, item: Jvm, name: str) -> bool:
        """Whether a thing is of a class of the JVM."""
        return isinstance(item, JavaObject) and is_instance_of(self._gateway, item, name)

    def _frame(self, logical: Jvm, session: SparkSession) -> DataFrame:
        from pyspark.sql import DataFrame

        of_rows = getattr(self._jvm.org.apache.spark.sql.classic.Dataset, "ofRows")  # noqa: B009  (py4j)
        return DataFrame(of_rows(session._jsparkSession, logical), session)

    def _session(self, settings: Settings, *, few: bool) -> SparkSession:
        """A session like the user's with these settings; for few rows one that compiles no code and has one task."""
        from pyspark.sql import SparkSession

        spark = self.spark()
        if not few and asked_while_running(settings_of(spark)) == settings:
            return spark
        if (settings, few) not in self._sessions:
            session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
            set_to(session, settings)
            for name, value in _FOR_FEW_ROWS.items() if few else ():
                session.conf.set(name, value)
            self._sessions[settings, few] = session
        return self._sessions[settings, few]

    @cached_property
    def _sessions(self) -> dict[tuple[Settings, bool], SparkSession]:
        return {}

    @cached_property
    def _jvm(self) -> Jvm:
        return self.spark()._jvm

    @cached_property
    def _gateway(self) -> Jvm:
        return self.spark().sparkContext._gateway

    @cached_property
    def expressions(self) -> Jvm:
        return self._jvm.org.apache.spark.sql.catalyst.expressions

    @cached_property
    def plans(self) -> Jvm:
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical

    def _under(self, output: Jvm, schema: StructType, rows: pa.RecordBatch) -> Jvm:
        """The rows as a plan whose attributes have the ids of `output`."""
        return self.renamed(self.leaf(rows, schema)[0], output)

    def _schema_of(self, output: Jvm) -> StructType:
        return _schema(self._jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes(output).json())

    def renamed(self, leaf: Jvm, output: Jvm) -> Jvm:
        """A plan with its columns under the names and ids of `output`."""
        attributes = leaf.output()
        aliases = [
            self._alias(attributes.apply(i), output.apply(i).name(), output.apply(i).exprId()) for i in range(output.size())
        ]
        return self.plans.Project(self.seq(aliases), leaf)

    def _aliases(self, expressions: Sequence[Expression], attributes: Jvm) -> Jvm:
        return self.seq(self._alias_list(expressions, attributes))

    def _alias_list(self, expressions: Sequence[Expression], attributes: Jvm) -> list[Jvm]:
        return [self.alias(self.build(part, attributes), f"c{i}") for i, part in enumerate(expressions)]

    def alias(self, child: Jvm, name: str) -> Jvm:
        """An expression under a name and an id of its own."""
        return self._alias(child, name, self.expressions.NamedExpression.newExprId())

    def _alias(self, child: Jvm, name: str, identifier: Jvm) -> Jvm:
        none = getattr(self._jvm.scala, "None$").__getattr__("MODULE$")
        return self.expressions.Alias(child, name, identifier, self.seq([]), none, self.seq([]))


@contextmanager
def spark_failing() -> Iterator[None]:
    """Where Spark may fail on the data, in a job, or in the driver itself: there it evaluates scalar subqueries."""
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise EvaluationFailed(failure(error)) from error


def failure(error: BaseException) -> str:
    """What Spark says went wrong, without the stack."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        return str(cause.getMessage() or cause.toString()).split("\n\tat ")[0].strip()
    message = getattr(error, "getMessage", lambda: None)() or str(error)
    return str(message).split("\n\nJVM stacktrace")[0].split("\n\tat ")[0].strip()


def _schema_of(columns: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    return loosened(StructType([StructField(column.name, from_arrow_type(column.type)) for column in columns]))


def _schema(described: str) -> StructType:
    from pyspark.sql.types import StructField, StructType

    schema = StructType.fromJson(json.loads(described))
    return loosened(StructType([StructField(f"c{i}", field.dataType) for i, field in enumerate(schema.fields)]))
