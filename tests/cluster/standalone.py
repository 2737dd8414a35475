"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own, on loopback only.

Workers have one core each, and start executors as processes of their own; what these have on their Python path is what the
worker was started with.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
# The machine may be busy.
PATIENCE = 600.0
EXECUTOR = "CoarseGrainedExecutorBackend"


def wait_for(what: str, is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = monotonic() + seconds
    while not is_so():
        if monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        sleep(0.05)


def spark_environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MASTER")}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable, **more}


@dataclass
class Standalone:
    """A master, and the workers that were started for it; `stop` ends them all."""

    folder: Path
    path: Sequence[Path] = (ROOT, TESTS / "cluster")
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    url: str = ""

    def start(self, workers: int) -> None:
        """Starts the master, and so many workers."""
        port = _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        options = "-Dspark.master.rest.enabled=false"
        arguments = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        self._start("master", arguments, SPARK_MASTER_OPTS=options)
        wait_for("the master", lambda: b"ALIVE" in self._log("master"))
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, path: Sequence[Path] | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """One more worker, whose executors find packages at this path."""
        name = f"worker{len(self.processes)}"
        # An address of its own: Spark does not start a task a second time on the machine that runs it already.
        host = f"127.0.0.{len(self.processes)}"
        arguments = ["worker.Worker", "--host", host, "--port", "0", "--webui-port", "0", "--cores", "1"]
        arguments += ["--memory", "1g", "--work-dir", str(self.folder / name), self.url]
        python_path = os.pathsep.join(map(str, self.path if path is None else path))
        worker = self._start(name, arguments, PYTHONPATH=python_path, SPARK_LOCAL_IP=host, **environment)
        self.workers.append(worker)
        wait_for(name, lambda: b"Successfully registered" in self._log(name))
        return worker

    def executors(self, worker: subprocess.Popen[bytes]) -> list[int]:
        """The processes of executors that a worker has started."""
        return [child for child in _children(worker.pid) if EXECUTOR in _command(child)]

    def kill_executors(self, worker: subprocess.Popen[bytes]) -> int:
        """Ends executors at once, without a word; gives how many there were."""
        found = self.executors(worker)
        for process in found:
            os.kill(process, signal.SIGKILL)
        return len(found)

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """The machine of a worker is gone: it and its executors."""
        executors = self.executors(worker)
        worker.kill()
        worker.wait()
        for process in executors:
            os.kill(process, signal.SIGKILL)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def _start(self, name: str, arguments: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
        with (self.folder / f"{name}.log").open("wb") as log:
            # A group of its own: an interrupt of the tests is not one of the cluster, which is stopped in order.
            process = subprocess.Popen(
                command, env=spark_environment(**environment), cwd=self.folder, stdout=log, stderr=log, process_group=0
            )
        self.processes.append(process)
        return process

    def _log(self, name: str) -> bytes:
        return (self.folder / f"{name}.log").read_bytes()

    def logs(self) -> str:
        """What executors complained of."""
        found = [path.read_text("utf-8", "replace") for path in sorted(self.folder.rglob("stderr"))]
        return "\n".join(line for text in found for line in text.splitlines() if re.search("ERROR|Error|Exception", line))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(parent: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue
            # The name of the program, in brackets, may have spaces.
            if int(status.rpartition(")")[2].split()[1]) == parent:
                yield int(entry.name)


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text("utf-8", "replace")
    except OSError:
        return ""


def run_pytest(
    cluster: Standalone, tests: Sequence[str], folder: Path, seed: int, options: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs tests in a process whose Spark is the cluster, with epochs placed at random."""
    environment = spark_environment(
        MASTER=cluster.url,
        PYTHONPATH=os.pathsep.join(map(str, (ROOT, TESTS / "cluster"))),
        SEED=str(seed),
        COUNTS=str(folder / "counts.json"),
        **options,
    )
    command = [sys.executable, "-m", "pytest", "-p", "alternating", "-p", "no:cacheprovider", "-q", *tests]
    # To be looked at while it runs, which may take an hour.
    with (folder / "pytest.log").open("w+", encoding="utf-8") as log:
        ended = subprocess.run(command, env=environment, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
        log.seek(0)
        return subprocess.CompletedProcess(ended.args, ended.returncode, log.read())
