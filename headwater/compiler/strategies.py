"""Recursion for strategies with provenance: the bodies of a fixpoint as a network, over inputs that are not recursive.

    linear nodes, unions, inner joins      parts of the network, down to the tables: base rows are the variables
    DISTINCT, R ⋉ S                        a projection, a join: relations are sets
    whatever else is not recursive         an input of its own, each row of it a variable

MIN and MAX over the groups of a whole fixpoint are pushed into it where only the best rows can derive the best (`selection`).
Strategies that keep counts or sets have no such rule for negation or aggregates within the recursion; `counting` has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression
from headwater.compiler import aggregates, joins
from headwater.compiler.dataflow import Step
from headwater.compiler.recipes import Mask, fused
from headwater.compiler.recursion import is_recursive
from headwater.errors import NotSupported
from headwater.operators.operator import Choice
from headwater.operators.recursive.derived import Derived
from headwater.operators.recursive.network import Apply, Gather, Meet, Network, Node, Read
from headwater.operators.recursive.strategy import Selection, Settings, chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from headwater.compiler.linear import Engines

_WHY = {
    "absorption-lazy": "each row has the Boolean function of base rows that derive it; alternatives wait where they are found",
    "absorption-eager": "each row has the Boolean function of base rows that derive it; alternatives are shipped as they come",
    "relative": "each row has the rows it is derived from; a deletion traverses them",
    "dred": "a deletion deletes all that depends on it, and derives again what is left",
    "recompute": "every change starts from nothing",
}


def derived(node: plan.Fixpoint, arranged: Callable[[plan.Node], Step], engines: Engines) -> Step:
    """The fixpoint as one step over what its bodies read; `arranged` gives a step that keeps the rows of a node."""
    building = _Building(node, engines)
    bodies = tuple(building.add(relation.body) for relation in node.relations)
    if not any(building.recursive) and isinstance(building.nodes[bodies[0]], Read):
        raise NotSupported(
            f"annotations go through joins, filters, projections, UNION and DISTINCT, and this query is {_called(node)} as a "
            "whole: its rows are explained on demand, without a strategy"
        )
    network = Network(tuple(building.nodes), bodies, len(building.sources))
    selection, choice = node.selection, chosen(node.strategy)
    assert choice is not None
    settings = Settings(
        network=network,
        names=tuple(relation.name for relation in node.relations),
        result=node.result,
        rounds=node.limits.rounds,
        rows=node.limits.rows,
        batch=choice.batch,
        selection=None if selection is None else Selection(*selection),
        interval=choice.interval,
    )
    text = f"strategy {node.strategy}, as asked for: {_WHY[choice.name]}"
    best = () if selection is None else (f"aggregate selection: only the best of {len(selection[1])} aggregates go on",)
    operator = Derived(node.types, node.strategy, settings, tuple(building.sources), Choice(text, best, None), node.identity)
    names = ", ".join(dict.fromkeys(settings.names))
    return Step(operator, tuple(map(arranged, building.sources)), f"Fixpoint {names}")


@dataclass
class _Building:
    """A network as it grows."""

    fixpoint: plan.Fixpoint
    engines: Engines
    nodes: list[Node] = field(default_factory=list)
    sources: list[plan.Node] = field(default_factory=list)
    recursive: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plain = not any(is_recursive(relation.body) for relation in self.fixpoint.relations)
        for relation in self.fixpoint.relations:
            if relation.duplicates:
                raise self._refused("UNION ALL")

    def add(self, node: plan.Node) -> int:  # noqa: C901, PLR0911  (one case a kind)
        """The number of the part of the network that gives the node's rows."""
        match node:
            case plan.Recursive(relation=relation):
                return self._append(Read(relation), recursive=True)
            case plan.Project() | plan.Filter() | plan.Expand() | plan.Generate():
                child = self.add(node.children[0])
                return self._append(Apply(child, fused([node], self.engines)), recursive=self.recursive[child])
            case plan.Union(inputs=inputs):
                children = tuple(map(self.add, inputs))
                return self._append(Gather(children), recursive=any(self.recursive[child] for child in children))
            case plan.Sort(child=child):
                return self.add(child)
            case plan.Join(kind="inner"):
                return self._join(node)
            case plan.Join(kind="semi") if self._is_within(node):
                types = (*node.left.types, *node.right.types)
                pairs = plan.Join(types=types, left=node.left, right=node.right, kind="inner", condition=node.condition)
                return self.add(plan.picked(pairs, range(len(node.types))))
            case plan.MultiJoin():
                return self.add(as_joins(node))
            case plan.Aggregate() if self._is_within(node):
                lowered = aggregates.lower(node, self.engines.type_of)
                if not lowered.calls and lowered.keys and not lowered.scalars:
                    return self.add(plan.Project(types=node.types, child=lowered.below, expressions=lowered.above))
        if is_recursive(node):
            raise self._refused(type(node).__name__.lower() if not isinstance(node, plan.Join) else f"{node.kind} join")
        return self._input(node)

    def _is_within(self, node: plan.Node) -> bool:
        """Whether a node is part of the network if it can be: what is not recursive is an input, unless nothing is."""
        return self._plain or is_recursive(node)

    def _join(self, node: plan.Join) -> int:
        condition = joins.analyse(node)
        sides = []
        for child, keys in ((node.left, condition.left), (node.right, condition.right)):
            keyed, places = self._keyed(child, keys)
            sides.append((self.add(keyed), places))
        (left, left_key), (right, right_key) = sides
        meet = Meet(
            children=(left, right),
            keys=(left_key, right_key),
            null_safe=condition.null_safe,
            widths=(len(node.left.types), len(node.right.types)),
            types=node.types,
            condition=None if condition.rest is None else Mask(condition.rest, self.engines),
            recursive=(self.recursive[left], self.recursive[right]),
        )
        return self._append(meet, recursive=any(meet.recursive))

    def _keyed(self, node: plan.Node, keys: Sequence[Expression]) -> tuple[plan.Node, tuple[int, ...]]:
        """The node with a column for each part of the key, and where these are."""
        if all(isinstance(key, Column) for key in keys):
            return node, tuple(key.index for key in keys if isinstance(key, Column))
        columns = tuple(Column(i, kind) for i, kind in enumerate(node.types))
        types = (*node.types, *map(self.engines.type_of, keys))
        keyed = plan.Project(types=types, child=node, expressions=(*columns, *keys))
        return keyed, tuple(range(len(node.types), len(types)))

    def _input(self, node: plan.Node) -> int:
        if any(map(pa.types.is_nested, node.types)):
            raise self._refused("columns that are lists, maps or structs")
        if node not in self.sources:
            self.sources.append(node)
        return self._append(Read(-1 - self.sources.index(node)), recursive=False)

    def _append(self, node: Node, *, recursive: bool) -> int:
        self.nodes.append(node)
        self.recursive.append(recursive)
        return len(self.nodes) - 1

    def _refused(self, what: str) -> NotSupported:
        names = ", ".join(repr(relation.name) for relation in self.fixpoint.relations)
        return NotSupported(
            f"the strategy {self.fixpoint.strategy} keeps sets that grow through joins, filters, UNION and DISTINCT, and the "
            f"recursion of {names} has {what}; create the view with the strategy counting, or auto"
        )


def _called(node: plan.Fixpoint) -> str:
    body = node.relations[0].body
    return "a table" if isinstance(body, plan.Scan) else f"a {type(body).__name__.lower()}"


def as_joins(node: plan.MultiJoin) -> plan.Node:
    """The join as joins of two: each input after one that it has a column in common with."""
    found: plan.Node = node.inputs[0]
    offsets = {0: 0}
    while len(offsets) < len(node.inputs):
        following = _connected(node, offsets)
        child = node.inputs[following]
        width = len(found.types)
        parts: list[Expression] = []
        for equal in node.equal:
            ours = [(r, c) for r, c in equal.columns if r in offsets]
            theirs = [c for r, c in equal.columns if r == following]
            if ours and theirs:
                kind = child.types[theirs[0]]
                pair = (Column(offsets[ours[0][0]] + ours[0][1], kind), Column(width + theirs[0], kind))
                parts.append(Call("EqualNullSafe" if equal.null_safe else "EqualTo", pair))
        types = (*found.types, *child.types)
        found = plan.Join(types=types, left=found, right=child, kind="inner", condition=joins.all_of(parts))
        offsets[following] = width
    return plan.picked(found, [offsets[relation] + column for relation, column in node.outputs])


def _connected(node: plan.MultiJoin, joined: Container[int]) -> int:
    """An input that is not joined yet, and has a column in common with one that is."""
    classes = [{relation for relation, _ in equal.columns} for equal in node.equal]
    near = {relation for each in classes if any(other in joined for other in each) for relation in each}
    return next(relation for relation in sorted(near) if relation not in joined)
