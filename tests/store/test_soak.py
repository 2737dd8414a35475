"""A directory that is written for long: files, bytes and memory stay as they are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import shop
from oracle import Oracle

import headwater as hw
from headwater.store import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Figures:
    """What a directory and its writer take, at some time."""

    def __init__(self, directory: Path) -> None:
        files = [path for path in directory.rglob("*") if path.is_file()]
        self.files = len(files)
        self.bytes = sum(path.stat().st_size for path in files)
        self.memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def __repr__(self) -> str:
        return f"{self.files} files, {self.bytes:,} B, {self.memory >> 20} MiB"


def soak(directory: Path, epochs: int, spark: SparkSession | None = None) -> tuple[Figures, Figures]:
    """So many epochs over tables that stay as large as they are; figures of the middle and of the end."""
    figures = []
    with hw.connect(directory, retain=100, spark=spark) as session:
        changes = shop.transactions(1, session, larger=False)
        start = session.epoch
        for _ in range(2):
            for _ in range(epochs // 2):
                shop.commit(session, next(changes))
            assert session._store is not None
            session._store.fold()
            figures.append(Figures(directory))
        assert session.epoch == start + epochs
        if spark is not None:
            oracle = Oracle(session, {"revenue": shop.VIEWS["revenue"]})
            for name, view in session.views().items():
                oracle.check(view, shop.VIEWS[name])
        whole = shop.content(session)
    with hw.connect(directory) as session:
        assert shop.content(session) == whole
    middle, end = figures
    return middle, end


@pytest.fixture
def directory(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "_BYTES", 8_000)
    return shutil.copytree(template, tmp_path / "shop")


def check_figures(middle: Figures, end: Figures) -> None:
    assert end.files <= 1.5 * middle.files + 10, (middle, end)
    assert end.bytes <= 1.5 * middle.bytes + 100_000, (middle, end)
    assert end.memory <= 1.1 * middle.memory + (10 << 20), (middle, end)


def test_some_hundred_epochs(directory: Path) -> None:
    middle, end = soak(directory, 400)
    check_figures(middle, end)
    assert end.files < 60


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_epochs(directory: Path, spark: SparkSession) -> None:
    middle, end = soak(directory, 10_000, spark)
    check_figures(middle, end)
    assert end.files < 60
