"""Whatever functions and operators the installed Spark has: each is exact, refused or recomputed, and none is new to us.

A version of Spark with a new aggregate, window or generator function meets the test of its documentation's own examples; one
with a new logical operator, or a new field of an operator that we read, fails until somebody has looked at it.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from oracle import bag_difference, collected, rows_of
from pyspark.errors import PySparkException
from reflected import LOGICAL, Function, Inputs, fields_of, functions, operators, taken_apart

import headwater as hw
from headwater.compiler.aggregates import EXTREMES
from headwater.evaluation.windows import AGGREGATES, OFFSETS, RANKING
from headwater.frontend import plans
from headwater.operators.accumulators import INVERTIBLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1800)

_ARRAYS = "FROM VALUES (1, array(1, NULL, 3)), (2, NULL), (3, array()), (4, array(7)) AS tab(id, a)"
_MAPS = "FROM VALUES (1, map('a', 1, 'b', NULL)), (2, NULL), (3, map('c', 3)) AS tab(id, m)"
_STRUCTS = (
    "FROM VALUES (1, array(named_struct('p', 1, 'q', 'x'), named_struct('p', 2, 'q', NULL))), (2, NULL), "
    "(3, array(named_struct('p', 3, 'q', 'y'))) AS tab(id, r)"
)
_TEXTS = """FROM VALUES (1, '{"a": 1, "b": [2]}'), (2, NULL), (3, '[1, 2]'), (4, '{"a": "x"}') AS tab(id, s)"""
# A VARIANT that is NULL cannot be handed over by Spark; the answers over these have none.
_DOCUMENTS = """FROM VALUES (1, '{"a": 1, "b": [2]}'), (3, '[1, 2]'), (4, '{"a": "x"}') AS tab(id, s)"""
# For functions whose documentation has no query over rows.
OWN = {
    "explode": f"SELECT id, explode(a) {_ARRAYS}",
    "explode_outer": f"SELECT id, explode_outer(m) {_MAPS}",
    "posexplode": f"SELECT id, posexplode(m) {_MAPS}",
    "posexplode_outer": f"SELECT id, posexplode_outer(a) {_ARRAYS}",
    "inline": f"SELECT id, inline(r) {_STRUCTS}",
    "inline_outer": f"SELECT id, inline_outer(r) {_STRUCTS}",
    "stack": f"SELECT id, stack(2, id, a, id + 1, array(id)) {_ARRAYS}",
    "json_tuple": f"SELECT id, json_tuple(s, 'a', 'b') {_TEXTS}",
    "variant_explode": f"SELECT id, u.key, to_json(u.value) AS v {_DOCUMENTS}, LATERAL variant_explode(parse_json(s)) AS u",
    "variant_explode_outer": f"SELECT id, u.pos, u.key {_DOCUMENTS}, LATERAL variant_explode_outer(parse_json(s)) AS u",
    "range": "SELECT k, u.id AS n FROM VALUES (1), (2), (3) AS tab(k), range(2) AS u",
}
# They read no rows of tables, or only of things that are no tables.
NOT_OVER_ROWS = {
    "collations": "lists what Spark has",
    "measure": "is for metric views",
    "python_worker_logs": "reads logs",
    "sql_keywords": "lists what Spark has",
}
# Their answers depend on the order in which Spark meets rows, so they are compared over copies of one row.
BY_ORDER = {
    *("any_value", "first", "first_value", "last", "last_value", "listagg", "string_agg", "mode", "approx_top_k"),
    *("approx_top_k_accumulate", "approx_top_k_combine", "count_min_sketch", "histogram_numeric"),
}
# Their values are lists in any order.
UNORDERED = {"collect_list", "array_agg", "collect_set", "collect_union"}
# What is refused, and how; an entry that is not needed any more fails.
REFUSED: dict[str, str] = {}

# What the operators are made of that we read: each of these is looked at, or makes no difference to rows.
FIELDS = {
    "Aggregate": "groupingExpressions aggregateExpressions child hint",
    "Expand": "projections output child",
    "Filter": "condition child",
    "Generate": "generator unrequiredChildIndex outer qualifier generatorOutput child",
    "GlobalLimit": "limitExpr child",
    "Join": "left right joinType condition hint",
    "LocalLimit": "limitExpr child",
    "LocalRelation": "output data isStreaming stream",
    "Offset": "offsetExpr child",
    "Project": "projectList child",
    "Range": "start end step numSlices output isStreaming",
    "RebalancePartitions": "partitionExpressions child optNumPartitions optAdvisoryPartitionSize",
    "Repartition": "numPartitions shuffle child",
    "RepartitionByExpression": "partitionExpressions child optNumPartitions optAdvisoryPartitionSize",
    "ResolvedHint": "child hints",
    "Sort": "order global child hint",
    "SubqueryAlias": "identifier child",
    "Union": "children byName allowMissingCol",
    "Window": "windowExpressions partitionSpec orderSpec child hint",
}
# All other operators that are no statements, and why none of them can be taken for something else.
OTHERS = {
    "read as what they are: constants, and tables": "OneRowRelation LogicalRDD",
    "Spark evaluates them row by row": "BatchEvalPython ArrowEvalPython",
    "Spark evaluates them over all rows, as nodes that nobody reads": """
        AppendColumns AppendColumnsWithObject ArrowEvalPythonUDTF AsOfJoin AttachDistributedSequence BatchEvalPythonUDTF BinBy
        CoGroup CollectMetrics DeserializeToObject FlatMapCoGroupsInArrow FlatMapCoGroupsInPandas FlatMapGroupsInArrow
        FlatMapGroupsInPandas FlatMapGroupsInR FlatMapGroupsInRWithArrow MapElements MapGroups MapInArrow MapInPandas
        MapPartitions MapPartitionsExternalUDF MapPartitionsInR MapPartitionsInRWithArrow MultiResult ScriptTransformation
        SerializeFromObject Tail TypedFilter WindowGroupLimit Zip""",
    "refused, as they give other rows each time": "Sample",
    "refused, as they read what is not a table": """
        ExternalRDD InMemoryRelation LogicalRelation DataSourceV2Relation DataSourceV2ScanRelation ScanBuilderHolder
        LogicalQueryStage PythonWorkerLogs CommandResult UnionLoop UnionLoopRef EmptyRelation V2ChangelogReference
        V2TableReference RelationChanges""",
    "gone when a query is analysed": """
        GeneralParameterizedQuery NameParameterizedQuery PosParameterizedQuery PlanWithUnresolvedIdentifier RelationTimeTravel
        ResolvedInlineTable SQLFunctionNode SQLTableFunction DataFrameDropColumns Transpose UnresolvedBinBy UnresolvedDataSource
        UnresolvedDeduplicate UnresolvedEventTimeWatermark UnresolvedExecuteImmediate UnresolvedFunctionName UnresolvedHaving
        UnresolvedHint UnresolvedIdentifier UnresolvedInlineTable UnresolvedInsertTarget UnresolvedNamespace
        UnresolvedProcedure UnresolvedQualify UnresolvedRelation UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
        UnresolvedTable UnresolvedTableOrView UnresolvedTableValuedFunction UnresolvedTranspose UnresolvedView UnresolvedWith
        UnresolvedCteRelationRef WithWindowDefinition Pivot Unpivot""",
    "gone when a query is optimised": """
        CTERelationDef CTERelationRef Deduplicate Distinct DomainJoin Except Intersect LateralJoin LimitAll NearestByJoin
        ReturnAnswer Subquery View WithCTE""",
    "of statements, which are not queries": """
        ResolvedIdentifier ResolvedNamespace ResolvedNonPersistentFunc ResolvedPersistentFunc ResolvedPersistentView
        ResolvedProcedure ResolvedTable ResolvedTempView AutoCdcInto Call CreateTable InsertIntoDir MergeRows WriteFiles
        WriteToDataSourceV2 ErrorCondition ExceptionHandler ForStatement IfElseStatement IterateStatement LeaveStatement
        LoopStatement RepeatStatement SearchedCaseStatement SimpleCaseStatement SingleStatement WhileStatement""",
    "of streams, which views do not read": """
        NamedStreamingRelation DeduplicateWithinWatermark EventTimeWatermark FlatMapGroupsInPandasWithState
        FlatMapGroupsWithState SequentialStreamingUnion TransformWithState TransformWithStateInPySpark
        UpdateEventTimeWatermarkColumn StreamingDataSourceV2Relation StreamingDataSourceV2ScanRelation
        WriteToContinuousDataSource OffsetHolder StreamingExecutionRelation StreamingRelation MemoryPlan
        WriteToMicroBatchDataSource WriteToMicroBatchDataSourceV1""",
}


@cache
def in_one_partition(spark: SparkSession) -> SparkSession:
    """A session for Spark's answers: some functions, such as `histogram_numeric`, give others when rows are spread."""
    made = spark.newSession()
    made.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
    return made


class Tried:
    """An example as a live view, over tables that change."""

    def __init__(self, session: Any, function: Function, inputs: Inputs, name: str) -> None:
        self._session = session
        self._function = function
        self._inputs = inputs
        self.code: str | None = None
        rows = [list(kept[:1] * 3 if function.name in BY_ORDER else kept) for _, _, kept in inputs.tables]
        self._sql = rows
        spark = session.spark
        try:
            self._rows = [
                collected(spark.sql(f"SELECT * FROM VALUES {', '.join(sql)} AS tab({columns})"))
                for (_, columns, _), sql in zip(inputs.tables, rows, strict=True)
            ]
            for (table, columns, _), sql in zip(inputs.tables, rows, strict=True):
                schema = spark.sql(f"SELECT * FROM VALUES {', '.join(sql)} AS tab({columns})").schema
                session.create_table(table, type(schema)([type(f)(f.name, f.dataType) for f in schema.fields]))
            self.view = session.create_view(name, inputs.text)
        except hw.HeadwaterError as error:
            self.code = error.code
        except PySparkException:
            # Rows that Arrow has no types for cannot be in a table.
            self.code = "NO_ARROW"

    def change(self, transaction: Any, moment: int) -> list[list[str]]:
        """First all rows but the last; then the last two, and the first goes. What the tables then hold, as SQL."""
        contents = []
        for (table, _, _), rows, sql in zip(self._inputs.tables, self._rows, self._sql, strict=True):
            last = len(sql) - 1
            if moment == 0:
                transaction.insert(table, rows.slice(0, max(last, 1)))
                contents.append(sql[: max(last, 1)])
            else:
                transaction.insert(table, rows.slice(last))
                transaction.insert(table, rows.slice(max(last - 1, 0), 1))
                transaction.delete(table, rows.slice(0, 1))
                contents.append([*sql[: max(last, 1)][1:], sql[last], sql[max(last - 1, 0)]])
        return contents

    def play(self, moment: int) -> str:
        """The change of a moment; what is wrong after it."""
        if self.code is not None:
            return ""
        try:
            with self._session.transaction() as transaction:
                contents = self.change(transaction, moment)
        except hw.HeadwaterError as error:
            self.code = error.code
            return ""
        return self.difference(contents)

    def difference(self, contents: list[list[str]]) -> str:
        """What the view has, and what Spark answers over the same rows, where that differs."""
        spark = in_one_partition(self._session.spark)
        try:
            expected = self._plain(rows_of(collected(spark.sql(self._inputs.query(contents)))))
        except PySparkException as error:
            return f"Spark fails: {error.getCondition()}"
        found = self._plain(rows_of(self.view.arrow()))
        surplus, missing = bag_difference(found, expected)
        return f"{self._inputs.text}: view {surplus}, Spark {missing}" if surplus or missing else ""

    def _plain(self, rows: list[Any]) -> list[Any]:
        if self._function.name not in UNORDERED:
            return rows
        return [tuple(tuple(sorted(v, key=repr)) if isinstance(v, tuple) else v for v in row) for row in rows]


def examples(function: Function) -> list[str]:
    return [*([OWN[function.name]] if function.name in OWN else []), *function.examples]


def trials(session: Any, wanted: list[Function], most: int) -> list[tuple[Function, Tried]]:
    made = []
    for function in wanted:
        found = 0
        for number, example in enumerate(examples(function)):
            inputs = taken_apart(example, f"{function.name}_{number}")
            if inputs is not None and found < most:
                found += 1
                made.append((function, Tried(session, function, inputs, f"view_{function.name}_{number}")))
    return made


def play(spark: SparkSession, wanted: list[Function], most: int) -> list[str]:
    """Every function under inserts and deletes; what is wrong."""
    wrong = []
    with closing(hw.connect(spark=spark)) as session:
        made = trials(session, wanted, most)
        for moment in range(2):
            for function, tried in made:
                told = tried.play(moment)
                wrong += [f"{function.name}: {told}"] if told else []
        refused = {(function.name, tried.code) for function, tried in made if tried.code not in (None, "NO_ARROW")}
    expected = {(name, code) for name, code in REFUSED.items() if name in {function.name for function in wanted}}
    return [*wrong, *(f"{name} is refused: {code}" for name, code in refused - expected), *map(str, expected - refused)]


def is_evaluated_here(function: Function) -> bool:
    return function.kind in {*INVERTIBLE, *EXTREMES, *RANKING, *AGGREGATES, *OFFSETS} or function.name in OWN


@pytest.mark.slow
def test_functions_that_are_evaluated_here_and_a_sample_of_the_others(spark: SparkSession) -> None:
    known = functions(spark)
    here = [function for function in known if is_evaluated_here(function)]
    others = [function for function in known if not is_evaluated_here(function)]
    assert play(spark, [*here, *others[::4]], most=1) == []


@pytest.mark.slow
def test_every_example_of_every_function(spark: SparkSession) -> None:
    assert play(spark, functions(spark), most=100) == []


def test_every_function_has_an_example_over_rows(spark: SparkSession) -> None:
    without = {
        function.name
        for function in functions(spark)
        if not any(taken_apart(example, "t") for example in examples(function)) and function.name not in NOT_OVER_ROWS
    }
    assert without == set()


def test_operators_have_the_fields_that_their_readers_know(spark: SparkSession) -> None:
    known = {name: fields_of(spark, f"{LOGICAL}.{name}") for name in FIELDS}
    assert known == {name: fields.split() for name, fields in FIELDS.items()}
    readers = {name.removeprefix("_read_") for name in vars(plans._NodeReader) if name.startswith("_read_")}
    named = {name.lower() for name in FIELDS} | {"logicalrdd", "onerowrelation"}
    assert readers | {name.lower() for name in (*plans._SAME_ROWS, *plans._CONSTANT)} == named


def test_every_operator_is_known(spark: SparkSession) -> None:
    statements = {"Command", "ParsedStatement"}
    found = {name.rsplit(".", 1)[-1] for name, families in operators(spark).items() if not families & statements}
    assert found == {*FIELDS, *(name for names in OTHERS.values() for name in names.split())}
