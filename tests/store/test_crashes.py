"""Processes that are killed: whatever they had acknowledged is there, whole, and nothing else but the commit under way."""

from __future__ import annotations

import random
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
import shop
from oracle import Oracle

import headwater as hw

if TYPE_CHECKING:
    from pathlib import Path

    from processes import Processes
    from pyspark.sql import SparkSession


class Survivor:
    """A directory whose writer is killed again and again."""

    def __init__(self, directory: Path, spark: SparkSession, **options: Any) -> None:
        self.directory = directory
        self._spark = spark
        self._options = options
        with hw.connect(directory, spark=spark) as session:
            self.epoch = session.epoch
            self.tables = shop.content(session)
            self._oracle = Oracle(session, {name: shop.VIEWS[name] for name in ("revenue",)})
            self._oracle.answer(shop.VIEWS["strong"])

    def check(self, said: list[dict[str, Any]]) -> None:
        """Compares what is there with what a process has said before it died."""
        pending: list[list[shop.Change]] = []
        for line in said:
            if "changes" in line:
                pending.append(line["changes"])
            elif "defines" in line:
                pending.append([])
            elif "epoch" in line:
                assert line["epoch"] == self.epoch + 1
                self.epoch = line["epoch"]
                shop.apply(self.tables, pending.pop())
        with hw.connect(self.directory, spark=self._spark, **self._options) as session:
            assert session.epoch in (self.epoch, self.epoch + len(pending))
            if session.epoch > self.epoch:
                shop.apply(self.tables, pending.pop())
            assert shop.content(session) == self.tables
            shop.ask_about(self._oracle, session)
            for name, view in session.views().items():
                self._oracle.check(view, shop.VIEWS[name])
            if "strong" not in session.views():
                session.create_view("strong", shop.VIEWS["strong"])
            self.epoch = session.epoch


@pytest.fixture
def directory(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path / "shop")


def kill_at_random(survivor: Survivor, processes: Processes, times: int, seed: int) -> int:
    chosen = random.Random(seed)
    epochs = survivor.epoch
    for _ in range(times):
        process = processes.start(
            "load", survivor.directory, seed=chosen.randrange(1 << 30), fold=chosen.choice((2000, 20_000))
        )
        process.wait_for("opened")
        process.wait_for("epoch", chosen.randrange(1, 12))
        time.sleep(chosen.uniform(0, 0.02))  # amid whatever it does next
        process.kill()
        survivor.check(process.said())
    return survivor.epoch - epochs


def test_kills_at_random_moments(directory: Path, spark: SparkSession, processes: Processes) -> None:
    assert kill_at_random(Survivor(directory, spark), processes, 4, seed=1) >= 4


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(6))
def test_many_kills_at_random_moments(directory: Path, spark: SparkSession, processes: Processes, seed: int) -> None:
    assert kill_at_random(Survivor(directory, spark), processes, 52, seed=seed + 10) >= 52


def kill_at_operations(directory: Path, spark: SparkSession, processes: Processes, chosen: slice, steps: int = 12) -> int:
    """Kills amid the n-th thing that is done to the disk, for some n of all there are."""
    counting = processes.start(
        "load", shutil.copytree(directory, directory.parent / "counted"), seed=5, steps=steps, fold=1500, fuse=1 << 40
    )
    operations = counting.wait_for("operations")["operations"]
    survivor = Survivor(directory, spark)
    kills = 0
    for number in range(operations)[chosen]:
        process = processes.start("load", directory, seed=number, steps=steps, fold=1500, fuse=number)
        process.wait()
        kills += "operations" not in process.said()[-1] if process.said() else 1
        survivor.check(process.said())
    return kills


def test_kills_amid_operations(directory: Path, spark: SparkSession, processes: Processes) -> None:
    assert kill_at_operations(directory, spark, processes, slice(3, None, 29)) >= 3


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_kills_amid_all_operations(directory: Path, spark: SparkSession, processes: Processes) -> None:
    assert kill_at_operations(directory, spark, processes, slice(None)) >= 80
