"""Plans over small tables of integers, written in a line; and what they mean, row by row, with the rows each row came from."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.compiler.joins import analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = tuple[Any, ...]
    Lineage = frozenset[tuple[int, int]]
    Traced = list[tuple[Row, Lineage]]

INT = pa.int64()
_ANSI = (("evalMode", '"ANSI"'),)
_OPERATORS = {">": "GreaterThan", ">=": "GreaterThanOrEqual", "<": "LessThan", "<=": "LessThanOrEqual", "=": "EqualTo"}
_FUNCTIONS = {"count": "Count", "sum": "Sum", "min": "Min", "max": "Max", "avg": "Average"}


def col(index: int) -> Column:
    return Column(index, INT)


def lit(value: int) -> Literal:
    return Literal(str(value), INT)


def compare(operator: str, left: Expression, right: Expression) -> Call:
    if operator == "<>":
        return Call("Not", (Call("EqualTo", (left, right)),))
    return Call(_OPERATORS[operator], (left, right))


def compute(function: str, *arguments: Expression) -> Call:
    return Call({"+": "Add", "-": "Subtract", "*": "Multiply", "neg": "UnaryMinus"}[function], arguments, None, _ANSI)


def case(condition: Expression, yes: Expression, no: Expression) -> Call:
    return Call("If", (condition, yes, no))


def scan(table: str, width: int) -> plan.Scan:
    return plan.Scan(types=(INT,) * width, source=table)


def where(child: plan.Node, operator: str, left: Expression, right: Expression) -> plan.Filter:
    return plan.Filter(types=child.types, child=child, condition=compare(operator, left, right))


def project(child: plan.Node, *expressions: Expression) -> plan.Project:
    return plan.Project(types=(INT,) * len(expressions), child=child, expressions=expressions)


def aggregate(child: plan.Node, keys: Sequence[int], *calls: tuple[str, Expression]) -> plan.Aggregate:
    columns = tuple(col(key) for key in keys)
    values = tuple(_call(function, argument) for function, argument in calls)
    types = (INT,) * len(columns) + tuple(pa.float64() if f == "avg" else INT for f, _ in calls)
    return plan.Aggregate(types=types, child=child, keys=columns, outputs=(*columns, *values))


def _call(function: str, argument: Expression) -> Call:
    distinct = function == "count distinct"
    inner = Call("Count" if distinct else _FUNCTIONS[function], (argument,), None, () if distinct else _ANSI)
    options = (("isDistinct", str(distinct).lower()), ("mode", '"Complete"'))
    return Call("AggregateExpression", (inner,), pa.float64() if function == "avg" else INT, options)


def distinct(child: plan.Node) -> plan.Aggregate:
    return aggregate(child, range(len(child.types)))


def limit(child: plan.Node, order: Sequence[tuple[int, str]], k: int, offset: int = 0) -> plan.Limit:
    keys = tuple(plan.SortKey(Column(i, child.types[i]), way == "desc", way != "desc") for i, way in order)
    return plan.Limit(types=child.types, child=child, order=keys, count=k, offset=offset)


def join(kind: str, left: plan.Node, right: plan.Node, pairs: Sequence[tuple[int, int]]) -> plan.Join:
    width = len(left.types)
    condition: Expression | None = None
    for one, other in pairs:
        part = Call("EqualTo", (Column(one, left.types[one]), Column(width + other, right.types[other])))
        condition = part if condition is None else Call("And", (condition, part))
    types = left.types if kind in ("semi", "anti") else left.types + right.types
    return plan.Join(types=types, left=left, right=right, kind=kind, condition=condition)


def beside(child: plan.Node, subquery: plan.Node) -> plan.Join:
    """Each row with the value of a scalar subquery after its columns."""
    return join("inner", child, plan.Scalar(types=subquery.types, child=subquery), [])


def union(*inputs: plan.Node) -> plan.Union:
    return plan.Union(types=inputs[0].types, inputs=inputs)


# -- what they mean


class Naive:
    """Evaluates a plan over tables, given for each scan by its number from the top; `seen` is what each node gave."""

    def __init__(self, tables: Mapping[int, Sequence[tuple[int, Row]]], *, witnesses: bool = False) -> None:
        self._tables = tables
        self._witnesses = witnesses
        self._scans: Iterator[int] = count()
        self._nodes: Iterator[int] = count()
        self.seen: dict[int, Traced] = {}

    def rows(self, node: plan.Node) -> Traced:
        number = next(self._nodes)
        if isinstance(node, plan.Scan):
            at = next(self._scans)
            found = [(row, frozenset([(at, identity)])) for identity, row in self._tables[at]]
        else:
            children = [self.rows(child) for child in node.children]
            found = _EVALUATE[type(node)](node, children)
            if isinstance(node, plan.Aggregate) and self._witnesses:
                found = _witnessed(node, children[0], found)
        self.seen[number] = found
        return found


def _filter(node: plan.Filter, children: list[Traced]) -> Traced:
    return [(row, lineage) for row, lineage in children[0] if value(node.condition, row) is True]


def _project(node: plan.Project, children: list[Traced]) -> Traced:
    return [(tuple(value(part, row) for part in node.expressions), lineage) for row, lineage in children[0]]


def _union(_node: plan.Union, children: list[Traced]) -> Traced:
    return [pair for child in children for pair in child]


def _join(node: plan.Join, children: list[Traced]) -> Traced:
    left, right = children
    keys = analyse(node)
    found: Traced = []
    for row, lineage in left:
        key = tuple(value(part, row) for part in keys.left)
        partners = [
            (other, more)
            for other, more in right
            if None not in key and tuple(value(part, other) for part in keys.right) == key
        ]
        if node.kind == "semi" and partners:
            found.append((row, lineage.union(*(more for _, more in partners))))
        elif node.kind == "anti" and not partners:
            found.append((row, lineage))
        elif node.kind in ("inner", "left"):
            found += [(row + other, lineage | more) for other, more in partners]
            if node.kind == "left" and not partners:
                found.append((row + (None,) * len(node.right.types), lineage))
    return found


def _aggregate(node: plan.Aggregate, children: list[Traced]) -> Traced:
    groups: dict[Row, Traced] = {} if node.keys else {(): []}
    for row, lineage in children[0]:
        groups.setdefault(tuple(value(key, row) for key in node.keys), []).append((row, lineage))
    found = []
    for key, members in groups.items():
        outputs = []
        for output in node.outputs:
            if output in node.keys:
                outputs.append(key[node.keys.index(output)])
            else:
                outputs.append(_of_group(output, [row for row, _ in members]))
        found.append((tuple(outputs), frozenset().union(*(lineage for _, lineage in members))))
    return found


def _witnessed(node: plan.Aggregate, rows: Traced, found: Traced) -> Traced:
    """Groups of nothing but least and greatest values come from the rows that have them."""
    calls = [(i, output.arguments[0]) for i, output in enumerate(node.outputs) if isinstance(output, Call)]
    if not calls or any(function.function not in ("Min", "Max") for _, function in calls):
        return found
    traced = []
    for group, _ in found:
        places = [node.outputs.index(key) for key in node.keys]
        lineages = [
            lineage
            for row, lineage in rows
            if all(value(key, row) == group[place] for key, place in zip(node.keys, places, strict=True))
            and any(value(function.arguments[0], row) == group[i] for i, function in calls)
        ]
        traced.append((group, frozenset().union(*lineages)))
    return traced


def _of_group(call: Any, rows: list[Row]) -> Any:
    (function,) = call.arguments
    values = [value(function.arguments[0], row) for row in rows]
    values = [each for each in values if each is not None]
    if function.function == "Count":
        return len(set(values)) if call.option("isDistinct") == "true" else len(values)
    if not values:
        return None
    match function.function:
        case "Sum":
            return sum(values)
        case "Min":
            return min(values)
        case "Max":
            return max(values)
    return sum(values) / len(values)


def _limit(node: plan.Limit, children: list[Traced]) -> Traced:
    def rank(pair: tuple[Row, Lineage]) -> list[Any]:
        row = pair[0]
        keys = []
        for key in node.order:
            each = value(key.expression, row)
            missing = (0 if key.nulls_first else 1) if each is None else 0.5
            keys.append((missing, 0 if each is None else -each if key.descending else each))
        return [*keys, *((0, 0) if each is None else (1, each) for each in row)]

    assert node.count is not None
    return sorted(children[0], key=rank)[node.offset : node.offset + node.count]


def _scalar(node: plan.Scalar, children: list[Traced]) -> Traced:
    """Its rows are all needed as they are: none of them is one that the answer came from."""
    (rows,) = children
    assert len(rows) <= 1
    return [(rows[0][0] if rows else (None,) * len(node.types), frozenset())]


_EVALUATE: dict[type, Any] = {
    plan.Filter: _filter,
    plan.Project: _project,
    plan.Union: _union,
    plan.Join: _join,
    plan.Aggregate: _aggregate,
    plan.Limit: _limit,
    plan.Scalar: _scalar,
    plan.Sort: lambda _node, children: children[0],
}


def value(expression: Expression, row: Row) -> Any:  # noqa: C901, PLR0911, PLR0912  (one case a function)
    match expression:
        case Column(index):
            return row[index]
        case Literal(value=text):
            return None if text is None else int(text)
        case Call(function="And"):
            parts = [value(part, row) for part in expression.arguments]
            return False if False in parts else None if None in parts else True
        case Call(function="IsNotNull"):
            return value(expression.arguments[0], row) is not None
        case Call(function="If"):
            yes, no = expression.arguments[1:]
            return value(yes if value(expression.arguments[0], row) is True else no, row)
    assert isinstance(expression, Call)
    parts = [value(part, row) for part in expression.arguments]
    if None in parts:
        return None
    match expression.function:
        case "GreaterThan":
            return parts[0] > parts[1]
        case "GreaterThanOrEqual":
            return parts[0] >= parts[1]
        case "LessThan":
            return parts[0] < parts[1]
        case "LessThanOrEqual":
            return parts[0] <= parts[1]
        case "EqualTo":
            return parts[0] == parts[1]
        case "Not":
            return not parts[0]
        case "Add":
            return parts[0] + parts[1]
        case "Subtract":
            return parts[0] - parts[1]
        case "Multiply":
            return parts[0] * parts[1]
        case "UnaryMinus":
            return -parts[0]
    raise TypeError(expression.function)


def bag(traced: Traced) -> Counter[Row]:
    return Counter(row for row, _ in traced)
