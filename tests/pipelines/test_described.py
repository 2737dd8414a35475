"""What is wrong with a description is said before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.pipelines.described import parse, read

GOOD = """
directory = "state"
retain = "7 days"

[tables.orders]
columns = "id BIGINT, customer STRING, amount INT"
key = ["id"]

[sources.incoming]
table = "orders"
format = "json"
path = "incoming"
mode = "upsert"
options = { maxFilesPerTrigger = 10 }

[views.totals]
query = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"

[sinks.out]
view = "totals"
target = "out"
format = "parquet"
"""


def test_a_file_and_python_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(GOOD, encoding="utf-8")
    found = read(file)
    assert found == hw.Pipeline(
        "state",
        tables={"orders": hw.TableOf("id BIGINT, customer STRING, amount INT", key=("id",))},
        sources={
            "incoming": hw.SourceOf("json", table="orders", path="incoming", mode="upsert", options={"maxFilesPerTrigger": 10})
        },
        views={"totals": hw.ViewOf("SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")},
        sinks={"out": hw.SinkOf("totals", "out", format="parquet")},
        retain="7 days",
        base=tmp_path,
    )
    assert found.place("incoming") == str(tmp_path / "incoming")
    assert found.place("postgresql:///shop") == "postgresql:///shop"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("directory = ", "this is no TOML"),
        ("", "the file: directory is missing"),
        ('directory = "x"\ncolour = "red"', "the file: 'colour' is not known; there are directory, tables"),
        ('directory = "x"\n[tables.t]\nkey = "id"', "tables.t: columns is missing"),
        ('directory = "x"\n[tables.t]\ncolumns = 3', "tables.t: columns cannot be 3"),
        ('directory = "x"\n[tables]\nt = "id INT"', r"\[tables.name\] begins what is called name among the tables"),
        (
            'directory = "x"\n[sources.s]\nformat = "rate"\ntable = "t"',
            "sources.s.table: there is no tables.t; there are",
        ),
        ('directory = "x"\n[sources.s]\nformat = "rate"', "sources.s: say which table follows it"),
        ('directory = "x"\n[sinks.s]\nview = "v"\ntarget = "out"', "sinks.s.view: there is no views.v"),
        ('directory = "x"\nbase = "/tmp"', "the file: 'base' is not known"),
        ('directory = "x"\n[views." "]\nquery = "SELECT 1"', "views: ' ' cannot be a name"),
        (
            'directory = "x"\n[tables.a]\ncolumns = "id INT"\n[views.A]\nquery = "SELECT 1"',
            "a: a table and a view cannot have the same name",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(hw.InvalidPipeline, match=message):
        parse(text, Path())


def test_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    for text, message in (("directory = ", "this is no TOML"), ("", "directory is missing"), (GOOD + "[sinks.x]", "sinks.x: ")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(hw.InvalidPipeline, match=rf"shop\.toml: {message}"):
            read(file)
    file.write_bytes(b"directory = '\xff'")
    with pytest.raises(hw.InvalidPipeline, match=r"shop\.toml' is no TOML: it is not in UTF-8"):
        read(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(hw.InvalidPipeline, match="cannot be read: No such file"):
        read(tmp_path / "nothing.toml")
