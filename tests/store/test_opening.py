"""Opening directories: of this release and of others, with the choices there are."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from kept_tables import bury

import headwater as hw
from headwater.store import opening
from headwater.store.disk import LocalDisk
from headwater.store.opening import budget, retention
from headwater.store.store import Retention

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_release_that_does_not_know_the_steps_builds_the_views_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hw.connect(tmp_path, spark=spark) as s:
        s.create_table("t", "k STRING, x INT", key="k")
        s.create_view("v", "SELECT x, count(*) AS n FROM t GROUP BY x", refresh="incremental")
        s.create_view("w", "SELECT max(n) AS most FROM v")
        s.insert("t", [("a", 1), ("b", 1), ("c", 2)])
        epoch = s.epoch
    monkeypatch.setattr(opening, "decode_catalog", Mock(side_effect=hw.UnreadableCatalog("another release")))
    with hw.connect(tmp_path, spark=spark) as s:
        monkeypatch.undo()
        assert sorted(s.view("v").rows()) == [(1, 2), (2, 1)]
        assert (s.view("w").rows(), s.view("v").refresh, s.epoch) == ([(2,)], "incremental", epoch + 2)
        s.insert("t", [("d", 1)])
        assert s.view("w").rows() == [(3,)]
    with hw.connect(tmp_path, spark=spark) as s:
        assert (s.view("w").rows(), s.epoch) == ([(3,)], epoch + 3)


def test_views_that_could_not_be_built_again_are_built_by_the_next_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has what the last manifest lacks, and no fold may mix the tables of one release with the steps of another."""
    s = hw.connect(tmp_path / "d", spark=spark)
    s.create_table("t", "k STRING, x INT", key="k")
    s.create_table("u", "x INT, name STRING")
    s.create_view("v", "SELECT x, count(*) AS n FROM t GROUP BY x")
    s.create_view("w", "SELECT u.name, v.n FROM v JOIN u ON v.x = u.x")
    assert s._store is not None
    with s._store.defining():
        s.insert("t", [("a", 1), ("b", 1), ("c", 2)])
        s.insert("u", [(1, "one"), (2, "two")])
        directory = shutil.copytree(tmp_path / "d", tmp_path / "crashed")
    s.close()
    bury(LocalDisk(directory))
    create = hw.Session.create_view

    def fail(session: hw.Session, name: str, *given: Any, **named: Any) -> Any:
        if name == "w":
            raise hw.StorageFailed("full")
        return create(session, name, *given, **named)

    monkeypatch.setattr(opening, "decode_catalog", Mock(side_effect=hw.UnreadableCatalog("another release")))
    monkeypatch.setattr(hw.Session, "create_view", fail)
    with pytest.raises(hw.StorageFailed, match="full"):
        hw.connect(directory, spark=spark)
    monkeypatch.undo()
    for _ in range(2):
        with hw.connect(directory, spark=spark) as s:
            assert sorted(s.table("t").rows()) == [("a", 1), ("b", 1), ("c", 2)]
            assert sorted(s.table("u").rows()) == [(1, "one"), (2, "two")]
            assert sorted(s.view("v").rows()) == [(1, 2), (2, 1)]
            assert sorted(s.view("w").rows()) == [("one", 2), ("two", 1)]


def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    hw.connect(tmp_path).close()
    (tmp_path / "headwater.json").write_text(json.dumps({"format": 99}))
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for mode in "wr":
        with pytest.raises(hw.UnknownFormat, match="format 99"):
            hw.connect(tmp_path, mode=mode)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(hw.UnknownFormat, match="not empty"):
        hw.connect(tmp_path)
    with pytest.raises(hw.UnknownFormat, match="no Headwater directory"):
        hw.connect(tmp_path, mode="r")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(hw.StorageFailed, match=re.escape("mine.txt")):
        hw.connect(tmp_path / "mine.txt")


def test_options(tmp_path: Path) -> None:
    assert retention(7) == Retention(7, None)
    assert retention("2 hours") == Retention(None, 7200)
    assert (budget("2 GB"), budget("1.5k"), budget(10), budget(None)) == (2 << 30, 1536, 10, None)
    for options in (
        {"retain": "soon"},
        {"retain": -1},
        {"memory": "much"},
        {"memory": 0},
        {"durability": "paper"},
        {"mode": "x"},
    ):
        with pytest.raises(hw.InvalidOption):
            hw.connect(tmp_path / "d", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "d").exists()
