"""Pipelines that run: what they make is what is described, also after it was changed while they ran."""

from __future__ import annotations

import json
import os
import traceback
from collections import Counter
from queue import Queue
from stat import S_IMODE
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context

import headwater as hw
from headwater.pipelines import changing, requests, running
from headwater.pipelines.described import parse, read
from headwater.store.opening import disk_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
TEXT = f"""
directory = "state"

[tables.orders]
columns = "id BIGINT, customer STRING, amount INT"
key = "id"

[sources.incoming]
table = "orders"
format = "json"
path = "incoming"

[views.totals]
query = "{TOTALS}"

[sinks.out]
view = "totals"
target = "out"
format = "parquet"
of = "content"
"""
CHANGED = TEXT.replace("amount INT", "amount INT, colour STRING").replace("SUM(amount) AS total", "MAX(amount) AS total") + (
    '\n[views.few]\nquery = "SELECT * FROM orders WHERE amount < 5"\n'
)


def put(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    beside = folder.parent / f"{name}.part"
    beside.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    beside.rename(folder / name)


def test_a_pipeline_is_changed_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    put(incoming, "1.json", {"id": 1, "customer": "Ada", "amount": 3}, {"id": 2, "customer": "Ada", "amount": 9})
    file = tmp_path / "pipeline.toml"
    file.write_text(TEXT, encoding="utf-8")
    said = Queue[str]()
    over = Event()
    runner = Thread(target=running.run, args=(file, said.put, over, spark))
    runner.start()
    try:
        assert said.get() == "+ table orders\n    id BIGINT, customer STRING, amount INT\n    key id"
        assert said.get() == f"+ view totals\n    {TOTALS}"
        assert said.get().startswith("running")
        state = tmp_path / "state"
        # Somebody's editor, a full disk: it is told, and what is running goes on.
        (state / requests.WANTED).write_text('{"file": "pipe', encoding="utf-8")
        assert "'pipeline-wanted.json' is not as `headwater apply` writes it" in said.get()
        file.write_text(CHANGED, encoding="utf-8")
        shown: list[str] = []
        changing.change(file, lambda: True, shown.append, spark)
        assert shown == [
            "~ table orders\n    + colour string",
            f"~ view totals\n    - {TOTALS}\n    + {TOTALS.replace('SUM', 'MAX')}",
            "+ view few\n    SELECT * FROM orders WHERE amount < 5",
            "applied",
        ]
        # From here on nothing of the new column is lost.
        put(incoming, "2.json", {"id": 3, "customer": "Ben", "amount": 2, "colour": "red"})
        file.write_text(CHANGED.replace("SELECT *", "SELECT nothing"), encoding="utf-8")
        with pytest.raises(hw.InvalidPipeline, match=r"not applied: .*pipeline.toml: views.few.query: .*nothing"):
            changing.change(file, lambda: True, shown.append, spark)
        (tmp_path / "state" / requests.OUTCOME).write_text("{", encoding="utf-8")
        file.write_text(CHANGED, encoding="utf-8")
        changing.change(file, lambda: True, shown.append, spark)
        assert requests.wanted(disk_at(state)) is not None
    finally:
        over.set()
        runner.join()
    with running.opened(parse(CHANGED, tmp_path), spark) as session:
        assert session.plan(parse(CHANGED, tmp_path)) == []
        session.apply(parse(CHANGED, tmp_path))
        session.await_idle()
        for export in session.exports().values():
            export.await_idle()
        assert sorted(session.view("totals").rows()) == [("Ada", 9), ("Ben", 2)]
        assert sorted(session.view("few").rows()) == [(1, "Ada", 3, None), (3, "Ben", 2, "red")]
        (content,) = (tmp_path / "out").glob("epoch-*")
        assert sorted(tuple(row.values()) for row in pq.read_table(content).to_pylist()) == [("Ada", 9), ("Ben", 2)]


def test_a_request_to_an_earlier_run_is_answered_and_not_taken(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text('directory = "state"\n[tables.orders]\ncolumns = "id INT"\n', encoding="utf-8")
    disk = disk_at(tmp_path / "state")
    hw.connect(tmp_path / "state").close()
    request = requests.Request.of(file)
    requests.put(disk, request)
    over = Event()
    over.set()
    running.run(file, lambda _: None, over, spark)
    assert "was started anew" in (requests.outcome(disk, request) or "")
    # A description that is not the one that was shown is not taken either.
    os.utime(file, ns=(0, 0))
    with pytest.raises(hw.InvalidPipeline, match="was changed after it was asked for"):
        request.pipeline()
    assert S_IMODE((tmp_path / "state" / requests.WANTED).stat().st_mode) == 0o600


SECRET = "s3cr3t"  # noqa: S105  (of nobody)


def test_passwords_of_a_description_stay_in_its_file(spark: SparkSession, tmp_path: Path) -> None:
    address = f"postgresql://ada:{SECRET}@127.0.0.1:1/shop"
    text = f"""
directory = "state"

[tables.orders]
columns = "id BIGINT"
key = "id"

[views.few]
query = "SELECT id FROM orders"

[sinks.shop]
view = "few"
target = "{address}"
key = "id"

[sources.shop]
format = "rate"
table = "orders"
options = {{ address = "{address}", "sasl.password" = "{SECRET}" }}
"""
    pytest.importorskip("psycopg")
    file = tmp_path / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    assert SECRET not in repr(read(file))
    disk = disk_at(tmp_path / "state")
    hw.connect(tmp_path / "state").close()
    requests.put(disk, requests.Request.of(file))
    with hw.connect(tmp_path / "state", spark=spark) as session:
        session.create_table("orders", "id BIGINT", key="id")
        view = session.create_view("few", "SELECT id FROM orders")
        export = view.write_to(address, key="id", retry=hw.Retry(attempts=1, pause=0.0))
        with pytest.raises(hw.ExportFailed) as raised:
            export.await_idle()
        assert SECRET not in "".join(traceback.format_exception(raised.value))
        assert SECRET not in (export.progress.error or "")
        with pytest.raises(hw.InvalidPipeline) as refused:
            session.apply(read(file))
        assert SECRET not in str(refused.value)
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


def orders(tmp_path: Path, **parts: Any) -> hw.Pipeline:
    tables = {"orders": hw.TableOf("id BIGINT, amount INT", key="id")}
    return hw.Pipeline(str(tmp_path), **{"tables": tables, **parts}, file=tmp_path / "shop.toml")


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"tables": {"orders": hw.TableOf("id BIGINT, amount INT, colour STRIN", key="id")}}, "tables.orders.columns: "),
        ({"tables": {"new": hw.TableOf("id INT", key="nothing")}}, "tables.new.key: "),
        (
            {"views": {"few": hw.ViewOf("SELECT id FROM orders"), "bad": hw.ViewOf("SELECT nothing FROM few")}},
            "views.bad.query: ",
        ),
        ({"views": {"few": hw.ViewOf("SELECT 1 AS one", refresh="often")}}, "views.few.refresh: "),
        ({"views": {"few": hw.ViewOf("SELECT id FROM orders", strategy="counting")}}, "views.few.strategy: "),
        # Only the rows tell that it cannot be built.
        (
            {
                "views": {
                    "few": hw.ViewOf("SELECT id FROM orders"),
                    "bad": hw.ViewOf("SELECT 1 DIV (amount - 5) AS x FROM orders"),
                }
            },
            "views.bad.query: ",
        ),
        ({"sources": {"in": hw.SourceOf("nonsense", table="orders")}}, "sources.in.format: "),
        ({"sources": {"in": hw.SourceOf("json", table="orders", path="nowhere")}}, "sources.in.path: "),
        ({"sources": {"in": hw.SourceOf("json", table="orders", path=".", schema="id NONSENSE")}}, "sources.in.schema: "),
        ({"sources": {"in": hw.SourceOf("rate", table="orders", mode="sometimes")}}, "sources.in: .*mode is one of"),
        ({"sinks": {"out": hw.SinkOf("few", "out", format="xls")}}, "sinks.out: .*format is one of"),
    ],
)
def test_a_description_that_fails_changes_nothing_and_is_located(
    opened_shop: hw.Session, tmp_path: Path, parts: dict[str, Any], place: str
) -> None:
    session = opened_shop
    epoch, entries = session.epoch, dict(session.snapshot.entries)
    tables = {"orders": hw.TableOf("id BIGINT, amount INT, colour STRING", key="id"), "more": hw.TableOf("id INT")}
    views = {"few": hw.ViewOf("SELECT id, colour FROM orders")}
    wanted = orders(tmp_path, **{**parts, "tables": tables | parts.get("tables", {}), "views": parts.get("views", views)})
    with pytest.raises(hw.InvalidPipeline, match=rf"shop\.toml: {place}"):
        session.apply(wanted)
    assert (session.epoch, dict(session.snapshot.entries)) == (epoch, entries)
    assert session.streams() == {}
    assert not session.epochs._recordings


def test_a_running_source_is_read_with_the_columns_that_its_table_has_now(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    narrow, wide = (parse(text, tmp_path) for text in (TEXT, CHANGED))
    bad = parse(CHANGED.replace("SELECT *", "SELECT nothing"), tmp_path)
    with hw.connect(spark=spark) as session:
        session.apply(narrow)
        put(incoming, "1.json", {"id": 1, "customer": "Ada", "amount": 3})
        session.await_idle()
        stream = session.streams()["incoming"]
        with pytest.raises(hw.InvalidPipeline, match=r"views\.few\.query"):
            session.apply(bad)
        assert session.streams()["incoming"] is stream
        assert stream.is_running
        session.apply(wide)
        put(incoming, "2.json", {"id": 2, "customer": "Ben", "amount": 2, "colour": "red"})
        session.await_idle()
        assert sorted(session.table("orders").rows()) == [(1, "Ada", 3, None), (2, "Ben", 2, "red")]
        assert session.table("orders_dead_letters").rows() == []
        again = session.streams()["incoming"]
        session.apply(wide)
        assert session.streams()["incoming"] is again


def test_definitions_are_one_epoch(opened_shop: hw.Session, tmp_path: Path) -> None:
    session = opened_shop
    epoch = session.epoch
    wanted = orders(
        tmp_path,
        tables={"orders": hw.TableOf("id BIGINT, amount INT, colour STRING", key="id"), "more": hw.TableOf("id BIGINT")},
        views={
            "few": hw.ViewOf("SELECT id, colour FROM orders WHERE amount < 6"),
            "both": hw.ViewOf("SELECT f.id FROM few f JOIN more m ON f.id = m.id"),
        },
    )
    session.apply(wanted)
    assert session.epoch == epoch + 1
    assert sorted(session.views()) == ["both", "few"]
    session.insert("orders", [(7, 1, "red")])
    session.insert("more", [(5,), (7,)])
    assert sorted(session.view("both").rows()) == [(5,), (7,)]
    assert sorted(session.view("few").rows()) == [(5, None), (7, "red")]
    assert session.plan(wanted) == []


@pytest.fixture
def opened_shop(spark: SparkSession) -> Iterator[hw.Session]:
    with hw.connect(spark=spark) as session:
        session.create_table("orders", "id BIGINT, amount INT", key="id")
        session.insert("orders", [(5, 5), (6, 6)])
        session.create_view("all", "SELECT * FROM orders")
        session.create_view("above", "SELECT id FROM all")
        yield session


def test_what_was_begun_by_hand_is_left_alone(opened_shop: hw.Session, tmp_path: Path) -> None:
    session, told = opened_shop, list[int]()
    views = {name: hw.ViewOf(session.snapshot.views[name].query.text or "") for name in ("all", "above")}
    export = session.view("above").write_to(lambda epoch, _: told.append(epoch), name="mine")
    stream = session.follow(
        "orders", session.spark.readStream.format("rate").load().selectExpr("value AS id", "1 AS amount").where("false")
    )
    session.apply(orders(tmp_path, views=views))
    assert export.progress.state != "stopped"
    assert stream.is_running
    sinks = {"mine": hw.SinkOf("all", str(tmp_path / "out"), format="json")}
    with pytest.raises(hw.InvalidPipeline, match=r"sinks\.mine: an export of that name was begun by hand"):
        session.apply(orders(tmp_path, views=views, sinks=sinks))
    with pytest.raises(hw.InvalidPipeline, match=r"sources\.orders: a stream of that name is followed by hand"):
        session.apply(orders(tmp_path, views=views, sources={"orders": hw.SourceOf("rate", table="orders")}))
    with pytest.raises(hw.InvalidPipeline, match="view 'above' is not described, and would go, but export 'mine'"):
        session.apply(orders(tmp_path, views={"all": views["all"]}))
    session.insert("orders", [(8, 8)])
    assert export.await_idle() == told[-1]
    # What a description has begun goes with it, and changes with it.
    described = {"out": hw.SinkOf("all", str(tmp_path / "out"), format="json")}
    session.apply(orders(tmp_path, views=views, sinks=described))
    first = session.exports()["out"]
    session.apply(orders(tmp_path, views=views, sinks=described))
    assert session.exports()["out"] is first
    session.apply(orders(tmp_path, views=views, sinks={"out": hw.SinkOf("all", str(tmp_path / "other"), format="json")}))
    session.exports()["out"].await_idle()
    assert len(list((tmp_path / "other").glob("epoch-*"))) == 1
    session.apply(orders(tmp_path, views=views))
    assert (first.progress.state, session.exports()["out"].progress.state) == ("stopped", "stopped")
    export.stop()
    session.apply(orders(tmp_path, views={"all": views["all"]}))
    assert sorted(session.views()) == ["all"]


def test_differences_that_cannot_be_bridged_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with hw.connect(spark=spark) as session:
        session.create_table("orders", "id BIGINT, amount INT", key="id")
        session.create_table("old", "id BIGINT")
        session.create_view("gone", "SELECT * FROM orders")
        steps = session.plan(hw.Pipeline(str(tmp_path), tables={"orders": hw.TableOf("id BIGINT, amount INT", key="id")}))
        assert [str(step) for step in steps] == [
            "! table old\n    is not described, and stays: drop it yourself if its rows are not needed",
            "− view gone\n    - SELECT * FROM orders",
        ]
        for table, message in (
            (hw.TableOf("id BIGINT, amount INT"), "its key is"),
            (hw.TableOf("id BIGINT, amount STRING", key="id"), "column 'amount' is int, and cannot become string"),
            (hw.TableOf("id BIGINT", key="id"), "amount cannot go"),
        ):
            with pytest.raises(hw.InvalidPipeline, match=message):
                session.plan(hw.Pipeline(str(tmp_path), tables={"orders": table}))


def test_a_live_view_beside_declared_ones(spark: SparkSession, tmp_path: Path) -> None:
    class Registry(GraphElementRegistry):
        def __init__(self) -> None:
            self.outputs: list[Any] = []
            self.flows: list[Any] = []

        def register_output(self, output: Any) -> None:
            self.outputs.append(output)

        def register_flow(self, flow: Any) -> None:
            self.flows.append(flow)

        def register_auto_cdc_flow(self, flow: Any) -> None: ...

        def register_sql(self, sql_text: str, file_path: Path) -> None: ...

    with hw.connect(tmp_path / "state", spark=spark) as session:
        session.create_table("orders", "id BIGINT, customer STRING, amount INT", key="id")
        session.insert("orders", [(1, "Ada", 3), (2, "Ada", 4)])
        session.create_view("totals", TOTALS)
        registry = Registry()
        with graph_element_registration_context(registry):

            @hw.live_view(tmp_path / "state")
            def totals() -> str:
                return TOTALS

            with pytest.raises(hw.UnknownName, match="there is no table or view 'others'"):
                hw.live_view(tmp_path / "state", name="others")(totals)
        assert [output.name for output in registry.outputs] == ["totals"]
        (flow,) = registry.flows
        assert Counter(map(tuple, flow.func().collect())) == Counter({("Ada", 7): 1})
        assert totals().startswith("SELECT")
