"""Orders: what a task reads is what the driver wrote, and a worker keeps no file open that is gone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any
from unittest import mock

from small_tables import KINDS, batch

import headwater as hw
from headwater.cluster import order as orders
from headwater.cluster.cluster import Cluster
from headwater.cluster.order import Order, Shelf
from headwater.delta import Delta
from headwater.operators.operator import schema_of
from headwater.state.arrangement import Arrangement
from headwater.store import runfiles
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_a_worker_lets_go_of_files_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = LocalDisk(tmp_path)
    made = Arrangement.empty(schema_of(KINDS), (0,)).insert(Delta.inserting(batch([(1, 0)], KINDS)))
    places = [runfiles.write(disk, f"runs/{number}.arrow", made.runs)[0].place for number in range(2)]
    shelf = Shelf(LocalDisk(tmp_path))
    runs = [shelf.run(place) for place in places]
    assert [shelf.run(place) for place in places] == runs, "a run is mapped once"
    disk.remove("runs/0.arrow")
    written = [runfiles.write(disk, f"runs/{number}.arrow", made.runs)[0].place for number in (2, 3)]
    shelf.run(written[0])
    assert shelf.run(places[0]) is runs[0], "nobody looks all the time"
    monkeypatch.setattr(orders, "_OFTEN", -1.0)
    shelf.run(written[1])
    assert shelf.run(places[1]) is runs[1]
    assert shelf.run(places[0]) is not runs[0]
    assert len(runs[0].hashes) == 1, "who still has it goes on reading"


def test_an_order_is_read_as_it_was_written(spark: SparkSession) -> None:
    written: list[Order] = []
    found = Cluster._found

    def remember(self: Cluster, order: Order, *others: Any) -> Any:
        written.append(order)
        return found(self, order, *others)

    with (
        mock.patch.object(Cluster, "_found", remember),
        closing(hw.connect(spark=spark, placement="cluster")) as session,
    ):
        session.create_table("a", "g INT, x DOUBLE")
        session.create_table("b", "g INT, name STRING")
        session.create_view("v", "SELECT upper(name) AS n, sum(x) AS s FROM a JOIN b USING (g) WHERE x > 1.5 GROUP BY name")
        session.create_view("w", "SELECT g, max(x) AS m, count(DISTINCT x) AS d FROM a GROUP BY g ORDER BY g LIMIT 3")
        session.insert("a", [(1, 2.5)])
        (order,) = written
        again = orders.read(order.text())
        assert again.text() == order.text()
        assert [type(step.operator) for step in again.steps] == [type(step.operator) for step in order.steps]
        assert (again.waves, again.parts, again.states) == (order.waves, order.parts, order.states)
