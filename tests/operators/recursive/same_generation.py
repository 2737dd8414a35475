"""The network of a recursion with two joins, put together by hand.

same(x, y) :- parent(x, p), parent(y, p);  same(x, y) :- parent(x, p), same(p, q), parent(y, q)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reachability import TEXT, picking
from reachability import settings as of_reachability

from headwater.operators.recursive.network import Apply, Gather, Meet, Network, Read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reachability import Link

    from headwater.operators.recursive.strategy import Settings

NETWORK = Network(
    nodes=(
        Read(-1),
        Read(0),
        Meet((0, 0), ((1,), (1,)), (False,), (2, 2), (TEXT,) * 4, None, (False, False)),
        Apply(2, picking(0, 2)),
        Meet((0, 1), ((1,), (0,)), (False,), (2, 2), (TEXT,) * 4, None, (False, True)),
        Meet((4, 0), ((3,), (1,)), (False,), (4, 2), (TEXT,) * 6, None, (True, False)),
        Apply(5, picking(0, 4)),
        Gather((3, 6)),
    ),
    bodies=(7,),
    inputs=1,
)


def settings(shards: int | None = None, batch: int | None = None, interval: float | None = None) -> Settings:
    return replace(of_reachability(shards, batch, interval), network=NETWORK, names=("same",))


def same_generation(parents: Iterable[Link]) -> set[Link]:
    """The same from scratch, by a plain fixpoint."""
    up = set(parents)
    found = {(x, y) for x, p in up for y, q in up if p == q}
    while True:
        following = found | {(x, y) for x, p in up for a, b in found if a == p for y, q in up if q == b}
        if following == found:
            return found
        found = following
