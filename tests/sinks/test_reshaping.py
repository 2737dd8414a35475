"""A view that is replaced by another query: whoever follows its changes, anywhere, gets from the old answer to the new one."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.runtime.history import same_columns
from headwater.sinks.spark_source import HeadwaterSource
from tests.patience import wait_until
from tests.sinks.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from benchmarks.postgres_server import Server
    from tests.sinks.receiver import Receiver

    Connect = Callable[[], hw.Session]

QUERY = "SELECT brand, SUM(price) AS total FROM sales GROUP BY brand"
QUERIES = {
    "types": "SELECT brand, MAX(price) AS total FROM sales GROUP BY brand",
    "names": "SELECT brand, SUM(price) AS revenue FROM sales GROUP BY brand",
    "more columns": "SELECT brand, SUM(price) AS total, COUNT(*) AS n FROM sales GROUP BY brand",
    "fewer columns": "SELECT DISTINCT brand FROM sales",
    "another order of columns": "SELECT SUM(price) AS total, brand FROM sales GROUP BY brand",
    "nothing left": "SELECT brand, MAX(price) AS total FROM sales GROUP BY brand HAVING MAX(price) > 1000",
    "same columns": "SELECT brand, SUM(price) + 1 AS total FROM sales GROUP BY brand",
    "columns that only order": f"{QUERY} ORDER BY COUNT(*), brand",
}


@pytest.fixture
def connect(spark: SparkSession, tmp_path: Path) -> Iterator[Connect]:
    sessions: list[hw.Session] = []

    def opened() -> hw.Session:
        session = hw.connect(tmp_path / "state", spark=spark)
        sessions.append(session)
        if "sales" not in session.tables():
            session.create_table("sales", "id BIGINT, brand STRING, price INT", key="id")
            session.create_view("totals", QUERY)
            session.insert("sales", [(1, "a", 5), (2, "a", 6), (3, "b", 7), (4, "c", 7)])
        return session

    yield opened
    for session in sessions:
        session.close()


def replayed(tables: Iterable[pa.Table]) -> Counter[Any]:
    """What is left of changes, by names and values."""
    found: Counter[Any] = Counter()
    for table in tables:
        names = tuple(name for name in table.column_names if name != "_weight")
        for row in table.to_pylist():
            found[names, tuple(row[name] for name in names)] += row["_weight"]
    return Counter({row: weight for row, weight in found.items() if weight})


def now(view: hw.View) -> Counter[Any]:
    return Counter((tuple(view.schema.names), row) for row in view.rows())


def rows(table: pa.Table) -> Counter[Any]:
    return Counter((tuple(table.column_names), tuple(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_changes_lead_from_the_old_answer_to_the_new_one(connect: Connect, spark: SparkSession, query: str) -> None:
    session = connect()
    view, start = session.view("totals"), session.epoch
    before = view.arrow()
    heard: list[tuple[int, pa.Table]] = []
    view.subscribe(lambda epoch, table: heard.append((epoch, table)))
    session.upsert("sales", [(1, "a", 50)])
    session.create_view("totals", query, replace=True)
    replacing = session.epoch
    session.insert("sales", [(5, "a", 2000), (6, "d", 1)])
    told = list(view.changes(since=start))
    session.await_idle()
    assert [(epoch, table.schema, table.to_pylist()) for epoch, table in heard] == [
        (epoch, table.schema, table.to_pylist()) for epoch, table in told
    ]
    schemas = [table.schema for epoch, table in told if epoch == replacing]
    same = same_columns(before.schema, view.arrow().schema)
    assert len(schemas) <= (1 if same else 2)
    for schema in schemas[:1]:
        assert schema.names[:-1] == before.column_names, "what goes has the columns that it had"
    first = before.append_column("_weight", pa.array([1] * before.num_rows))
    assert replayed([first, *(table for _, table in told)]) == now(view)
    assert replayed(table for _, table in view.changes(since=0)) == now(view)
    expected = [(epoch, table.schema, table.to_pylist()) for epoch, table in told]
    with hw.connect(session._store.disk.place, mode="r", spark=spark) as reader:  # type: ignore[union-attr]
        assert sorted(map(repr, reader.view("totals").changes(start))) == sorted(map(repr, view.changes(start)))
    session.close()
    session = connect()
    again = [(epoch, table.schema, table.to_pylist()) for epoch, table in session.view("totals").changes(since=start)]
    assert [each[:2] for each in again] == [each[:2] for each in expected]
    assert replayed([first, *(pa.Table.from_pylist(values, schema) for _, schema, values in again)]) == now(
        session.view("totals")
    )


def test_a_table_with_more_columns_reshapes_the_views_above_it(connect: Connect) -> None:
    session = connect()
    view = session.create_view("all_sales", "SELECT * FROM sales")
    session.add_columns("sales", session.columns("colour STRING"))
    session.insert("sales", [(9, "z", 1, "red")])
    assert replayed(table for _, table in view.changes(since=0)) == now(view)


def exported(session: hw.Session, folder: Path, postgres: Server, receiver: Receiver, calls: list[pa.Table]) -> list[hw.Export]:
    view = session.view("totals")
    address = postgres.address

    def call(_: int, changes: pa.Table) -> None:
        calls.append(changes)

    return [
        view.write_to(folder / "parquet", format="parquet", name="parquet"),
        view.write_to(folder / "json", format="json", name="json"),
        view.write_to(folder / "csv", format="csv", name="csv", of="content"),
        view.write_to(folder / "delta changes", format="delta", name="delta changes"),
        view.write_to(folder / "delta", format="delta", key="brand", name="delta"),
        view.write_to(address, table=folder.name, key="brand", name="postgres"),
        view.write_to(receiver.address, name="web"),
        view.write_to(call, name="call"),
    ]


@pytest.mark.parametrize("running", [True, False], ids=["running", "later"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_every_export_reaches_the_new_answer(
    connect: Connect, tmp_path: Path, postgres: Server, query: str, *, running: bool
) -> None:
    deltalake, psycopg = pytest.importorskip("deltalake"), pytest.importorskip("psycopg")
    calls: list[pa.Table] = []
    with receiving() as receiver:
        session = connect()
        exports = exported(session, tmp_path, postgres, receiver, calls)
        for export in exports:
            export.await_idle()
        if not running:
            session.close()
            session = connect()
        session.upsert("sales", [(1, "a", 50)])
        session.create_view("totals", query, replace=True)
        session.insert("sales", [(5, "a", 2), (6, "d", 1)])
        if not running:
            session.close()
            session = connect()
            exports = exported(session, tmp_path, postgres, receiver, calls)
        for export in exports:
            export.await_idle()
            assert export.progress.state == "idle"
        view = session.view("totals")
        expected = now(view)
        names = view.schema.names
        posted: Counter[Any] = Counter()
        for change in (change for _, body in receiver.taken for change in body["changes"]):
            weight = change.pop("_weight")
            posted[tuple(change), tuple(change.values())] += weight
        assert len({key for key, _ in receiver.taken}) == len(receiver.taken)
    assert replayed(calls) == expected
    assert Counter({row: weight for row, weight in posted.items() if weight}) == expected
    files = {form: sorted((tmp_path / form).glob("epoch-*")) for form in ("parquet", "json", "csv")}
    assert replayed(map(pq.read_table, files["parquet"])) == expected
    lines = [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files["json"]]
    assert replayed(pa.Table.from_pylist(each) for each in lines if each) == expected
    (content,) = files["csv"]
    assert rows(pa_csv.read_csv(content)) == expected
    delta = deltalake.DeltaTable(str(tmp_path / "delta"))
    # Delta has columns by name, and leaves them in the order in which they were.
    assert rows(pa.table(delta.to_pyarrow_table()).select(names)) == expected
    changes = pa.table(deltalake.DeltaTable(str(tmp_path / "delta changes")).to_pyarrow_table())
    assert replayed([changes.select([*names, "_weight"])]) == expected
    with psycopg.connect(postgres.address) as connection:
        cursor = connection.execute(f'SELECT * FROM "{tmp_path.name}"')
        found = cursor.fetchall()
        assert [column.name for column in cursor.description] == names
        assert Counter((tuple(names), row) for row in found) == expected
        connection.execute(f'DROP TABLE "{tmp_path.name}"')


def test_a_restart_of_a_copy_can_be_seen(connect: Connect, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    session = connect()
    export = session.view("totals").write_to(tmp_path / "delta", format="delta", key="brand")
    export.await_idle()
    assert export.progress.restarted is None
    session.create_view("totals", QUERIES["types"], replace=True)
    export.await_idle()
    assert export.progress.restarted == session.epoch


def test_a_view_that_is_dropped_and_made_again_is_another_one(connect: Connect, tmp_path: Path) -> None:
    session = connect()
    told: list[int] = []
    view = session.view("totals")
    exports = [
        view.write_to(lambda epoch, _: told.append(epoch), name="call"),
        view.write_to(tmp_path / "out", format="parquet", of="content", name="content"),
    ]
    for export in exports:
        export.await_idle()
    session.drop_view("totals")
    for export in exports:
        with pytest.raises(hw.ExportFailed, match="there is no table or view 'totals' any more"):
            export.await_idle()
    view = session.create_view("totals", QUERIES["types"])
    content = view.write_to(tmp_path / "out", format="parquet", of="content", name="content")
    content.await_idle()
    assert content.progress.restarted == session.epoch
    assert rows(pq.read_table(next((tmp_path / "out").glob("epoch-*")))) == now(view)
    with pytest.raises(hw.ExportFailed, match="are kept from epoch"):
        view.write_to(lambda epoch, _: told.append(epoch), name="call").await_idle()
    assert len(told) == 1


def test_an_export_of_a_view_that_is_dropped_says_so_by_itself(connect: Connect, tmp_path: Path) -> None:
    session = connect()
    export = session.view("totals").write_to(tmp_path / "out", format="parquet", of="content")
    export.await_idle()
    session.drop_view("totals")
    wait_until(lambda: export.progress.state == "failed")
    view = session.create_view("totals", QUERIES["types"])
    export.stop()
    export.resume()
    session.insert("sales", [(8, "z", 1)])
    export.await_idle()
    (file,) = (tmp_path / "out").glob("epoch-*")
    assert rows(pq.read_table(file)) == now(view)


def test_spark_is_told_that_columns_have_changed(connect: Connect, spark: SparkSession, tmp_path: Path) -> None:
    session = connect()

    def source(**options: str) -> tuple[HeadwaterSource, StructType]:
        made = HeadwaterSource({"path": f"{tmp_path}/state/totals", **options})
        return made, made.schema()

    def batch(reader: DataSourceReader) -> list[Any]:
        return [row for part in reader.partitions() for rows in reader.read(part) for row in rows.to_pylist()]

    def following(reader: DataSourceStreamReader, start: dict[str, int]) -> list[Any]:
        parts = reader.partitions(start, reader.latestOffset(start, None))
        return [row for part in parts for rows in reader.read(part) for row in rows.to_pylist()]

    session.publish("totals")
    (content, schema), (stream, told) = source(), source(changes="weight")
    begun = {"epoch": -1}
    reached = {"epoch": session.epoch}
    assert len(batch(content.reader(schema))) == len(following(stream.streamReader(told), begun)) == 3
    session.create_view("totals", QUERIES["types"], replace=True)
    (later, new), (anew, newly_told) = source(), source(changes="weight")
    since, _ = source(changes="weight", since=str(reached["epoch"]))
    for ask in (
        lambda: batch(content.reader(schema)),
        lambda: following(stream.streamReader(told), reached),
        lambda: following(stream.streamReader(told), begun),
        lambda: following(anew.streamReader(newly_told), reached),
        lambda: batch(since.reader(newly_told)),
        lambda: spark.table("totals").collect(),
    ):
        with pytest.raises(Exception, match="'totals' was given other columns"):
            ask()
    assert len(batch(later.reader(new))) == len(following(anew.streamReader(newly_told), begun)) == 3
    session.publish("totals")
    assert Counter(map(tuple, spark.table("totals").collect())) == Counter(session.view("totals").rows())


def test_a_stream_of_a_view_that_is_made_again_is_told_so(connect: Connect, tmp_path: Path) -> None:
    session = connect()
    reached = {"epoch": session.epoch}
    session.drop_view("totals")
    session.create_view("totals", QUERY)
    source = HeadwaterSource({"path": f"{tmp_path}/state/totals", "changes": "weight"})
    reader = source.streamReader(source.schema())
    (part,) = reader.partitions(reached, reader.latestOffset(reached, None))
    with pytest.raises(hw.HistoryGone, match="are kept from epoch"):
        list(reader.read(part))
    since = HeadwaterSource({"path": f"{tmp_path}/state/totals", "changes": "weight", "since": "0"})
    reader = since.streamReader(since.schema())
    (part,) = reader.partitions({"epoch": 0}, reader.latestOffset(reached, None))
    assert sum(rows.num_rows for rows in reader.read(part)) == 3
