"""One workload in a process of its own, so that its memory is given back and its failure stops no other.

The child writes its figures into a file and tells its stages on standard output. The parent ends it, and all that it started,
if it takes too long or more memory than the machine can give.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from benchmarks.families import FAMILIES
from benchmarks.workload import Figure, Scale

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_LIMIT = 1_200
MEMORY_SHARE = 0.7


class WorkloadFailed(Exception):
    """A workload gave no figures; the message says why."""


def run(family: str, workload: str, scale: Scale, tell: Callable[[str], None]) -> list[Figure]:
    """The figures of one workload."""
    with tempfile.TemporaryDirectory() as directory:
        result, errors = Path(directory) / "figures.json", Path(directory) / "errors.txt"
        order = {"family": family, "workload": workload, "result": str(result), "scale": asdict(scale)}
        with errors.open("w") as log:
            process = subprocess.Popen(  # noqa: S603  (this program itself)
                [sys.executable, "-m", "benchmarks.child", json.dumps(order, default=str)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            try:
                reason = _watch(process, tell)
            finally:
                _end(process)
        if not result.exists():
            raise WorkloadFailed(reason or _last_error(errors.read_text()))
        return [Figure(**figure) for figure in json.loads(result.read_text())]


def _watch(process: subprocess.Popen[str], tell: Callable[[str], None]) -> str | None:
    """Waits for the end; a reason if the process had to be ended."""

    def listen() -> None:
        for line in process.stdout or ():
            if line.startswith("stage: "):
                tell(line.removeprefix("stage: ").strip())

    Thread(target=listen, daemon=True).start()
    started = perf_counter()
    limit = MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    while process.poll() is None:
        if perf_counter() - started > TIME_LIMIT:
            return f"ended after {TIME_LIMIT} s"
        if _resident(process.pid) > limit:
            return f"ended when it took more than {limit / 2**30:.0f} GB of memory"
        sleep(0.2)
    return None


def _resident(process: int) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the process and the Spark that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_error(text: str) -> str:
    """The last line that names an error."""
    lines = [line.strip() for line in text.splitlines() if re.match(r"^[\w.]*(Error|Exception|[A-Z]\w+): ", line)]
    return (lines or text.strip().splitlines() or ["it ended without a word"])[-1][:300]


def main(order: dict[str, Any]) -> None:
    scale = Scale(**{**order["scale"], "directory": Path(order["scale"]["directory"])})
    workload = next(each for each in FAMILIES[order["family"]].workloads if each.name == order["workload"])
    figures = workload.run(scale)
    Path(order["result"]).write_text(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
