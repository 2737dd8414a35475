"""Epochs on Spark's executors beside the same epochs in the driver, and beside Spark recomputing the query.

What an epoch costs on executors is mostly what a Spark job costs: so it is compared with the bare job as well, which moves the
same rows through as many exchanges and does nothing with them.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.data import Changing
from benchmarks.load import facts
from benchmarks.measuring import Recompute, commit, connected, load, note, parts_of_commit, require_equal, seconds
from benchmarks.workload import Figure, Scale, Workload
from headwater.cluster import messages
from headwater.cluster.messages import Message
from headwater.cluster.placement import MODES
from headwater.delta import Delta, one_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    import headwater as hw
    from headwater.cluster.placement import Decision

    Batches = Iterator[pa.RecordBatch]

GROUPS = 5_000
QUERIES = {
    "aggregate": "SELECT a, avg(b) AS ab FROM r GROUP BY a HAVING avg(c) < 1000",
    "join": "SELECT a, x, avg(b) AS ab, count(*) AS n FROM r JOIN s ON a = ttid WHERE b < 900 GROUP BY a, x",
}
LARGEST = 1_000_000


def partners() -> pa.Table:
    ttid = np.arange(GROUPS, dtype=np.int32)
    return pa.table({"hid": np.arange(GROUPS), "ttid": ttid, "x": ttid % 100})


def prepared(session: hw.Session, query: str, scale: Scale) -> tuple[Changing, Recompute]:
    """The tables, loaded and in Spark's cache."""
    table = Changing.of(facts, scale.rows)
    spark = Recompute(session.spark)
    spark.cache({"r": table.base, "s": partners()}, query)
    session.placement = "driver"
    load(session, "s", partners(), "hid")
    load(session, "r", table.base, "id")
    return table, spark


def placements(name: str, scale: Scale) -> list[Figure]:
    """Deltas of every size in both places, and where `auto` puts them."""
    query = QUERIES[name]
    figures = []
    with connected() as session:
        table, spark = prepared(session, query, scale)
        recompute = spark.seconds(query, scale.recomputes)
        session.create_view("v", query)
        in_turn(session, table, scale.rows // 100, 1)
        for size in sizes(scale):
            note(f"commits of {size:,} rows")
            repeats = 1 if scale.quick else 5 if size < LARGEST else 3
            took, last = in_turn(session, table, size, repeats)
            waves, shards = last["cluster"].waves, last["cluster"].shards
            bare = bare_job(session.spark, one_batch(table.base.slice(0, size)), waves, shards, repeats)
            whole = {place: sum(parts) for place, parts in took.items()}
            better = min(whole["driver"], whole["cluster"])
            details = {
                **whole,
                "epochs": {place: epoch for place, (_, epoch) in took.items()},
                "chosen": last["auto"].where,
                "recompute_s": recompute,
                "bare_s": bare,
                "waves": waves,
            }
            kept = partial(Figure, name, name, delta=size, details=details)
            figures += [
                kept("auto to the better place", whole["auto"] / better, "×"),
                kept("place chosen to the better one", whole[last["auto"].where] / better, "×"),
                kept("executors to the bare job", took["cluster"][1] / bare, "×"),
                kept("recompute to executors", recompute / whole["cluster"], "×"),
            ]
        spark.drop()
        spark.cache({"r": table.rows(), "s": partners()}, query)
        require_equal(session.view("v").arrow(), spark.answer(query))
    return figures


def sizes(scale: Scale) -> list[int]:
    return [size for size in (1_000, 10_000, 100_000, 300_000, LARGEST) if size <= scale.rows // 10]


def in_turn(
    session: hw.Session, table: Changing, size: int, repeats: int
) -> tuple[dict[str, tuple[float, float]], dict[str, Decision]]:
    """The median seconds in each place, of the checks and of the epoch, and the last decision there.

    The first commit in a place is not counted: it finds what the other place has left, runs that are only in the driver's
    memory, or files that the driver has not read yet.
    """
    found: dict[str, tuple[float, float]] = {}
    last: dict[str, Decision] = {}
    for place in MODES:
        session.placement = place
        commit(session, "r", *table.change(size))
        times = [parts_of_commit(session, "r", *table.change(size)) for _ in range(repeats)]
        found[place] = median(checks for checks, _ in times), median(epoch for _, epoch in times)
        last[place] = session.executors.last
    return found, last


def bare_job(spark: SparkSession, rows: pa.RecordBatch, waves: int, shards: int, repeats: int) -> float:
    """The seconds of a job that moves these rows through so many exchanges, and does nothing else."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "rows")
        Path(path).write_bytes(messages.packed(Delta.inserting(rows)))
        session = spark.newSession()
        session.conf.set("spark.sql.adaptive.enabled", "false")

        def job() -> None:
            # Made anew each time: of a plan that was run before, Spark keeps what was exchanged.
            frame = session.range(0, shards, 1, shards).mapInArrow(_bring_in(path, shards), messages.SCHEMA)
            for _ in range(1, waves):
                frame = frame.repartitionById(shards, "shard").mapInArrow(_pass_on, messages.SCHEMA)
            frame.groupBy().count().collect()

        job()
        return median(seconds(job) for _ in range(repeats))


def _bring_in(path: str, shards: int) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        whole = messages.unpacked(pa.py_buffer(Path(path).read_bytes()), vectors=False)
        size = -(-len(whole) // shards)
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            part = whole.take(np.arange(number * size, min((number + 1) * size, len(whole))))
            yield from messages.sent(messages.deltas(1, 0, part, messages.shards_of(part, (1,), shards)))

    return run


def _pass_on(batches: Batches) -> Batches:
    return messages.sent(Message(m.wave, m.shard, m.route, m.body) for m in messages.received(batches))


BUILDS = {"one core": "driver", "all cores": "auto", "executors": "cluster"}


def loading(name: str, scale: Scale) -> list[Figure]:
    """A join view over existing rows: built in the driver on one core, where `auto` builds it on all, or on the executors."""
    if name == "one core":
        # Before any thread is there that could run on another one.
        os.sched_setaffinity(0, {0})
    query = QUERIES["join"]
    with connected() as session:
        table, spark = prepared(session, query, scale)
        session.create_view("warm", query.replace("900", "1"))
        session.placement = BUILDS[name]
        session.create_view("warmer", query.replace("900", "2"))
        note(f"building the view: {name}")
        took = seconds(lambda: session.create_view("v", query))
        require_equal(session.view("v").arrow(), spark.answer(query))
    return [Figure(f"build, {name}", "build", "rows per second", scale.rows / took, "rows/s", len(table.base), {"s": took})]


def summary(figures: list[Figure]) -> list[Figure]:
    """How good the choice of the place is, and how much quicker all cores are than one."""
    found = []
    for measure, share in (("auto to the better place", "good times"), ("place chosen to the better one", "good choices")):
        points = [figure.value for figure in figures if figure.measure == measure]
        if points:
            good = 100 * sum(value <= 1.2 for value in points) / len(points)
            found.append(Figure("all points", "summary", share, good, "%", None, {"points": len(points)}))
    built = {figure.workload: figure.value for figure in figures if figure.measure == "rows per second"}
    if len(built) == len(BUILDS):
        for name in ("all cores", "executors"):
            ratio = built[f"build, {name}"] / built["build, one core"]
            found.append(Figure("build", "summary", f"{name} to one core", ratio, "×"))
    return found


WORKLOADS = (
    *(Workload(name, partial(placements, name)) for name in QUERIES),
    *(Workload(f"build, {name}", partial(loading, name)) for name in BUILDS),
)
