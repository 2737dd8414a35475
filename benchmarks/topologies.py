"""Networks to recurse over: transit-stub topologies as GT-ITM makes them, and grids of sensors."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations

STUB_NODES = 8
STUBS = 3
TRANSIT_NODES = 4
# Milliseconds.
TRANSIT, TO_STUB, IN_STUB = 50, 10, 2

Link = tuple[int, int, int]


@dataclass(frozen=True)
class Network:
    """Links in both directions, each with its latency; nodes are numbered."""

    nodes: int
    links: list[Link]


def transit_stub(transits: int, dense: bool, seed: int = 1) -> Network:  # noqa: FBT001
    """So many transit nodes, three stubs of eight nodes at each; dense networks have four links a node, sparse ones two."""
    chance = random.Random(seed)
    nodes = transits * (1 + STUBS * STUB_NODES)
    pairs: dict[tuple[int, int], int] = {}

    def connect(a: int, b: int, latency: int) -> None:
        pairs.setdefault((min(a, b), max(a, b)), latency)

    stubs = []
    following = transits
    for transit in range(transits):
        if transit:
            connect(transit, transit - 1, TRANSIT)
        for _ in range(STUBS):
            stub = list(range(following, following + STUB_NODES))
            following += STUB_NODES
            stubs.append(stub)
            connect(transit, chance.choice(stub), TO_STUB)
            for place, node in enumerate(stub[1:], 1):
                connect(node, stub[chance.randrange(place)], IN_STUB)
    wanted = nodes * (2 if dense else 1)
    if dense:
        for first in range(0, transits, TRANSIT_NODES):
            for a, b in combinations(range(first, min(first + TRANSIT_NODES, transits)), 2):
                connect(a, b, TRANSIT)
        while len(pairs) < wanted:
            a, b = chance.sample(chance.choice(stubs), 2)
            connect(a, b, IN_STUB)
    links = [(a, b, latency) for (a, b), latency in pairs.items()]
    both = links + [(b, a, latency) for a, b, latency in links]
    chance.shuffle(both)
    return Network(nodes, both)


def sensor_grid(side: int, metres: int = 100, seed: int = 1) -> list[tuple[int, float, float]]:
    """Sensors on a square of so many metres, `side` in each direction, a little beside the points of the grid."""
    chance = random.Random(seed)
    step = metres / side
    return [
        (row * side + column, (column + chance.random()) * step, (row + chance.random()) * step)
        for row in range(side)
        for column in range(side)
    ]
