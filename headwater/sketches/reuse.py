"""Whether a sketch of one query serves another one that differs only in constants: tighter conditions, fewer rows of a limit.

The sketch of Q has all that Q' needs if every row that Q' gives belongs to a row of Q, and what it came from is among what
that one came from. Both plans are walked side by side; as in `safety`, each value of Q' compares with that of Q.

    tight     a condition of Q' that is true of a row of Q' implies that of Q:     sum > 15  after  sum > 10
    slack     the other way round; a condition that is both is the same

Below an aggregate, a changed condition on other columns than the keys leaves parts of groups: counts are less, and only
conditions that grow with them may follow. Nothing may change below a limit, and a limit may shrink only at the top.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal, columns_of
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
    is_number,
    tightened,
    value_of,
)
from headwater.sketches.facts import State, Unsafe
from headwater.sketches.groups import of_group
from headwater.sketches.safety import barriers
from headwater.sketches.witnesses import extremes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.sketches.captured import Captured
    from headwater.sketches.facts import Facts

_MIRRORED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_MIRRORED |= {smaller: larger for larger, smaller in _MIRRORED.items()} | {"EqualTo": "EqualTo"}
_INVERSE = {LESS: GREATER, GREATER: LESS}


class Different(Exception):
    """The two queries differ in more than the sketch can bear."""


@dataclass(frozen=True)
class Atom:
    """A condition below: for each column that it reads, where that is seen now; whether it is tight and slack."""

    columns: tuple[frozenset[int], ...]
    tight: bool
    slack: bool

    def moved(self, copies: list[int | None]) -> Atom:
        seen = tuple(frozenset(i for i, copy in enumerate(copies) if copy in column) for column in self.columns)
        return replace(self, columns=seen)

    def is_of(self, keys: set[int]) -> bool:
        """Whether it is a condition on keys alone."""
        return all(column & keys for column in self.columns)


@dataclass(frozen=True)
class Pairing:
    """What is known of the rows of an operator in both plans; `same` if both are the same plan."""

    values: tuple[Value, ...]
    atoms: tuple[Atom, ...] = ()
    same: bool = True

    def lookup(self, expression: Expression) -> Value | None:
        return self.values[expression.index] if isinstance(expression, Column) else None

    def is_equal(self, expression: Expression) -> bool:
        return self.same or value_of(expression, self.lookup).relation == EQUAL


def serves(sketch: Captured, root: plan.Node, facts: Facts) -> bool:
    """Whether the fragments of the sketch are enough for a query of this plan; `facts` are what the sketch relies on."""
    owner = sketch.query.root
    if owner is None:
        return False
    if owner == root:
        return True
    try:
        pairing = _Walk(sketch.barriers, facts, sketch.witnesses).pairing(owner, root, top=True)
        walls = barriers(root, [(covered.scan, covered.column) for covered in sketch.accesses], facts)
    except (Different, Unsafe):
        return False
    return all(atom.tight for atom in pairing.atoms) and walls <= sketch.barriers


@dataclass
class _Walk:
    barriers: frozenset[int]
    facts: Facts
    witnesses: bool = False
    nodes: int = 0
    rules: Mapping[type[plan.Node], Callable[..., Pairing]] = field(default_factory=lambda: _RULES)

    def pairing(self, one: plan.Node, other: plan.Node, *, top: bool = False) -> Pairing:
        number, self.nodes = self.nodes, self.nodes + 1
        _require(type(one) is type(other) and len(one.children) == len(other.children) and one.types == other.types)
        _require(number not in self.barriers or one == other)
        if isinstance(one, plan.Scan):
            _require(one == other)
            table = one.source.lower()
            return Pairing(tuple(self.facts.value(table, column) for column in range(len(one.types))))
        passes = top and isinstance(one, plan.Project | plan.Sort)
        pairs = zip(one.children, other.children, strict=True)
        children = [self.pairing(left, right, top=passes) for left, right in pairs]
        if isinstance(one, plan.Aggregate) and self.witnesses and extremes(one):
            _require(children[0].same)
        rule = self.rules.get(type(one))
        if isinstance(one, plan.Limit) and isinstance(other, plan.Limit):
            found = _limit(one, other, children[0], top=top)
        elif rule is None:
            _require(one == other)
            found = Pairing((ANYTHING,) * len(one.types))
        else:
            found = rule(one, other, children)
        return replace(found, same=one == other)


def _require(condition: bool) -> None:  # noqa: FBT001  (reads as a sentence)
    if not condition:
        raise Different


def _filter(one: plan.Filter, other: plan.Filter, children: list[Pairing]) -> Pairing:
    (child,) = children
    before, after = conjuncts(one.condition), conjuncts(other.condition)
    _require(len(before) == len(after))
    atoms = tuple(_atom(p, q, child) for p, q in zip(before, after, strict=True))
    looser = zip(tightened(list(child.values), before), tightened(list(child.values), after), strict=True)
    values = (replace(either(p, q), relation=old.relation) for (p, q), old in zip(looser, child.values, strict=True))
    return Pairing(tuple(values), (*child.atoms, *atoms))


def _atom(one: Expression, other: Expression, child: Pairing) -> Atom:
    columns = tuple(frozenset([column]) for column in sorted(columns_of(one)))
    if one == other and all(child.is_equal(Column(i, pa.null())) for i in columns_of(one)):
        return Atom(columns, tight=True, slack=True)
    stated, wanted = comparison(one), comparison(other)
    _require(stated is not None and wanted is not None)
    assert stated is not None
    assert wanted is not None
    (function, subject, limits), (also, same_subject, wanted_limits) = stated, wanted
    _require(function == also and subject == same_subject)
    relation = EQUAL if child.same else value_of(subject, child.lookup).relation
    tight = _implies(function, relation, wanted_limits, limits)
    return Atom(columns, tight, _implies(function, _INVERSE.get(relation, relation), limits, wanted_limits))


def comparison(condition: Expression) -> tuple[str, Expression, tuple[Any, ...]] | None:
    """A comparison with constants: what is compared, how, and the constants as values that can be ordered."""
    if not isinstance(condition, Call):
        return None
    if condition.function == "IsNotNull":
        return "IsNotNull", condition.arguments[0], ()
    if condition.function == "In" and all(isinstance(part, Literal) for part in condition.arguments[1:]):
        return "In", condition.arguments[0], tuple(_ordered(part) for part in condition.arguments[1:])
    if condition.function not in _MIRRORED or len(condition.arguments) != 2:
        return None
    left, right = condition.arguments
    if isinstance(right, Literal):
        return condition.function, left, (_ordered(right),)
    return (_MIRRORED[condition.function], right, (_ordered(left),)) if isinstance(left, Literal) else None


def _ordered(literal: Expression) -> Any:  # noqa: ANN401  (a number or bytes)
    """A constant as a value that compares as Spark compares it."""
    assert isinstance(literal, Literal)
    _require(literal.value is not None)
    text = str(literal.value)
    if is_number(literal.type):
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise Different from None
        _require(number.is_finite())
        return number
    if pa.types.is_string(literal.type):
        return text.encode()
    if pa.types.is_timestamp(literal.type) and text.lstrip("-").isdigit():
        return int(text)
    _require(pa.types.is_date(literal.type) and len(text) == len("2020-01-01") and text[:4].isdigit())
    return text


def _implies(function: str, relation: str, wanted: tuple[Any, ...], stated: tuple[Any, ...]) -> bool:
    """Whether a condition on the value of one instance implies the other's on a value that relates so to it."""
    match function:
        case "GreaterThan" | "GreaterThanOrEqual":
            return relation in (EQUAL, LESS) and wanted[0] >= stated[0]
        case "LessThan" | "LessThanOrEqual":
            return relation in (EQUAL, GREATER) and wanted[0] <= stated[0]
        case "IsNotNull":
            return relation != UNKNOWN
        case "In":
            return relation == EQUAL and set(wanted) <= set(stated)
    return relation == EQUAL and wanted == stated


def _project(one: plan.Project, other: plan.Project, children: list[Pairing]) -> Pairing:
    (child,) = children
    _require(one.expressions == other.expressions)
    copies = [part.index if isinstance(part, Column) else None for part in one.expressions]
    values = tuple(value_of(part, child.lookup) for part in one.expressions)
    return Pairing(values, tuple(atom.moved(copies) for atom in child.atoms))


def _sort(_one: plan.Sort, _other: plan.Sort, children: list[Pairing]) -> Pairing:
    return children[0]


def _union(one: plan.Union, _other: plan.Union, children: list[Pairing]) -> Pairing:
    values = []
    for column in range(len(one.types)):
        found = children[0].values[column]
        for child in children[1:]:
            found = either(found, child.values[column])
        values.append(found)
    hidden = (replace(atom, columns=(frozenset(),)) for child in children for atom in child.atoms)
    return Pairing(tuple(values), tuple(hidden))


def _join(one: plan.Join, other: plan.Join, children: list[Pairing]) -> Pairing:
    left, right = children
    _require(one.kind == other.kind and one.condition == other.condition)
    same = left.same and right.same
    _require(one.kind in ("inner", "semi") or right.same)
    _require(one.kind not in ("right", "full") or same)
    width = len(left.values)
    both = Pairing((*left.values, *right.values), same=same)
    _require(same or all(both.is_equal(Column(i, pa.null())) for i in columns_of_condition(one)))
    shifted = tuple(
        replace(atom, columns=tuple(frozenset(width + i for i in column) for column in atom.columns)) for atom in right.atoms
    )
    if one.kind in ("semi", "anti", "existence"):
        values = (*left.values, *[ANYTHING] * (len(one.types) - width))
        partners = {width + beside.index: column.index for column, beside in _columns(one)}
        shifted = tuple(
            replace(atom, columns=tuple(frozenset(partners[i] for i in column if i in partners) for column in atom.columns))
            for atom in shifted
        )
        return Pairing(values, (*left.atoms, *shifted))
    return Pairing(both.values, (*left.atoms, *shifted))


def _columns(node: plan.Join) -> list[tuple[Column, Column]]:
    condition = analyse(node)
    found = zip(condition.left, condition.right, strict=True)
    return [(left, right) for left, right in found if isinstance(left, Column) and isinstance(right, Column)]


def columns_of_condition(node: plan.Join) -> set[int]:
    return set() if node.condition is None else columns_of(node.condition)


def _aggregate(one: plan.Aggregate, other: plan.Aggregate, children: list[Pairing]) -> Pairing:
    (child,) = children
    _require(one.keys == other.keys and one.outputs == other.outputs)
    _require(all(child.is_equal(key) for key in one.keys))
    keys = {key.index for key in one.keys if isinstance(key, Column)}
    others = [atom for atom in child.atoms if not atom.is_of(keys)]
    tight, slack = all(atom.tight for atom in others), all(atom.slack for atom in others)
    state = State(child.values)

    def lookup(part: Expression) -> Value | None:
        if part in one.keys:
            return replace(value_of(part, child.lookup), relation=EQUAL)
        if isinstance(part, Call) and part.function == "AggregateExpression":
            found = of_group(part, state, sketched=True, grouped=bool(one.keys))
            steady = all(child.is_equal(Column(i, pa.null())) for i in columns_of(part))
            if child.same or (tight and slack and steady):
                return replace(found, relation=EQUAL)
            return found if tight else replace(found, relation=UNKNOWN)
        return child.lookup(part)

    copies = [part.index if isinstance(part, Column) and part in one.keys else None for part in one.outputs]
    values = tuple(value_of(part, lookup) for part in one.outputs)
    return Pairing(values, tuple(atom.moved(copies) for atom in child.atoms))


def _limit(one: plan.Limit, other: plan.Limit, child: Pairing, *, top: bool) -> Pairing:
    _require(child.same and one.order == other.order)
    _require(one.count is not None and other.count is not None)
    assert one.count is not None
    assert other.count is not None
    fewer = other.count + other.offset <= one.count + one.offset
    _require(one == other or (top and fewer))
    return child


_RULES: Mapping[type[plan.Node], Callable[..., Pairing]] = {
    plan.Project: _project,
    plan.Filter: _filter,
    plan.Sort: _sort,
    plan.Union: _union,
    plan.Join: _join,
    plan.Aggregate: _aggregate,
}
