"""Reads an expression out of the JSON of a Catalyst plan.

Catalyst writes a tree as the list of its nodes, each before its children, with `num-children` saying how many follow; a field
that refers to a child holds its ordinal instead. What is left are the options of the call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.frontend.types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.algebra.origin import Handle

    Json = dict[str, Any]
    Resolve = Callable[[Json], Column]

# Fields that name or qualify, or say where in the text a thing stood, but do not change a value.
_NOT_MEANING = {"class", "num-children", "exprId", "resultId", "qualifier", "metadata", "explicitMetadata", "evalContext"}
_NOT_MEANING |= {"nonInheritableMetadataKeys", "nullable", "name", "dataType", "origin", "inferMetadata"}
# Functions whose code is not in the JSON: only the instance tells two of them apart.
_OPAQUE = ("PythonUDF", "PythonUDAF", "PythonUDTF", "ScalaUDF", "ScalaUDAF", "ScalaAggregator", "HiveSimpleUDF", "HiveGenericUDF")


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

    def read(self, at: int, origin: Handle | None) -> tuple[Expression, int]:
        """The expression that starts at node `at`, and where the next one starts."""
        node = self.nodes[at]
        name = class_name(node)
        if name == "AttributeReference":
            return self.resolve(node), at + 1
        if name == "Literal":
            value = node["value"]
            return Literal(None if value is None else str(value), arrow_type(node["dataType"]), origin), at + 1
        if name == "ScalarSubquery" and self.subquery is not None:
            return self.subquery(node), at + 1
        arguments = []
        at += 1
        for ordinal in range(node["num-children"]):
            argument, at = self.read(at, origin and origin.child(ordinal))
            arguments.append(argument)
        if name == "Alias":
            return arguments[0], at
        stated = node.get("dataType")
        is_type = stated is not None and not isinstance(stated, int)
        return Call(name, tuple(arguments), arrow_type(stated) if is_type else None, _options(name, node), origin), at


def _options(name: str, node: Json) -> tuple[tuple[str, str], ...]:
    options = {
        field: _meaning(value)
        for field, value in node.items()
        if field not in _NOT_MEANING and not _is_child(value, node["num-children"])
    }
    if "evalContext" in node and node["evalContext"] is not None:
        options["evalMode"] = _meaning(node["evalContext"])
    if name in _OPAQUE:
        options["instance"] = _meaning(node.get("resultId") or node.get("exprId") or id(node))
    return tuple(sorted((field, json.dumps(value, sort_keys=True)) for field, value in options.items()))


def _is_child(value: object, children: int) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_child(item, children) for item in value)
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < children


def _meaning(value: Any) -> Any:  # noqa: ANN401  (JSON)
    """The value without what differs between two analyses of the same text."""
    if isinstance(value, dict):
        return {field: _meaning(part) for field, part in value.items() if field not in ("jvmId",)}
    if isinstance(value, list):
        return [_meaning(part) for part in value]
    return value
