"""Reads the JSON of an optimised Catalyst plan into the algebra.

Catalyst names columns by ids that are unique in a session; here they become positions in the rows of the child. A node that has
no reader of its own becomes `Opaque`: Spark evaluates it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, columns_of, rewrite, walk
from headwater.errors import NotSupported
from headwater.evaluation.duckdb_sql import Untranslatable
from headwater.evaluation.sessions import MERGED_SESSION
from headwater.evaluation.windows import window_sql
from headwater.frontend.expressions import COLLATION, Unreadable, class_name, collation_key, read_expression
from headwater.frontend.sort_keys import YEARS_AND_MONTHS
from headwater.operators.ordering import is_ordered
from headwater.schema import arrow_type, is_collated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.algebra.origin import Handle
    from headwater.frontend.expressions import Json

_JOINS = {"Inner": "inner", "Cross": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full"}
_JOINS |= {"LeftSemi": "semi", "LeftAnti": "anti", "ExistenceJoin": "existence", "LeftSingle": "single"}
_SAME_ROWS = {"SubqueryAlias", "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "LocalLimit"}
_CONSTANT = {"LocalRelation", "OneRowRelation", "Range"}
_BY_ROW = {"BatchEvalPython", "ArrowEvalPython"}
# They see the partitions that the plan below makes: all rows of a TABLE that they are given, or of each key of it.
_BY_PARTITION = {"BatchEvalPythonUDTF", "ArrowEvalPythonUDTF"}
# How Spark marks a column of session windows: to group by it is to merge them.
SESSION = "spark.sessionWindow"


@dataclass(frozen=True)
class Relation:
    """A node of the algebra and the Catalyst ids of its columns."""

    node: plan.Node
    ids: tuple[int, ...]

    def column(self, attribute: Json) -> Column:
        if attribute["exprId"]["id"] not in self.ids:
            raise Unreadable(f"a part that reads the column {attribute['name']}, which Spark's plan does not give it")
        position = self.ids.index(attribute["exprId"]["id"])
        return Column(position, self.node.types[position])


@dataclass(frozen=True)
class PlanReader:
    """Reads one plan; `sources` tells which leaf ids belong to which table, `constant` fetches the rows of a constant leaf.

    `serial` tells it from all others, also those of other processes.
    """

    sources: dict[int, str]
    constant: Callable[[Handle], pa.RecordBatch]
    subplans: dict[int, Handle]
    types: dict[int, pa.DataType] = field(default_factory=dict)
    serial: str = field(default_factory=lambda: uuid4().hex)

    def read(self, nodes: list[Json], origin: Handle) -> Relation:
        for attribute in _attributes(nodes):
            self.types.setdefault(attribute["exprId"]["id"], arrow_type(attribute["dataType"]))
        relation, rest = self._read(nodes, 0, origin)
        if rest != len(nodes):
            raise ValueError(f"{len(nodes) - rest} nodes left over")
        return relation

    def _read(self, nodes: list[Json], at: int, origin: Handle) -> tuple[Relation, int]:
        node = nodes[at]
        at += 1
        children = []
        for ordinal in range(node["num-children"]):
            child, at = self._read(nodes, at, origin.child(ordinal))
            children.append(child)
        return _NodeReader(self, node, tuple(children), origin).read(), at


@dataclass(frozen=True)
class _NodeReader:
    reader: PlanReader
    json: Json
    children: tuple[Relation, ...]
    origin: Handle

    def read(self) -> Relation:
        name = class_name(self.json)
        if name in _SAME_ROWS:
            return self.children[0]
        if name in _CONSTANT:
            return self._constant()
        reader = getattr(self, f"_read_{name.lower()}", None)
        if reader is None:
            if name in _BY_PARTITION:
                raise Unreadable(f"{name}, a table function in Python")
            return self._opaque(name)
        relation: Relation = reader()
        return relation

    # -- leaves

    def _read_logicalrdd(self) -> Relation:
        ids = tuple(attribute[0]["exprId"]["id"] for attribute in self.json["output"])
        if ids[0] not in self.reader.sources:
            raise NotSupported("the query reads data that is not a Headwater table; create a table for it with create_table")
        return Relation(plan.Scan(types=self._types(ids), source=self.reader.sources[ids[0]], origin=self.origin), ids)

    def _constant(self) -> Relation:
        rows = self.reader.constant(self.origin)
        ids = tuple(attribute for attribute, _ in self._output)
        return Relation(plan.Values(types=tuple(rows.schema.types), rows=rows, origin=self.origin), ids)

    # -- linear nodes

    def _read_project(self) -> Relation:
        child, expressions = self._expressions("projectList", self.children[0])
        ids = self._named_ids("projectList")
        node = plan.Project(types=self._types(ids), child=child.node, expressions=expressions, origin=self.origin)
        return Relation(node, ids)

    def _read_filter(self) -> Relation:
        visible = self.children[0]
        child, condition = self._expression(self.json["condition"], visible, self.origin.then("condition"))
        filtered = plan.Filter(types=child.node.types, child=child.node, condition=condition, origin=self.origin)
        return Relation(_first_columns(filtered, len(visible.ids)), visible.ids)

    def _read_expand(self) -> Relation:
        child = self.children[0]
        ids = tuple(attribute[0]["exprId"]["id"] for attribute in self.json["output"])
        projections = []
        # The JSON has them only if each is a list of Scala's; other sequences are written as null.
        listed = self.json["projections"] or _listed(self.origin.then("projections").get())
        for i, projection in enumerate(listed):
            origins = [self.origin.then("projections", i, j) for j in range(len(projection))]
            projections.append(
                tuple(read_expression(e, child.column, None, o) for e, o in zip(projection, origins, strict=True))
            )
        node = plan.Expand(types=self._types(ids), child=child.node, projections=tuple(projections), origin=self.origin)
        return Relation(node, ids)

    def _read_generate(self) -> Relation:
        child = self.children[0]
        generator = read_expression(self.json["generator"], child.column, None, self.origin.then("generator"))
        ids = tuple(attribute for attribute, _ in self._output)
        made = {attribute[0]["exprId"]["id"] for attribute in self.json["generatorOutput"]}
        kept = tuple(child.ids.index(attribute) for attribute in ids[: len(ids) - len(made)])
        assert isinstance(generator, Call)
        node = plan.Generate(
            types=self._types(ids),
            child=child.node,
            generator=generator,
            collection=self._collection(generator),
            kept=kept,
            outer=self.json["outer"],
            origin=self.origin,
        )
        return Relation(node, ids)

    def _collection(self, generator: Call) -> pa.DataType | None:
        if len(generator.arguments) != 1:
            return None
        only = generator.arguments[0]
        if isinstance(only, Column):
            return only.type
        try:
            return arrow_type(json.loads(self.origin.then("generator", "children", 0, "dataType", "json").get()))
        except NotSupported as reason:
            raise Unreadable("a generator over a map without keys") from reason

    def _read_union(self) -> Relation:
        ids = tuple(attribute for attribute, _ in self._output)
        inputs = tuple(child.node for child in self.children)
        return Relation(plan.Union(types=self._types(ids), inputs=inputs, origin=self.origin), ids)

    # -- nodes with state

    def _read_join(self) -> Relation:
        left, right = self.children
        stated = class_name({"class": self.json["joinType"].get("object") or self.json["joinType"]["product-class"]})
        if stated not in _JOINS:
            raise Unreadable(f"a join of the kind {stated}")
        kind = _JOINS[stated]
        both = Relation(plan.Node(types=left.node.types + right.node.types), left.ids + right.ids)
        condition = None
        if self.json.get("condition") is not None:
            condition = read_expression(self.json["condition"], both.column, self._refuse, self.origin.then("condition", "get"))
        ids = both.ids
        if kind in ("semi", "anti"):
            ids = left.ids
        elif kind == "existence":
            ids = (*left.ids, self.json["joinType"]["exists"][0]["exprId"]["id"])
        node = plan.Join(
            types=self._types(ids), left=left.node, right=right.node, kind=kind, condition=condition, origin=self.origin
        )
        return Relation(node, ids)

    def _read_aggregate(self) -> Relation:
        visible = self._with_sessions(self.children[0])
        child, keys = self._expressions("groupingExpressions", visible)
        child, outputs = self._expressions("aggregateExpressions", child)
        if self._is_collated:
            keys, outputs = self._by_collation(keys, outputs)
        ids = self._named_ids("aggregateExpressions")
        if visible is not self.children[0]:
            _require_not_aggregated(Column(len(visible.ids) - 1, visible.node.types[-1]), outputs)
        node = plan.Aggregate(types=self._types(ids), child=child.node, keys=keys, outputs=outputs, origin=self.origin)
        return Relation(node, ids)

    def _by_collation(
        self, keys: tuple[Expression, ...], outputs: tuple[Expression, ...]
    ) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """Groups by collation keys; the string that is the least by its bytes stands for all of its group.

        Spark lets that string stand for them which it meets first, so each of them is an answer.
        """
        found = [collation_key(key, self.origin.then("groupingExpressions", i)) for i, key in enumerate(keys)]
        least = {key: _least(key) for key, by in zip(keys, found, strict=True) if by is not key}
        if len(least) > 1:
            raise Unreadable("groups by several strings with collations of their own")

        def stand_in(part: Expression) -> Expression | None:
            aggregated = isinstance(part, Call) and part.function == "AggregateExpression"
            return part if aggregated else least.get(part)

        return tuple(found), tuple(rewrite(output, stand_in) for output in outputs)

    def _with_sessions(self, child: Relation) -> Relation:
        """What an aggregate groups, its session window merged: Spark does that where it runs a group by a column so marked.

        Rows come with the window of their own time. Those of one group by the other keys whose windows overlap share one.
        """
        keys = self.json["groupingExpressions"]
        sessions = [i for i, key in enumerate(keys) if _may_be_session(key) and self._is_session(i)]
        if not sessions:
            return child
        columns = [self._plain_key(key, child) for key in keys]
        session = columns.pop(sessions[0])
        merged = plan.Window(
            types=(*child.node.types, session.type),
            child=child.node,
            functions=(Call(MERGED_SESSION, (session,), session.type),),
            partition=tuple(columns),
            order=(),
        )
        own = child.ids[session.index]
        hidden = (-1 - i if i == session.index else known for i, known in enumerate(child.ids))
        return Relation(merged, (*hidden, own))

    def _is_session(self, key: int) -> bool:
        expression = self.origin.then("groupingExpressions", key).get()
        return bool(expression.metadata().contains(SESSION))

    def _plain_key(self, key: list[Json], child: Relation) -> Column:
        if class_name(key[0]) != "AttributeReference":
            raise Unreadable("a session window beside a key that is computed")
        return child.column(key[0])

    def _read_window(self) -> Relation:
        child = self.children[0]
        if self._is_collated:
            raise Unreadable("window functions of strings with a collation of their own")
        if not self.json["orderSpec"] and isinstance(child.node, plan.Project | plan.Sort):
            numbered = self._numbered_in_order()
            if numbered is not None:
                return numbered
        functions = self._plain_expressions("windowExpressions")
        ids = child.ids + self._named_ids("windowExpressions")
        node = plan.Window(
            types=self._types(ids),
            child=child.node,
            functions=functions,
            partition=self._plain_expressions("partitionSpec"),
            order=self._order("orderSpec"),
            origin=self.origin,
        )
        return Relation(node, ids)

    def _numbered_in_order(self) -> Relation | None:
        """Rows numbered in the order that they are sorted in below: None if there is none, or nothing that depends on it.

        `row_number()` has an order wherever a user writes it. Catalyst takes it away where a correlated subquery with ORDER BY
        and LIMIT or OFFSET does not give the columns that it is ordered by, and relies on the rows to stay as they were sorted:

            ν[row_number() by p]  ∘  π  ∘  sort k     becomes     π'  ∘  ν[row_number() by p, order k]  ∘  π, k
        """
        child = self.children[0]
        functions = self._plain_expressions("windowExpressions")
        if not all(map(_is_row_number, functions)):
            return None
        ordered = _with_order(child.node)
        if ordered is None:
            return None
        below, order = ordered
        order += _by_whole_row(child.node.types)
        ids = self._named_ids("windowExpressions")
        made = self._types(ids)
        window = plan.Window(
            types=below.types + made,
            child=below,
            functions=tuple(_in_order(function, order) for function in functions),
            partition=self._plain_expressions("partitionSpec"),
            order=order,
        )
        try:
            window_sql(window)
        except Untranslatable as reason:
            raise Unreadable(f"ORDER BY with LIMIT or OFFSET in a correlated subquery, with {reason}") from reason
        shown = [*range(len(child.ids)), *range(len(below.types), len(window.types))]
        return Relation(plan.picked(window, shown), child.ids + ids)

    def _read_sort(self) -> Relation:
        child = self.children[0]
        order = self._order("order")
        if any(self._type_name(key).startswith(YEARS_AND_MONTHS) for key in range(len(order))):
            raise Unreadable("ORDER BY an interval of years and months")
        return Relation(plan.Sort(types=child.node.types, child=child.node, order=order), child.ids)

    def _type_name(self, key: int) -> str:
        return str(self.origin.then("order", key, "dataType", "typeName").get())

    def _read_globallimit(self) -> Relation:
        return self._limit(count=int(self.json["limitExpr"][0]["value"]), offset=0)

    def _read_offset(self) -> Relation:
        return self._limit(count=None, offset=int(self.json["offsetExpr"][0]["value"]))

    def _limit(self, count: int | None, offset: int) -> Relation:
        child = self.children[0]
        return Relation(limited(child.node, count, offset), child.ids)

    def _opaque(self, name: str) -> Relation:
        ids = tuple(attribute for attribute, _ in self._output)
        if name.startswith("UnionLoop"):
            raise NotSupported("recursive queries cannot be live views yet")
        if not self.children:
            raise NotSupported(
                f"the query reads {name}, which is not a Headwater table; create a table for it with create_table"
            )
        if "ScalarSubquery" in json.dumps({key: value for key, value in self.json.items() if key != "num-children"}):
            raise Unreadable(f"a scalar subquery inside {name}")
        meaning = f"{json.dumps(self._meaning(), sort_keys=True)}#{self.reader.serial}"
        node = plan.Opaque(
            types=self._types(ids),
            name=name,
            inputs=tuple(child.node for child in self.children),
            meaning=meaning,
            by_row=name in _BY_ROW,
            origin=self.origin,
        )
        return Relation(node, ids)

    def _meaning(self) -> Json:
        return {key: value for key, value in self.json.items() if key not in ("num-children", "child")}

    # -- parts

    @cached_property
    def _output(self) -> list[tuple[int, pa.DataType]]:
        """Ids and types of the columns that the node gives, asked of Spark."""
        attributes = self.origin.get().output()
        found = []
        for i in range(attributes.size()):
            attribute = attributes.apply(i)
            described = arrow_type(json.loads(attribute.dataType().json()))
            found.append((int(attribute.exprId().id()), described))
            self.reader.types.setdefault(found[-1][0], described)
        return found

    def _types(self, ids: tuple[int, ...]) -> plan.Types:
        if any(attribute not in self.reader.types for attribute in ids):
            _ = self._output
        return tuple(self.reader.types[attribute] for attribute in ids)

    def _named_ids(self, name: str) -> tuple[int, ...]:
        return tuple(expression[0]["exprId"]["id"] for expression in self.json[name])

    def _plain_expressions(self, name: str) -> tuple[Expression, ...]:
        """Expressions in which no subquery may stand."""
        child = self.children[0]
        return tuple(
            read_expression(expression, child.column, self._refuse, self.origin.then(name, i))
            for i, expression in enumerate(self.json[name])
        )

    def _expressions(self, name: str, child: Relation) -> tuple[Relation, tuple[Expression, ...]]:
        expressions = []
        for i, described in enumerate(self.json[name]):
            child, expression = self._expression(described, child, self.origin.then(name, i))
            expressions.append(expression)
        return child, tuple(expressions)

    def _expression(self, described: list[Json], child: Relation, origin: Handle) -> tuple[Relation, Expression]:
        """Reads an expression; each scalar subquery in it becomes one more column of the child, joined to every row."""
        widened = child

        def subquery(node: Json) -> Expression:
            nonlocal widened
            value = self._subquery(node)
            left = widened.node
            types = left.types + value.types
            joined = plan.Join(types=types, left=left, right=value, kind="inner", condition=None)
            widened = Relation(joined, (*widened.ids, -1 - len(widened.ids)))
            return Column(len(types) - 1, types[-1])

        expression = read_expression(described, child.column, subquery, origin)
        return widened, expression

    def _subquery(self, node: Json) -> plan.Node:
        root = self.reader.subplans[_output_id(node["plan"])]
        value = self.reader.read(node["plan"], root).node
        return plan.Scalar(types=value.types, child=_without_order(value))

    def _refuse(self, _node: Json) -> Expression:
        raise Unreadable(f"a scalar subquery inside {class_name(self.json)}")

    def _order(self, name: str) -> tuple[plan.SortKey, ...]:
        order = tuple(sort_key(expression) for expression in self._plain_expressions(name))
        if not self._is_collated:
            return order
        origins = [self.origin.then(name, i).child(0) for i in range(len(order))]
        return tuple(
            replace(key, expression=collation_key(key.expression, origin, ordered=True))
            for key, origin in zip(order, origins, strict=True)
        )

    @cached_property
    def _is_collated(self) -> bool:
        """Whether the node itself reads or makes strings that are compared otherwise than by their bytes."""
        described = json.dumps(self.json)
        return is_collated(described) or f'"{COLLATION}"' in described


def _least(string: Expression) -> Call:
    kind = pa.string()
    return Call("AggregateExpression", (Call("Min", (string,), kind),), kind, (("isDistinct", "false"),))


def sort_key(order: Expression) -> plan.SortKey:
    """Catalyst's `SortOrder` as a sort key."""
    assert isinstance(order, Call)
    descending = "Descending" in (order.option("direction") or "")
    return plan.SortKey(order.arguments[0], descending, "NullsFirst" in (order.option("nullOrdering") or ""))


def _is_row_number(function: Expression) -> bool:
    inner = function.arguments[0] if isinstance(function, Call) and function.arguments else function
    return isinstance(inner, Call) and inner.function == "RowNumber"


def _with_order(node: plan.Node) -> tuple[plan.Node, tuple[plan.SortKey, ...]] | None:
    """The same rows with what they are sorted by as further columns, and the order by these; None if they are not sorted."""
    match node:
        case plan.Sort(child=child, order=order):
            columns = tuple(Column(i, kind) for i, kind in enumerate(child.types))
            keys = tuple(Column(len(columns) + i, _type_of(key.expression)) for i, key in enumerate(order))
            expressions = columns + tuple(key.expression for key in order)
            types = child.types + tuple(key.type for key in keys)
            widened = plan.Project(types=types, child=child, expressions=expressions)
            return widened, tuple(replace(key, expression=column) for key, column in zip(order, keys, strict=True))
        case plan.Filter(child=child):
            below = _with_order(child)
            return below and (replace(node, types=below[0].types, child=below[0]), below[1])
        case plan.Project(child=child, expressions=expressions):
            below = _with_order(child)
            if below is None:
                return None
            carried = tuple(key.expression for key in below[1])
            types = node.types + tuple(map(_type_of, carried))
            keys = tuple(Column(len(node.types) + i, kind) for i, kind in enumerate(types[len(node.types) :]))
            order = tuple(replace(key, expression=column) for key, column in zip(below[1], keys, strict=True))
            return plan.Project(types=types, child=below[0], expressions=expressions + carried), order
    return None


def _by_whole_row(types: plan.Types) -> tuple[plan.SortKey, ...]:
    """How rows are ordered that an order leaves equal, as by a limit."""
    columns = [Column(i, kind) for i, kind in enumerate(types) if is_ordered(kind)]
    return tuple(plan.SortKey(column, descending=False, nulls_first=True) for column in columns)


def _type_of(expression: Expression) -> pa.DataType:
    if expression.type is not None:
        return expression.type
    assert isinstance(expression, Call)
    assert expression.origin is not None
    return arrow_type(json.loads(expression.origin.get().dataType().json()))


def _in_order(function: Expression, order: tuple[plan.SortKey, ...]) -> Expression:
    """A window function over an order; it has none."""
    assert isinstance(function, Call)
    inner, specification = function.arguments
    assert isinstance(specification, Call)
    *partition, frame = specification.arguments
    ordered = replace(specification, arguments=(*partition, *map(_sort_order, order), frame), origin=None)
    return replace(function, arguments=(inner, ordered), origin=None)


def _sort_order(key: plan.SortKey) -> Call:
    """A sort key as Catalyst's `SortOrder`."""
    options = (
        ("direction", "Descending" if key.descending else "Ascending"),
        ("nullOrdering", "NullsFirst" if key.nulls_first else "NullsLast"),
    )
    return Call("SortOrder", (key.expression,), None, options)


def _may_be_session(key: list[Json]) -> bool:
    """Whether a key is a column of a session window's type; the JSON does not say whether it is marked as one."""
    stated = key[0].get("dataType") if class_name(key[0]) == "AttributeReference" else None
    fields = stated.get("fields", []) if isinstance(stated, dict) else []
    return [part["name"] for part in fields] == ["start", "end"]


def _require_not_aggregated(session: Column, outputs: tuple[Expression, ...]) -> None:
    """Aggregate functions get some rows with their own window, and some with the merged one, as Spark's plan has it."""
    calls = [part for output in outputs for part in walk(output) if isinstance(part, Call)]
    if any(session.index in columns_of(call) for call in calls if call.function == "AggregateExpression"):
        raise Unreadable("an aggregate function over the session window that it groups by")


def limited(node: plan.Node, count: int | None, offset: int) -> plan.Node:
    """The first rows of a node in the order it is in; a projection above the order is done after the limit.

    >>> limited(Project(Sort(x)), 3, 0)   gives   Project(Limit(x, 3))   # doctest: +SKIP
    """
    if isinstance(node, plan.Project):
        return replace(node, child=limited(node.child, count, offset))
    if isinstance(node, plan.Limit) and node.offset and not offset and node.count is None:
        return replace(node, count=count)
    order = node.order if isinstance(node, plan.Sort) else ()
    child = node.child if isinstance(node, plan.Sort) else node
    return plan.Limit(types=child.types, child=child, order=order, count=count, offset=offset)


def _without_order(node: plan.Node) -> plan.Node:
    return node.child if isinstance(node, plan.Sort) else node


def _first_columns(node: plan.Node, count: int) -> plan.Node:
    if count == len(node.types):
        return node
    expressions = tuple(Column(i, node.types[i]) for i in range(count))
    return plan.Project(types=node.types[:count], child=node, expressions=expressions)


def _attributes(value: Any) -> Iterator[Json]:  # noqa: ANN401  (JSON)
    """Every attribute anywhere in the JSON, subqueries included."""
    if isinstance(value, dict):
        if value.get("class", "").endswith(".AttributeReference"):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                yield from _attributes(part)


def _output_id(nodes: list[Json]) -> int:
    """The id of the single column that a scalar subquery's plan gives."""
    node = nodes[0]
    for name in ("projectList", "aggregateExpressions"):
        if name in node:
            found: int = node[name][0][0]["exprId"]["id"]
            return found
    if "output" in node:
        return int(node["output"][0][0]["exprId"]["id"])
    return _output_id(nodes[1:])


def _listed(projections: Any) -> list[list[list[Json]]]:  # noqa: ANN401  (a JVM object)
    """What the JSON would say of a sequence of sequences of expressions."""
    rows = [projections.apply(i) for i in range(projections.size())]
    return [[json.loads(row.apply(j).toJSON()) for j in range(row.size())] for row in rows]
