"""From an order of joins to what is run: the lookups of a delta query, or a tree of binary joins.

On its way a row carries no more than it needs: columns of the result, and one of each class that a later hop asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column
from headwater.compiler.linear import conjuncts
from headwater.operators.multijoin import Lookup, Path
from headwater.operators.operator import Choice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.compiler.orders import Classes, Decision, Hop, Order
    from headwater.operators.operator import Key

    Place = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Arranged:
    """A relation kept by a key: the step that keeps it, its key, and where in its rows the relation's columns are.

    The node gives these columns of all the rows that are kept.
    """

    node: plan.Node
    step: Step
    key: Key
    columns: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class Routes:
    """Makes the paths of a join: `inputs` are its arranged relations, each with its number and the classes of its key."""

    node: plan.MultiJoin
    inputs: Sequence[tuple[int, Classes, Arranged]]

    def path(self, start: int, hops: Sequence[Hop]) -> Path:
        reads = [self._reads((start, *(hop.relation for hop in hops[:i])), hop) for i, hop in enumerate(hops)]
        number, arranged = min(
            ((i, found) for i, (relation, _, found) in enumerate(self.inputs) if relation == start),
            key=lambda pair: len(pair[1].step.types),
        )
        held = _places(start, self._needed(reads))
        first = tuple(arranged.columns[column] for _, column in held)
        lookups = []
        for i, hop in enumerate(hops):
            needed = self._needed(reads[i + 1 :])
            lookups.append(self._lookup(hop, reads[i], held, needed))
            held = [place for place in held if place in needed] + _places(hop.relation, needed)
        return Path(number, first, tuple(lookups), tuple(held.index(place) for place in self.node.outputs))

    def _lookup(self, hop: Hop, reads: Mapping[int, Place], held: list[Place], needed: set[Place]) -> Lookup:
        number, arranged = next(
            (i, found) for i, (relation, key, found) in enumerate(self.inputs) if relation == hop.relation and key == hop.key
        )
        places = {number: self._column(number, hop.relation) for number in hop.shared}
        by_column = {arranged.columns[places[number]]: number for number in hop.key}
        strict = sorted(held.index(reads[number]) for number in hop.shared if not self.node.equal[number].null_safe)
        compared = [(held.index(reads[n]), arranged.columns[places[n]]) for n in sorted(hop.shared - hop.key)]
        found = [arranged.columns[column] for _, column in _places(hop.relation, needed)]
        wanted = sorted({*found, *(column for _, column in compared)})
        return Lookup(
            input=number,
            probe=tuple(held.index(reads[by_column[column]]) for column in arranged.key),
            not_null=tuple(strict),
            wanted=None if len(wanted) == len(arranged.step.types) else tuple(wanted),
            compared=tuple((mine, wanted.index(column)) for mine, column in compared),
            kept=tuple(i for i, place in enumerate(held) if place in needed),
            found=tuple(map(wanted.index, found)),
        )

    def _reads(self, bound: Iterable[int], hop: Hop) -> dict[int, Place]:
        """For each class that the hop asks for, the first column met that has its value."""
        found = {}
        for number in hop.shared:
            columns = dict(self.node.equal[number].columns)
            relation = next(relation for relation in bound if relation in columns)
            found[number] = (relation, columns[relation])
        return found

    def _column(self, number: int, relation: int) -> int:
        return dict(self.node.equal[number].columns)[relation]

    def _needed(self, reads: Iterable[Mapping[int, Place]]) -> set[Place]:
        return {*self.node.outputs, *(place for read in reads for place in read.values())}


def _places(relation: int, needed: Iterable[Place]) -> list[Place]:
    return sorted(place for place in needed if place[0] == relation)


def lineage(node: plan.MultiJoin) -> Key | None:
    """Where the key of a join of two inputs is in its output, if it is there."""
    found = []
    for equal in node.equal:
        places = [node.outputs.index(place) for place in equal.columns if place in node.outputs]
        if not places or len(node.inputs) > 2:
            return None
        found.append(places[0])
    return tuple(found)


def never_null(node: plan.MultiJoin, relation: int) -> frozenset[int]:
    """The columns of a relation in which a row with NULL is in no result."""
    return frozenset(c for equal in node.equal if not equal.null_safe for i, c in equal.columns if i == relation)


def wider(node: plan.Node, never_null: Collection[int]) -> Iterator[tuple[plan.Node, dict[int, int]]]:
    """The node, and those below it that have the same rows but for NULLs, with the places of the node's columns in each."""
    columns = dict(enumerate(range(len(node.types))))
    while True:
        yield node, columns
        match node:
            case plan.Project(child=child, expressions=expressions):
                if not all(isinstance(expressions[i], Column) for i in columns.values()):
                    return
                columns = {i: expressions[at].index for i, at in columns.items()}  # type: ignore[union-attr]
                node = child
            case plan.Filter(child=child, condition=condition):
                strict = {Call("IsNotNull", (Column(columns[i], child.types[columns[i]]),)) for i in never_null}
                if not all(part in strict for part in conjuncts(condition)):
                    return
                node = child
            case _:
                return


def described(node: plan.MultiJoin, decision: Decision, *, known: bool) -> Choice:
    """What was decided, in words."""
    ways = tuple(_way(node, (i, *(hop.relation for hop in hops))) for i, hops in enumerate(decision.paths))
    rows = round(decision.rows) if known else None
    if len(node.inputs) == 2:
        return Choice(None, (), rows)
    delta, binary = (f"{round(kept):,} rows" for kept in (decision.kept_by_paths, decision.kept_by_tree))
    if decision.tree is not None:
        return Choice(f"binary joins, which keep {binary}; a delta query would keep {delta}", (), rows)
    why = f"which keeps {delta}; binary joins would keep {binary}" if known else "for there were no rows yet to estimate from"
    return Choice(f"delta query, {why}", ways, rows)


def _way(node: plan.MultiJoin, relations: Iterable[int]) -> str:
    """The relations by the tables they read: Δ of the first, then those it is looked up in."""
    names = []
    for i in relations:
        sources = list(dict.fromkeys(part.source for part in plan.walk(node.inputs[i]) if isinstance(part, plan.Scan)))
        names.append("+".join(sources) or "values")
    return "Δ" + " → ".join(names)


def binary(node: plan.MultiJoin, order: Order) -> tuple[plan.Node, list[plan.Node]]:
    """The join as a tree of joins of two inputs, none of which gives columns that nothing above it needs; and all in it."""
    made: list[plan.Node] = []
    held = [(order.start, i) for i in range(len(node.inputs[order.start].types))]
    so_far = node.inputs[order.start]
    for i, hop in enumerate(order.hops):
        right = node.inputs[hop.relation]
        names = held + [(hop.relation, column) for column in range(len(right.types))]
        places = [(0, i) for i in range(len(held))] + [(1, i) for i in range(len(right.types))]
        equal = []
        for number in sorted(hop.shared):
            columns = node.equal[number].columns
            mine = next(place for place in held if place in columns)
            pair = ((0, held.index(mine)), (1, dict(columns)[hop.relation]))
            equal.append(plan.Equal(pair, node.equal[number].null_safe))
        later = {other.relation for other in order.hops[i + 1 :]}
        held = list(node.outputs) if not later else _needed_later(node, names, later)
        outputs = tuple(places[names.index(name)] for name in held)
        types = tuple(node.inputs[relation].types[column] for relation, column in held)
        so_far = replace(node, types=types, inputs=(so_far, right), equal=tuple(equal), outputs=outputs)
        made.append(so_far)
    return so_far, made


def _needed_later(node: plan.MultiJoin, names: list[Place], later: set[int]) -> list[Place]:
    needed = set(node.outputs)
    for equal in node.equal:
        if later & dict(equal.columns).keys():
            mine = [place for place in names if place in equal.columns]
            needed |= {mine[0]} if mine and not needed & set(mine) else set()
    return [name for name in names if name in needed]
