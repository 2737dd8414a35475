"""Puts Spark expressions through the engines, row by row.

Spark and DuckDB get every expression wrapped so that a row for which it raises is NULL instead of a struct, Spark as it was
written and DuckDB as the translation of what Spark's optimiser made of it; kernels get one row at a time. Then DuckDB and
kernels get the rows that do not raise once more, together.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, walk
from headwater.algebra.origin import Handle
from headwater.delta import one_batch
from headwater.evaluation.duckdb_sql import Typed, Untranslatable, entering, translate
from headwater.evaluation.kernels import Kernel, Unusual, compile_kernel
from headwater.frontend.expressions import read_expression
from headwater.schema import arrow_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb
    from pyspark.sql import SparkSession

    from headwater.algebra.expressions import Expression

RAISES = "raises"
_WRAPPED = re.compile(r"@(\w+)(?:\(([\d, ]+)\))? (.*)", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """One line of a file: an expression, and whether it is known to have no translation yet."""

    family: str
    table: str
    text: str
    untranslatable: bool = False


def cases() -> list[Case]:
    found = []
    for path in sorted((Path(__file__).parent / "expressions").glob("*.sql")):
        table = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("-- table: "):
                table = line.removeprefix("-- table: ").strip()
            elif line.strip() and not line.startswith("--"):
                found.append(Case(path.stem, table, line.removeprefix("! "), line.startswith("! ")))
    return found


@dataclass
class Outcome:
    """What both engines say of one expression."""

    case: Case
    expression: Expression
    spark_type: pa.DataType
    spark: list[Any]
    rows: pa.Table
    zone: str

    @cached_property
    def translated(self) -> Typed:
        return translate(self.expression)

    @cached_property
    def reason(self) -> str | None:
        try:
            _ = self.translated
        except Untranslatable as refusal:
            return refusal.reason
        return None

    @cached_property
    def functions(self) -> set[str]:
        return {part.function for part in walk(self.expression) if isinstance(part, Call)}

    def duckdb(self, made: duckdb.DuckDBPyConnection) -> tuple[pa.DataType, list[Any]]:
        """The type and the values; the rows that do not raise one by one must not do so together either."""
        made.register("rows", _entered(self.rows))
        sql = self.translated.sql
        # Or it would evaluate parts that occur twice before TRY, and not under it.
        made.execute("SET disabled_optimizers = 'expression_rewriter,reorder_filter,common_subexpressions'")
        _, caught = _caught_values(made.sql(f"SELECT TRY(struct_pack(v := {sql})) FROM rows").to_arrow_table().column(0))
        made.execute("SET disabled_optimizers = 'expression_rewriter,reorder_filter'")
        good = pa.array([value != RAISES for value in caught])
        made.register("good_rows", _entered(self.rows.filter(good)))
        together = made.sql(f"SELECT {sql} FROM good_rows").to_arrow_table().column(0)
        assert exact(together) == [value for value in caught if value != RAISES]
        return together.type, caught

    @cached_property
    def kernel(self) -> Kernel | None:
        try:
            return compile_kernel(self.expression)
        except Untranslatable:
            return None

    def computed(self) -> list[Any]:
        """The kernel's values, row by row; the rows that are not refused one by one must not be so together either."""
        assert self.kernel is not None
        batch = one_batch(self.rows)
        found = [_computed(self.kernel, batch.slice(row, 1)) for row in range(batch.num_rows)]
        good = pa.array([value != RAISES for value in found])
        if any(good.to_pylist()):
            together = self.kernel.array(batch.filter(good))
            together.validate(full=True)
            assert together.type == self.kernel.type
            assert exact(together) == [value for value in found if value != RAISES]
        return found


def _computed(kernel: Kernel, row: pa.RecordBatch) -> Any:
    try:
        return exact(kernel.array(row))[0]
    except (Unusual, pa.ArrowException):
        return RAISES


@dataclass
class Agreement:
    """Asks Spark about all expressions of a table at once, and remembers."""

    session: SparkSession
    tables: dict[str, Callable[[], pa.Table]]
    groups: dict[tuple[str, str, str], dict[str, Outcome]] = field(default_factory=dict)

    def outcome(self, case: Case, zone: str) -> Outcome:
        key = (case.family, case.table, zone)
        if key not in self.groups:
            texts = [other.text for other in cases() if (other.family, other.table) == key[:2]]
            self.groups[key] = self._ask(case, texts, zone)
        return self.groups[key][case.text]

    def _ask(self, case: Case, texts: list[str], zone: str) -> dict[str, Outcome]:
        rows = self.tables[case.table]()
        leaf = self._leaf(rows)
        self.session.conf.set("spark.sql.session.timeZone", zone)
        try:
            selected = ", ".join(f"{_bare(text)} AS x{i}" for i, text in enumerate(texts))
            analysed = self.session.sql(f"SELECT {selected} FROM edges")._jdf.queryExecution().analyzed()
            parts = [analysed.projectList().apply(i).child() for i in range(len(texts))]
            parts = [self._wrapped(text, part) for text, part in zip(texts, parts, strict=True)]
            optimised = self._run([self._alias(part, f"x{i}") for i, part in enumerate(parts)], leaf)
            plan = optimised._jdf.queryExecution().optimizedPlan()
            expressions = self._read(plan)
            answers = self._run([self._alias(self._caught(part), f"x{i}") for i, part in enumerate(parts)], leaf).toArrow()
        finally:
            self.session.conf.set("spark.sql.session.timeZone", "UTC")
        positional = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
        return {
            text: Outcome(case, expressions[i], *_caught_values(answers.column(i)), positional, zone)
            for i, text in enumerate(texts)
        }

    def _leaf(self, rows: pa.Table) -> Any:
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        fields = [StructField(f.name, from_arrow_type(f.type, prefer_timestamp_ntz=True)) for f in rows.schema]
        frame = self.session.createDataFrame(rows, StructType(fields))
        described = frame._jdf.schema()
        relation = self.session._jsparkSession.internalCreateDataFrame(frame._jdf.queryExecution().toRdd(), described, False)  # noqa: FBT003
        relation.createOrReplaceTempView("edges")
        return self.session.table("edges")._jdf.queryExecution().analyzed()

    def _read(self, plan: Any) -> list[Expression]:
        nodes = json.loads(plan.toJSON())
        assert nodes[0]["class"].endswith(".Project"), plan.toString()
        ids = [attribute[0]["exprId"]["id"] for attribute in nodes[1]["output"]]
        kinds = [arrow_of(part.dataType) for part in self.session.table("edges").schema.fields]

        def resolve(attribute: dict[str, Any]) -> Column:
            position = ids.index(attribute["exprId"]["id"])
            return Column(position, kinds[position])

        origin = Handle(plan)
        return [
            read_expression(expression, resolve, None, origin.then("projectList", i))
            for i, expression in enumerate(nodes[0]["projectList"])
        ]

    def _wrapped(self, text: str, part: Any) -> Any:
        found = _WRAPPED.fullmatch(text)
        if not found:
            return part
        if found[1] == "PreciseTimestampConversion":
            micros, instant = (
                self._jvm.org.apache.spark.sql.types.DataTypes.LongType,
                self._jvm.org.apache.spark.sql.types.DataTypes.TimestampType,
            )
            kinds = (instant, micros) if part.dataType().equals(instant) else (micros, instant)
            return self._expressions.PreciseTimestampConversion(part, *kinds)
        package = self._jvm.org.apache.spark.sql.catalyst.optimizer if found[1] == "NormalizeNaNAndZero" else self._expressions
        made = getattr(package, found[1])
        if not found[2]:
            return made(part)
        precision, scale = map(int, found[2].split(","))
        if found[1] == "AtLeastNNonNulls":
            return made(precision, self._seq([part, part]))
        if found[1] == "CheckOverflow":
            return made(part, self._jvm.org.apache.spark.sql.types.DecimalType(precision, scale), False)  # noqa: FBT003
        return made(part, precision, scale, False)  # noqa: FBT003

    def _caught(self, part: Any) -> Any:
        name = self._expressions.Literal.create("v", self._jvm.org.apache.spark.sql.types.DataTypes.StringType)
        return self._expressions.TryEval(self._expressions.CreateNamedStruct(self._seq([name, part])))

    def _alias(self, part: Any, name: str) -> Any:
        fresh = self._expressions.NamedExpression.newExprId()
        none = getattr(self._jvm.scala, "None$").__getattr__("MODULE$")
        return self._expressions.Alias(part, name, fresh, self._seq([]), none, self._seq([]))

    def _run(self, aliases: list[Any], leaf: Any) -> Any:
        from pyspark.sql import DataFrame

        plan = self._jvm.org.apache.spark.sql.catalyst.plans.logical.Project(self._seq(aliases), leaf)
        of_rows = getattr(self._jvm.org.apache.spark.sql.classic.Dataset, "ofRows")  # noqa: B009  (py4j)
        return DataFrame(of_rows(self.session._jsparkSession, plan), self.session)

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)

    @cached_property
    def _jvm(self) -> Any:
        return self.session._jvm

    @cached_property
    def _expressions(self) -> Any:
        return self._jvm.org.apache.spark.sql.catalyst.expressions


def _entered(rows: pa.Table) -> pa.Table:
    return pa.table([entering(column) for column in rows.columns], names=rows.column_names)


def _bare(text: str) -> str:
    found = _WRAPPED.fullmatch(text)
    return found[3] if found else text


def _caught_values(column: pa.ChunkedArray) -> tuple[pa.DataType, list[Any]]:
    whole = column.combine_chunks()
    valid = whole.is_valid().to_pylist()
    values = exact(whole.field(0))
    return whole.type.field(0).type, [value if ok else RAISES for ok, value in zip(valid, values, strict=True)]


def exact(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values that are equal only if they are the same: −0.0 is not 0.0, NaN is NaN, a time is its number."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.int64())
    return [_exact(value) for value in column.to_pylist()]


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("d", value)  # noqa: PLR0124
    if isinstance(value, list):
        return [_exact(part) for part in value]
    if isinstance(value, dict):
        return {name: _exact(part) for name, part in value.items()}
    return value if value is None or isinstance(value, bool | bytes | str | int) else str(value)


def same_type(left: pa.DataType, right: pa.DataType) -> bool:
    """Equal but for what belongs to no value: nullability, names of list elements, the label of a time zone."""
    if pa.types.is_duration(right):
        # It comes out of the SQL as its number.
        return left in (right, pa.int64())
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return left.unit == right.unit and (left.tz is None) == (right.tz is None)
    if left.num_fields != right.num_fields or left.id != right.id:
        return False
    if left.num_fields:
        return all(same_type(left.field(i).type, right.field(i).type) for i in range(left.num_fields))
    return left.equals(right)


def differences(outcome: Outcome, made: duckdb.DuckDBPyConnection) -> list[str]:
    """What is wrong with a translation: every row for which DuckDB gives a value that is not Spark's."""
    kind, found = outcome.duckdb(made)
    assert same_type(kind, outcome.translated.type)
    assert same_type(outcome.translated.type, outcome.spark_type)
    assert any(value != RAISES for value in found)
    return _differing(outcome, found, "DuckDB")


def kernel_differences(outcome: Outcome) -> list[str]:
    """What is wrong with a kernel: every row for which it gives a value that is not Spark's."""
    assert outcome.kernel is not None
    assert same_type(outcome.kernel.type, outcome.spark_type)
    found = outcome.computed()
    assert any(value != RAISES for value in found)
    return _differing(outcome, found, "kernel")


def _differing(outcome: Outcome, found: list[Any], engine: str) -> list[str]:
    return [
        f"{[exact(column)[0] for column in outcome.rows.slice(row, 1).columns]}: Spark {theirs!r}, {engine} {ours!r}"
        for row, (theirs, ours) in enumerate(zip(outcome.spark, found, strict=True))
        if ours not in (RAISES, theirs)
    ]
