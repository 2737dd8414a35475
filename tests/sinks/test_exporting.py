"""Exports: what is at the target equals the view, and each epoch is there once, whatever fails in between."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import headwater as hw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.postgres_server import Server

QUERY = "SELECT brand, SUM(price) AS total, COUNT(*) AS n FROM sales GROUP BY brand"
QUICK = hw.Retry(attempts=3, pause=0.01, longest=0.02)


@pytest.fixture
def opened(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[], tuple[hw.Session, hw.View]]]:
    sessions: list[hw.Session] = []

    def connect() -> tuple[hw.Session, hw.View]:
        session = hw.connect(tmp_path / "state", spark=spark)
        sessions.append(session)
        if "sales" not in session.tables():
            session.create_table("sales", "id BIGINT, brand STRING, price INT", key="id")
            session.create_view("totals", QUERY)
        return session, session.view("totals")

    yield connect
    for session in sessions:
        session.close()


def change(session: hw.Session, number: int) -> None:
    """An epoch that adds, replaces and removes groups."""
    session.upsert("sales", [(number, f"b{number % 3}", number), (number + 1, "a", 1)])
    if number % 4 == 3:
        with session.transaction() as transaction:
            transaction.sql("DELETE FROM sales WHERE brand = 'b0'")


def summed(tables: list[pa.Table]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for table in tables:
        for row in table.to_pylist():
            weight = row.pop("_weight")
            found[tuple(row.values())] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".csv":
        return pa_csv.read_csv(path)
    return pa.Table.from_pylist([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_files_of_changes_add_up_to_the_view(opened: Any, tmp_path: Path, form: str) -> None:
    session, view = opened()
    change(session, 0)
    export = view.write_to(tmp_path / "out", format=form)
    for number in range(1, 6):
        change(session, number)
    export.await_idle()
    session.close()
    session, view = opened()
    change(session, 7)
    view.write_to(tmp_path / "out", format=form).await_idle()
    files = sorted((tmp_path / "out").glob("epoch-*"))
    assert summed([read(file) for file in files]) == Counter(view.rows())
    assert len({file.name for file in files}) == len(files)


def test_a_directory_of_content_has_one_file(opened: Any, tmp_path: Path) -> None:
    session, view = opened()
    export = view.write_to(tmp_path / "out", format="parquet", of="content")
    for number in range(4):
        change(session, number)
        export.await_idle()
    (file,) = (tmp_path / "out").glob("epoch-*")
    assert Counter(tuple(row.values()) for row in pq.read_table(file).to_pylist()) == Counter(view.rows())


@pytest.mark.parametrize("key", ["brand", None], ids=["content", "changes"])
def test_delta_tables(opened: Any, tmp_path: Path, key: str | None) -> None:
    deltalake = pytest.importorskip("deltalake")
    session, view = opened()
    change(session, 0)
    export = view.write_to(tmp_path / "delta", format="delta", key=key)
    for number in range(1, 5):
        change(session, number)
    export.await_idle()
    session.close()
    session, view = opened()
    change(session, 8)
    view.write_to(tmp_path / "delta", format="delta", key=key).await_idle()
    table = pa.table(deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table())
    if key is None:
        assert summed([table.drop_columns(["_commit_version"])]) == Counter(view.rows())
    else:
        assert Counter(tuple(row.values()) for row in table.to_pylist()) == Counter(view.rows())


def test_a_table_of_postgresql(opened: Any, postgres: Server) -> None:
    psycopg = pytest.importorskip("psycopg")

    def there() -> Counter[Any]:
        with psycopg.connect(postgres.address) as connection:
            return Counter(connection.execute('SELECT brand, total, n FROM "Totals of sales"').fetchall())

    session, view = opened()
    change(session, 0)
    options: dict[str, Any] = {"table": "Totals of sales", "key": "brand", "name": "totals to postgres"}
    export = view.write_to(postgres.address, **options)
    for number in range(1, 5):
        change(session, number)
    export.await_idle()
    assert there() == Counter(view.rows())
    export.stop()
    change(session, 9)
    export.resume()
    export.await_idle()
    assert there() == Counter(view.rows())
    with psycopg.connect(postgres.address) as connection:
        (epoch,) = connection.execute("SELECT epoch FROM headwater_exports WHERE name = 'totals to postgres'").fetchone()
    assert epoch == export.progress.epoch == session.epoch


def test_types_of_postgresql(spark: SparkSession, postgres: Server) -> None:
    psycopg = pytest.importorskip("psycopg")
    session = hw.connect(spark=spark)
    session.create_table(
        "t",
        "id BIGINT, s STRING, d DECIMAL(12, 3), f DOUBLE, b BOOLEAN, x BINARY, at TIMESTAMP, day DATE, a ARRAY<INT>",
        key="id",
    )
    session.sql(
        """INSERT INTO t VALUES (1, 'a "quoted", text', 1.5, double('NaN'), true, X'00ff', TIMESTAMP '2024-02-29 12:00:00Z',
           DATE '1582-10-04', array(1, null)), (2, '', 0, 0, false, X'', TIMESTAMP '1969-12-31 23:59:59.999999Z',
           DATE '9999-12-31', array()), (3, null, null, null, null, null, null, null, null)"""
    )
    view = session.create_view("all_types", "SELECT * FROM t")
    view.write_to(postgres.address, table="all_types", key="id").await_idle()
    with psycopg.connect(postgres.address) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        found = {row[0]: row[1:] for row in connection.execute("SELECT * FROM all_types").fetchall()}
    for row in view.rows():
        expected = [value.replace(tzinfo=None) if i == 5 and value is not None else value for i, value in enumerate(row[1:])]
        got = [value.replace(tzinfo=None) if i == 5 and value is not None else value for i, value in enumerate(found[row[0]])]
        assert repr(got) == repr(expected)
    session.close()


def test_what_fails_is_tried_again(opened: Any) -> None:
    session, view = opened()
    change(session, 0)
    told: list[int] = []
    failures = iter([OSError("away"), OSError("still away")])

    def call(epoch: int, changes: pa.Table) -> None:
        assert changes.num_rows
        for failure in failures:
            raise failure
        told.append(epoch)

    export = view.write_to(call, retry=QUICK)
    change(session, 1)
    export.await_idle()
    assert told == sorted(set(told))
    assert export.progress.state == "idle"
    assert export.progress.lag == 0
    last = told[-1]
    session.close()
    session, view = opened()
    again: list[int] = []
    view.write_to(lambda epoch, _: again.append(epoch)).await_idle()
    change(session, 2)
    session.exports()["totals"].await_idle()
    assert again
    assert min(again) > last


def test_whatever_an_export_is_called_it_has_a_note_of_its_own(opened: Any, tmp_path: Path) -> None:
    names = ["..", ".", "../lease", "x" * 300, "Totals", "None", "\N{OWL}"]
    session, view = opened()
    change(session, 0)
    told: list[str] = []
    for name in (*names, "totals"):
        view.write_to(lambda _epoch, _changes, name=name: told.append(name), name=name).await_idle()
    assert sorted(told) == sorted([*names, "totals"])
    session.close()
    assert len(list((tmp_path / "state" / "exports").iterdir())) == len(told)
    # As an earlier release has called it.
    (tmp_path / "state" / "exports" / "%54otals.json").rename(tmp_path / "state" / "exports" / "Totals.json")
    session, view = opened()
    for name in (*names, "totals"):
        view.write_to(lambda _epoch, _changes, name=name: told.append(name), name=name).await_idle()
    assert len(told) == len(names) + 1
    with pytest.raises(hw.InvalidName, match="cannot be the name of an export"):
        view.write_to(print, name=" ")


def test_an_export_that_cannot_go_on_says_why(opened: Any) -> None:
    session, view = opened()
    change(session, 0)

    def call(epoch: int, changes: pa.Table) -> None:  # noqa: ARG001
        raise OSError("gone for good")

    export = view.write_to(call, retry=QUICK)
    with pytest.raises(hw.ExportFailed, match="export 'totals' has stopped: gone for good"):
        export.await_idle()
    assert export.progress.state == "failed"
    assert export.progress.failures == 3


def test_a_stopped_export_is_not_idle(opened: Any) -> None:
    session, view = opened()
    change(session, 0)
    export = view.write_to(lambda _epoch, _changes: None)
    epoch = export.await_idle()
    export.stop()
    change(session, 1)
    with pytest.raises(hw.ExportFailed, match=f"export 'totals' was stopped, and has written epoch {epoch} last"):
        export.await_idle()
    export.resume()
    assert export.await_idle() == session.epoch


def test_a_password_is_told_to_nobody(opened: Any, caplog: pytest.LogCaptureFixture) -> None:
    session, view = opened()
    change(session, 0)
    # Python takes what is after the colon for a port, and repeats it.
    export = view.write_to("http://ada:s3cr3t@127.0.0.1/hook", retry=QUICK)
    with pytest.raises(hw.ExportFailed) as raised:
        export.await_idle()
    told = "".join(traceback.format_exception(raised.value)) + str(export.progress) + repr(export) + caplog.text
    assert "s3cr3t" not in told


def test_a_web_address_is_posted_to(opened: Any) -> None:
    session, view = opened()
    change(session, 0)
    posted: list[tuple[str, dict[str, Any]]] = []
    busy = Event()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200 if busy.is_set() else 503)
            self.end_headers()
            if busy.is_set():
                posted.append((self.headers["Idempotency-Key"], body))
            busy.set()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        export = view.write_to(f"http://127.0.0.1:{server.server_port}/", retry=QUICK)
        change(session, 1)
        export.await_idle()
    finally:
        server.shutdown()
        server.server_close()
    assert [key for key, _ in posted] == [f"totals-{body['epoch']}" for _, body in posted]
    assert summed([pa.Table.from_pylist(body["changes"]) for _, body in posted]) == Counter(view.rows())


def test_bad_targets_are_refused(opened: Any, tmp_path: Path) -> None:
    _, view = opened()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    for error, target, options, message in (
        (hw.InvalidOption, tmp_path / "x", {}, "format is one of parquet, csv, json or delta"),
        (hw.InvalidOption, tmp_path / "x", {"format": "parquet", "of": "rows"}, "of is one of content, changes"),
        (hw.InvalidTarget, tmp_path / "mine", {"format": "csv"}, "has other files, such as 'notes.txt'"),
        (hw.InvalidTarget, "postgresql:///x", {}, "are replaced by a key"),
        (hw.InvalidOption, print, {"of": "content"}, "a function is told changes"),
        (hw.InvalidTarget, tmp_path / "mine" / "notes.txt", {"format": "json"}, "is a file"),
        (hw.InvalidTarget, tmp_path / "mine", {"format": "delta"}, "has other files, such as 'notes.txt'"),
    ):
        with pytest.raises(error, match=message):
            view.write_to(target, **options)
    assert view._session.exports() == {}
