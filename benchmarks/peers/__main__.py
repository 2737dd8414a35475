"""`python -m benchmarks.peers [PEER …]`: the views of the scenario through every peer that installs and starts here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import venv
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import machine
from benchmarks.peers import scenario
from benchmarks.peers.tables import Outcome, peers_table, scoreboard

ROOT = Path(__file__).parents[2]
# Each in an environment of its own: their requirements exclude each other. Those without are of this project.
PEERS = {
    "headwater": None,
    "spark": None,
    "duckdb": ["duckdb", "pyarrow"],
    "pathway": ["pathway", "pyarrow"],
    "flink": ["apache-flink"],
}
TIME_LIMIT = 900


class PeerFailed(Exception):
    """A peer did not install or start, or gave no outcome; the message says why."""


def interpreter(peer: str) -> Path:
    """The Python that has the peer, installed when first needed."""
    packages = PEERS[peer]
    if packages is None:
        return Path(sys.executable)
    home = ROOT / ".venv-peers" / peer
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        installed = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        if installed.returncode:
            raise PeerFailed(f"cannot be installed: {_last_line(installed.stderr)}")
        (home / "ready").touch()
    return python


def run(peer: str, view: str, directory: Path) -> Outcome:
    """One view through one peer, in processes of its own."""
    command = [interpreter(peer), Path(__file__).parent / f"{peer}_peer.py", directory, view, scenario.VIEWS[view]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} if PEERS[peer] is None else dict(os.environ)
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment
    )
    try:
        out, errors = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"not done after {TIME_LIMIT} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    told = [line for line in out.splitlines() if line.startswith("{")]
    if not told:
        raise PeerFailed(f"gave nothing: {_last_line(errors)}")
    return _outcome(peer, view, json.loads(told[-1]))


def _outcome(peer: str, view: str, told: dict) -> Outcome:
    def medians(times: dict[str, list[float]]) -> dict[int, float]:
        return {int(size): median(each[scenario.WARM_UPS :]) for size, each in times.items()}

    kept = {name: told[name] for name in ("version", "load", "memory", "groups")}
    return Outcome(peer, view, times=medians(told["times"]), applied=medians(told["applied"]), **kept)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "Error" in line or "Exception" in line] or text.strip().splitlines()
    return (lines or ["it ended without a word"])[-1][:200]


def main(
    peers: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(PEERS)}; all if none is named.")] = None,
    rows: Annotated[int, typer.Option(help="Rows of the large table.")] = 10_000_000,
) -> None:
    """Compare with other engines on the same data and changes."""
    console = Console() if sys.stdout.isatty() else Console(width=150)
    outcomes: list[Outcome] = []
    failures: dict[str, str] = {}
    started = perf_counter()
    with tempfile.TemporaryDirectory(prefix="headwater-peers-") as directory, console.status("making rows") as status:
        scenario.write(Path(directory), rows)
        for peer in peers or PEERS:
            for view in scenario.VIEWS:
                status.update(f"{peer}: {view}")
                try:
                    outcomes.append(run(peer, view, Path(directory)))
                except PeerFailed as failure:
                    failures[peer] = str(failure)
                    console.print(f"{peer} is left out: {failure}")
                    break
    console.print(peers_table(outcomes, rows))
    console.print(scoreboard(outcomes))
    target = ROOT / "benchmarks/results" / ("" if rows == 10_000_000 and not peers else "partial")
    target.mkdir(parents=True, exist_ok=True)
    stored = {"rows": rows, "seconds": perf_counter() - started, "machine": machine.facts(), "failures": failures}
    told = [{**asdict(outcome), "groups": len(outcome.groups)} for outcome in outcomes]
    (target / "peers.json").write_text(json.dumps({**stored, "outcomes": told}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
