"""The body of a recursion as a network: what rows pass on their way from inputs and relations to relations.

    Read    the rows of an input (−1, −2, …) or of a relation (0, 1, …)
    Apply   filters and projections           Gather   a union
    Meet    an inner join: `left` and `right` are key columns, and the first columns of both sides are kept

A `Flow` is a network with the state of its joins. Updates are pushed in where they are read, and come out where a relation is
derived. A join's inputs are brought to the place of their key; an update without an annotation is to be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column
from headwater.delta import Delta, beside
from headwater.values import python_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headwater.algebra.plan import Types
    from headwater.operators.recursive.places import Exchange

    Row = tuple[Any, ...]
    # A row, its annotation, and the place where it is.
    Update = tuple[Row, Any, Any]
    Condition = Callable[[pa.RecordBatch], np.ndarray]


class Stage(Protocol):
    """A linear function of rows, made of nodes of a plan."""

    @property
    def chain(self) -> tuple[plan.Node, ...]: ...

    def run(self, delta: Delta) -> Delta: ...


@dataclass(frozen=True)
class Read:
    """Where rows come in: from an input, or from a relation."""

    source: int


@dataclass(frozen=True)
class Apply:
    """Rows made of the rows of another node."""

    child: int
    stage: Stage


@dataclass(frozen=True)
class Gather:
    """All rows of several nodes."""

    children: tuple[int, ...]


@dataclass(frozen=True)
class Meet:
    """Pairs of rows with equal keys that meet the condition; `widths` are how many columns of each side are kept."""

    children: tuple[int, int]
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    null_safe: tuple[bool, ...]
    widths: tuple[int, int]
    types: Types
    condition: Condition | None
    recursive: tuple[bool, bool]
    """Whether the sides come, directly or not, from relations: only these have several derivations."""


Node = Read | Apply | Gather | Meet


@dataclass(frozen=True)
class Network:
    """Nodes, each after those it reads, and for each relation the node that derives it."""

    nodes: tuple[Node, ...]
    bodies: tuple[int, ...]
    inputs: int

    def relation_at(self, number: int) -> int | None:
        """The relation whose rows a node gives as they are, all or some of them."""
        node = self.nodes[number]
        if isinstance(node, Read):
            return node.source if node.source >= 0 else None
        if isinstance(node, Apply) and all(isinstance(part, plan.Filter) for part in node.stage.chain):
            return self.relation_at(node.child)
        return None


class Pairing(Protocol):
    """The state of a join: `push` takes updates of both sides, and gives those of pairs."""

    def push(self, left: Sequence[Update], right: Sequence[Update]) -> list[Update]: ...


class Flow:
    """A network at work."""

    def __init__(self, network: Network, joins: Mapping[int, Pairing], exchange: Exchange, hidden: int = 0) -> None:
        """`hidden` is the number of columns behind those that the network knows of, which rows keep."""
        self._network = network
        self._joins = joins
        self._exchange = exchange
        self._applied = {i: _function(node.stage, hidden) for i, node in enumerate(network.nodes) if isinstance(node, Apply)}
        self._fits = {i: _condition(node, hidden) for i, node in enumerate(network.nodes) if isinstance(node, Meet)}

    def push(self, arrived: Mapping[int, Sequence[Update]], alternatives: Mapping[Any, Sequence[Update]]) -> list[list[Update]]:
        """What each relation is derived anew by; `alternatives` come in right before joins, at (node, side)."""
        found: list[list[Update]] = []
        for number, node in enumerate(self._network.nodes):
            match node:
                case Read(source):
                    made = list(arrived.get(source, ()))
                case Apply(child):
                    made = self._applied[number](found[child]) if found[child] else []
                case Gather(children):
                    made = [update for child in children for update in found[child]]
                case Meet():
                    sides = [self._brought(number, node, side, found[node.children[side]]) for side in (0, 1)]
                    for side in (0, 1):
                        sides[side] += alternatives.get((number, side), ())
                    made = self._joins[number].push(*sides) if sides[0] or sides[1] else []
                    fits = self._fits[number]
                    if made and fits is not None:
                        made = fits(made)
            found.append(made)
        return [found[body] for body in self._network.bodies]

    def _brought(self, number: int, node: Meet, side: int, updates: list[Update]) -> list[Update]:
        """The updates of one side of a join, at the place of their key; a NULL that matches nothing goes nowhere."""
        if not updates:
            return []
        key = node.keys[side]
        unsafe = [column for column, safe in zip(key, node.null_safe, strict=True) if not safe]
        if unsafe:
            updates = [update for update in updates if not any(update[0][column] is None for column in unsafe)]
        return self._exchange.to_key((number, side), updates, key, recursive=node.recursive[side])


def _function(stage: Stage, hidden: int) -> Callable[[list[Update]], list[Update]]:
    """A stage as a function of updates: picking columns is done row by row, the rest by the engine for all rows."""
    steps = [_picking(node) for node in stage.chain]
    if all(step is not None for step in steps):
        return lambda updates: _through([step for step in steps if step is not None], updates, hidden)
    types = stage.chain[0].children[0].types

    def run(updates: list[Update]) -> list[Update]:
        # An update without an annotation goes the same way, to forget what the row became.
        width = len(types)
        numbered = stage.run(Delta(batch_of([update[0] for update in updates], types), np.arange(len(updates))))
        rows = rows_of(numbered.rows)
        sources = [updates[i] for i in numbered.weights.tolist()]
        return [(row + old[0][width:], old[1], old[2]) for row, old in zip(rows, sources, strict=True)]

    return run


def _picking(node: plan.Node) -> Callable[[list[Update], int], list[Update]] | None:
    """Nodes that need no computation: columns picked, NULLs left out."""
    match node:
        case plan.Project(expressions=expressions) if expressions and all(isinstance(e, Column) for e in expressions):
            columns = [e.index for e in expressions if isinstance(e, Column)]
            pick: Any = itemgetter(*columns) if len(columns) > 1 else lambda row: (row[columns[0]],)

            def picked(updates: list[Update], hidden: int) -> list[Update]:
                if not hidden:
                    return [(pick(row), annotation, place) for row, annotation, place in updates]
                return [(pick(row) + row[-hidden:], annotation, place) for row, annotation, place in updates]

            return picked
        case plan.Filter(condition=condition):
            checked = _null_checked(condition)
            if checked is None:
                return None

            def kept(updates: list[Update], _: int) -> list[Update]:
                return [update for update in updates if all(update[0][column] is not None for column in checked)]

            return kept
    return None


def _null_checked(condition: object) -> list[int] | None:
    """The columns that a condition only asks to be there; None if it asks more."""
    match condition:
        case Call(function="And", arguments=arguments):
            parts = [_null_checked(part) for part in arguments]
            return None if None in parts else [column for part in parts for column in part or ()]
        case Call(function="IsNotNull", arguments=(Column(index),)):
            return [index]
    return None


def _through(steps: list[Callable[[list[Update], int], list[Update]]], updates: list[Update], hidden: int) -> list[Update]:
    for step in steps:
        updates = step(updates, hidden)
    return updates


def _condition(node: Meet, hidden: int) -> Callable[[list[Update]], list[Update]] | None:
    condition = node.condition
    if condition is None:
        return None
    width = len(node.types)

    def fits(updates: list[Update]) -> list[Update]:
        rows = [update[0][:width] if hidden else update[0] for update in updates]
        mask = condition(batch_of(rows, node.types))
        return [update for update, fit in zip(updates, mask.tolist(), strict=True) if fit]

    return fits


def batch_of(rows: Sequence[Row], types: Types) -> pa.RecordBatch:
    """Tuples as Arrow rows; there may be more values in a tuple than columns."""
    return beside([pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)], len(rows))


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """Arrow rows as tuples; NaN is one object, so that it equals itself."""
    columns = [_values(column) for column in batch.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


_NAN = float("nan")


def _values(column: pa.Array) -> list[Any]:
    values = python_values(column)
    if pa.types.is_floating(column.type):
        # −0.0 groups with 0.0.
        return [_NAN if value != value else value + 0.0 if value is not None else None for value in values]  # noqa: PLR0124
    return values
