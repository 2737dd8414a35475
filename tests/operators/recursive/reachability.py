"""The network of `reachable(x, y) :- link(x, y);  reachable(x, y) :- link(x, z), reachable(z, y)`, put together by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.algebra.expressions import Column
from headwater.algebra.plan import Node, Project
from headwater.compiler.recipes import Fused
from headwater.operators.recursive.network import Apply, Gather, Meet, Network, Read
from headwater.operators.recursive.strategy import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

TEXT = pa.string()
Link = tuple[Any, Any]


def picking(*columns: int) -> Fused:
    below = Node(types=(TEXT,) * 4)
    node = Project(types=(TEXT,) * len(columns), child=below, expressions=tuple(Column(i, TEXT) for i in columns))
    engines: Any = None
    return Fused((node,), engines)


NETWORK = Network(
    nodes=(
        Read(-1),
        Read(0),
        Meet((0, 1), ((1,), (0,)), (False,), (2, 2), (TEXT,) * 4, None, (False, True)),
        Apply(2, picking(0, 3)),
        Gather((0, 3)),
    ),
    bodies=(4,),
    inputs=1,
)


def settings(shards: int | None = None, batch: int | None = None, interval: float | None = None) -> Settings:
    """Without a number of shards, every node of the graph is a place of its own."""
    return Settings(NETWORK, ("reachable",), 0, 10_000, 10_000_000, shards, batch, interval=interval)


def closure(links: Iterable[Link]) -> set[Link]:
    """The same from scratch, by a plain fixpoint."""
    edges = set(links)
    found = set(edges)
    while True:
        following = found | {(x, y) for x, z in edges for w, y in found if z == w}
        if following == found:
            return found
        found = following
