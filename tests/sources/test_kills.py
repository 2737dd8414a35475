"""Kills at random while directories and a server are followed: at the end all is there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import following_process
import pytest

from headwater.sources.postgres import capture

if TYPE_CHECKING:
    from benchmarks.postgres_server import Server

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg")
SCRIPT = Path(__file__).parent / "following_process.py"
KILLS = int(os.environ.get("KILLS", "4"))


class Engine:
    """The process that follows."""

    def __init__(self, folder: Path, address: str) -> None:
        self._command = [sys.executable, str(SCRIPT), str(folder / "state"), str(folder / "files"), address]
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        # A group of its own, so that Spark's JVM is killed as well.
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def await_ready(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def ask(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("all\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise AssertionError("The process has ended.")


class Files:
    """Files of JSON lines with what comes with files in real life; and what should be left of them."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self.rows: dict[int, tuple[str, int]] = {}
        self.letters = 0
        self._number = 0

    def add(self) -> None:
        lines = []
        for _ in range(self._chance.randrange(1, 200)):
            key = len(self.rows)
            self.rows[key] = (self._chance.choice("abcd"), self._chance.randrange(100))
            lines.append(json.dumps({"id": key, "brand": self.rows[key][0], "price": self.rows[key][1]}))
        if self._chance.random() < 0.5:
            lines.append(lines[0])
            lines.append('{"id": 12, "bra')
            self.letters += 2
        self._number += 1
        beside = self._folder.parent / f"{self._number}.part"
        beside.write_text("\n".join(lines), encoding="utf-8")
        beside.rename(self._folder / f"{self._chance.randrange(10)}-{self._number}.json")

    @property
    def totals(self) -> list[list[Any]]:
        found: dict[str, list[int]] = {}
        for brand, price in self.rows.values():
            total = found.setdefault(brand, [0, 0])
            total[0] += price
            total[1] += 1
        return sorted([brand, *total] for brand, total in found.items())


def prepare(server: Server) -> None:
    with capture.connected(server.address) as connection:
        connection.execute("CREATE TABLE pgbench_branches (bid BIGINT PRIMARY KEY, bbalance BIGINT)")
        connection.execute("CREATE TABLE pgbench_tellers (tid BIGINT PRIMARY KEY, bid BIGINT, tbalance BIGINT)")
        connection.execute("CREATE TABLE pgbench_accounts (aid BIGINT PRIMARY KEY, bid BIGINT, abalance BIGINT)")
        connection.execute(
            "CREATE TABLE pgbench_history (hid BIGSERIAL PRIMARY KEY, tid BIGINT, bid BIGINT, aid BIGINT, delta BIGINT)"
        )
        connection.execute("INSERT INTO pgbench_branches SELECT i, 0 FROM generate_series(1, 3) i")
        connection.execute("INSERT INTO pgbench_tellers SELECT i, 1 + i % 3, 0 FROM generate_series(1, 20) i")
        connection.execute("INSERT INTO pgbench_accounts SELECT i, 1 + i % 3, 0 FROM generate_series(1, 500) i")


TRANSFER = r"""
\set teller random(1, 20)
\set account random(1, 500)
\set delta random(-500, 500)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :account;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :teller;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1 + :teller % 3;
INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (:teller, 1 + :teller % 3, :account, :delta);
END;
"""


@pytest.mark.timeout(3_000)
def test_all_is_there_once_whatever_was_killed(postgres: Server, tmp_path: Path) -> None:
    chance = random.Random(5)
    (tmp_path / "files").mkdir()
    files = Files(tmp_path / "files", chance)
    prepare(postgres)
    script = tmp_path / "transfer.sql"
    script.write_text(TRANSFER, encoding="utf-8")
    engine = Engine(tmp_path, postgres.address)
    load = postgres.load(script, clients=4, rate=100)
    try:
        for number in range(KILLS):
            if number % 3:
                # Else it may be killed while it starts.
                engine.await_ready()
            end = monotonic() + chance.uniform(1, 10)
            while monotonic() < end:
                files.add()
                sleep(0.2)
            if number:
                # The server first, so that the engine may be killed while it looks for it.
                postgres.kill()
                # With the server, its clients end.
                load.wait()
                postgres.start()
                load = postgres.load(script, clients=4, rate=100)
            engine.kill()
            engine.start()
        files.add()
        load.terminate()
        load.wait()
        with capture.connected(postgres.address) as connection:
            while connection.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'pgbench'").fetchall():
                sleep(0.1)
        found = engine.ask()
        assert found["views"]["totals"] == files.totals
        assert found["letters"] == files.letters
        with capture.connected(postgres.address) as connection:
            for view in ("balances", "books"):
                query = following_process.VIEWS[view]
                for name in ("branches", "history", "accounts"):
                    query = query.replace(f"FROM {name} ", f"FROM pgbench_{name} ").replace(
                        f"JOIN {name} ", f"JOIN pgbench_{name} "
                    )
                rows = [[int(value) for value in row] for row in connection.execute(query).fetchall()]
                assert found["views"][view] == sorted(rows)
    finally:
        load.kill()
        load.wait()
        engine.kill()
        capture.release_slot(postgres.address, "bank")
