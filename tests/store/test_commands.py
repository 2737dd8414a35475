"""The commands on directories, as a person calls them, on a directory that a real session has made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import headwater as hw
from headwater.cli import app
from headwater.store import manifest
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result
    from pyspark.sql import SparkSession

QUERY = """
    SELECT brand, SUM(price) AS revenue, COUNT(*) AS sold, MAX(price) AS dearest, MIN(price) AS cheapest
    FROM sales GROUP BY brand HAVING SUM(price) > 10
"""


@pytest.fixture(scope="session")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "shop"
    with hw.connect(path, spark=spark) as session:
        session.create_table("sales", "id BIGINT, brand STRING, price INT", key="id")
        session.create_table("Brands", "brand STRING, country STRING")
        session.create_view("top", QUERY)
        session.create_view("cheap", "SELECT id FROM sales WHERE price < 5")
        session.create_view("abroad", "SELECT t.brand, b.country FROM top t JOIN brands b ON t.brand = b.brand")
        session.insert("sales", [(number, f"brand {number % 7}", number % 20) for number in range(1_000)])
        session.insert("brands", [(f"brand {number}", "FR") for number in range(4)])
    return path


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "shop")
    return tmp_path / "shop"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "160"})


def test_a_sound_directory(shop: Path) -> None:
    outcome = run("check", shop)
    assert outcome.exit_code == 0, outcome.output
    assert "nobody writes to it" in outcome.output
    assert "at epoch 7: " in outcome.output
    assert outcome.output.strip().endswith("sound")


def test_damage_is_named_with_those_who_suffer(shop: Path) -> None:
    disk = LocalDisk(shop)
    found = manifest.newest(disk)
    assert found is not None
    place = max(found.places(), key=lambda each: each.bytes)
    data = bytearray(disk.read(place.file))
    data[place.start + place.bytes // 2] ^= 1
    disk.path(place.file).write_bytes(data)
    outcome = run("check", shop)
    assert outcome.exit_code == 1
    (line,) = [each for each in outcome.output.splitlines() if each.startswith("damaged")]
    said, _, affected = line.partition("; affects ")
    stop = place.start + place.bytes
    assert said == f"damaged  {place.file}: the bytes from {place.start:,} to {stop:,} are not those that were written"
    assert "table sales" in affected.split(", ")
    assert "1 damaged" in outcome.output


def test_inspection(shop: Path) -> None:
    outcome = run("inspect", shop)
    assert outcome.exit_code == 0, outcome.output
    lines = [line.split() for line in outcome.output.splitlines()]
    (sales,) = [line for line in lines if line[:2] == ["table", "sales"]]
    assert sales[2] == "1,000"
    (top,) = [line for line in outcome.output.splitlines() if line.split()[:2] == ["view", "top"]]
    assert "stateful" in top
    assert "SELECT brand, SUM(price) AS revenue, COUNT(*) AS sold, MAX(…" in top
    assert "epoch 7, committed 20" in outcome.output
    assert "nobody writes to it" in outcome.output
    assert "changes are kept from epoch 1 on" in outcome.output


def test_inspection_for_programs(shop: Path) -> None:
    outcome = run("inspect", shop, "--json")
    assert outcome.exit_code == 0, outcome.output
    found = json.loads(outcome.output)
    assert found["epoch"] == 7
    assert found["format"] == 1
    assert found["writer"] is None
    assert found["log"]["first_epoch"] == 1
    assert found["bytes"] == sum(path.stat().st_size for path in shop.rglob("*") if path.is_file())
    relations = {each["name"]: each for each in found["relations"]}
    assert {name: (each["kind"], each["rows"], each["maintenance"]) for name, each in relations.items()} == {
        "sales": ("table", 1_000, None),
        "Brands": ("table", 4, None),
        "top": ("view", 7, "stateful"),
        "cheap": ("view", 250, "linear"),
        "abroad": ("view", 4, "stateful"),
    }
    assert relations["top"]["query"] == QUERY.strip()
    assert all(each["state_bytes"] > 0 for each in relations.values())


def test_inspection_of_a_directory_in_use(shop: Path, spark: SparkSession) -> None:
    with hw.connect(shop, spark=spark) as session:
        session.insert("sales", [(2_000, "brand 1", 1), (2_001, "brand new", 100)])
        found = json.loads(run("inspect", shop, "--json").output)
        outcome = run("check", shop)
    assert found["epoch"] == 8
    assert found["writer"].startswith(f"process {os.getpid()} of ")
    rows = {each["name"]: each["rows"] for each in found["relations"]}
    assert rows == {"sales": 1_002, "Brands": 4, "top": 8, "cheap": 251, "abroad": 4}
    assert outcome.exit_code == 0, outcome.output
    assert f"held by process {os.getpid()} of " in outcome.output


def test_lost_rows_are_not_counted(shop: Path) -> None:
    disk = LocalDisk(shop)
    for name in disk.files("runs"):
        disk.remove(name)
    outcome = run("inspect", shop)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.count("damaged") == 5


def test_a_backup_and_back(shop: Path, tmp_path: Path, spark: SparkSession) -> None:
    outcome = run("backup", shop, tmp_path / "copy")
    assert outcome.exit_code == 0, outcome.output
    assert "copied" in outcome.output
    outcome = run("backup", shop, tmp_path / "copy")
    assert "0 files, 0 bytes copied" in outcome.output
    outcome = run("restore", tmp_path / "copy", tmp_path / "again")
    assert outcome.exit_code == 0, outcome.output
    with hw.connect(tmp_path / "again", spark=spark) as session:
        assert session.epoch == 7
        assert len(session.view("cheap").rows()) == 250
        session.insert("sales", [(2_000, "brand 1", 1)])
        assert len(session.view("cheap").rows()) == 251
    outcome = run("restore", tmp_path / "copy", tmp_path / "again")
    assert outcome.exit_code == 1
    assert "headwater: [INVALID_TARGET]" in outcome.output


@pytest.mark.parametrize("command", ["check", "inspect", "backup", "restore"])
def test_no_directory(command: str, tmp_path: Path) -> None:
    outcome = run(command, tmp_path, *([tmp_path.parent / "x"] if command in ("backup", "restore") else []))
    assert outcome.exit_code == 1
    assert "headwater: [UNKNOWN_FORMAT] there is no Headwater directory at" in outcome.output


def test_spark_does_not_start(shop: Path) -> None:
    for command in ("check", "inspect"):
        program = f"""
            import sys
            from typer.testing import CliRunner
            from headwater.cli import app
            import pyspark.sql
            pyspark.sql.SparkSession.Builder.getOrCreate = None
            outcome = CliRunner().invoke(app, [{command!r}, {str(shop)!r}])
            sys.exit(outcome.exit_code)
        """
        lines = "\n".join(line.strip() for line in program.splitlines())
        assert subprocess.run([sys.executable, "-c", lines], check=False).returncode == 0
