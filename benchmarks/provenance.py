"""Recursion with provenance: the experiments with network topologies and sensor regions, by strategy.

Links come in five parts, then some go one at a time. Strategies run in one thread of this process over twelve logical shards,
so their seconds are those of its processor, and nothing else on the machine counts. One that takes too long is stopped: its
figures are then at least what is said.
"""

from __future__ import annotations

import gc
import random
import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import connected, note
from benchmarks.topologies import sensor_grid, transit_stub
from benchmarks.workload import Figure, Scale, Workload
from headwater.annotations import absorption
from headwater.compiler.dataflow import in_order
from headwater.errors import ProvenanceTooLarge
from headwater.operators.recursive.derived import STRATEGIES, Derived
from headwater.operators.recursive.strategy import no_cycles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headwater.operators.recursive.strategy import Settings

    Rows = Sequence[Sequence[tuple[Any, ...]]]

REACHABLE = (
    "WITH RECURSIVE reachable(src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT l.src, r.dst FROM link l JOIN reachable r ON l.dst = r.src) SELECT * FROM reachable"
)
PATHS = (
    "WITH RECURSIVE path(src, dst, way, cost, hops) AS (SELECT src, dst, concat(src, '.', dst), cost, 1 FROM link UNION "
    "SELECT l.src, p.dst, concat(l.src, '.', p.way), l.cost + p.cost, p.hops + 1 FROM link l JOIN path p ON l.dst = p.src) "
    "SELECT src, dst, {best} FROM path GROUP BY src, dst"
)
REGIONS = (
    "WITH RECURSIVE region(id, sensor) AS (SELECT s.id, s.sensor FROM seed s JOIN triggered t ON s.sensor = t.sensor UNION "
    "SELECT r.id, n.other FROM region r JOIN near n ON n.sensor = r.sensor JOIN triggered t ON t.sensor = n.sensor) "
    "SELECT * FROM region"
)
TABLES = {
    "link": "src BIGINT, dst BIGINT, cost BIGINT",
    "seed": "id BIGINT, sensor BIGINT",
    "near": "sensor BIGINT, other BIGINT",
    "triggered": "sensor BIGINT",
}
NETWORK = "network of 400 links"
COMPARED = ("absorption-lazy", "relative", "dred", "recompute")
PARTS = 5
NEAR = 20
LIMIT = 20.0
# The links at which eager and lazy provenance are compared.
ASKED = 800


# How long eager provenance takes is asked where a view would refuse it.
absorption.LARGEST_FUNCTION = 200_000


class TooLong(Exception):
    """A strategy was stopped."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raises when the processor was busy for so many seconds."""

    def stop(*_: object) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


@dataclass
class Running:
    """A strategy at work, and how long it took so far."""

    name: str
    strategy: Any
    seconds: float = 0.0
    ended: bool = True

    @staticmethod
    def of(name: str, settings: Settings) -> Running:
        batch = 1 if name == "absorption-eager" else None
        return Running(name, STRATEGIES[name](replace(settings, batch=batch)))

    def apply(self, gone: Rows, come: Rows, limit: float = LIMIT) -> None:
        """One transaction; nothing after one that was stopped."""
        if not self.ended:
            return
        started = process_time()
        try:
            with stopped_after(max(0.01, limit - self.seconds)), no_cycles():
                self.strategy.apply(gone, come)
        except (TooLong, ProvenanceTooLarge):
            self.ended = False
        self.seconds += process_time() - started

    def inserted(self) -> dict[str, Any]:
        """The figures before anything goes; what Python would then look for because of what came, it does first."""
        gc.collect()
        return self.figures()

    def figures(self) -> dict[str, Any]:
        known = self.strategy.figures() if self.ended else {"exchanged_rows": self.strategy.counters.rows}
        return {"strategy": self.name, "cpu_s": self.seconds, "ended": self.ended, **known}

    def answer(self, result: int) -> set[Any]:
        relation = self.strategy.relations[result]
        return set(relation.rows.kept if hasattr(relation, "rows") else relation)


def compiled(query: str, strategy: str = "absorption-lazy") -> tuple[Settings, list[str]]:
    """What strategies run for a query, and the tables of its inputs."""
    with connected() as session:
        for name, columns in TABLES.items():
            session.create_table(name, columns)
        session.create_view("v", query, strategy=strategy)
        steps = in_order([session.snapshot.views["v"].contents])
        operator = next(step.operator for step in steps if isinstance(step.operator, Derived))
        return operator.settings, [source.source for source in operator.sources]  # type: ignore[attr-defined]


def parts(rows: Sequence[Any]) -> list[Sequence[Any]]:
    size = -(-len(rows) // PARTS)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def nodes(scale: Scale) -> int:
    """Transit nodes of the usual network: a hundred nodes and four hundred links."""
    return 1 if scale.quick else 4


def insertions_and_deletions(scale: Scale) -> list[Figure]:
    settings, _ = compiled(REACHABLE)
    network = transit_stub(nodes(scale), dense=True)
    chance = random.Random(3)
    leaving = chance.sample(network.links, 5 if scale.quick else 40)
    running = [Running.of(name, settings) for name in (*COMPARED, "absorption-eager")]
    figures = []
    for strategy in running:
        note(f"insertions, {strategy.name}")
        for number, links in enumerate(parts(network.links), 1):
            strategy.apply([[]], [links])
            details = {"ratio": number / PARTS, "phase": "insertions", **strategy.figures()}
            figures.append(Figure(NETWORK, "insertions", "seconds to build", strategy.seconds, "s", None, details))
    inserted = {each.name: each.inserted() for each in running}
    for strategy in running:
        note(f"deletions, {strategy.name}")
        for link in leaving:
            strategy.apply([[link]], [[]], LIMIT + inserted[strategy.name]["cpu_s"])
    _require_same(running, settings)
    deleted = {each.name: _since(inserted[each.name], each.figures()) for each in running}
    return figures + _against_dred(NETWORK, deleted, len(leaving))


def regions(scale: Scale) -> list[Figure]:
    settings, tables = compiled(REGIONS)
    sensors = sensor_grid(6 if scale.quick else 14)
    near = [(a, b) for a, x, y in sensors for b, u, v in sensors if a != b and (x - u) ** 2 + (y - v) ** 2 < NEAR**2]
    chance = random.Random(4)
    triggered = [(sensor,) for sensor, _, _ in chance.sample(sensors, len(sensors) // 2)]
    seeds = [(number, sensor) for number, (sensor,) in enumerate(triggered[:5])]
    leaving = chance.sample(triggered[5:], 5 if scale.quick else 20)
    running = [Running.of(name, settings) for name in COMPARED]
    content = {"near": near, "seed": seeds, "triggered": triggered}
    for strategy in running:
        note(f"regions, {strategy.name}")
        strategy.apply([[] for _ in tables], [content[name] for name in tables])
    inserted = {each.name: each.inserted() for each in running}
    for strategy in running:
        for row in leaving:
            strategy.apply([[row] if name == "triggered" else [] for name in tables], [[] for _ in tables], 2 * LIMIT)
    _require_same(running, settings)
    deleted = {each.name: _since(inserted[each.name], each.figures()) for each in running}
    return _against_dred("sensor regions", deleted, len(leaving))


def lazy_and_eager(dense: bool, scale: Scale) -> list[Figure]:  # noqa: FBT001
    """How much longer eager provenance takes than lazy, as networks grow; it is stopped beyond what is asked of it."""
    settings, _ = compiled(REACHABLE)
    name = f"links, {'dense' if dense else 'sparse'}"
    figures = []
    for transits in (1,) if scale.quick else (1, 2, 4, 8):
        network = transit_stub(transits if dense else 2 * transits, dense=dense)
        count = 100 * transits
        lazy, eager = Running.of("absorption-lazy", settings), Running.of("absorption-eager", settings)
        note(f"{count} links, lazy")
        lazy.apply([[]], [network.links], 10 * LIMIT)
        # As long as it takes to know the ratio where that is asked for; elsewhere the least that it is will do.
        limit = 1 if scale.quick else 55 * lazy.seconds if dense and count == ASKED else LIMIT
        note(f"{count} links, eager, {limit:.0f} s at most")
        for links in parts(network.links):
            eager.apply([[]], [links], limit)
        details = {"links": count, "lazy": lazy.figures(), "eager": eager.figures()}
        kind = f"{'dense' if dense else 'sparse'} {count}"
        figures.append(Figure(name, kind, "eager to lazy", eager.seconds / max(1e-4, lazy.seconds), "×", None, details))
    return figures


def selections(scale: Scale) -> list[Figure]:
    """The least cost and the fewest hops: both aggregates at once, beside one after the other."""
    network = transit_stub(nodes(scale), dense=True)
    costs: dict[str, dict[str, Any]] = {}
    for name, best in (("cost", "MIN(cost)"), ("hops", "MIN(hops)"), ("both", "MIN(cost), MIN(hops)")):
        settings, _ = compiled(PATHS.format(best=best))
        running = Running.of("absorption-lazy", settings)
        note(f"aggregate selection, {name}")
        for links in parts(network.links):
            running.apply([[]], [links], 10 * LIMIT)
        costs[name] = running.figures()
    single = max(1e-4, costs["cost"]["cpu_s"] + costs["hops"]["cpu_s"])
    rows = costs["cost"]["exchanged_rows"] + costs["hops"]["exchanged_rows"]
    name = "aggregate selection"
    return [
        Figure(name, "time", "multi to single", costs["both"]["cpu_s"] / single, "×", None, costs),
        Figure(name, "rows exchanged", "multi to single", costs["both"]["exchanged_rows"] / rows, "×", None, costs),
    ]


def _since(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What came on top; sizes are those after."""
    counted = ("cpu_s", "exchanged_rows", "exchanged_bytes")
    return {**after, **{name: after[name] - before[name] for name in counted if name in after and name in before}}


def _against_dred(workload: str, deleted: Mapping[str, dict[str, Any]], count: int) -> list[Figure]:
    lazy, dred = deleted["absorption-lazy"], deleted["dred"]
    details = {"deletions": count, "strategies": dict(deleted)}
    exchange = dred["exchanged_rows"] / max(1, lazy["exchanged_rows"])
    return [
        Figure(workload, "deletions", "exchange of dred", exchange, "×", None, details),
        Figure(workload, "deletions", "time of dred", dred["cpu_s"] / max(1e-4, lazy["cpu_s"]), "×", None, details),
    ]


def _require_same(running: Sequence[Running], settings: Settings) -> None:
    ended = [each for each in running if each.ended]
    for other in ended[1:]:
        assert other.answer(settings.result) == ended[0].answer(settings.result), f"{other.name} and {ended[0].name} differ"


WORKLOADS = (
    Workload(NETWORK, insertions_and_deletions),
    Workload("sensor regions", regions),
    Workload("links, dense", partial(lazy_and_eager, True)),  # noqa: FBT003
    Workload("links, sparse", partial(lazy_and_eager, False)),  # noqa: FBT003
    Workload("aggregate selection", selections),
)
