"""Recursion to one operator: the body with ranks, taken apart at every place where rows are merged.

    ranked(X)          =  the rows so far of X, with their ranks                    (a column behind the others)
    ranked(f(R))       =  f(ranked(R)), rank kept                                   linear; semi and anti joins with others
    ranked(R ⋈ S)      =  ranked(R) ⋈ ranked(S), with the greater of both ranks     S alone, not recursive, has none
    ranked(R ⊎ S)      =  ranked(R) ⊎ (S, 0)
    ranked(δ R)        =  another relation of the fixpoint, a set                   and its rows so far, with their ranks
    ranked(γ min(R))   =  another relation of the fixpoint, the best of groups

Where rows are sets, how often a row is derived does not matter; so R ⋉ S with a recursive S is R ⋈ S. Everything else that may
lose rows when its input gains some — negation, other aggregates, outer joins, limits — has no least fixpoint, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal, moved
from headwater.compiler import aggregates, joins
from headwater.compiler.dataflow import Step, in_order
from headwater.compiler.monotony import require_monotone
from headwater.errors import NotStratified, NotSupported
from headwater.operators.fixpoint import RANK, Believed, Fixpoint, Line, Rows
from headwater.operators.operator import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    TypeOf = Callable[[Expression], pa.DataType]

EXTREMES = {"Min": "min", "Max": "max"}


def is_recursive(node: plan.Node) -> bool:
    """Whether the node reads rows of the fixpoint it stands in; a fixpoint within it is closed."""
    if isinstance(node, plan.Fixpoint):
        return False
    return isinstance(node, plan.Recursive) or any(map(is_recursive, node.children))


def compiled(node: plan.Fixpoint, compile_: Callable[[plan.Node], Step], type_of: TypeOf) -> Step:
    """The fixpoint as one step over all that its bodies read."""
    ranking = Ranking(node, type_of)
    require_monotone(ranking.relations, ranking.bodies)
    roots = [compile_(body) for body in ranking.bodies]
    inner: set[Step] = set()
    order = in_order(roots)
    for step in order:
        if isinstance(step.operator, Rows) or any(child in inner for child in step.inputs):
            inner.add(step)
    read = [child for step in order if step in inner for child in step.inputs] + roots
    inputs = list(dict.fromkeys(step for step in read if step not in inner))
    numbers = {step: -1 - i for i, step in enumerate(inputs)}
    lines: list[Line] = []
    for step in order:
        if isinstance(step.operator, Rows):
            numbers[step] = step.operator.relation
        elif step in inner:
            numbers[step] = len(roots) + len(lines)
            lines.append(Line(step.operator, tuple(numbers[child] for child in step.inputs)))
    operator = Fixpoint(
        types=node.types,
        relations=tuple(ranking.relations),
        lines=tuple(lines),
        bodies=tuple(numbers[root] for root in roots),
        result=node.result,
        inputs=len(inputs),
        rounds=node.limits.rounds,
        rows=node.limits.rows,
        choice=_choice(ranking.relations),
    )
    names = ", ".join(dict.fromkeys(relation.name for relation in node.relations))
    return Step(operator, tuple(inputs), f"Fixpoint {names}")


def _choice(relations: Sequence[Believed]) -> Choice:
    kinds = {"set": "a set", "min": "the least of each group", "max": "the greatest of each group", "bag": "a bag"}
    ways = tuple(f"{relation.name}: {kinds[relation.kind]}" for relation in relations)
    return Choice("strategy counting: derivations by round, as it is for large data", ways, None)


@dataclass
class Ranking:
    """The relations that rows are merged in, those of the fixpoint first, and the ranked bodies that derive them."""

    node: plan.Fixpoint
    type_of: TypeOf
    relations: list[Believed] = field(default_factory=list)
    bodies: list[plan.Node] = field(default_factory=list)
    name: str = ""

    def __post_init__(self) -> None:
        for relation in self.node.relations:
            self.relations.append(Believed(relation.name, relation.body.types, "bag" if relation.duplicates else "set"))
        self.bodies += [relation.body for relation in self.node.relations]
        for i, relation in enumerate(self.node.relations):
            self.name = relation.name
            if relation.duplicates:
                self._require_linear(relation.body)
            self.bodies[i] = self._ranked(relation.body)

    def _require_linear(self, body: plan.Node) -> None:
        """A bag goes round once: of two rows that meet, one must be known already."""
        for part in plan.walk(body):
            inputs = [child for child in part.children if is_recursive(child)]
            if len(inputs) > 1 and not isinstance(part, plan.Union):
                raise NotSupported(
                    f"{self.name!r} reads itself twice in one branch, which is not for UNION ALL; write UNION, or read it once"
                )

    def _ranked(self, node: plan.Node) -> plan.Node:  # noqa: C901, PLR0911  (one case a kind)
        """The node with one more column, the rank."""
        if not is_recursive(node):
            return _project(node, [*_columns(node.types), Literal("0", RANK)])
        match node:
            case plan.Recursive():
                return replace(node, types=(*node.types, RANK))
            case plan.Project():
                child = self._ranked(node.child)
                return replace(
                    node, types=(*node.types, RANK), child=child, expressions=(*node.expressions, _last(child.types))
                )
            case plan.Filter():
                child = self._ranked(node.child)
                return replace(node, types=child.types, child=child)
            case plan.Sort():
                return self._ranked(node.child)
            case plan.Expand():
                child = self._ranked(node.child)
                projections = tuple((*row, _last(child.types)) for row in node.projections)
                return replace(node, types=(*node.types, RANK), child=child, projections=projections)
            case plan.Generate():
                return self._generate(node)
            case plan.Union():
                return replace(node, types=(*node.types, RANK), inputs=tuple(map(self._ranked, node.inputs)))
            case plan.Join():
                return self._join(node)
            case plan.MultiJoin():
                return self._multijoin(node)
            case plan.Aggregate():
                return self._aggregate(node)
        raise self._refused(node, _NAMES.get(type(node), type(node).__name__.lower()))

    def _generate(self, node: plan.Generate) -> plan.Node:
        child = self._ranked(node.child)
        kept = len(node.kept)
        types = (*node.types[:kept], RANK, *node.types[kept:])
        made = replace(node, types=types, child=child, kept=(*node.kept, len(child.types) - 1))
        places = [*range(kept), *range(kept + 1, len(types)), kept]
        return _project(made, [Column(i, types[i]) for i in places])

    # -- joins

    def _join(self, node: plan.Join) -> plan.Node:
        left, right = is_recursive(node.left), is_recursive(node.right)
        kind = node.kind
        if kind == "full" or (kind in ("left", "single", "anti", "existence", "check") and right) or (kind == "right" and left):
            raise self._refused(node, _NEGATIONS.get(kind, "an outer join"))
        if kind in ("left", "right", "single"):
            return self._ranked(joins.expand_outer(node))
        if kind == "semi" and right:
            self._require_set("a subquery over itself")
            types = (*node.left.types, *node.right.types)
            pairs = replace(node, kind="inner", types=types)
            return self._ranked(_project(pairs, _columns(types)[: len(node.types)]))
        return self._paired(
            node, self._ranked(node.left) if left else node.left, self._ranked(node.right) if right else node.right
        )

    def _paired(self, node: plan.Join, left: plan.Node, right: plan.Node) -> plan.Node:
        """The join of what may have ranks: the columns of the left and their rank, then those of the right."""
        width = len(node.left.types)
        shift = len(left.types) - width
        ranks = [width] if shift else []
        if len(right.types) > len(node.right.types):
            ranks.append(len(left.types) + len(right.types) - 1)
        condition = node.condition
        if condition is not None:
            total = width + len(node.right.types)
            condition = moved(condition, {i: i if i < width else i + shift for i in range(total)})
        extra = node.types[width:] if node.kind == "existence" else ()
        types = (*left.types, *(right.types if node.kind == "inner" else extra))
        joined = replace(node, types=types, left=left, right=right, condition=condition)
        places = [i if i < width else i + shift for i in range(len(node.types))]
        return _project(joined, [*(Column(i, types[i]) for i in places), _latest([Column(i, RANK) for i in ranks])])

    def _multijoin(self, node: plan.MultiJoin) -> plan.Node:
        inputs = tuple(self._ranked(child) if is_recursive(child) else child for child in node.inputs)
        ranks = [(i, len(child.types) - 1) for i, child in enumerate(inputs) if is_recursive(child)]
        types = (*node.types, *(RANK for _ in ranks))
        joined = replace(node, types=types, inputs=inputs, outputs=(*node.outputs, *ranks))
        width = len(node.types)
        if len(ranks) == 1:
            return joined
        latest = _latest([Column(width + i, RANK) for i in range(len(ranks))])
        return _project(joined, [*_columns(node.types), latest])

    # -- where rows are merged

    def _aggregate(self, node: plan.Aggregate) -> plan.Node:
        lowered = aggregates.lower(node, self.type_of)
        keys = lowered.keys
        if lowered.scalars or not keys:
            raise self._refused(node, "an aggregate over all of its rows")
        below = lowered.below
        if not lowered.calls:
            self._require_set("DISTINCT")
            merged = self._merged(_project(below, _columns(below.types)[:keys]), "set")
            return self._above(node, merged, lowered.above)
        parts = []
        for call in lowered.calls:
            function = call.arguments[0]
            assert isinstance(function, Call)
            kind = EXTREMES.get(function.function)
            if kind is None or len(call.arguments) > 1:
                filtered = " FILTER" if kind is not None else ""
                raise self._refused(node, f"the aggregate {function.function.lower()}{filtered}")
            self._require_set(function.function.upper())
            parts.append(self._merged(_project(below, [*_columns(below.types)[:keys], function.arguments[0]]), kind))
        return self._above(node, self._beside(parts, keys), lowered.above)

    def _merged(self, body: plan.Node, kind: str) -> plan.Recursive:
        """One more relation, and its rows so far without their ranks."""
        number = len(self.relations)
        name = self.name if kind == "set" else f"{self.name} ({kind})"
        self.relations.append(Believed(name, body.types, kind))
        self.bodies.append(body)
        self.bodies[number] = self._ranked(body)
        return plan.Recursive(types=body.types, relation=number)

    def _beside(self, parts: list[plan.Recursive], keys: int) -> plan.Node:
        """The best values of the same groups, side by side."""
        found: plan.Node = parts[0]
        for part in parts[1:]:
            width = len(found.types)
            same: list[Expression] = [
                Call("EqualNullSafe", (found_key, Column(width + i, found_key.type)))
                for i, found_key in enumerate(_columns(found.types)[:keys])
            ]
            types = (*found.types, *part.types)
            joined = plan.Join(types=types, left=found, right=part, kind="inner", condition=joins.all_of(same))
            found = _project(joined, [*_columns(types)[:width], Column(len(types) - 1, types[-1])])
        return found

    def _above(self, node: plan.Node, merged: plan.Node, expressions: tuple[Expression, ...]) -> plan.Node:
        return self._ranked(plan.Project(types=node.types, child=merged, expressions=expressions))

    def _require_set(self, what: str) -> None:
        if any(relation.duplicates for relation in self.node.relations):
            raise NotSupported(
                f"{what} within the recursion of {self.name!r} needs sets of rows; write UNION instead of UNION ALL"
            )

    def _refused(self, node: plan.Node, what: str) -> NotStratified:
        return NotStratified(
            f"{self._cycle(node)}, through {what}: rows of it might vanish because of rows of it, so there is no least answer. "
            "A recursion may go through joins, filters, UNION, DISTINCT, MIN and MAX; do the rest in a query over its result"
        )

    def _cycle(self, node: plan.Node) -> str:
        """The way from the relation to itself that goes through a node."""
        names = [relation.name for relation in self.node.relations]
        reads = [
            {part.relation for part in plan.walk(relation.body) if isinstance(part, plan.Recursive)}
            for relation in self.node.relations
        ]
        start = names.index(self.name)
        ways = [[next(part.relation for part in plan.walk(node) if isinstance(part, plan.Recursive))]]
        while ways and ways[0][-1] != start:
            way = ways.pop(0)
            ways += [[*way, following] for following in sorted(reads[way[-1]]) if following not in way]
        cycle = [start, *(ways[0] if ways else [start])]
        return " → ".join(f"{names[i]!r}" for i in cycle)


def _columns(types: plan.Types) -> list[Expression]:
    return [Column(i, kind) for i, kind in enumerate(types)]


def _last(types: plan.Types) -> Column:
    return Column(len(types) - 1, RANK)


def _latest(ranks: list[Column]) -> Expression:
    """The greatest of some ranks."""
    latest: Expression = ranks[0]
    for rank in ranks[1:]:
        latest = Call("If", (Call("GreaterThanOrEqual", (latest, rank)), latest, rank), RANK)
    return latest


def _project(node: plan.Node, expressions: Sequence[Expression]) -> plan.Project:
    types = tuple(_type_of(part) for part in expressions)
    return plan.Project(types=types, child=node, expressions=tuple(expressions))


def _type_of(part: Expression) -> pa.DataType:
    kind = part.type
    assert kind is not None
    return kind


_NAMES: dict[type, str] = {
    plan.Window: "a window function",
    plan.Limit: "a limit",
    plan.Scalar: "a scalar subquery over itself",
    plan.Opaque: "what only Spark can evaluate",
}
_NEGATIONS = {"anti": "negation (NOT EXISTS, NOT IN, EXCEPT)", "existence": "EXISTS as a value", "check": "a scalar subquery"}
