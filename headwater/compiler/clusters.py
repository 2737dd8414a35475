"""Clusters of joins: a tree of inner joins on equal columns is one join of many inputs, whatever order the query named them in.

    (A ⋈ a.x = b.x B) ⋈ b.y = c.y AND a.z < c.z C    becomes    σ a.z < c.z  ∘  ⋈(A, B, C; a.x = b.x, b.y = c.y)

Conditions beyond equalities are applied to the result. The trap: a condition that may fail (`a.x / b.y > 1`) fails in Spark on
every pair of the join it stands at. It would not be shown the pairs that a join above drops, so there a cluster ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, columns_of, moved, never_fails, rewrite
from headwater.compiler.joins import all_of, analyse, sides
from headwater.compiler.linear import conjuncts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from headwater.compiler.joins import Condition

    TypeOf = Callable[[Expression], pa.DataType]
    Place = tuple[int, int]


def clustered(node: plan.Node, type_of: TypeOf) -> plan.Node:
    """The plan with joins of many inputs in place of trees of inner joins; other joins stay as they are."""
    node = _tightened(node)
    if _joins(node) and isinstance(node, plan.Join):
        return _Cluster(type_of).joined(node)
    return plan.rewritten(node, lambda child: clustered(child, type_of))


def pair(join: plan.Join, type_of: TypeOf) -> plan.Node:
    """An inner join with a key as a join of its two inputs as they are."""
    return _Cluster(type_of).joined(join, deep=False)


def absorbed(node: plan.Node) -> plan.MultiJoin | None:
    """A projection that only picks columns of a join as a join that gives these columns; None if it is something else."""
    match node:
        case plan.Project(child=plan.MultiJoin() as child, expressions=expressions):
            places = [child.outputs[part.index] for part in expressions if isinstance(part, Column)]
            return replace(child, types=node.types, outputs=tuple(places)) if len(places) == len(expressions) else None
    return None


def _tightened(node: plan.Node) -> plan.Node:
    """Equalities right above an inner join are part of it: `x = (SELECT max(y) …)` looks the one value up."""
    match node:
        case plan.Filter(child=plan.Join(kind="inner") as join, condition=condition):
            parts = conjuncts(condition)
            keys = [part for part in parts if sides(part, len(join.left.types)) is not None]
            rest = [part for part in parts if part not in keys]
            if keys and all(map(never_fails, parts)):
                found: plan.Node = replace(join, condition=all_of([*conjuncts(join.condition), *keys]))
                above = all_of(rest)
                return found if above is None else plan.Filter(types=node.types, child=found, condition=above)
    return node


def _joins(node: plan.Node) -> bool:
    return isinstance(node, plan.Join) and node.kind == "inner" and bool(analyse(node).left)


@dataclass
class _Cluster:
    """Collects inputs and conditions; columns are known as (input, column) until the end."""

    type_of: TypeOf
    inputs: list[plan.Node] = field(default_factory=list)
    pairs: list[tuple[Place, Place, bool]] = field(default_factory=list)
    rest: list[Expression] = field(default_factory=list)
    numbers: dict[Place, int] = field(default_factory=dict)

    def joined(self, node: plan.Join, *, deep: bool = True) -> plan.Node:
        places = self._join(node, analyse(node), deep=deep)
        equal = self._equal()
        # Conditions read columns by their numbers; what nothing above needs is pruned later.
        extra = [place for place in self.numbers if place not in places]
        outputs = (*places, *extra)
        positions = {number: outputs.index(place) for place, number in self.numbers.items()}
        types = tuple(self.inputs[i].types[column] for i, column in outputs)
        made = plan.MultiJoin(types=types, inputs=tuple(self.inputs), equal=equal, outputs=outputs, filtered=node.filtered)
        found: plan.Node = made
        condition = all_of([moved(part, positions) for part in self.rest])
        if condition is not None:
            found = plan.Filter(types=types, child=found, condition=condition)
        return plan.picked(found, range(len(places)))

    # -- taking the tree apart

    def _join(self, node: plan.Join, condition: Condition, *, deep: bool) -> list[Place]:
        left, left_key = self._side(node.left, condition.left, deep=deep)
        right, right_key = self._side(node.right, condition.right, deep=deep)
        self.pairs += zip(left_key, right_key, condition.null_safe, strict=True)
        places = [*left, *right]
        if condition.rest is not None:
            self._keep(condition.rest, places)
        return places

    def _side(self, node: plan.Node, key: Sequence[Expression], *, deep: bool) -> tuple[list[Place], list[Place]]:
        """The places of an input's columns and of its key; the input is taken apart if the key can be computed below."""
        if deep and _opens(node):
            sizes = len(self.inputs), len(self.pairs), len(self.rest)
            places = self._open(node)
            if all(len({places[i][0] for i in columns_of(part)}) == 1 and never_fails(part) for part in key):
                return places, [self._key(part, places) for part in key]
            del self.inputs[sizes[0] :], self.pairs[sizes[1] :], self.rest[sizes[2] :]
            self.numbers = {place: number for place, number in self.numbers.items() if place[0] < sizes[0]}
        self.inputs.append(clustered(node, self.type_of) if deep else node)
        places = [(len(self.inputs) - 1, i) for i in range(len(node.types))]
        return places, [self._key(part, places) for part in key]

    def _open(self, node: plan.Node) -> list[Place]:
        match node:
            case plan.Project(child=child, expressions=expressions):
                below = self._open(child)
                return [below[part.index] for part in expressions if isinstance(part, Column)]
            case plan.Filter(child=child, condition=condition):
                below = self._open(child)
                self._keep(condition, below)
                return below
        assert isinstance(node, plan.Join)
        return self._join(node, analyse(node), deep=True)

    def _keep(self, condition: Expression, places: Sequence[Place]) -> None:
        for column in columns_of(condition):
            self.numbers.setdefault(places[column], max(self.numbers.values(), default=-1) + 1)
        self.rest.append(moved(condition, {column: self.numbers[places[column]] for column in columns_of(condition)}))

    def _key(self, part: Expression, places: Sequence[Place]) -> Place:
        """Where the part of a key is: one of the input's columns, or a new one computed from them."""
        if isinstance(part, Column):
            return places[part.index]
        number = places[min(columns_of(part))][0]
        below = self.inputs[number]
        computed = rewrite(part, lambda p: Column(places[p.index][1], p.type) if isinstance(p, Column) else None)
        every = tuple(Column(i, kind) for i, kind in enumerate(below.types))
        types = (*below.types, self.type_of(part))
        self.inputs[number] = plan.Project(types=types, child=below, expressions=(*every, computed))
        return number, len(below.types)

    # -- putting it together

    def _equal(self) -> tuple[plan.Equal, ...]:
        """What is equal to the same is equal: the classes of columns with one value."""
        groups: list[tuple[set[Place], bool]] = []
        for first, second, safe in self.pairs:
            touching = [group for group in groups if first in group[0] or second in group[0]]
            groups = [group for group in groups if group not in touching]
            groups.append(({first, second}.union(*(places for places, _ in touching)), safe and all(s for _, s in touching)))
        return tuple(plan.Equal(tuple(self._one_each(places, safe)), safe) for places, safe in groups)

    def _one_each(self, places: set[Place], safe: bool) -> list[Place]:  # noqa: FBT001
        """One column of each input; where an input has several, they are compared there."""
        chosen: dict[int, int] = {}
        for number, column in sorted(places):
            if number not in chosen:
                chosen[number] = column
                continue
            below = self.inputs[number]
            same = tuple(Column(i, below.types[i]) for i in (chosen[number], column))
            condition = Call("EqualNullSafe" if safe else "EqualTo", same)
            self.inputs[number] = plan.Filter(types=below.types, child=below, condition=condition)
        return list(chosen.items())


def _opens(node: plan.Node) -> bool:
    """Whether the node is part of the cluster above it."""
    match node:
        case plan.Project(child=child, expressions=expressions):
            return all(isinstance(part, Column) for part in expressions) and _opens(child)
        case plan.Filter(child=child, condition=condition):
            return never_fails(condition) and _opens(child)
        case plan.Join():
            rest = analyse(node).rest
            return _joins(node) and (rest is None or never_fails(rest))
    return False
