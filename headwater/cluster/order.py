"""Orders: what a job does, in text that every task can read.

An order has the steps, as values of the closed set that can be stored, the places of their runs, and the ways between waves.
A worker reads an order once, however many of its tasks it runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache, cached_property, lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any

from headwater.cluster.waves import Route, Waves
from headwater.compiler.dataflow import Step
from headwater.store.codec import Decoder, Encoder
from headwater.store.manifest import RUNS, Kept
from headwater.store.opening import disk_at
from headwater.store.runfiles import StoredRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from headwater.engine import Engine
    from headwater.operators.operator import State
    from headwater.store.disk import Disk
    from headwater.store.runfiles import Place


# Seconds after which a worker looks again which files are there.
_OFTEN = 60.0


class OnlyOnDriver(Exception):
    """Something only Spark can evaluate was met by a task, where there is no Spark to ask."""


@dataclass(frozen=True)
class Part:
    """What a task of wave 0 brings in for a step: rows `start` to `stop` of a file, or a range of hashes of its state."""

    step: int
    file: str | None
    start: int
    stop: int


@dataclass(frozen=True)
class Merge:
    """Runs of a state that become one for each shard: all after the first `kept` of one of its arrangements."""

    step: int
    arrangement: int
    kept: int


@dataclass(frozen=True)
class Order:
    """A job of some steps; `states` are theirs before it."""

    place: str
    prefix: str
    zone: str
    shards: int
    steps: tuple[Step, ...]
    states: tuple[tuple[Kept, ...], ...]
    waves: Waves
    entering: frozenset[int]
    """The steps whose changes come from outside."""
    arranged: frozenset[int]
    """Those of them that are arranged already, as a whole."""
    parts: tuple[Part, ...]
    merges: tuple[Merge, ...]

    def text(self) -> str:
        encoder = Encoder()
        steps = [[encoder.number(step.operator), self._inputs(number), step.label] for number, step in enumerate(self.steps)]
        waves = {"of": self.waves.of, "routes": [asdict(r) for r in self.waves.routes], "told": [*self.waves.told.items()]}
        plain = {name: getattr(self, name) for name in ("place", "prefix", "zone", "shards")}
        return json.dumps(
            {
                **plain,
                "states": [[asdict(kept) for kept in state] for state in self.states],
                "waves": waves,
                "entering": sorted(self.entering),
                "arranged": sorted(self.arranged),
                "parts": [asdict(part) for part in self.parts],
                "merges": [asdict(merge) for merge in self.merges],
                "steps": steps,
                "classes": encoder.classes,
                "values": encoder.values,
            }
        )

    @cached_property
    def numbers(self) -> dict[Step, int]:
        return {step: number for number, step in enumerate(self.steps)}

    def _inputs(self, number: int) -> list[int]:
        """What a step reads; nothing if it does not run itself."""
        if self.waves.of[number] < 0 or number in self.entering:
            return []
        return [self.numbers[child] for child in self.steps[number].inputs]

    @property
    def disk(self) -> Disk:
        return _shelf(self.place).disk

    def state(self, number: int) -> State:
        """The state of a step before the job."""
        return tuple(kept.arrangement(self.run) for kept in self.states[number])

    def run(self, place: Place) -> StoredRun:
        """The run at a place, for tasks to go on from."""
        return run_at(self.place, place)


class SharedRun(StoredRun):
    """A run that many tasks go on from: none of them may put it into a new one."""

    __slots__ = ()

    def takes(self, count: int) -> bool:  # noqa: ARG002
        return False


@lru_cache(maxsize=4)
def read(text: str) -> Order:
    """The order in a text."""
    said = json.loads(text)
    steps: list[Step] = []
    values = _values(said)
    for operator, inputs, label in said["steps"]:
        steps.append(Step(values[operator], tuple(steps[i] for i in inputs), label))
    routes = (
        Route(r["source"], r["wave"], _key(r["key"]), r["combined"], tuple(map(tuple, r["feeds"])))
        for r in said["waves"]["routes"]
    )
    return Order(
        place=said["place"],
        prefix=said["prefix"],
        zone=said["zone"],
        shards=said["shards"],
        steps=tuple(steps),
        states=tuple(tuple(Kept.read(**kept) for kept in state) for state in said["states"]),
        waves=Waves(tuple(said["waves"]["of"]), tuple(routes), dict(said["waves"]["told"])),
        entering=frozenset(said["entering"]),
        arranged=frozenset(said["arranged"]),
        parts=tuple(Part(**part) for part in said["parts"]),
        merges=tuple(Merge(**merge) for merge in said["merges"]),
    )


class Shelf:
    """The runs of a directory that a worker has: each is mapped and checked once, and kept while its file is there."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._runs: dict[Place, SharedRun] = {}
        self._looked = monotonic()

    def run(self, place: Place) -> SharedRun:
        found = self._runs.get(place)
        if found is None:
            self._tidy()
            found = self._runs[place] = SharedRun(self.disk, place)
        return found

    def _tidy(self) -> None:
        """Forgets runs whose files were removed, now and then: as long as they are mapped, they take up room on the disk."""
        if monotonic() - self._looked > _OFTEN:
            there = set(self.disk.files(RUNS))
            self._runs = {place: run for place, run in self._runs.items() if place.file in there}
            self._looked = monotonic()


@cache
def _shelf(directory: str) -> Shelf:
    return Shelf(disk_at(directory))


def run_at(directory: str, place: Place) -> StoredRun:
    """A run, which is mapped and checked once in a worker."""
    return _shelf(directory).run(place)


def _values(said: dict[str, Any]) -> Sequence[Any]:
    engine = _engine(said["zone"])
    decoder = Decoder(said["classes"], {"engines": engine.engines, "recompute": engine.recompute}, engine.origins)
    decoder.read(said["values"])
    return decoder.values


@cache
def _engine(zone: str) -> Engine:
    from headwater.engine import Engine

    return Engine(_no_spark, zone)


def _no_spark() -> SparkSession:
    raise OnlyOnDriver


def _key(key: list[int] | None) -> tuple[int, ...] | None:
    return None if key is None else tuple(key)
