"""Streams: rows a second from files and PostgreSQL into a join with an aggregate, how fresh a view is, what a feed costs."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from threading import Condition
from time import perf_counter, sleep
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import headwater as hw
from benchmarks.data import Changing, ddl, facts, partners
from benchmarks.measuring import Recompute, commits, connected, load, note, require_equal
from benchmarks.postgres_server import Server
from benchmarks.smallest import GROUPS, ROWS, VIEW
from benchmarks.workload import Figure, Scale, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

FILE = 100_000
SLOT = "headwater_bench"
FEW = 1_000
COLUMNS = "id bigint primary key, a int, b int"


def from_parquet(scale: Scale) -> list[Figure]:
    """Files that are there when the stream starts, but for the first, with which it warms up."""
    rows = max(scale.rows // 5, 2_000)
    made = Changing.of(facts(GROUPS), rows).base
    others = partners(GROUPS, GROUPS, 1)
    with connected() as plain, tempfile.TemporaryDirectory(dir=scale.directory) as folder:
        place = Path(folder) / "files"
        place.mkdir()
        with hw.connect(Path(folder) / "d", spark=plain.spark) as session:
            session.create_table("r", ddl(made.schema), key="id")
            load(session, "s", others, "hid")
            session.create_view("v", VIEW)
            size = min(FILE, rows // 2)
            pieces = list(_pieces(made, size))
            pq.write_table(pieces[0], place / "0.parquet")
            read = plain.spark.readStream.schema(ddl(made.schema)).option("maxFilesPerTrigger", 5)
            session.follow("r", read.parquet(str(place)))
            session.await_idle()
            note("following")
            for number, piece in enumerate(pieces[1:], 1):
                pq.write_table(piece, Path(folder) / f"{number}.part")
            started = perf_counter()
            for number in range(1, len(pieces)):
                (Path(folder) / f"{number}.part").rename(place / f"{number}.parquet")
            session.await_idle()
            took = perf_counter() - started
            note("comparing with Spark")
            spark = Recompute(plain.spark)
            spark.cache({"r": made, "s": others}, VIEW)
            require_equal(session.view("v").arrow(), spark.answer(VIEW))
    count = rows - pieces[0].num_rows
    details = {"seconds": took, "rows": count}
    return [Figure("files of Parquet", "follow", "rows per second", count / took, "rows/s", None, details)]


def from_postgres(scale: Scale) -> list[Figure]:
    """Updates of all rows of a table, in transactions of a thousand, and then commits of one row, until each is seen."""
    rows = max(scale.rows // 20, FEW)
    server = Server()
    try:
        with (
            connected() as plain,
            tempfile.TemporaryDirectory(dir=scale.directory) as folder,
            hw.connect(Path(folder) / "d", spark=plain.spark) as session,
        ):
            return _captured(session, server, rows, 20 if scale.quick else 100)
    finally:
        server.remove()


def _captured(session: hw.Session, server: Server, rows: int, commits_of_one: int) -> list[Figure]:
    from headwater.sources.postgres import capture

    session.create_table("r", "id BIGINT, a INT, b INT", key="id")
    load(session, "s", partners(GROUPS, GROUPS, 1), "hid")
    session.create_view("v", VIEW)
    made = Changing.of(facts(GROUPS), rows).base.select(["id", "a", "b"])
    with capture.connected(server.address) as connection:
        connection.execute(f"CREATE TABLE r ({COLUMNS})")
        with connection.cursor() as cursor, cursor.copy("COPY r FROM STDIN (FORMAT csv)") as copy:
            sink = pa.BufferOutputStream()
            pa_csv.write_csv(made, sink, pa_csv.WriteOptions(include_header=False))
            copy.write(sink.getvalue().to_pybytes())
        note("snapshot")
        stream = session.follow({"r": "r"}, _changes(session, server.address), mode="cdc")
        session.await_idle()
        stream.stop()
        note("updates")
        keys = made.column("id").to_pylist()
        for start in range(0, len(keys), FEW):
            chosen = keys[start : start + FEW]
            connection.execute("UPDATE r SET b = b + 1 WHERE id BETWEEN %s AND %s", [min(chosen), max(chosen)])
        started = perf_counter()
        stream.resume()
        session.await_idle()
        took = perf_counter() - started
        fresh = _freshness(session, connection, commits_of_one)
        expected = connection.execute("SELECT COUNT(*), SUM(b) FROM r").fetchone()
        found = session.sql("SELECT COUNT(*), SUM(b) FROM r").rows()[0]
        if tuple(map(int, found)) != tuple(map(int, expected)):
            raise AssertionError(f"the table has {found}, and the server {expected}")
    details = {"seconds": took, "rows": rows}
    return [
        Figure("PostgreSQL", "follow", "changes per second", rows / took, "rows/s", None, details),
        Figure("PostgreSQL", "follow", "freshness, median", median(fresh) * 1000, "ms", 1),
        Figure("PostgreSQL", "follow", "freshness, 99th percentile", quantiles(fresh, n=100)[98] * 1000, "ms", 1),
    ]


def _freshness(session: hw.Session, connection: object, count: int) -> list[float]:
    """Seconds from the commit at the server until the view is told to have changed."""
    note("freshness")
    changed = Condition()
    seen = 0

    def notice(epoch: int, _: pa.Table) -> None:
        nonlocal seen
        with changed:
            seen = epoch
            changed.notify_all()

    end = session.view("v").subscribe(notice)
    times = []
    try:
        for number in range(count):
            before = session.epoch
            started = perf_counter()
            connection.execute("UPDATE r SET b = (b + 1) %% 50 WHERE id = %s", [number])  # type: ignore[attr-defined]
            with changed:
                if not changed.wait_for(lambda before=before: seen > before, 60):  # type: ignore[misc]
                    raise AssertionError("a change of the server did not arrive within a minute")
            times.append(perf_counter() - started)
            sleep(0.02)
    finally:
        end()
    return times


def feed(scale: Scale) -> list[Figure]:
    """Ten-row commits with a target that is told every change, beside the same ones without, in turns."""
    times: dict[str, list[float]] = {"alone": [], "fed": []}
    with connected() as plain, tempfile.TemporaryDirectory(dir=scale.directory) as folder, ExitStack() as open_ones:
        sessions = {name: open_ones.enter_context(hw.connect(Path(folder) / name, spark=plain.spark)) for name in times}
        tables = {name: Changing.of(facts(GROUPS), ROWS) for name in times}
        for name, session in sessions.items():
            load(session, "r", tables[name].base, "id")
            load(session, "s", partners(GROUPS, GROUPS, 1), "hid")
            view = session.create_view("v", VIEW)
            if name == "fed":
                view.write_to(lambda _epoch, _changes: None)
            commits(session, "r", tables[name], 10, 20)
        note("commits of ten rows")
        for _ in range(5 * scale.recomputes):
            for name, session in sessions.items():
                times[name] += commits(session, "r", tables[name], 10, 10)
    fed, alone = median(times["fed"]), median(times["alone"])
    details = {"refresh_s": fed, "alone_s": alone}
    return [Figure("change feed", "export", "epoch with a feed, to without", fed / alone, "×", 10, details)]


def _changes(session: hw.Session, address: str) -> DataFrame:
    hw.register(session.spark)
    reader = session.spark.readStream.format("headwater_postgres").option("address", address)
    return reader.option("tables", "r").option("slot", SLOT).load()


def _pieces(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


WORKLOADS = (
    Workload("files of Parquet", from_parquet),
    Workload("PostgreSQL", from_postgres),
    Workload("change feed", feed),
)
