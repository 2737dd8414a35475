"""The order of joins, and what is kept for them: binary joins with stored results between them, or one delta query.

    cost  =  rows looked up and found, and 3 · rows rewritten, while every relation changes once  +  7 · rows kept

Two ways are compared:

- *binary joins*, one relation after another: each result but the last is kept, by the key of the next join;
- a *delta query*: no result is kept. Each relation's change finds its own way through the others, in the order and by the keys
  that are cheapest for it; what it costs is that a relation may have to be kept by several keys.

What is kept already, such as a table by its own key, is free. Both orders are searched relation by relation, among the best few
at each length. While tables are empty nothing speaks for a stored result, and declared keys say which relation is the larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.algebra import plan
    from headwater.compiler.estimates import Estimate

    Classes = frozenset[int]
    # Whether a relation is kept by some classes of columns already.
    Kept = Callable[[int, Classes], bool]

_KEPT, _REWRITTEN = 7.0, 3.0
_STORED = _KEPT + _REWRITTEN
_BEST = 32


@dataclass(frozen=True)
class Hop:
    """The next relation, looked up by the classes `key`; the others it has in common with those before are compared."""

    relation: int
    key: Classes
    shared: Classes


@dataclass(frozen=True)
class Order:
    """A way through relations from `start` by `hops`: cost, rows found at its end, rows kept, and what must be kept anew."""

    start: int
    hops: tuple[Hop, ...]
    cost: float
    rows: float
    kept: float
    needs: frozenset[tuple[int, Classes]]

    @property
    def bound(self) -> tuple[int, ...]:
        return (self.start, *(hop.relation for hop in self.hops))


@dataclass(frozen=True)
class Decision:
    """Either the hops of each relation's delta, or the order of binary joins; and how many rows each way would keep."""

    paths: tuple[tuple[Hop, ...], ...]
    tree: Order | None
    rows: float
    kept_by_paths: float
    kept_by_tree: float


class Shape:
    """The relations of a join: their sizes and the classes of equal columns they have."""

    def __init__(self, node: plan.MultiJoin, estimates: list[Estimate]) -> None:
        self.count = len(node.inputs)
        self.known = all(estimate.known for estimate in estimates)
        self._estimates = estimates
        self._columns: list[dict[int, int]] = [{} for _ in node.inputs]
        for number, equal in enumerate(node.equal):
            for relation, column in equal.columns:
                self._columns[relation][number] = column
        self.rows = [max(1.0, estimate.rows) for estimate in estimates]
        if not self.known:
            self._guess_sizes()

    def columns(self, relation: int, classes: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(self._columns[relation][number] for number in classes))

    def shared(self, bound: Iterable[int], relation: int) -> Classes:
        before = {number for other in bound for number in self._columns[other]}
        return frozenset(before & self._columns[relation].keys())

    def result(self, start: int) -> float:
        """How many rows the whole join has, counted from one relation on."""
        bound, rows = [start], self.rows[start]
        while len(bound) < self.count:
            for other in set(range(self.count)).difference(bound):
                shared = self.shared(bound, other)
                if shared:
                    rows *= self.fan_out(other, shared)
                    bound.append(other)
        return rows

    def fan_out(self, relation: int, classes: Classes) -> float:
        """How many rows of a relation there are for one combination of values."""
        having = [i for i in range(self.count) if classes <= self._columns[i].keys()]
        domain = max(self._domain(i, classes) for i in having)
        return self.rows[relation] / max(domain, 1.0)

    def _domain(self, relation: int, classes: Classes) -> float:
        if not self.known:
            return self.rows[relation] if self._is_unique(relation, classes) else self.rows[relation] / 10
        return self._estimates[relation].domain(self.columns(relation, classes))

    def _is_unique(self, relation: int, classes: Classes) -> bool:
        columns = set(self.columns(relation, classes))
        return any(key <= columns for key in self._estimates[relation].unique)

    def _guess_sizes(self) -> None:
        """A relation that refers to another by its key is ten times as large."""
        every = range(self.count)
        for _ in every:
            for small in every:
                for large in every:
                    common = frozenset(self._columns[small].keys() & self._columns[large].keys())
                    if small != large and common and self._is_unique(small, common) and not self._is_unique(large, common):
                        self.rows[large] = max(self.rows[large], min(10 * self.rows[small], 1e9))


def decide(shape: Shape, kept: Kept) -> Decision:
    """The cheaper of the two ways."""
    paths = _paths(shape, kept)
    needs = frozenset().union(*(path.needs for path in paths))
    kept_by_paths = sum(shape.rows[relation] for relation, _ in needs)
    rows = min(path.rows for path in paths)
    hops = tuple(path.hops for path in paths)
    if shape.count == 2:
        return Decision(hops, None, rows, kept_by_paths, kept_by_paths)
    tree = _tree(shape, kept)
    paths_cost = sum(path.cost for path in paths) + _STORED * kept_by_paths
    delta = not shape.known or paths_cost <= tree.cost
    return Decision(hops, None if delta else tree, rows, kept_by_paths, tree.kept)


def _paths(shape: Shape, kept: Kept) -> list[Order]:
    """The best way for the change of each relation; what the larger ones need is there for the smaller ones."""
    found: dict[int, Order] = {}
    made: set[tuple[int, Classes]] = set()

    def extended(order: Order) -> Iterable[Order]:
        for other, shared in _next(shape, order):
            free = {key for key in _subsets(shared) if (other, key) in made or kept(other, key)}
            for key in sorted({shared, *free}, key=sorted):
                yield _looked_up(shape, order, Hop(other, key, shared), free=key in free)

    for relation in sorted(range(shape.count), key=lambda i: -shape.rows[i]):
        found[relation] = _search(shape, [Order(relation, (), 0.0, shape.rows[relation], 0.0, frozenset())], extended)
        made.update(found[relation].needs)
    costs = {i: found[i].cost - _STORED * sum(shape.rows[at] for at, _ in found[i].needs) for i in found}
    return [replace(found[i], cost=costs[i]) for i in range(shape.count)]


def _looked_up(shape: Shape, order: Order, hop: Hop, *, free: bool) -> Order:
    work = order.rows * (1 + shape.fan_out(hop.relation, hop.key))
    stored = 0.0 if free else shape.rows[hop.relation]
    return Order(
        start=order.start,
        hops=(*order.hops, hop),
        cost=order.cost + work + _STORED * stored,
        rows=order.rows * shape.fan_out(hop.relation, hop.shared),
        kept=order.kept + stored,
        needs=order.needs if free else order.needs | {(hop.relation, hop.key)},
    )


def _tree(shape: Shape, kept: Kept) -> Order:
    """The best order of binary joins, each of all relations so far with one more."""

    def extended(order: Order) -> Iterable[Order]:
        for other, shared in _next(shape, order):
            rows = order.rows * shape.fan_out(other, shared)
            changes = len(order.bound)
            right = 0.0 if kept(other, shared) else shape.rows[other]
            left = 0.0 if changes == 1 and kept(order.start, shared) else order.rows
            work = changes * (order.rows + rows) + shape.rows[other] + rows
            # The result so far changes whenever one of its relations does.
            stored = _STORED * right + (_KEPT + _REWRITTEN * changes) * left
            hops = (*order.hops, Hop(other, shared, shared))
            yield Order(order.start, hops, order.cost + work + stored, rows, order.kept + left + right, frozenset())

    starts = [Order(i, (), 0.0, shape.rows[i], 0.0, frozenset()) for i in range(shape.count)]
    return _search(shape, starts, extended)


def _search(shape: Shape, orders: list[Order], extended: Callable[[Order], Iterable[Order]]) -> Order:
    for _ in range(shape.count - 1):
        best: dict[frozenset[int], Order] = {}
        for order in orders:
            for longer in extended(order):
                bound = frozenset(longer.bound)
                if bound not in best or longer.cost < best[bound].cost:
                    best[bound] = longer
        orders = sorted(best.values(), key=lambda order: order.cost)[:_BEST]
    return orders[0]


def _next(shape: Shape, order: Order) -> Iterable[tuple[int, Classes]]:
    bound = order.bound
    for other in range(shape.count):
        shared = shape.shared(bound, other)
        if other not in bound and shared:
            yield other, shared


def _subsets(classes: Classes) -> Iterable[Classes]:
    found: list[Classes] = [frozenset()]
    for number in classes:
        found += [part | {number} for part in found]
    return found[1:]
