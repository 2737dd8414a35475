"""The front end: Spark analyses and optimises a query over empty stand-ins for the tables, and we read what it made of it.

The stand-ins are opaque to Spark (`LogicalRDD`), so that it cannot fold them away, and each column says in its metadata which
table it belongs to. All this happens in a clone of the user's session: nothing of theirs is changed, their functions are known.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from headwater.algebra.origin import Handle, Reading
from headwater.delta import one_batch, without_columns
from headwater.errors import HeadwaterError, InvalidQuery, NonDeterministic, UnknownName
from headwater.evaluation.settings import TIME_ZONE, set_to, settings_of
from headwater.evaluation.spark import SparkEvaluator, active
from headwater.frontend.expressions import USER_FUNCTIONS, Unreadable
from headwater.frontend.plans import SESSION, PlanReader
from headwater.frontend.sort_keys import with_sort_keys
from headwater.frontend.statements import parse_query
from headwater.lengths import DECLARED
from headwater.schema import collected, loosened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from headwater.algebra.plan import Node, Types
    from headwater.evaluation.settings import Settings
    from headwater.operators.ordering import Order

_TABLE = "headwater.table"
# What a column may be beside its type: a time window, a session window, a text of a declared length.
_KINDS = ("spark.timeWindow", SESSION, DECLARED)
# Rules that serve one run over all data, and stand in the way of keeping an answer up to date.
_EXCLUDED_RULES = (
    "LimitPushDown",
    "LimitPushDownThroughWindow",
    "InferWindowGroupLimit",
    "DecimalAggregates",
    "MergeScalarSubqueries",
)
_CONFIGURATION = {
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _EXCLUDED_RULES
    ),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.runtimeFilter.semiJoinReduction.enabled": "false",
    "spark.sql.maxToStringFields": "100000",
}
# What Catalyst takes for deterministic, because it is the same throughout one run: times and samples.
_NOT_FUNCTIONS_OF_THE_TABLES = (
    *("CurrentDate", "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentTime", "CurrentBatchTimestamp"),
    *("CurDateExpressionBuilder", "RandStr", "Uniform", "AesEncrypt", "Sample"),
)
_CLASSES = re.compile(rf'"class":"[\w.$]*\.({"|".join(_NOT_FUNCTIONS_OF_THE_TABLES)})"')
# Catalyst's JSON repeats what is within a CASE: each level doubles it, and some dozens of levels take all memory.
_DEEPEST = 10
_CASES = re.compile(r"\bCASE WHEN\b|\bEND\b(?!#)")
_MISSING = "TABLE_OR_VIEW_NOT_FOUND"
_UNKNOWN = (_MISSING, "UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE", "UNRESOLVED_FIELD", "UNRESOLVED_MAP_KEY")


@dataclass(frozen=True)
class Query:
    """What Spark made of a query: the columns of its answer, and its plan in our algebra or the reason why there is none.

    `analysed` is Spark's own plan, there while the session lives in which the query was read. Where Spark computes the answer,
    `keys` are the types of the columns that come after its own, and `order` is what it is sorted by.
    """

    reading: Reading
    schema: StructType
    sources: frozenset[str]
    root: Node | None
    unreadable: str | None = None
    analysed: Any = field(default=None, compare=False, repr=False, metadata={"stored": False})
    keys: Types = field(default=(), metadata={"later": True})
    order: tuple[Order, ...] = field(default=(), metadata={"later": True})

    @property
    def text(self) -> str | None:
        """The query as SQL; None if it was a DataFrame."""
        return self.reading.text


class Analyser:
    """Turns SQL text and DataFrames into queries, with tables and views known by their schemas."""

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._start = spark
        self._cloned: tuple[Any, SparkSession] | None = None
        self._earlier: dict[tuple[str, Settings], SparkSession] = {}
        # Held while temporary views are named and a query over them is resolved: all of them live in one clone.
        self.naming = RLock()
        # PySpark writes each refused query, with the JVM's stack, to standard error, beside raising it.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

    @property
    def _spark(self) -> SparkSession:
        return self._start()

    def sql(
        self, text: str, relations: Mapping[str, StructType], view: str | None = None, then: Reading | None = None
    ) -> Query:
        """Analyses SQL over the relations, given by name, for a view; under the settings of now, or of an earlier reading."""
        text = parse_query(text)
        moment = then or self.moment(view=view)
        try:
            with self.naming, active(self._spark):
                found, read = self._resolved(text, relations, moment)
                named = tuple((name, relations[name]) for name in read)
                return self._read(replace(moment, text=text, relations=named, view=view), found)
        except (PySparkException, Py4JJavaError) as error:
            raise _qualified(error, relations) or translated(error) from error

    def read_by(self, text: str, relations: Mapping[str, StructType]) -> frozenset[str]:
        """Those of the relations that the query reads."""
        try:
            with self.naming, active(self._spark):
                found, _ = self._resolved(text, relations, self.moment())
            return frozenset(_leaves(Handle(found._jdf.queryExecution().analyzed()))[0].values())
        except (PySparkException, Py4JJavaError) as error:
            raise _qualified(error, relations) or translated(error) from error

    def _resolved(self, text: str, relations: Mapping[str, StructType], moment: Reading) -> tuple[DataFrame, list[str]]:
        """The query over stand-ins, and the relations that have one.

        These are the ones that the parser shows; all of them, where that misses one: it does not look into `|> SET`, nor into
        the bodies of SQL functions.
        """
        shown = self.mentioned(text, relations)
        try:
            return self._over(text, {name: relations[name] for name in shown}, moment), shown
        except PySparkException as error:
            if not _is_missing(error) or len(shown) == len(relations):
                raise
            return self._over(text, relations, moment), list(relations)

    def _over(self, text: str, relations: Mapping[str, StructType], moment: Reading) -> DataFrame:
        session = self.session_of(moment)
        for name, schema in relations.items():
            self.stand_in(session, name, schema).createOrReplaceTempView(quote(name))
        return session.sql(text)

    def again(self, reading: Reading) -> Query:
        """Analyses a query that was read before."""
        assert reading.text is not None
        return self.sql(reading.text, dict(reading.relations), reading.view, reading)

    def moment(self, text: str | None = None, view: str | None = None) -> Reading:
        """The time zone and the settings of the user's session now, for a query that is about to be read."""
        return Reading(text, (), self.time_zone, view, settings_of(self._spark))

    def session_of(self, moment: Reading) -> SparkSession:
        """A session like the user's, without tables, under the time zone and the settings of a moment."""
        session = self.clone()
        if (moment.time_zone, moment.settings) == (self.time_zone, settings_of(self._spark)):
            return session
        key = moment.time_zone, moment.settings
        if key not in self._earlier:
            made = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
            set_to(made, moment.settings)
            made.conf.set(TIME_ZONE, moment.time_zone)
            self._earlier[key] = made
        self._earlier[key]._jsparkSession.sessionState().catalog().clearTempTables()
        return self._earlier[key]

    @property
    def time_zone(self) -> str:
        """The one of the user's session now."""
        return self._spark.conf.get(TIME_ZONE) or "UTC"

    def mentioned(self, text: str, names: Iterable[str]) -> list[str]:
        """Those of the names that the query may refer to as relations."""
        parsed = self.parsed(text).lower()
        return [name for name in names if f"[{name.lower()}]" in parsed]

    def parsed(self, text: str) -> str:
        """What Spark's parser makes of a query, before any name in it is looked up."""
        try:
            with active(self._spark):
                return _shown(self._spark._jsparkSession.sessionState().sqlParser().parsePlan(text))
        except PySparkException as error:
            raise translated(error) from error

    def setting(self, name: str) -> str | None:
        """A setting of the user's session; None if they did not set it."""
        configuration = self._spark._jsparkSession.sessionState().conf()
        return self._spark.conf.get(name) if configuration.contains(name) else None

    def frame(self, frame: DataFrame, view: str | None = None) -> Query:
        """Analyses a DataFrame that was built on stand-ins, for a view."""
        try:
            with self.naming, active(self._spark):
                session = self.clone()
                return self._read(self.moment(view=view), self.dataset(session, frame._jdf.queryExecution().analyzed()))
        except (PySparkException, Py4JJavaError) as error:
            raise translated(error) from error

    def stand_in(self, session: SparkSession, name: str, schema: StructType, rows: DataFrame | None = None) -> DataFrame:
        """A relation that Spark takes for `name`: empty, or with the given rows."""
        marked = StructType([StructField(f.name, f.dataType, True, _marks(name, f)) for f in schema.fields])  # noqa: FBT003
        jvm: Any = session._jvm
        described = jvm.org.apache.spark.sql.types.DataType.fromJson(marked.json())
        # Relations over one RDD are one relation to Catalyst, so each has its own.
        contents = self._nothing.toJavaRDD().coalesce(1).rdd() if rows is None else rows._jdf.queryExecution().toRdd()
        return DataFrame(session._jsparkSession.internalCreateDataFrame(contents, described, False), session)  # noqa: FBT003

    @cached_property
    def _nothing(self) -> Any:  # noqa: ANN401  (a JVM object)
        return self._spark.createDataFrame([], "x INT")._jdf.queryExecution().toRdd()

    def clone(self) -> SparkSession:
        """A session like the user's, without tables: that of last time, unless their functions or settings are others now."""
        signature = self.signature()
        if self._cloned is None or self._cloned[0] != signature:
            session = SparkSession(self._spark.sparkContext, self._spark._jsparkSession.cloneSession())
            for name, value in _CONFIGURATION.items():
                session.conf.set(name, value)
            self._cloned = (signature, session)
            self._earlier = {}
        self._cloned[1]._jsparkSession.sessionState().catalog().clearTempTables()
        return self._cloned[1]

    def signature(self) -> tuple[Any, ...]:
        """What tells two states of the user's session apart: the functions they registered, and its settings."""
        state = self._spark._jsparkSession.sessionState()
        catalog = state.catalog()
        listed = catalog.listTemporaryFunctions()
        names = [listed.apply(i).funcName() for i in range(listed.size())]
        kinds = (catalog.lookupBuiltinOrTempFunction, catalog.lookupBuiltinOrTempTableFunction)
        functions = sorted((name, *(find(name).hashCode() for find in kinds)) for name in names)
        return tuple(functions), state.conf().getAllConfs().hashCode()

    def dataset(self, session: SparkSession, logical: Any) -> DataFrame:  # noqa: ANN401  (a JVM object)
        """A logical plan as a DataFrame of the session."""
        jvm: Any = session._jvm
        of_rows = getattr(jvm.org.apache.spark.sql.classic.Dataset, "ofRows")  # noqa: B009  (py4j)
        return DataFrame(of_rows(session._jsparkSession, logical), session)

    def with_rows(self, logical: Any, frames: Mapping[str, DataFrame]) -> Any:  # noqa: ANN401  (JVM objects)
        """The plan with every stand-in replaced by the rows it stands for."""
        children = logical.children()
        if children.size():
            changed = [self.with_rows(children.apply(i), frames) for i in range(children.size())]
            return logical.withNewChildren(SparkEvaluator(self._start).seq(changed))
        name = _table_of(logical)
        if name is None:
            return logical
        return SparkEvaluator(self._start).renamed(frames[name]._jdf.queryExecution().analyzed(), logical.output())

    def _constant(self, origin: Handle) -> pa.RecordBatch:
        """The rows of a leaf that never changes."""
        leaf = origin.get()
        if leaf.nodeName() == "OneRowRelation":
            return without_columns(1)
        rows = self.dataset(self._spark, leaf)
        # Of rows of which no column is read, Arrow would forget how many there are.
        return one_batch(collected(rows)) if rows.columns else without_columns(rows.count())

    def _read(self, reading: Reading, frame: DataFrame) -> Query:
        execution = frame._jdf.queryExecution()
        analysed = execution.analyzed()
        _require_deterministic(analysed)
        optimised = Handle(execution.optimizedPlan(), (), reading)
        sources, subplans = _leaves(optimised)
        reader = PlanReader(sources, self._constant, subplans)
        reads = frozenset(_leaves(Handle(analysed))[0].values())
        schema = loosened(frame.schema)
        ordered = with_sort_keys(SparkEvaluator(self._start), analysed)
        root, unreadable = None, None
        try:
            _require_rows_alone(optimised.root)
            _require_shallow(optimised.root)
            root = reader.read(json.loads(optimised.root.toJSON()), optimised).node
        except Unreadable as reason:
            unreadable = str(reason)
        return Query(reading, schema, reads, root, unreadable, analysed, ordered.keys, ordered.order)

    def with_sort_keys(self, session: SparkSession, frame: DataFrame) -> DataFrame:
        """The answer of a query, with the columns by which it is sorted."""
        analysed = frame._jdf.queryExecution().analyzed()
        return self.dataset(session, with_sort_keys(SparkEvaluator(self._start), analysed).logical)


def _marks(table: str, column: StructField) -> dict[str, Any]:
    """What Spark is told of a column beside its type: its table, and what kind of column it is."""
    return {key: value for key, value in column.metadata.items() if key in _KINDS} | {_TABLE: table}


def quote(name: str) -> str:
    """An identifier as Spark's parser takes it literally."""
    return "`" + name.replace("`", "``") + "`"


def translated(error: PySparkException | Py4JJavaError) -> HeadwaterError:
    """Spark's complaint about a query, or its failure to plan it, as ours."""
    if isinstance(error, Py4JJavaError) and "StackOverflowError" in str(error.java_exception.toString()):
        return InvalidQuery(
            "the query is too deep for Spark: expressions or queries within each other; make some of them views"
        )
    if isinstance(error, Py4JJavaError):
        return InvalidQuery(f"Spark itself fails to plan this query, and says {error.java_exception.toString()}")
    condition = error.getCondition() or ""
    message = (error.getMessage() or str(error)).split("\n\nJVM stacktrace")[0].strip()
    if condition.startswith(_UNKNOWN):
        return UnknownName(message)
    return InvalidQuery(message)


def _is_missing(error: PySparkException | Py4JJavaError) -> bool:
    return isinstance(error, PySparkException) and (error.getCondition() or "").startswith(_MISSING)


def _qualified(error: PySparkException | Py4JJavaError, relations: Iterable[str]) -> HeadwaterError | None:
    """Names of tables and views have no schema and no catalog: says so, if that is why one of them was not found."""
    if not _is_missing(error):
        return None
    stated = str((error.getMessageParameters() or {}).get("relationName"))
    meant = next((name for name in relations if stated.lower().endswith(f".{quote(name.lower())}")), None)
    if meant is None:
        return None
    return UnknownName(f"there is no {stated}; the name of {meant!r} has no schema and no catalog: write {quote(meant)}")


def _require_deterministic(analysed: Any) -> None:  # noqa: ANN401  (a JVM object)
    fickle = _fickle(analysed) or _set_by_run(analysed)
    if fickle in USER_FUNCTIONS:
        raise NonDeterministic("the query calls a function that is marked non-deterministic; no view over it can be kept exact")
    if fickle:
        raise NonDeterministic(
            f"{fickle} gives another answer each time, so no view over it can be kept exact; "
            "put its value into a column of a table"
        )


def _require_rows_alone(optimised: Any) -> None:  # noqa: ANN401  (a JVM object)
    """The optimiser may name rows by what only one run knows, such as a `uuid`: the next run would name them otherwise."""
    fickle = _fickle(optimised)
    if fickle:
        raise Unreadable(f"a part that Spark plans with {fickle}, which gives a row another value in every run")


def _fickle(logical: Any) -> str | None:  # noqa: ANN401  (a JVM object)
    """The name of an expression anywhere in the plan whose value is not a function of its row; None if there is none.

    Catalyst says of every plan and every expression whether it is deterministic, so only the way to one that is not is walked.
    """
    if logical.deterministic():
        return None
    subquery = _first_fickle(logical.subqueriesAll())
    if subquery is not None:
        return _fickle(subquery)
    part = logical
    for kind in ("children", "expressions", "children"):
        while (inner := _first_fickle(getattr(part, kind)())) is not None:
            part = inner
            if kind == "expressions":
                break
    return str(part.nodeName())


def _first_fickle(parts: Any) -> Any:  # noqa: ANN401  (JVM objects)
    return next((part for part in _items(parts) if not part.deterministic()), None)


def _is_deep(logical: Any) -> bool:  # noqa: ANN401  (a JVM object)
    """Whether the plan has conditions within each other so deep that it has no readable JSON."""
    depth = deepest = 0
    for word in _CASES.findall(_shown(logical)):
        depth = max(depth - 1, 0) if word == "END" else depth + 1
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


def _set_by_run(logical: Any) -> str | None:  # noqa: ANN401  (a JVM object)
    """What in the plan is the same throughout a run, and another in the next: for deep plans, looked for step by step."""
    if not _is_deep(logical):
        match = _CLASSES.search(logical.toJSON())
        return match[1] if match else None
    plans = [logical, *_items(logical.subqueriesAll())]
    expressions: list[Any] = []
    for node in plans:
        plans += _items(node.children())
        expressions += _items(node.expressions())
    for expression in expressions:
        expressions += _items(expression.children())
    names = (node.nodeName() for node in (*plans, *expressions))
    return next((name for name in names if name in _NOT_FUNCTIONS_OF_THE_TABLES), None)


def _shown(logical: Any) -> str:  # noqa: ANN401  (a JVM object)
    """A plan as text, with all its columns."""
    return str(logical.treeString(True, False, 1_000_000, False, False))  # noqa: FBT003  (py4j)


def _items(sequence: Any) -> list[Any]:  # noqa: ANN401  (JVM objects)
    return [sequence.apply(i) for i in range(sequence.size())]


def _require_shallow(optimised: Any) -> None:  # noqa: ANN401  (a JVM object)
    if _is_deep(optimised):
        raise Unreadable(f"conditions (CASE) within each other, more than {_DEEPEST} deep")


def _leaves(whole: Handle) -> tuple[dict[int, str], dict[int, Handle]]:
    """Which column ids belong to which table, in the plan and its subqueries; and the subqueries by the id of their column."""
    sources = {}
    subplans = {}
    plans = [whole.root, *_items(whole.root.subqueriesAll())]
    for plan in plans:
        leaves = plan.collectLeaves()
        for i in range(leaves.size()):
            name = _table_of(leaves.apply(i))
            if name is not None:
                sources[int(leaves.apply(i).output().apply(0).exprId().id())] = name
    for i, plan in enumerate(plans[1:]):
        # That of LATERAL (SELECT *) gives no columns.
        if plan.output().size():
            subplans[int(plan.output().apply(0).exprId().id())] = whole.then("subqueriesAll", i)
    return sources, subplans


def _table_of(leaf: Any) -> str | None:  # noqa: ANN401  (a JVM object)
    """The table or view that a leaf stands in for."""
    output = leaf.output()
    if not output.size():
        return None
    found: str | None = json.loads(output.apply(0).metadata().json()).get(_TABLE)
    return found
