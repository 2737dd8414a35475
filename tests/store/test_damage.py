"""Files that are not what was written: the error says which, and what it concerns; all else goes on, views are built again."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import shop
from kept_tables import bury
from oracle import Oracle

import headwater as hw
from headwater.errors import DamagedFile, LostState, UnknownFormat, UnreadableCatalog
from headwater.store import folding, lease, log, manifest
from headwater.store.checking import check
from headwater.store.disk import LocalDisk
from headwater.store.opening import decoded_without_spark
from headwater.store.records import Decoder
from headwater.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.store.runfiles import Place

READ_BY = {
    "revenue": {"items", "orders"},
    "best": {"items"},
    "unsold": {"items", "orders"},
    "strong": {"items", "orders", "brands"},
}


ROWS: dict[str, tuple[Any, ...]] = {"orders": (900, 5, 3), "items": (901, "acme", 99, 1.5), "brands": ("acme", "z")}


def flipped(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 16
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.fixture
def directory(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs of which some are large, and have files of their own."""
    monkeypatch.setattr(folding, "LARGE", 2_000)
    directory = shutil.copytree(template, tmp_path / "shop")
    with hw.connect(directory) as session:
        session.upsert("items", [(number, shop.BRANDS[number % 4], number % 37, number / 7) for number in range(300)])
    return directory


def places(directory: Path) -> list[Place]:
    found = manifest.newest(LocalDisk(directory))
    assert found is not None
    return sorted(set(found.places()), key=lambda place: (place.file, place.start))


def spoil_each(directory: Path, spark: SparkSession, chosen: slice, spoil: Callable[[Path, Place], None]) -> tuple[int, int]:
    """Damages one run after another; how many views were built again, and how many tables were lost."""
    files = {place.file for place in places(directory)}
    assert len(files) > 1
    assert any(sum(place.file == file for place in places(directory)) > 1 for file in files)
    oracle: Oracle | None = None
    repaired = lost = 0
    for number, place in enumerate(places(directory)[chosen]):
        copy = shutil.copytree(directory, directory.parent / f"copy{number}")
        spoil(copy / place.file, place)
        with hw.connect(copy, spark=spark) as session:
            if oracle is None:
                oracle = Oracle(session, {"revenue": shop.VIEWS["revenue"]})
            shop.ask_about(oracle, session)
            tables, views = survived(session, oracle)
            lost += len(tables)
            repaired += len(views)
        # It is all the same when the directory is opened again.
        with hw.connect(copy, spark=spark) as session:
            for name in shop.VIEWS:
                if not READ_BY[name] & tables:
                    assert session.view(name).rows() is not None
            for name in tables:
                with pytest.raises((LostState, DamagedFile), match=name):
                    session.table(name).rows()
        shutil.rmtree(copy)
    return repaired, lost


def survived(session: hw.Session, oracle: Oracle) -> tuple[set[str], set[str]]:
    """Reads and changes everything that is left, and repairs the rest; gives tables that are lost, and views that were."""
    for relation in (*session.tables().values(), *session.views().values()):
        with suppress(DamagedFile, LostState):
            relation.rows()
    for name, row in ROWS.items():
        with suppress(DamagedFile, LostState):
            session.insert(name, [row])
    tables = {entry.name for entry in session.snapshot.lost} & {*shop.TABLES}
    views = {entry.name for entry in session.snapshot.lost} & {*shop.VIEWS}
    for name in tables:
        with pytest.raises(LostState, match=f"the rows of table '{name}' were in a file that is damaged"):
            session.table(name).rows()
        with pytest.raises(LostState, match="a file that is damaged"):
            session.insert(name, [ROWS[name]])
    for name, view in session.views().items():
        if name in views:
            with pytest.raises(LostState, match=rf"repair\('{name}'\)"):
                view.rows()
            assert name in view.explain()
        elif not tables:
            oracle.check(view, shop.VIEWS[name])
    repair(session, views, tables)
    tables = {entry.name for entry in session.snapshot.lost} & {*shop.TABLES}
    for name in {"brands"} - tables:
        session.insert(name, [("bolt", "w")])
    for name, view in session.views().items():
        if not tables:
            session.repair(name)
            oracle.check(view, shop.VIEWS[name])
    return tables, views


def repair(session: hw.Session, views: set[str], tables: set[str]) -> None:
    for name in sorted(views, key=[*shop.VIEWS].index):
        if READ_BY[name] & tables:
            # A copy may be left that a join has kept; else the rows are gone.
            with suppress(LostState):
                session.repair(name)
        else:
            session.repair(name)


def flip(path: Path, place: Place) -> None:
    flipped(path, place.start + place.bytes // 2)


def shorten(path: Path, place: Place) -> None:
    cut(path, place.start + place.bytes // 2)


def remove(path: Path, place: Place) -> None:  # noqa: ARG001
    path.unlink()


@pytest.mark.parametrize("spoil", [flip, shorten, remove])
def test_a_damaged_run(directory: Path, spark: SparkSession, spoil: Callable[[Path, Place], None]) -> None:
    spoil_each(directory, spark, slice(1, None, 9), spoil)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [flip, shorten, remove])
def test_every_run_damaged(directory: Path, spark: SparkSession, spoil: Callable[[Path, Place], None]) -> None:
    repaired, lost = spoil_each(directory, spark, slice(None), spoil)
    assert repaired > 0
    assert lost > 0


def test_the_error_names_what_is_affected(directory: Path) -> None:
    for number, place in enumerate(places(directory)):
        copy = shutil.copytree(directory, directory.parent / f"copy{number}")
        flip(copy / place.file, place)
        with hw.connect(copy) as session:
            try:
                session.view("best").rows()
            except DamagedFile as error:
                said = str(error)
                break
    assert f"the file '{place.file}' is damaged" in said
    assert "The views 'best' are affected: s.repair(view) builds one again. All others go on" in said


@pytest.mark.parametrize("kind", ["manifests", "catalogs"])
@pytest.mark.parametrize("spoil", [lambda path: flipped(path, 200), lambda path: cut(path, 200), lambda path: cut(path, 0)])
def test_a_damaged_manifest_or_catalog(directory: Path, kind: str, spoil: Callable[[Path], None]) -> None:
    (file,) = (directory / kind).iterdir()
    spoil(file)
    for mode in ("w", "r"):
        with pytest.raises(DamagedFile, match=f"the file '{kind}/{file.name}' is damaged"):
            hw.connect(directory, mode=mode)


def test_a_damaged_mark(directory: Path) -> None:
    file = directory / "headwater.json"
    whole = file.read_bytes()
    for text in (b"", b"{", whole[:-3], b"[]", b'{"format": "x"}', b'{"gormat": 1}', b"\xff"):
        file.write_bytes(text)
        with pytest.raises(DamagedFile, match=r"the file 'headwater\.json' is damaged"):
            hw.connect(directory)
    file.write_bytes(b'{"format": 9}')
    with pytest.raises(UnknownFormat, match="has the format 9"):
        hw.connect(directory)
    file.write_bytes(whole)
    hw.connect(directory).close()


def test_a_damaged_lease(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = directory / "lease.json"
    for spoil in (lambda: cut(file, 10), lambda: flipped(file, 60), lambda: cut(file, 0)):
        with hw.connect(directory) as session:
            epoch = session.insert("brands", [("bolt", "w")])
        spoil()
        with pytest.raises(DamagedFile, match=r"the file 'lease\.json' is damaged: .* nobody knows who writes here"):
            hw.connect(directory)
        with hw.connect(directory, mode="r") as reader:
            assert reader.epoch == epoch
        with monkeypatch.context() as patch:
            patch.setattr(lease, "time", lambda: file.stat().st_mtime + lease.TIMEOUT)
            session = hw.connect(directory)
        assert session.epoch == epoch
        session.insert("brands", [("bolt", "v")])
        session.close()
    file.unlink()
    with hw.connect(directory) as session:
        assert session.epoch == epoch + 1
        session.insert("brands", [("core", "v")])
    with hw.connect(directory) as session:
        assert session.epoch == epoch + 2


def logged(directory: Path, commits: int) -> tuple[Path, list[dict[str, Any]]]:
    """A writer that ended without folding: its log, and the tables after each epoch."""
    session = hw.connect(directory)
    tables = [shop.content(session)]
    for number in range(commits):
        session.insert("brands", [("acme", f"c{number}")])
        tables.append(shop.content(session))
    assert session._store is not None
    session._store._lease.release()
    return directory / max(log.segments(LocalDisk(directory))).name, tables


@pytest.mark.parametrize("part", [0.1, 0.5, 0.7])
def test_a_log_that_is_damaged_amid(directory: Path, part: float) -> None:
    file, _ = logged(directory, 5)
    flipped(file, int(file.stat().st_size * part))
    for mode in ("w", "r"):
        with pytest.raises(DamagedFile, match=rf"the file 'log/{file.name}' is damaged: the epochs from \d+ cannot be read"):
            hw.connect(directory, mode=mode)


def records(file: Path) -> list[bytes]:
    data, found, start = file.read_bytes(), [], 0
    for _, stop in Decoder().decode(data):
        found.append(data[start:stop])
        start = stop
    assert start == len(data)
    return found


@pytest.mark.parametrize("order", [(0, 2, 3), (0, 1, 1, 2), (0, 1, 2, 2), (1, 2, 3), (0, 2, 1, 3)])
def test_epochs_of_the_log_that_do_not_follow_each_other(directory: Path, order: tuple[int, ...]) -> None:
    file, _ = logged(directory, 4)
    whole = records(file)
    file.write_bytes(b"".join(whole[number] for number in order))
    for mode in ("w", "r"):
        said = rf"the file 'log/{file.name}' is damaged: (it has epoch \d+ where epoch \d+ should|the epochs from \d+ cannot)"
        with pytest.raises(DamagedFile, match=said):
            hw.connect(directory, mode=mode)
    assert not check(LocalDisk(directory), decoded_without_spark).is_sound


def test_a_reader_that_follows_says_that_the_log_is_damaged(directory: Path) -> None:
    with hw.connect(directory) as session, hw.connect(directory, mode="r") as reader:
        assert session._store is not None
        with session._store.defining():
            session.insert("brands", [("acme", "seen")])
            reader.refresh()
            epoch, rows = reader.epoch, shop.content(reader)
            session.insert("brands", [("acme", "cut off")])
            session._store._begin_segment(session.epoch + 1)
            session.insert("brands", [("acme", "not to be reached")])
            *_, cut_off, last = log.segments(LocalDisk(directory))
            data = (directory / cut_off.name).read_bytes()
            cut(directory / cut_off.name, len(data) - 8)
            with pytest.raises(DamagedFile, match=rf"the file '{cut_off.name}' is damaged: the epochs from {epoch + 1} to"):
                reader.refresh()
            assert (reader.epoch, shop.content(reader)) == (epoch, rows)
            (directory / cut_off.name).write_bytes(data)
            whole = (directory / last.name).read_bytes()
            (directory / last.name).unlink()
            with pytest.raises(DamagedFile, match=rf"the file '{last.name}' is damaged: it is missing"):
                reader.refresh()
            (directory / last.name).write_bytes(whole)
            assert reader.refresh() == session.epoch
            assert shop.content(reader) == shop.content(session)


@pytest.mark.parametrize("spoil", [flip, remove])
def test_a_damaged_run_does_not_keep_from_opening_the_rest(directory: Path, spoil: Callable[[Path, Place], None]) -> None:
    """Even where the log goes on to change what was in it."""
    with hw.connect(directory) as session:
        assert session._store is not None
        with session._store.defining():
            for name in shop.TABLES:
                session.delete(name, session.table(name).rows()[:3])
            best = session.view("best").rows()
            session.delete("items", [row for row in session.table("items").rows() if (row[0], row[2]) in best])
            expected = {name: sorted(each.rows()) for name, each in {**session.tables(), **session.views()}.items()}
            crashed = shutil.copytree(directory, directory.parent / "crashed")
    bury(LocalDisk(crashed))
    for number, place in enumerate(places(crashed)):
        copy = shutil.copytree(crashed, directory.parent / f"copy{number}")
        spoil(copy / place.file, place)
        lost = {}
        for mode in ("r", "w"):
            with hw.connect(copy, mode=mode) as session:
                lost[mode] = without(session, expected)
        assert lost["r"] <= lost["w"] < set(expected), place
        shutil.rmtree(copy)


def without(session: hw.Session, expected: dict[str, Any]) -> set[str]:
    """The tables and views that cannot be read; all others are what they should be."""
    lost = set()
    for name, relation in {**session.tables(), **session.views()}.items():
        try:
            assert sorted(relation.rows()) == expected[name], name
        except (DamagedFile, LostState):
            lost.add(name)
    return lost


def test_a_log_that_ends_amid_a_record(directory: Path) -> None:
    file, tables = logged(directory, 4)
    size = file.stat().st_size
    with hw.connect(directory, mode="r") as reader:
        whole = reader.epoch
    for missing in range(1, size, size // 17):
        copy = shutil.copytree(directory, directory.parent / f"missing{missing}")
        cut(copy / "log" / file.name, size - missing)
        with hw.connect(copy, mode="r") as reader, hw.connect(copy) as session:
            assert reader.epoch == session.epoch < whole
            assert shop.content(session) == tables[session.epoch - whole - 1]
            assert shop.content(session) == shop.content(reader)
            session.insert("brands", [("acme", "new")])
            reader.refresh()
            assert shop.content(session) == shop.content(reader)


def test_a_log_that_is_gone_before_its_end(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What was read again is folded soon: here it is not.
    monkeypatch.setattr(Store, "fold", lambda _: None)
    logged(directory, 3)
    file, _ = logged(directory, 3)
    before = log.segments(LocalDisk(directory))[-2]
    cut(directory / before.name, 0)
    with pytest.raises(DamagedFile, match="cannot be read"):
        hw.connect(directory)
    assert file.exists()


def test_a_catalog_of_another_version(directory: Path) -> None:
    disk = LocalDisk(directory)
    found = manifest.newest(disk)
    assert found is not None
    assert found.catalog is not None
    manifest.put(disk, found.catalog, {**manifest.get(disk, found.catalog), "format": 99})
    with pytest.raises(UnreadableCatalog, match="99"):
        hw.connect(directory)
