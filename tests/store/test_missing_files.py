"""Files that are deleted, one at a time: harmless, or found out; never a wrong answer, a silent loss, or two writers."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from kept_tables import bury

import headwater as hw
from headwater.errors import DamagedFile, DirectoryInUse, HistoryGone, LostState
from headwater.store import lease, log, manifest
from headwater.store.checking import check
from headwater.store.disk import _LOCK, MARK, LocalDisk
from headwater.store.opening import decoded_without_spark

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = (*manifest.FOLDERS, log.FOLDER)
STATES = ("closed", "defined", "crashed")


@dataclass(frozen=True)
class Kept:
    """A directory, its last epoch, the rows of all tables and views then, and of one table at all epochs."""

    path: Path
    epoch: int
    rows: dict[str, list[Any]]
    past: dict[int, list[Any]]


@pytest.fixture(scope="module")
def kept(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    """One that was closed, and two whose writers were killed: after a definition, and after more commits."""
    place = tmp_path_factory.mktemp("kept")
    found: dict[str, Kept] = {}
    past: dict[int, list[Any]] = {}

    def insert(session: hw.Session, *countries: str) -> None:
        for country in countries:
            session.insert("brands", [("acme", country)])
            past[session.epoch] = sorted(session.table("brands").rows())

    def keep(session: hw.Session, state: str) -> None:
        past[session.epoch] = sorted(session.table("brands").rows())
        rows = {name: sorted(each.rows()) for name, each in {**session.tables(), **session.views()}.items()}
        found[state] = Kept(place / state, session.epoch, rows, dict(past))
        if state != "closed":
            shutil.copytree(place / "shop", place / state)

    with hw.connect(shutil.copytree(template, place / "shop")) as session:
        assert session._store is not None
        insert(session, "a", "b")
        # A segment of the log ends with each fold.
        session._store.fold()
        insert(session, "c")
        session._store.fold()
        with session._store.defining():
            insert(session, "d", "e")
            session.drop_view("strong")
            keep(session, "defined")
            insert(session, "f")
            keep(session, "crashed")
        insert(session, "g")
        keep(session, "closed")
    shutil.copytree(place / "shop", place / "closed")
    return found


def files(directory: Path) -> list[str]:
    """The files of a directory: all of which there are few, of others the first, one amid, and the last."""
    disk = LocalDisk(directory)
    found = [MARK, lease.FILE, _LOCK, log.LAST]
    for folder in FOLDERS:
        names = disk.files(folder)
        found += sorted({names[0], names[len(names) // 2], names[-1], *(names if folder == manifest.FOLDER else ())})
    segments = [segment.name for segment in log.segments(disk)]
    return [*found, *(name for name in segments[-3:] if name not in found)]


def read_all(session: hw.Session, kept: Kept) -> bool:
    """Whether all is there and says what it should; some may be known to be lost, but none is wrong."""
    assert session.epoch == kept.epoch
    whole = True
    for name, rows in kept.rows.items():
        relation = session.tables().get(name) or session.views()[name]
        try:
            assert sorted(relation.rows()) == rows, name
        except (DamagedFile, LostState):
            whole = False
    for epoch, rows in kept.past.items():
        with suppress(DamagedFile, LostState, HistoryGone):
            assert sorted(session.table("brands").at(epoch).rows()) == rows
    return whole


def read_by_reader(directory: Path, kept: Kept) -> bool:
    try:
        with hw.connect(directory, mode="r") as reader:
            return read_all(reader, kept)
    except DamagedFile:
        return False


def gone_on_with(directory: Path, kept: Kept) -> bool:
    """The same of a writer, who then changes what can be changed."""
    bury(LocalDisk(directory))
    try:
        session = hw.connect(directory)
    except DamagedFile:
        return False
    with session:
        whole = read_all(session, kept)
        if whole:
            session.insert("brands", [("bolt", "later")])
    if whole:
        with hw.connect(directory) as session:
            assert session.epoch == kept.epoch + 1
            assert sorted(session.table("brands").rows()) == sorted([*kept.rows["brands"], ("bolt", "later")])
    return whole


@pytest.mark.parametrize("state", STATES)
def test_a_file_that_is_deleted(kept: dict[str, Kept], tmp_path: Path, state: str) -> None:
    noticed = set()
    for number, name in enumerate(files(kept[state].path)):
        directory = shutil.copytree(kept[state].path, tmp_path / str(number))
        (directory / name).unlink()
        before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
        read = read_by_reader(directory, kept[state])
        report = check(LocalDisk(directory), decoded_without_spark)
        assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
        written = gone_on_with(directory, kept[state])
        # Who reads and who writes agree, and no one is told that it is sound if it is not.
        assert read == written, name
        assert read or not report.is_sound, name
        if not read:
            noticed.add(name)
        shutil.rmtree(directory)
    disk = LocalDisk(kept[state].path)
    newest = manifest.newest(disk)
    assert newest is not None
    assert {MARK, newest.catalog, log.segments(disk)[-1].name} <= noticed
    assert noticed.isdisjoint({lease.FILE, _LOCK, log.LAST})
    assert (newest.name in noticed) == (state != "closed" or len(disk.files(manifest.FOLDER)) == 1)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_that_is_deleted(kept: dict[str, Kept], tmp_path: Path, state: str, folder: str) -> None:
    directory = shutil.copytree(kept[state].path, tmp_path / "copy")
    shutil.rmtree(directory / folder)
    assert not read_by_reader(directory, kept[state])
    assert not check(LocalDisk(directory), decoded_without_spark).is_sound
    assert not gone_on_with(directory, kept[state])


@pytest.mark.parametrize("kept_folders", [("catalogs",), ("runs",), ("log",), ("catalogs", "runs", "log")])
def test_what_was_ours_is_not_new(kept: dict[str, Kept], tmp_path: Path, kept_folders: tuple[str, ...]) -> None:
    for folder in kept_folders:
        shutil.copytree(kept["closed"].path / folder, tmp_path / folder)
    shutil.copy(kept["closed"].path / MARK, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for mode in ("r", "w"):
        with pytest.raises(DamagedFile, match="there is no manifest"):
            hw.connect(tmp_path, mode=mode)
    assert [path for path in before if not path.exists()] == []


def test_a_directory_without_its_mark_is_not_one_of_others(kept: dict[str, Kept], tmp_path: Path) -> None:
    directory = shutil.copytree(kept["closed"].path, tmp_path / "copy")
    (directory / MARK).unlink()
    for mode in ("r", "w"):
        with pytest.raises(DamagedFile, match=r"the file 'headwater\.json' is damaged: it is missing"):
            hw.connect(directory, mode=mode)


@pytest.mark.parametrize("name", [MARK, lease.FILE, _LOCK, log.LAST])
def test_a_file_that_is_deleted_beside_a_writer(kept: dict[str, Kept], tmp_path: Path, name: str) -> None:
    directory = shutil.copytree(kept["closed"].path, tmp_path / "copy")
    first = hw.connect(directory)
    first.insert("brands", [("bolt", "first")])
    (directory / name).unlink()
    try:
        second = hw.connect(directory)
    except (DirectoryInUse, DamagedFile):
        first.insert("brands", [("bolt", "more")])
        assert name != lease.FILE
    else:
        second.insert("brands", [("bolt", "second")])
        with pytest.raises(DirectoryInUse):
            first.insert("brands", [("bolt", "more")])
        second.close()
        assert name == lease.FILE
    first.close()


def test_directories_of_earlier_releases_have_no_note_of_the_last_segment(kept: dict[str, Kept], tmp_path: Path) -> None:
    directory = shutil.copytree(kept["crashed"].path, tmp_path / "copy")
    (directory / log.LAST).unlink()
    assert gone_on_with(directory, kept["crashed"])
    assert (directory / log.LAST).exists()
