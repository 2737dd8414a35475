"""Graphs of several shapes, as tables of edges (src, dst, cost): what recursive views are measured and tried on.

Each is made from a seed alone. Costs are small whole numbers, unless the shape has costs of its own.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

# Latencies of a transit-stub topology, in milliseconds.
_TRANSIT, _GATEWAY, _STUB = 50, 10, 2


def edges(src: np.ndarray, dst: np.ndarray, cost: np.ndarray | None = None, seed: int = 1) -> pa.Table:
    """A table of edges; without costs, random ones from 1 to 99."""
    made = np.random.default_rng(seed).integers(1, 100, len(src)) if cost is None else cost
    return pa.table({"src": src.astype(np.int64), "dst": dst.astype(np.int64), "cost": made.astype(np.int64)})


def both_ways(table: pa.Table) -> pa.Table:
    """Every edge and its reverse, of the same cost."""
    back = table.select(["dst", "src", "cost"]).rename_columns(["src", "dst", "cost"])
    return pa.concat_tables([table, back]).combine_chunks()


def random_graph(count: int, degree: int = 5, seed: int = 1) -> pa.Table:
    """Edges between nodes that are drawn evenly; nearly all nodes reach each other."""
    rng = np.random.default_rng(seed)
    nodes = max(2, count // degree)
    return edges(rng.integers(0, nodes, count), rng.integers(0, nodes, count), seed=seed)


def scale_free(count: int, degree: int = 5, seed: int = 1) -> pa.Table:
    """Few nodes with very many edges: each new node links to ends of edges that are there, half of the links turned round."""
    rng = np.random.default_rng(seed)
    nodes = max(degree + 1, count // degree)
    ends = np.empty(2 * degree * nodes, np.int64)
    ends[: 2 * degree] = np.repeat(np.arange(degree), 2)
    used = 2 * degree
    src, dst = [], []
    for node in range(degree, nodes):
        chosen = ends[rng.integers(0, used, degree)]
        src.append(np.full(degree, node))
        dst.append(chosen)
        ends[used : used + degree] = chosen
        ends[used + degree : used + 2 * degree] = node
        used += 2 * degree
    a, b = np.concatenate(src), np.concatenate(dst)
    turned = rng.random(len(a)) < 0.5
    return edges(np.where(turned, b, a), np.where(turned, a, b), seed=seed)


def grid(count: int, seed: int = 1) -> pa.Table:
    """A square of nodes, each linked both ways with its neighbours: long ways, and many of one length."""
    side = max(2, round((count / 4) ** 0.5))
    ids = np.arange(side * side).reshape(side, side)
    src = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    dst = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return both_ways(edges(src, dst, seed=seed))


def tree(count: int, branching: int = 3, seed: int = 1) -> pa.Table:
    """From parents to children."""
    children = np.arange(1, count + 1)
    return edges((children - 1) // branching, children, seed=seed)


def transit_stub(links: int, *, dense: bool = True, seed: int = 1) -> pa.Table:
    """A network of domains: four transit nodes each, three stubs a transit node, eight nodes a stub; links go both ways.

    Dense networks have four links a node, sparse ones half of them. As many domains as it takes for so many rows.
    """
    rng = np.random.default_rng(seed)
    a: list[int] = []
    b: list[int] = []
    cost: list[int] = []

    def link(x: int, y: int, latency: int) -> None:
        a.append(x)
        b.append(y)
        cost.append(latency)

    nodes = 0
    gates: list[int] = []
    while 2 * len(a) < links:
        transits = list(range(nodes, nodes + 4))
        nodes += 4
        for i, node in enumerate(transits):
            link(node, transits[(i + 1) % 4], _TRANSIT)
            for _ in range(3):
                stub = np.arange(nodes, nodes + 8)
                nodes += 8
                link(node, int(stub[0]), _GATEWAY)
                for x, y in pairwise(stub):
                    link(int(x), int(y), _STUB)
                for _ in range(8 if dense else 0):
                    x, y = rng.choice(stub, 2, replace=False)
                    link(int(x), int(y), _STUB)
        if gates:
            link(gates[rng.integers(0, len(gates))], transits[0], _TRANSIT)
        gates += transits
    made = edges(np.array(a), np.array(b), np.array(cost))
    return both_ways(made).slice(0, links)


def sensor_grid(count: int, *, metres: int = 100, near: float = 20.0, seed: int = 1) -> pa.Table:
    """Sensors strewn over a square, linked both ways if they are near each other; the cost is the distance in metres."""
    rng = np.random.default_rng(seed)
    places = rng.random((count, 2)) * metres
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    src, dst = np.nonzero((apart <= near) & ~np.eye(count, dtype=bool))
    return edges(src, dst, np.ceil(apart[src, dst]))


SHAPES = {"random": random_graph, "scale-free": scale_free, "grid": grid}
