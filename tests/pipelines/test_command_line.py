"""`headwater run` and `headwater apply` as people start them: programs of their own, interrupted and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from time import sleep
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from test_running import CHANGED, TEXT, put

import headwater as hw

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_000)]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    with (folder / "errors.log").open("a", encoding="utf-8") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "headwater.cli", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def said_until(program: subprocess.Popen[str], beginning: str) -> list[str]:
    """The lines that a program says up to one that begins like this."""
    assert program.stdout is not None
    lines = []
    for line in program.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith(beginning):
            return lines
    raise AssertionError(f"it has ended, and said {lines}")


def end(program: subprocess.Popen[str], how: signal.Signals) -> str:
    """What a program says when it is ended so, together with the JVM that it has started if it has no choice."""
    os.kill(program.pid, how) if how == signal.SIGINT else os.killpg(program.pid, how)
    rest, _ = program.communicate(timeout=300)
    return rest


def test_a_pipeline_is_run_changed_killed_and_run_again(tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    file = tmp_path / "pipeline.toml"
    file.write_text(TEXT, encoding="utf-8")
    put(incoming, "1.json", {"id": 1, "customer": "Ada", "amount": 3}, {"id": 2, "customer": "Ada", "amount": 9})
    program = start(tmp_path, "run", str(file))
    try:
        assert said_until(program, "running")[0] == "+ table orders"
        file.write_text(CHANGED, encoding="utf-8")
        applied = subprocess.run(
            [sys.executable, "-m", "headwater.cli", "apply", "--yes", str(file)], capture_output=True, text=True, check=False
        )
        assert applied.returncode == 0, applied.stderr
        assert "~ view totals" in applied.stdout
        assert "+ view few" in applied.stdout
        end(program, signal.SIGKILL)
        put(incoming, "2.json", {"id": 3, "customer": "Ben", "amount": 4, "colour": "red"})
        program = start(tmp_path, "run", str(file))
        said_until(program, "running")
        put(incoming, "3.json", {"id": 4, "customer": "Ada", "amount": 12, "colour": None})
        wanted = [("Ada", 12), ("Ben", 4)]
        while content(tmp_path / "out") != wanted:
            assert program.poll() is None
            sleep(0.1)  # leaves the processors to those whom it waits for
        assert end(program, signal.SIGINT).rstrip().endswith("stopped")
        assert program.returncode == 0
    finally:
        if program.poll() is None:
            end(program, signal.SIGKILL)
    with hw.connect(tmp_path / "state") as session:
        assert sorted(session.view("totals").rows()) == wanted
        assert sorted(session.view("few").rows()) == [(1, "Ada", 3, None), (3, "Ben", 4, "red")]
    file.write_text(TEXT.replace("totals", "totals ("), encoding="utf-8")
    refused = subprocess.run(
        [sys.executable, "-m", "headwater.cli", "run", str(file)], capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr


def content(folder: Path) -> list[tuple[str, int]]:
    """The one file of all rows, which may just be replaced."""
    for found in folder.glob("*.parquet"):
        try:
            return sorted(tuple(row.values()) for row in pq.read_table(found).to_pylist())  # type: ignore[type-var]
        except FileNotFoundError:
            return []
    return []
