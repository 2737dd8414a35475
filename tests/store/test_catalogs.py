"""A catalog that went through JSON does what the one it was made from does; the views are those of `tests/sql`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from storing import attached, changed, engine_of, require_same_epoch, stored
from test_sql import FOLDERS, read_folder

import headwater as hw
from headwater.runtime.driver import run_epoch
from headwater.store.catalogs import decode_catalog, encode_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.transaction import Transaction


@pytest.fixture
def session(spark: SparkSession) -> Iterator[hw.Session]:
    with closing(hw.connect(spark=spark)) as opened:
        yield opened


def apply(changes: tuple[str, ...]) -> Callable[[Transaction], None]:
    def run(transaction: Transaction) -> None:
        for change in changes:
            transaction.sql(change)

    return run


@pytest.mark.parametrize(
    ("path", "count"),
    [
        *(pytest.param(path, 2, id=f"{path.name}, two transactions") for path in FOLDERS if path.name == "graph"),
        *(pytest.param(path, None, id=path.name, marks=pytest.mark.slow) for path in FOLDERS),
    ],
)
def test_fixtures_go_on(session: hw.Session, path: Path, count: int | None) -> None:
    folder = read_folder(path)
    for statement in folder.setup:
        session.sql(statement)
    for query in folder.queries:
        if query.gap is None:
            session.create_view(query.name, query.text)
    again = stored(session.snapshot.catalog, engine_of(session))
    for _, changes in folder.transactions[:count]:
        deltas = changed(session, apply(changes))
        require_same_epoch(session.snapshot, again, deltas)
        session.epochs.commit(deltas, {})


def with_sales(session: hw.Session, **views: str) -> Snapshot:
    session.create_table("sales", "id BIGINT, brand STRING, price INT", key="id")
    session.insert("sales", [(1, "a", 3), (2, "b", 2), (3, "b", 7)])
    for name, query in views.items():
        session.create_view(name, query)
    return session.snapshot


def test_runs_without_spark_in_another_process(session: hw.Session, tmp_path: Path) -> None:
    now = with_sales(
        session,
        sums="SELECT brand, SUM(price + 1) AS s FROM sales WHERE price > 2 GROUP BY brand",
        copies="SELECT id, explode(array(price, 1)) AS copy FROM sales",
        ranks="SELECT id, row_number() OVER (PARTITION BY brand ORDER BY price) AS n FROM sales",
    )
    (tmp_path / "catalog.json").write_text(json.dumps(encode_catalog(now.catalog, "UTC")), "utf-8")
    program = """
import json, sys
import pyarrow as pa
from headwater.delta import Delta
from headwater.engine import Engine
from headwater.runtime.driver import run_epoch
from headwater.store.catalogs import decode_catalog

def never():
    raise AssertionError("Spark was asked for")

described = json.load(open(sys.argv[1], encoding="utf-8"))
catalog = decode_catalog(described, Engine(never, described["time_zone"]))
states = {step: step.operator.start()[0] for step in catalog.steps}
sales = catalog.tables["sales"]
rows = pa.RecordBatch.from_pylist([{"c0": 7, "c1": "cd", "c2": 5}, {"c0": 8, "c1": "cd", "c2": 4}], sales.rows)
outcome = run_epoch(catalog.above([sales.source]), states, {sales.source: Delta.inserting(rows)})
for name, view in catalog.views.items():
    print(name, sorted(tuple(row.values()) for row in outcome.outputs[view.output].rows.to_pylist()))
from pyspark import SparkContext
assert SparkContext._gateway is None
"""
    command = [sys.executable, "-c", program, str(tmp_path / "catalog.json")]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "sums [('cd', 11)]",
        "copies [(7, 1), (7, 5), (8, 1), (8, 4)]",
        "ranks [(7, 2), (8, 1)]",
    ]


def test_the_compiler_goes_on_to_share_steps(session: hw.Session) -> None:
    query = "SELECT brand, SUM(price) AS s FROM sales GROUP BY brand"
    now = with_sales(session, sums=query)
    engine = engine_of(session)
    again = stored(now.catalog, engine)
    snapshot = type(now)(now.epoch, again, attached(again, now))
    definition = engine.definitions.view(snapshot, "twin", engine.analyse(query, again, "twin"), "auto")
    assert definition.catalog.views["twin"].contents is definition.catalog.views["sums"].contents


def test_a_view_is_found_to_be_read_otherwise(session: hw.Session) -> None:
    now = with_sales(session, odd="SELECT brand, percentile(price, 0.5) AS p FROM sales GROUP BY brand")
    described = json.dumps(encode_catalog(now.catalog, "UTC")).replace("percentile(price, 0.5)", "percentile(price, 0.7)")
    again = decode_catalog(json.loads(described), engine_of(session))
    with pytest.raises(hw.LostQuery, match=r"view 'odd' is read otherwise .* Create the view again"):
        insert_one(session, again, now)


def insert_one(session: hw.Session, again: Catalog, now: Snapshot) -> Mapping[Any, Any]:
    changes = changed(session, lambda transaction: transaction.insert("sales", [(9, "b", 1)]))
    source = again.tables["sales"].source
    return run_epoch(again.above([source]), attached(again, now), {source: changes["sales"]}).outputs


def test_a_function_that_is_not_registered_is_named(session: hw.Session) -> None:
    session.spark.udf.register("doubled_price", lambda price: 2 * price, "int")
    now = with_sales(session, twice="SELECT id, doubled_price(price) AS p FROM sales")
    again = stored(now.catalog, engine_of(session))
    view = again.views["twice"]
    assert insert_one(session, again, now)[view.output].rows.to_pylist() == [{"c0": 9, "c1": 2}]
    session.spark.sql("DROP TEMPORARY FUNCTION doubled_price")
    again = stored(now.catalog, engine_of(session))
    with pytest.raises(hw.LostQuery, match=r"view 'twice' .* Register the functions .*doubled_price"):
        insert_one(session, again, now)


def test_a_dataframe_is_kept_by_its_plan(session: hw.Session) -> None:
    with_sales(session)
    frame = session.dataframe("sales")
    session.create_view("sums", frame.groupBy("brand").sum("price"))
    session.create_view("middles", frame.groupBy("brand").agg({"price": "median"}))
    now = session.snapshot
    again = stored(now.catalog, engine_of(session))
    with pytest.raises(hw.LostQuery, match="view 'middles' was made of a DataFrame"):
        insert_one(session, again, now)
    session.drop_view("middles")
    now = session.snapshot
    require_same_epoch(
        now, stored(now.catalog, engine_of(session)), changed(session, lambda t: t.insert("sales", [(9, "b", 1)]))
    )


def test_a_dataframe_that_is_recomputed_cannot_be_stored(session: hw.Session) -> None:
    with_sales(session)
    session.create_view("sums", session.dataframe("sales").groupBy("brand").sum("price"), refresh="full")
    with pytest.raises(hw.NotSupported, match=re.escape("view 'sums' is made of a DataFrame and recomputed as a whole")):
        encode_catalog(session.snapshot.catalog, "UTC")


def test_a_query_that_is_recomputed_is_kept_by_its_text(session: hw.Session) -> None:
    with_sales(session)
    session.create_view("sums", "SELECT brand, SUM(price) AS s FROM sales GROUP BY brand", refresh="full")
    now = session.snapshot
    require_same_epoch(
        now, stored(now.catalog, engine_of(session)), changed(session, lambda t: t.insert("sales", [(9, "b", 1)]))
    )


def test_another_format_is_refused(session: hw.Session) -> None:
    described = {**encode_catalog(session.snapshot.catalog, "UTC"), "format": 99}
    with pytest.raises(hw.UnreadableCatalog, match="has the format 99, and this version of Headwater reads 1"):
        decode_catalog(described, engine_of(session))


def test_queries_keep_the_time_zone_they_were_read_in(session: hw.Session) -> None:
    session.create_table("moments", "at TIMESTAMP")
    session.insert("moments", [(datetime(2024, 7, 1, tzinfo=UTC),)])
    query = "SELECT date_format(at, 'HH:mm VV') AS t FROM moments"
    session.create_view("shown", query)
    session.create_view("recomputed", query, refresh="full")
    now = session.snapshot
    again = stored(now.catalog, engine_of(session))
    changes = changed(session, lambda transaction: transaction.insert("moments", [(datetime(2024, 7, 2, tzinfo=UTC),)]))
    session.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        require_same_epoch(now, again, changes)
        source = again.tables["moments"].source
        outcome = run_epoch(again.above([source]), attached(again, now), {source: changes["moments"]})
    finally:
        session.spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in ("shown", "recomputed"):
        assert outcome.outputs[again.views[name].output].rows.to_pylist() == [{"c0": "00:00 UTC"}]
