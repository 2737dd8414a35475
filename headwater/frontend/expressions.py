"""Reads an expression out of the JSON of a Catalyst plan.

Catalyst writes a tree as the list of its nodes, each before its children, with `num-children` saying how many follow; a field
that refers to a child holds its ordinal instead. What is left are the options of the call.

The trap: the JSON does not say everything. Characters, sets, sequences and enumerations are written as null, so that
`LIKE … ESCAPE '/'` looks like `LIKE`, `try_cast` like `cast`, and an `InSet` has no values; bytes, arrays and timestamps are
written so that two different ones can look the same. What is lost is asked of the expression itself, by its origin.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.errors import NotSupported
from headwater.evaluation.settings import asked_while_running
from headwater.schema import COLLATED, arrow_type, is_collated

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.origin import Handle

    Json = dict[str, Any]
    Resolve = Callable[[Json], Column]

# Fields that name or qualify, or say where in the text a thing stood, but do not change a value.
_NOT_MEANING = {"class", "num-children", "exprId", "resultId", "qualifier", "metadata", "explicitMetadata", "evalContext"}
_NOT_MEANING |= {"nonInheritableMetadataKeys", "nullable", "name", "dataType", "origin", "inferMetadata"}
# What JSON has in place of bytes that are no UTF-8.
_UNREADABLE = "\ufffd"
# Functions whose code is not in the JSON: only the instance tells two of them apart.
USER_FUNCTIONS = (
    "PythonUDF",
    "PythonUDAF",
    "PythonUDTF",
    "ScalaUDF",
    "ScalaUDAF",
    "ScalaAggregator",
    "HiveSimpleUDF",
    "HiveGenericUDF",
)
# Numbers that are values, though they could be taken for the ordinal of a child.
_NUMBERS = {("GetStructField", "ordinal"), ("GetArrayStructFields", "ordinal"), ("GetArrayStructFields", "numFields")}
_NUMBERS |= {
    ("MakeDecimal", "precision"),
    ("MakeDecimal", "scale"),
    ("AtLeastNNonNulls", "n"),
    ("XxHash64", "seed"),
    ("Murmur3Hash", "seed"),
}
# How the JSON names what is written after COLLATE.
COLLATION = "collationName"
_EQUALITIES = {"EqualTo", "EqualNullSafe"}
_serial = itertools.count()


class Unreadable(Exception):
    """The plan has a part that the algebra has no words for; Spark must answer the whole query."""


def read_expression(
    nodes: list[Json], resolve: Resolve, subquery: Callable[[Json], Expression] | None = None, origin: Handle | None = None
) -> Expression:
    """The expression that `nodes` lists, with attributes resolved to columns and scalar subqueries to whatever `subquery` says.

    `origin` leads to the same expression in Spark; each part of what is read gets its own.
    """
    expression, rest = _Reader(nodes, resolve, subquery).read(0, origin)
    if rest != len(nodes):
        raise ValueError(f"{len(nodes) - rest} nodes left over after {nodes[0]['class']}")
    return expression


def class_name(node: Json) -> str:
    """`org.apache…expressions.Add` → `Add`."""
    name: str = node["class"]
    return name.rstrip("$").rsplit(".", 1)[-1].rsplit("$", 1)[-1]


@dataclass(frozen=True)
class _Reader:
    nodes: list[Json]
    resolve: Resolve
    subquery: Callable[[Json], Expression] | None
    variables: dict[str, int] = field(default_factory=dict)
    found: dict[tuple[str | int, ...], Any] = field(default_factory=dict)

    def read(self, at: int, origin: Handle | None) -> tuple[Expression, int]:
        """The expression that starts at node `at`, and where the next one starts."""
        node = self.nodes[at]
        name = class_name(node)
        if name == "AttributeReference":
            return self.resolve(node), at + 1
        if name == "Literal":
            return self._literal(node, origin), at + 1
        if name == "ScalarSubquery" and self.subquery is not None:
            return self.subquery(node), at + 1
        arguments = []
        collated = _collated(node)
        at += 1
        for ordinal in range(node["num-children"]):
            collated = collated or _collated(self.nodes[at])
            argument, at = self.read(at, origin and origin.child(ordinal))
            # Most functions do not state their type: what a collated argument gives may be collated, too.
            collated = collated or (argument.option("collation") if isinstance(argument, Call) else None)
            arguments.append(argument)
        if name == "Alias":
            return arguments[0], at
        if name == "CreateNamedStruct" and len(set(arguments[::2])) < len(arguments[::2]):
            raise Unreadable("a struct with two fields of one name, which Arrow does not know")
        options = self._options(name, node, origin)
        if collated:
            options["collation"] = collated
            if name in _EQUALITIES and origin is not None:
                arguments = [collation_key(part, origin.child(i)) for i, part in enumerate(arguments)]
        settings = () if origin is None or origin.reading is None else asked_while_running(origin.reading.settings)
        if settings:
            options["settings"] = settings
        pairs = tuple(sorted((key, json.dumps(value, sort_keys=True)) for key, value in options.items()))
        return Call(name, tuple(arguments), _stated_type(node), pairs, origin), at

    def _literal(self, node: Json, origin: Handle | None) -> Expression:
        """A literal; where the type has no counterpart in Arrow, a call that carries Spark's text for it."""
        stated, value = _stated_type(node), node["value"]
        if stated is None:
            options = (("dataType", json.dumps(node["dataType"])), ("value", json.dumps(value)))
            return Call("Literal", (), None, options, origin)
        if pa.types.is_string(stated) and value is not None and _UNREADABLE in value:
            raise Unreadable("a text that may be no UTF-8, which JSON does not tell")
        if value is not None and origin is not None:
            if pa.types.is_timestamp(stated) and stated.tz is not None:
                value = self._spark(origin).value()
            elif pa.types.is_binary(stated) or pa.types.is_nested(stated):
                value = self._spark(origin).sql()
        return Literal(None if value is None else str(value), stated, origin)

    def _options(self, name: str, node: Json, origin: Handle | None) -> Json:
        options = {
            key: _meaning(value)
            for key, value in node.items()
            if key not in _NOT_MEANING and value is not None and not _is_child(name, key, value, node["num-children"])
        }
        if name in USER_FUNCTIONS:
            # With the id of the JVM: what was read is kept for longer than a process lives.
            options["instance"] = node.get("resultId") or node.get("exprId") or _unlike_any()
        if name == "NamedLambdaVariable":
            options["variable"] = self.variables.setdefault(json.dumps(node["exprId"], sort_keys=True), len(self.variables))
        elif "dataType" in node and _stated_type(node) is None and not isinstance(node["dataType"], int):
            options["dataType"] = node["dataType"]
        lost = {key for key, value in node.items() if value is None and key not in _NOT_MEANING - {"evalContext"}} - {"value"}
        if lost and name not in USER_FUNCTIONS:
            options |= self._lost(lost, origin)
        return options

    def _lost(self, fields: set[str], origin: Handle | None) -> Json:
        """What the JSON leaves out; without an origin, at least that the expression equals no other."""
        if origin is None:
            return {} if fields <= {"evalContext", "evalMode"} else {"instance": _unlike_any()}
        spark = self._spark(origin)
        options: Json = {}
        if "evalContext" in fields:
            options["evalMode"] = spark.evalContext().evalMode().toString()
        if "evalMode" in fields:
            options["evalMode"] = spark.evalMode().toString()
        if "escapeChar" in fields:
            options["escapeChar"] = str(spark.escapeChar())
        if "hset" in fields:
            options["hset"] = _elements(spark.hset())
        for key in fields - {"evalContext", "evalMode", "escapeChar", "hset"}:
            options[key] = _shown(spark, key)
        return options

    def _spark(self, origin: Handle) -> Any:  # noqa: ANN401  (an object of the JVM)
        """What the origin leads to; each step is a call to the JVM, so none is made twice."""
        steps = origin.steps
        if steps not in self.found:
            if len(steps) >= 2 and steps[-2] == "children":
                parent = self._spark(type(origin)(origin.root, steps[:-2]))
                self.found[steps] = parent.children().apply(steps[-1])
            else:
                self.found[steps] = origin.get()
        return self.found[steps]


def collation_key(expression: Expression, origin: Handle, *, ordered: bool = False) -> Expression:
    """What stands for a value where rows are compared by their bytes: equal, and ordered, as the value is by its collation.

    `GROUP BY c`   gives   `GROUP BY CollationKey(c)`
    """
    kind = origin.get().dataType()
    stated = kind.json()
    if not is_collated(stated):
        return expression
    if not kind.typeName().startswith("string"):
        raise Unreadable("nested values with strings inside that have a collation of their own, as keys")
    if kind.supportsBinaryEquality() and not ordered:
        return expression
    return Call("CollationKey", (expression,), pa.binary(), (("collation", stated),))


def _stated_type(node: Json) -> pa.DataType | None:
    """The type that the node itself states, None if it states none or one that Arrow does not know."""
    from pyspark.errors import PySparkException

    stated = node.get("dataType")
    if stated is None or isinstance(stated, int):
        return None
    try:
        return arrow_type(stated)
    except (PySparkException, ValueError, NotSupported):
        return None


def _collated(node: Json) -> str | None:
    """The type, if it compares strings otherwise than by their bytes; Arrow's type would not show it.

    A `COLLATE` states no type of its own, but the collation beside its string says it.
    """
    named = node.get(COLLATION)
    stated = json.dumps(node.get("dataType") if named is None else f"string{COLLATED}{named}")
    return stated if is_collated(stated) else None


def _shown(spark: Any, key: str) -> Any:  # noqa: ANN401  (an object of the JVM)
    """A field for which the JSON has no words: its elements if it is a sequence, else what it says of itself."""
    from py4j.protocol import Py4JError

    try:
        value = getattr(spark, key)()
    except Py4JError:
        return _unlike_any()
    try:
        between = f"\x00{next(_serial)}\x00"
        return value.mkString(between).split(between)
    except (AttributeError, Py4JError):
        return str(value)


def _unlike_any() -> str:
    """Says of an expression that it equals no other, also of those that other processes have read."""
    return f"read {uuid4().hex}"


def _elements(values: Any) -> list[str | None]:  # noqa: ANN401  (a Scala set)
    """The elements of a set as Spark's texts, sorted."""
    between = f"\x00{next(_serial)}\x00"
    null = values.contains(None)
    texts = values.mkString(between).split(between) if values.size() else []
    if null:
        texts.remove("null")
    return [*sorted(texts), *([None] if null else [])]


def _is_child(name: str, key: str, value: object, children: int) -> bool:
    if (name, key) in _NUMBERS:
        return False
    if isinstance(value, list):
        return bool(value) and all(_is_child(name, key, item, children) for item in value)
    if isinstance(value, dict):
        # A child that is not a field by itself (a branch of CASE, an optional argument) is written out once more.
        parts = [part for part_name, part in value.items() if part_name != "product-class"]
        is_pair = "product-class" in value and all(isinstance(p, list) and _is_child(name, key, p, children) for p in parts)
        return is_pair or {"class", "num-children"} <= value.keys()
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < children


def _meaning(value: Any) -> Any:  # noqa: ANN401  (JSON)
    """The value without what differs between two analyses of the same text."""
    if isinstance(value, dict):
        return {key: _meaning(part) for key, part in value.items() if key != "jvmId"}
    if isinstance(value, list):
        return [_meaning(part) for part in value]
    return value
