"""Pipelines that run: what they make is what is described, also after it was changed while they ran."""

from __future__ import annotations

import json
from collections import Counter
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context

import headwater as hw
from headwater.pipelines import changing, running
from headwater.pipelines.described import parse

if TYPE_CHECKING:
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
    said: list[str] = []
    ready, over = Event(), Event()

    def told(line: str) -> None:
        said.append(line)
        if line.startswith("running"):
            ready.set()

    runner = Thread(target=running.run, args=(TEXT, tmp_path, told, over, spark))
    runner.start()
    try:
        assert ready.wait(500)
        assert said[:2] == [
            "+ table orders\n    id BIGINT, customer STRING, amount INT\n    key id",
            f"+ view totals\n    {TOTALS}",
        ]
        file = tmp_path / "pipeline.toml"
        file.write_text(CHANGED, encoding="utf-8")
        shown: list[str] = []
        changing.change(file, lambda: True, shown.append, spark)
        assert shown == [
            "~ table orders\n    + colour string",
            f"~ view totals\n    - {TOTALS}\n    + {TOTALS.replace('SUM', 'MAX')}",
            "+ view few\n    SELECT * FROM orders WHERE amount < 5",
            "applied",
        ]
        file.write_text(CHANGED.replace("SELECT *", "SELECT nothing"), encoding="utf-8")
        with pytest.raises(hw.InvalidPipeline, match=r"was not applied to its end: .*nothing"):
            changing.change(file, lambda: True, shown.append, spark)
    finally:
        over.set()
        runner.join()
    with running.opened(parse(CHANGED, tmp_path), spark) as session:
        assert session.plan(parse(CHANGED, tmp_path)) == []
        session.apply(parse(CHANGED, tmp_path))
        session.await_idle()
        for export in session.exports().values():
            export.await_idle()
        assert session.view("totals").rows() == [("Ada", 9)]
        assert session.view("few").rows() == [(1, "Ada", 3, None)]
        (content,) = (tmp_path / "out").glob("epoch-*")
        assert [tuple(row.values()) for row in pq.read_table(content).to_pylist()] == [("Ada", 9)]


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
