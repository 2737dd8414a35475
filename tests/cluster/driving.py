"""A driver in a process of its own: it does what lines of its input say, and answers each with a line of JSON.

    {"do": "connect", …}  ↦  {"epoch": 0, …}  or  {"error": the class, "text": …}

`Driver` is the other end of it, in the process of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from standalone import ROOT, TESTS, spark_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


class Driver:
    """A process that drives Spark on a cluster."""

    def __init__(self, master: str, settings: Mapping[str, str] | None = None, **environment: str) -> None:
        told = json.dumps({"master": master, "settings": {**SETTINGS, **(settings or {})}})
        path = os.pathsep.join(map(str, (ROOT, TESTS, TESTS / "cluster")))
        self._process = subprocess.Popen(
            [sys.executable, __file__, told],
            env=spark_environment(PYTHONPATH=path, **environment),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def process(self) -> int:
        return self._process.pid

    def tell(self, do: str, **options: Any) -> None:
        """Says what to do, and does not wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **options}) + "\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The answer to the first thing that was not answered yet."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the driver ended with {self._process.wait()}")
        return dict(json.loads(line))

    def ask(self, do: str, **options: Any) -> dict[str, Any]:
        """Says what to do, and gives the answer; raises if that is an error."""
        self.tell(do, **options)
        answer = self.hear()
        assert "error" not in answer, answer["text"]
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process.stdout.close()


# -- in the process itself


class Work:
    """What can be told."""

    def __init__(self, master: str, settings: Mapping[str, str]) -> None:
        self._master = master
        self._settings = settings
        self._session: Any = None

    def start(self, executors: int = 0) -> dict[str, Any]:
        """Starts Spark, and waits for so many executors."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(self._master).appName("headwater tests")
        for name, value in self._settings.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("OFF")
        while len(self._executors()) < executors:
            sleep(0.05)
        return {"executors": self._executors()}

    def connect(self, directory: str | None = None, **options: Any) -> dict[str, Any]:
        import headwater as hw

        self._session = hw.connect(directory, spark=self._spark, **options)
        return self._told()

    def create(self) -> dict[str, Any]:
        import workload

        workload.create(self._session)
        return self._told()

    def epoch(self, number: int, placement: str = "cluster") -> dict[str, Any]:
        import workload

        self._session.placement = placement
        workload.apply(self._session, number)
        return self._told()

    def check(self, numbers: int) -> dict[str, Any]:
        import workload

        workload.check(self._session, numbers)
        return self._told()

    # -- many rows

    def load(self, rows: int) -> dict[str, Any]:
        """A table of so many rows, of numbers that anyone can sum up, as Spark reads them."""
        self._session.create_table("many", source=self._numbers(rows))
        return self._told()

    def warm_up(self) -> dict[str, Any]:
        """A first job, for all that a job needs is imported by it."""
        self._session.create_table("few", "k BIGINT")
        self._session.create_view("counted", "SELECT k, count(*) AS n FROM few GROUP BY k")
        self._session.insert("few", [(1,), (2,)])
        return self._told()

    def build(self) -> dict[str, Any]:
        self._session.create_view(
            "many_summed", "SELECT x, count(*) AS n, sum(y) AS total, max(k) AS last FROM many GROUP BY x"
        )
        return self._told()

    def closure(self, nodes: int) -> dict[str, Any]:
        """All pairs of nodes with a way between them, in a loop of jobs; then a part of them without an edge."""
        query = "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM ways UNION SELECT r.a, w.b FROM r JOIN ways w ON w.a = r.b) "
        ways = {(node, (node + leap) % nodes) for node in range(nodes - 1) for leap in (1, 7)}
        self._session.placement = "cluster"
        self._session.create_table("ways", "a BIGINT, b BIGINT")
        self._session.insert("ways", list(ways))
        view = self._session.create_view("joined", query + "SELECT * FROM r")
        assert sorted(view.rows()) == sorted(_closed(ways))
        for gone in sorted(ways)[:2]:
            ways.remove(gone)
            self._session.delete("ways", [gone])
            assert sorted(view.rows()) == sorted(_closed(ways))
        return self._told()

    def check_build(self, rows: int) -> dict[str, Any]:
        """What Spark says of the same numbers."""
        wanted = self._numbers(rows).groupBy("x").agg({"*": "count", "y": "sum", "k": "max"})
        expected = {row["x"]: (row["count(1)"], row["sum(y)"], row["max(k)"]) for row in wanted.collect()}
        found = {x: (n, total, last) for x, n, total, last in self._session.view("many_summed").rows()}
        assert found == expected
        return self._told()

    def _numbers(self, rows: int) -> Any:
        return self._spark.range(0, rows, 1, 2 + rows // 1_000_000).selectExpr("id AS k", "id % 1000 AS x", "id / 2 AS y")

    # -- faults

    def hang_at_commit(self, mark: str) -> dict[str, Any]:
        """The next commit tells that all is computed, and goes no further."""

        def commit(*_: Any) -> None:
            Path(mark).touch()
            sleep(600)

        self._session.epochs.journal.commit = commit
        return {}

    def fold(self) -> dict[str, Any]:
        """Brings everything to files; gives those of runs, and those that are needed."""
        from headwater.store import manifest

        store = self._session._store
        store.fold()
        newest = manifest.newest(store.disk)
        assert newest is not None
        return {"files": store.disk.files("runs"), "needed": sorted(newest.files())}

    def disconnect(self) -> dict[str, Any]:
        self._session.close()
        return {}

    def _told(self) -> dict[str, Any]:
        last = self._session.epochs.executors.last
        return {"epoch": self._session.epoch, "where": last.where, "why": last.why}

    def _executors(self) -> list[str]:
        """Where there are executors, the driver left out."""
        status = self._spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().toList()
        return sorted(status.apply(i) for i in range(status.size()))[1:]


def _closed(ways: set[tuple[int, int]]) -> set[tuple[int, int]]:
    found = set(ways)
    while more := {(a, d) for a, b in found for c, d in ways if b == c} - found:
        found |= more
    return found


def main(told: str) -> None:
    work = Work(**json.loads(told))
    out = os.fdopen(os.dup(1), "w")
    # Whatever else is printed is not an answer.
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        do: Callable[..., dict[str, Any]] = getattr(work, asked.pop("do"))
        try:
            answer = do(**asked)
        except Exception as error:  # noqa: BLE001  (the tests decide)
            code = str(getattr(error, "code", type(error).__name__))
            answer = {"error": code, "message": str(error), "text": traceback.format_exc()}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main(sys.argv[1])
