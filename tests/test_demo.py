"""The tour, small: its shop keeps right books, its judge is not fooled, and the program ends as it should."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console
from typer.testing import CliRunner

import headwater
from headwater.cli import app
from headwater.demo.display import Display, Terminal
from headwater.demo.figures import Figures, ViewFigures
from headwater.demo.judge import difference
from headwater.demo.shop import Changes, Shop
from headwater.demo.views import QUESTIONS
from headwater.demo.wares import WARES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = 2_000
HEAVY = ("pyspark", "duckdb", "pyarrow", "numpy")


def keyed(name: str, rows: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[column] for column in WARES[name].key): row for row in rows.to_pylist()}


def apply(changes: Changes, tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]]) -> None:
    for name, rows in changes.deletes.items():
        for key, row in keyed(name, rows).items():
            assert tables[name].pop(key) == row
    for name, rows in changes.upserts.items():
        assert keyed(name, rows).keys() <= tables[name].keys()
        tables[name].update(keyed(name, rows))
    for name, rows in changes.inserts.items():
        assert not keyed(name, rows).keys() & tables[name].keys()
        tables[name].update(keyed(name, rows))


# -- the shop


def test_shop_has_as_many_rows_as_asked_for() -> None:
    shop = Shop(ROWS, 1)
    assert sum(shop.count(name) for name in WARES) == ROWS


def test_same_seed_same_shop_and_same_business() -> None:
    one, same, other = Shop(ROWS, 1), Shop(ROWS, 1), Shop(ROWS, 2)
    for _ in range(3):
        assert all(one.table(name).equals(same.table(name)) for name in WARES)
        assert not all(one.table(name).equals(other.table(name)) for name in WARES)
        assert one.business() == same.business()


@pytest.mark.parametrize("name", WARES)
def test_keys_are_unique_and_chunks_are_the_table(name: str) -> None:
    shop = Shop(ROWS, 1)
    assert len(keyed(name, shop.table(name))) == shop.count(name)
    assert pa.concat_tables(shop.chunks(name, 97)).to_pylist() == shop.table(name).to_pylist()


def test_rows_refer_to_rows_that_are_there() -> None:
    shop = Shop(ROWS, 1)
    customers, orders, items, stock = (shop.table(name) for name in ("customers", "orders", "items", "stock"))
    assert set(orders["customer_id"].to_pylist()) <= set(customers["id"].to_pylist())
    assert set(items["order_id"].to_pylist()) == set(orders["id"].to_pylist())
    assert set(items["product_id"].to_pylist()) <= set(stock["product_id"].to_pylist())


def test_lines_of_an_order_count_from_one() -> None:
    lines = Shop(ROWS, 1).table("items").group_by("order_id").aggregate([("line", "min"), ("line", "max"), ("line", "count")])
    assert set(lines["line_min"].to_pylist()) == {1}
    assert lines["line_max"].to_pylist() == lines["line_count"].to_pylist()


def test_business_replayed_gives_the_books() -> None:
    shop = Shop(ROWS, 1)
    tables = {name: keyed(name, shop.table(name)) for name in WARES}
    for _ in range(40):
        apply(shop.business(), tables)
    for name in WARES:
        assert tables[name] == keyed(name, shop.table(name))


def test_business_inserts_updates_and_deletes_about_a_hundred_rows() -> None:
    changes = Shop(ROWS, 1).business()
    for kind in (changes.inserts, changes.upserts, changes.deletes):
        assert all(rows.num_rows for rows in kind.values())
    assert {*changes.inserts, *changes.upserts, *changes.deletes} == {*WARES}
    assert 80 <= len(changes) <= 150


def test_stock_is_never_below_zero() -> None:
    shop = Shop(1_000, 1)
    for _ in range(200):
        shop.business()
        assert pc.min(shop.table("stock")["available"]).as_py() >= 0


def test_a_shop_can_be_too_small() -> None:
    with pytest.raises(ValueError, match="at least 1000 rows, not 999"):
        Shop(999, 1)


# -- the judge


def test_same_bag_in_another_order_does_not_differ() -> None:
    ours = pa.table({"a": [1, None, 1, 2], "b": ["x", None, "x", "y"]})
    assert difference(ours, ours.take([3, 2, 1, 0])).num_rows == 0


def test_rows_too_many_and_too_few_are_found() -> None:
    ours = pa.table({"a": [1, 1, 2, None]})
    theirs = pa.table({"a": [1, 2, 3]})
    found = difference(ours, theirs).to_pylist()
    assert sorted(found, key=str) == [{"a": 1, "more": 1}, {"a": 3, "more": -1}, {"a": None, "more": 1}]


def test_other_columns_are_an_error() -> None:
    with pytest.raises(TypeError, match="Spark's answer has"):
        difference(pa.table({"a": [1]}), pa.table({"a": ["1"]}))


# -- the display


def figures() -> Figures:
    view = SimpleNamespace(explain=lambda _: '{"class": "stateful", "operators": [{"last_seconds": 0.002}]}')
    shown = Figures([ViewFigures(QUESTIONS[0], view, rows=1234, spark_seconds=0.8)], duration=60)  # type: ignore[arg-type]
    shown.begin()
    shown.views[0].changed = 7
    shown.end(0.004, 100)
    return shown


def shown_by(kind: type[Display], act: Callable[[Display], None]) -> str:
    output = io.StringIO()
    act(kind(Console(file=output, force_terminal=kind is Terminal, width=120)))
    return output.getvalue()


def test_figures_compare_the_median_epoch_with_spark() -> None:
    assert figures().ratio == pytest.approx(200)
    assert (figures().rows_in, figures().rows_out) == (100, 7)


def test_terminal_shows_views_and_latencies() -> None:
    def act(display: Display) -> None:
        with display.following(figures()) as show:
            show()

    text = shown_by(Terminal, act)
    for part in ("big_spenders", "stateful", "1,234", "7", "2 ms", "800 ms", "200 ×"):
        assert part in text


@pytest.mark.parametrize("kind", [Display, Terminal])
def test_loading_shows_each_table(kind: type[Display]) -> None:
    def act(display: Display) -> None:
        with display.loading({"orders": 1000, "items": 2000}) as came:
            came("orders", 1000)
            came("items", 1500)
            came("items", 500)

    text = shown_by(kind, act)
    assert "orders" in text
    assert "items" in text


@pytest.mark.parametrize("kind", [Display, Terminal])
def test_work_shows_what_came_out(kind: type[Display]) -> None:
    def act(display: Display) -> None:
        with display.working("Comparing") as outcome:
            outcome.said = "equal"

    assert "Comparing … " in shown_by(kind, act)
    assert "equal" in shown_by(kind, act)


# -- the program


def test_the_command_line_loads_nothing_before_it_must() -> None:
    program = f"import sys, headwater.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("wrong", [["--rows", "999"], ["--seconds", "0"], ["--seed", "-1"], ["--nothing"]])
def test_wrong_options_are_refused(wrong: list[str]) -> None:
    outcome = CliRunner().invoke(app, ["demo", *wrong])
    assert outcome.exit_code == 2
    assert wrong[0] in outcome.output


def test_without_a_command_there_is_help() -> None:
    assert "demo" in CliRunner().invoke(app, []).output


def test_demo_ends_well_and_prints_plain_lines_without_a_terminal() -> None:
    command = [sys.executable, "-m", "headwater.cli", "demo", "--rows", str(ROWS), "--seconds", "1"]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "\x1b" not in outcome.stdout
    assert all(f"Comparing {question.name} with Spark's answer … equal" in outcome.stdout for question in QUESTIONS)
    assert outcome.stdout.endswith("All 5 views equal Spark's answers.\n")


def test_demo_fails_when_a_view_differs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, table = headwater.connect, Shop.table
    monkeypatch.setattr(headwater, "connect", lambda: connect(spark=spark))
    # Spark is not told of the last order, so that to it another one is its customer's latest.
    monkeypatch.setattr(Shop, "table", lambda shop, name: table(shop, name)[: -1 if name == "orders" else None])
    outcome = CliRunner().invoke(app, ["demo", "--rows", str(ROWS), "--seconds", "1"])
    assert outcome.exit_code == 1
    assert re.search(r"Comparing latest_orders with Spark's answer … \d rows differ\n", outcome.output)
    assert "  +1 in the view: ('" in outcome.output
    assert "Comparing bestsellers with Spark's answer … equal" in outcome.output
    assert re.search(r"\d of 5 views differ from Spark's answers\.\n$", outcome.output)


def test_an_error_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise headwater.NotSupported("not today")

    monkeypatch.setattr(headwater, "connect", refuse)
    outcome = CliRunner().invoke(app, ["demo"])
    assert (outcome.exit_code, outcome.output) == (1, "headwater: [NOT_SUPPORTED] not today\n")
