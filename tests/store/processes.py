"""Other processes, and what they say."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("crashing.py")


class Processes:
    """Starts processes that know the code already."""

    def __init__(self, template: Path) -> None:
        paths = [str(PROGRAM.parent), str(PROGRAM.parent.parent), os.environ.get("PYTHONPATH", "")]
        self._source = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(template)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        self._started: list[Process] = []
        assert self._line() == "ready"

    def start(self, role: str, directory: Path, **options: Any) -> Process:
        report = directory.parent / f"{role}-{len(self._started)}.report"
        assert self._source.stdin is not None
        said = {"role": role, "report": str(report), "directory": str(directory), **options}
        self._source.stdin.write(json.dumps(said) + "\n")
        self._source.stdin.flush()
        started = Process(int(self._line()), report)
        self._started.append(started)
        return started

    def close(self) -> None:
        for process in self._started:
            process.kill()
        assert self._source.stdin is not None
        assert self._source.stdout is not None
        self._source.stdin.close()
        self._source.wait()
        self._source.stdout.close()

    def _line(self) -> str:
        assert self._source.stdout is not None
        return self._source.stdout.readline().strip()


class Process:
    def __init__(self, number: int, report: Path) -> None:
        self.number = number
        self._report = report
        try:
            self._handle: int | None = os.pidfd_open(number)
        except ProcessLookupError:
            self._handle = None

    def said(self, *, last: int = 0) -> list[dict[str, Any]]:
        """What it has reported; a line that it was killed amid is none."""
        text = self._report.read_text() if self._report.exists() else ""
        lines = text.split("\n")[:-1]
        return [json.loads(line) for line in lines[-last:]]

    def wait_for(self, key: str, times: int = 1) -> dict[str, Any]:
        """Waits until it has said something so many times."""
        end = time.monotonic() + PATIENCE
        while True:
            found = [said for said in self.said() if key in said]
            if len(found) >= times:
                return found[-1]
            assert time.monotonic() < end, f"it never said {key}: {self.said(last=5)}"
            time.sleep(0.01)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def signal(self, number: int) -> None:
        if self._handle is not None:
            try:
                signal.pidfd_send_signal(self._handle, number)
            except ProcessLookupError:
                self.wait()

    def wait_until_stopped(self) -> None:
        """Until none of its threads goes on."""
        while any(stat.read_text().rpartition(")")[2].split()[0] != "T" for stat in self._threads()):
            time.sleep(0.001)

    def _threads(self) -> Iterator[Path]:
        return Path(f"/proc/{self.number}/task").glob("*/stat")

    def wait(self) -> None:
        """Until it has ended."""
        if self._handle is not None:
            ended, _, _ = select.select([self._handle], [], [], PATIENCE)
            assert ended, "it goes on and on"
            os.close(self._handle)
            self._handle = None
