"""Kills at random while a view is exported: in files, a Delta table and a server, each epoch is there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from headwater.sources.postgres import capture

if TYPE_CHECKING:
    from benchmarks.postgres_server import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_000)]
pytest.importorskip("psycopg")
deltalake = pytest.importorskip("deltalake")
SCRIPT = Path(__file__).parent / "exporting_process.py"
KILLS = int(os.environ.get("KILLS", "4"))


def started(folder: Path, address: str) -> subprocess.Popen[str]:
    arguments = [str(folder / name) for name in ("state", "files", "delta")]
    with (folder / "log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *arguments, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", (folder / "log").read_text("utf-8")[-5_000:]
    return process


def of_files(folder: Path) -> Counter[tuple[Any, ...]]:
    """The sum of the changes in all files, each of one epoch."""
    found: Counter[tuple[Any, ...]] = Counter()
    for file in folder.glob("*.parquet"):
        for *row, weight in (tuple(row.values()) for row in pq.read_table(file).to_pylist()):
            found[tuple(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def test_each_epoch_is_there_once(postgres: Server, tmp_path: Path) -> None:
    chance = random.Random(7)
    process = started(tmp_path, postgres.address)
    try:
        for _ in range(KILLS):
            sleep(chance.uniform(0.2, 4))
            if chance.random() < 0.3:
                postgres.kill()
                postgres.start()
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            process = started(tmp_path, postgres.address)
        told, _ = process.communicate("finish\n")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    expected = Counter(map(tuple, json.loads(told.splitlines()[-1])["rows"]))
    assert of_files(tmp_path / "files") == expected
    delta = deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table()
    assert Counter(tuple(row[name] for name in ("k", "n", "total")) for row in delta.to_pylist()) == expected
    with capture.connected(postgres.address) as connection:
        assert Counter(connection.execute("SELECT k, n, total FROM totals").fetchall()) == expected
        connection.execute("DROP TABLE totals")
