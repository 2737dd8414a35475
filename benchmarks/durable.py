"""Durable directories: what safety costs a commit, what opening one costs beside building it, what is written and mapped."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import headwater as hw
from benchmarks.data import Changing, facts, partners
from benchmarks.load import QUERIES as LOADS
from benchmarks.load import facts as load_facts
from benchmarks.load import partners as load_partners
from benchmarks.measuring import Recompute, commits, connected, load, note, require_equal, seconds
from benchmarks.smallest import GROUPS, ROWS, VIEW
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

RECORD = 1_000
TIMES_BUDGET = 4


@contextmanager
def durable(spark: SparkSession, directory: Path, memory: int | None = None) -> Iterator[hw.Session]:
    with hw.connect(directory, spark=spark, memory=memory) as session:
        yield session


def small_commits(scale: Scale) -> list[Figure]:
    """Ten rows through a join and an aggregate: in memory, and with each of them on disk; one sync is measured by itself."""
    repeats = 30 * scale.recomputes
    times = {}
    with connected() as plain, tempfile.TemporaryDirectory(dir=scale.directory) as folder:
        with durable(plain.spark, Path(folder) / "d") as kept:
            for name, session in (("memory", plain), ("sync", kept)):
                table = Changing.of(facts(GROUPS), ROWS)
                load(session, "r", table.base, "id")
                load(session, "s", partners(GROUPS, GROUPS, 1), "hid")
                session.create_view("v", VIEW)
                commits(session, "r", table, 10, 20)
                times[name] = median(commits(session, "r", table, 10, repeats))
        sync = _sync_seconds(Path(folder), repeats)
    details = {"refresh_s": times["sync"], "memory_s": times["memory"], "sync_s": sync}
    share = (times["sync"] - sync) / times["memory"]
    return [Figure("commits of ten rows", "commit", "beyond one sync, to in memory", share, "×", 10, details)]


def reopening(scale: Scale) -> list[Figure]:
    """A join of two tables: built, and opened again with its first answer and its first commit."""
    tables = {"r": Changing.of(load_facts, scale.rows), "s": load_partners(scale.rows)}
    query = LOADS["join"]
    with connected() as plain, tempfile.TemporaryDirectory(dir=scale.directory) as folder:
        directory = Path(folder) / "d"
        with durable(plain.spark, directory) as session:
            load(session, "r", tables["r"].base, "id")
            load(session, "s", tables["s"], "rid")
            note("building the view")
            built = seconds(lambda: session.create_view("v", query))
        note("opening it again")
        started = perf_counter()
        with durable(plain.spark, directory) as session:
            answer = session.view("v").arrow()
            opened = perf_counter() - started
            first = commits(session, "r", tables["r"], 10, 1)[0]
            later = median(commits(session, "r", tables["r"], 10, 20))
            note("comparing with Spark")
            spark = Recompute(plain.spark)
            spark.cache({"r": tables["r"].rows(), "s": tables["s"]}, query)
            require_equal(session.view("v").arrow(), spark.answer(query))
    details = {"build_s": built, "open_s": opened, "first_commit_s": first, "refresh_s": later, "rows": answer.num_rows}
    return [Figure("opening a join view", "open", "to the time to build it", opened / built, "×", scale.rows, details)]


def writing(scale: Scale) -> list[Figure]:
    """Bytes written beside bytes of changed rows, over many commits of a thousand rows and the folds between them."""
    rows = scale.rows // 10
    count = min(max(20, scale.epochs // 5), rows // RECORD)
    table = Changing.of(load_facts, rows)
    with connected() as plain, tempfile.TemporaryDirectory(dir=scale.directory) as folder:
        with durable(plain.spark, Path(folder) / "d") as session:
            load(session, "r", table.base, "id")
            session.create_view("v", LOADS["aggregate"])
            commits(session, "r", table, RECORD, 5)
            before, changed = _written(), 0
            done = 0
            while done < count:
                note(f"commit {done:,} of {count:,}")
                changes = [table.change(RECORD) for _ in range(min(100, count - done))]
                for going, coming in changes:
                    with session.transaction() as transaction:
                        transaction.delete("r", going)
                        transaction.insert("r", coming)
                    changed += going.nbytes + coming.nbytes
                done += len(changes)
        # Closing folds the rest.
        written = _written() - before
    details = {"written": written, "changed": changed, "commits": count}
    return [Figure("commits of a thousand rows", "write", "write amplification", written / changed, "×", RECORD, details)]


def larger_than_memory(scale: Scale) -> list[Figure]:
    """A join whose state is four times as large as the memory it may take, beside one that has all of it in memory."""
    rows = scale.rows // 5
    size = min(RECORD, rows // 100)
    times, held = {}, {}
    with connected() as plain, tempfile.TemporaryDirectory(dir=scale.directory) as folder:
        for name in ("memory", "budget"):
            memory = None if name == "memory" else held["memory"] // TIMES_BUDGET
            session = plain if name == "memory" else hw.connect(Path(folder) / "d", spark=plain.spark, memory=memory)
            table = Changing.of(load_facts, rows)
            note(f"loading, {name}")
            pieces = {"r": ("id", table.base), "s": ("rid", load_partners(rows))}
            for other, (key, whole) in pieces.items():
                load(session, other, whole.slice(0, 0), key)
            view = session.create_view("v", LOADS["join"])
            before = _anonymous()
            for start in range(0, rows, max(1, rows // 50)):
                for other, (_, whole) in pieces.items():
                    session.insert(other, whole.slice(start, max(1, rows // 50)))
            commits(session, "r", table, size, 5)
            times[name] = median(commits(session, "r", table, size, scale.repeats(size)))
            held[name] = int(view.stats()["state_bytes"])
            held[f"{name} anonymous"] = _anonymous() - before
        note("comparing with Spark")
        spark = Recompute(plain.spark)
        spark.cache({"r": table.rows(), "s": pieces["s"][1]}, LOADS["join"])
        require_equal(view.arrow(), spark.answer(LOADS["join"]))
        session.close()
    details = {"refresh_s": times["budget"], "memory_s": times["memory"], **held}
    share = times["budget"] / times["memory"]
    return [Figure("state of four times the memory", "memory", "refresh to in memory", share, "×", size, details)]


def _sync_seconds(folder: Path, repeats: int) -> float:
    with (folder / "sync").open("ab", buffering=0) as file:

        def once() -> float:
            file.write(b"x" * RECORD)
            return seconds(lambda: os.fdatasync(file.fileno()))

        return median(once() for _ in range(repeats))


def _written() -> int:
    """Bytes that this process has given to disks."""
    found = re.search(r"^write_bytes: (\d+)", Path("/proc/self/io").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def _anonymous() -> int:
    """Bytes of memory of this process that are not those of files."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


WORKLOADS = (
    Workload("commits of ten rows", small_commits),
    Workload("opening a join view", reopening),
    Workload("commits of a thousand rows", writing),
    Workload("state of four times the memory", larger_than_memory),
)
