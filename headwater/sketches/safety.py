"""Whether a query gives the same answer if tables are cut down to the ranges that its answer came from.

For every operator: each row it gives over part of the data belongs to a row it gives over all data, different ones to different
ones, with equal keys and with values that compare as `comparing` says. Filters must be true of the second whenever they are
true of the first; then nothing can appear that is not in the answer, and what is in the answer has all its rows there.

    covered    a group has all its rows or none, because the attribute is one of its keys: its values are equal
    cut        a limit is below: rows that it left out could take the place of others, so nothing may filter them any more
    barrier    all that an operator gives is added to the sketch; above it, it is like a table of which nothing is missing
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression
from headwater.algebra.texts import text_of
from headwater.compiler.joins import analyse
from headwater.compiler.linear import conjuncts
from headwater.sketches.comparing import (
    ANYTHING,
    EQUAL,
    GREATER,
    LESS,
    UNKNOWN,
    Value,
    either,
    tightened,
    unsteady,
    value_of,
)
from headwater.sketches.facts import Facts, State, Unsafe
from headwater.sketches.groups import of_group

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from headwater.sketches.facts import Access

_LOST = {"anti": "right", "left": "right", "existence": "right", "single": "right", "right": "left", "full": "both"}


def barriers(root: plan.Node, accesses: Collection[Access], facts: Facts) -> frozenset[int]:
    """The nodes, by their numbers from the top, that must be barriers; raises `Unsafe` if these accesses are not safe."""
    check = _Check(frozenset(accesses), facts)
    check.state(root)
    return frozenset(check.barriers)


@dataclass
class _Check:
    accesses: frozenset[Access]
    facts: Facts
    barriers: set[int] = field(default_factory=set)
    nodes: int = 0
    scans: int = 0

    def state(self, node: plan.Node) -> State:
        self.nodes += 1
        if isinstance(node, plan.Scan):
            return self._scan(node)
        children, numbers = [], []
        for child in node.children:
            numbers.append(self.nodes)
            children.append(self.state(child))
        rule = _RULES.get(type(node), _other)
        try:
            return rule(node, children)
        except Unsafe:
            walls = [i for i, child in enumerate(children) if child.sights and _is_selective(node.children[i])]
            if not walls:
                raise
            found = rule(node, [child.whole if i in walls else child for i, child in enumerate(children)])
            self.barriers.update(numbers[i] for i in walls)
            return found

    def _scan(self, node: plan.Scan) -> State:
        table, number = node.source.lower(), self.scans
        self.scans += 1
        values = tuple(self.facts.value(table, column) for column in range(len(node.types)))
        sights = {access: frozenset([access[1]]) for access in self.accesses if access[0] == number}
        return State(values, sights, key=self.facts.keys.get(table))


def _is_selective(node: plan.Node) -> bool:
    """Whether an operator gives so little that all its rows may be needed: it limits, or filters groups."""
    if isinstance(node, plan.Limit):
        return True
    if isinstance(node, plan.Filter) and any(isinstance(below, plan.Aggregate) for below in plan.walk(node)):
        return True
    return isinstance(node, plan.Project | plan.Sort | plan.Aggregate) and _is_selective(node.child)


def _require(condition: bool, operator: str, reason: str) -> None:  # noqa: FBT001  (reads as a sentence)
    if not condition:
        raise Unsafe(operator, reason)


def _require_not_cut(operator: str, *children: State) -> None:
    for child in children:
        _require(
            not (child.cut and child.sights),
            operator,
            "it filters the rows of a LIMIT, and rows that the limit left out would take their places",
        )


def _require_steady(condition: Expression | None, state: State, operator: str) -> None:
    for part in conjuncts(condition):
        found = unsteady(part, state.lookup)
        if found is not None:
            names = [f"#{i}" for i in range(len(state.values))]
            reason = "may be true of a group of which rows are missing, though it is not of the whole group"
            raise Unsafe(operator, f"{text_of(found, names)} {reason}")


# -- one rule an operator


def _project(node: plan.Project, children: list[State]) -> State:
    (child,) = children
    values = tuple(value_of(part, child.lookup) for part in node.expressions)
    copies = [part.index if isinstance(part, Column) else None for part in node.expressions]
    return State(values, _moved(child.sights, copies), child.cut, _key(child.key, copies))


def _filter(node: plan.Filter, children: list[State]) -> State:
    (child,) = children
    if child.sights:
        _require_not_cut("Filter", child)
        _require_steady(node.condition, child, "Filter")
    return replace(child, values=tuple(tightened(list(child.values), conjuncts(node.condition))))


def _sort(_node: plan.Sort, children: list[State]) -> State:
    return children[0]


def _expand(node: plan.Expand, children: list[State]) -> State:
    (child,) = children
    if child.sights:
        _require_not_cut("Expand", child)
    columns = list(zip(*node.projections, strict=True))
    values = []
    for column in columns:
        found = [value_of(part, child.lookup) for part in column]
        values.append(_any(found))
    sights = {
        access: frozenset(
            i for i, column in enumerate(columns) if all(isinstance(part, Column) and part.index in seen for part in column)
        )
        for access, seen in child.sights.items()
    }
    return State(tuple(values), sights)


def _generate(node: plan.Generate, children: list[State]) -> State:
    (child,) = children
    if child.sights:
        _require_not_cut("Generate", child)
    made = len(node.types) - len(node.kept)
    steady = all(value_of(part, child.lookup).relation == EQUAL for part in node.generator.arguments)
    values = (*(child.values[i] for i in node.kept), *[Value() if steady else Value(UNKNOWN)] * made)
    copies: list[int | None] = [*node.kept, *[None] * made]
    return State(values, _moved(child.sights, copies))


def _union(node: plan.Union, children: list[State]) -> State:
    _require_not_cut("Union", *children)
    values = tuple(_any([child.values[i] for child in children]) for i in range(len(node.types)))
    # A group may have rows of several branches, so none of them shows that it is whole.
    return State(values, {access: frozenset() for child in children for access in child.sights})


def _join(node: plan.Join, children: list[State]) -> State:
    left, right = children
    operator = f"{node.kind} join".capitalize()
    lost = _LOST.get(node.kind)
    if lost in ("right", "both"):
        _require(not right.sights, operator, "a row of the right side that is missing makes rows appear, or changes them")
    if lost in ("left", "both"):
        _require(not left.sights, operator, "a row of the left side that is missing makes rows appear, or changes them")
    width = len(left.values)
    both = State((*left.values, *right.values))
    if left.sights or right.sights:
        _require_not_cut(operator, left, right)
        _require_keys(node, both, operator)
    pairs = _pairs(node)
    sights = dict(left.sights)
    for access, seen in right.sights.items():
        shown = {width + i for i in seen} if node.kind in ("inner", "right") else set()
        sights[access] = frozenset(shown | {one for one, other in pairs if other in seen})
    if node.kind == "inner":
        sights = {access: _closed(seen, pairs, width) for access, seen in sights.items()}
    key = None if left.key is None or right.key is None else left.key | {width + i for i in right.key}
    key = left.key if node.kind in ("semi", "anti", "existence") else key
    return State(_joined_values(node, left, right), sights, key=key)


def _closed(seen: frozenset[int], pairs: list[tuple[int, int]], width: int) -> frozenset[int]:
    """Columns, and those that equal one of them."""
    right = {width + other for one, other in pairs if one in seen}
    return seen | right | {one for one, other in pairs if width + other in seen}


def _require_keys(node: plan.Join, both: State, operator: str) -> None:
    condition = analyse(node)
    if node.kind in ("inner", "semi"):
        _require_steady(condition.rest, both, operator)
        steady: Expression | None = condition.equalities
    else:
        steady = node.condition
    for part in conjuncts(steady):
        unequal = isinstance(part, Call) and any(value_of(inner, both.lookup).relation != EQUAL for inner in part.arguments)
        _require(not unequal, operator, "its key may have another value where rows of a group are missing")


def _joined_values(node: plan.Join, left: State, right: State) -> tuple[Value, ...]:
    padded = tuple(replace(value, nullable=True) for value in right.values)
    match node.kind:
        case "semi" | "anti":
            return left.values
        case "existence":
            return (*left.values, Value(nullable=False))
        case "inner":
            both = [*left.values, *right.values]
            return tuple(tightened(both, conjuncts(node.condition)))
        case "left" | "single":
            return (*left.values, *padded)
    return tuple(replace(value, nullable=True) for value in (*left.values, *right.values))


def _pairs(node: plan.Join) -> list[tuple[int, int]]:
    """Columns of the left and the right side that are equal."""
    condition = analyse(node)
    found = zip(condition.left, condition.right, strict=True)
    return [(one.index, other.index) for one, other in found if isinstance(one, Column) and isinstance(other, Column)]


def _aggregate(node: plan.Aggregate, children: list[State]) -> State:
    (child,) = children
    if child.sights:
        _require_not_cut("Aggregate", child)
        for key in node.keys:
            steady = value_of(key, child.lookup).relation == EQUAL
            _require(steady, "Aggregate", "it groups by a value that is another where rows are missing")
    columns = {key.index for key in node.keys if isinstance(key, Column)}
    covered = all(seen & columns for seen in child.sights.values())
    keys = dict.fromkeys(node.keys)

    def lookup(part: Expression) -> Value | None:
        if part in keys:
            return value_of(part, child.lookup)
        if isinstance(part, Call) and part.function == "AggregateExpression":
            found = of_group(part, child, sketched=bool(child.sights), grouped=bool(node.keys))
            return replace(found, relation=EQUAL) if covered else found
        return child.lookup(part)

    values = tuple(value_of(output, lookup) for output in node.outputs)
    copies = [part.index if isinstance(part, Column) and part in keys else None for part in node.outputs]
    places = [next((i for i, output in enumerate(node.outputs) if output == key), None) for key in node.keys]
    whole = frozenset(place for place in places if place is not None)
    return State(values, _moved(child.sights, copies), key=whole if None not in places else None)


def _limit(node: plan.Limit, children: list[State]) -> State:
    (child,) = children
    if not child.sights:
        return replace(child, cut=False)
    _require_not_cut("Limit", child)
    _require(node.count is not None, "Offset", "rows before it would be missing")
    for key in node.order:
        value = value_of(key.expression, child.lookup)
        reason = "a group of which rows are missing could come before others"
        if key.descending:
            settled = not value.nullable or not key.nulls_first
            _require(value.relation == EQUAL or (value.relation == LESS and settled), "Limit", reason)
        else:
            _require(_is_last(value, nulls_first=key.nulls_first), "Limit", reason)
    seen = {key.expression.index for key in node.order if isinstance(key.expression, Column)}
    for column, value in enumerate(child.values):
        if child.key is not None and child.key <= seen:
            break
        if column not in seen:
            _require(
                _is_last(value, nulls_first=True), "Limit", "rows that are equal in its order go by values that may differ"
            )
            seen.add(column)
    return replace(child, cut=True)


def _is_last(value: Value, *, nulls_first: bool) -> bool:
    return value.relation == EQUAL or (value.relation == GREATER and (not value.nullable or not nulls_first))


def _window(node: plan.Window, children: list[State]) -> State:
    (child,) = children
    if child.sights:
        _require_not_cut("Window", child)
        columns = {part.index for part in node.partition if isinstance(part, Column)}
        covered = all(seen & columns for seen in child.sights.values())
        _require(covered, "Window", "it is not partitioned by the attribute, so rows of a partition would be missing")
    return State((*child.values, *[ANYTHING] * len(node.functions)), child.sights)


def _scalar(_node: plan.Scalar, children: list[State]) -> State:
    """One row always, so that there is nothing to tell apart."""
    (child,) = children
    _require(not child.sights, "Scalar subquery", "its value over part of the rows may be another")
    return State(tuple(replace(value, nullable=True) for value in child.values), key=frozenset())


def _values(node: plan.Values, _children: list[State]) -> State:
    return State((ANYTHING,) * len(node.types))


def _other(node: plan.Node, children: list[State]) -> State:
    name = node.name if isinstance(node, plan.Opaque) else type(node).__name__
    for child in children:
        _require(not child.sights, name, "what it makes of part of the rows is not known")
    return State((ANYTHING,) * len(node.types))


_RULES: Mapping[type[plan.Node], Callable[..., State]] = {
    plan.Project: _project,
    plan.Filter: _filter,
    plan.Sort: _sort,
    plan.Expand: _expand,
    plan.Generate: _generate,
    plan.Union: _union,
    plan.Join: _join,
    plan.Aggregate: _aggregate,
    plan.Limit: _limit,
    plan.Window: _window,
    plan.Scalar: _scalar,
    plan.Values: _values,
}


def _any(values: list[Value]) -> Value:
    found = values[0]
    for value in values[1:]:
        found = either(found, value)
    return found


def _moved(sights: Mapping[Access, frozenset[int]], copies: list[int | None]) -> dict[Access, frozenset[int]]:
    return {access: frozenset(i for i, copy in enumerate(copies) if copy in seen) for access, seen in sights.items()}


def _key(key: frozenset[int] | None, copies: list[int | None]) -> frozenset[int] | None:
    if key is None or not key <= set(copies):
        return None
    return frozenset(copies.index(column) for column in key)
