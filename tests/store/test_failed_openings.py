"""Openings that fail: whichever call of the disk does not work, the directory is what it was, and opens later."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
import shop
from broken_disks import Fuse, breaking_calls
from kept_tables import bury
from pretended_objects import BreakingObjects, Objects, disk_of

import headwater as hw
from headwater.errors import HeadwaterError, StorageFailed
from headwater.store import lease, log, manifest, opening
from headwater.store.checking import check
from headwater.store.disk import LocalDisk
from headwater.store.opening import decoded_without_spark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.store.disk import Disk

ERRORS = (errno.ENOSPC, errno.EIO)
EVERY = pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])


def failure(number: int) -> Callable[[], OSError]:
    return lambda: OSError(number, os.strerror(number))


def everything(session: hw.Session) -> dict[str, Any]:
    relations = {**session.tables(), **session.views()}
    return {"epoch": session.epoch, **{name: sorted(relation.rows()) for name, relation in relations.items()}}


@pytest.fixture(scope="module")
def crashed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A directory whose writer was killed when a definition and some commits were not folded yet; what is in it."""
    place = tmp_path_factory.mktemp("crashed")
    with hw.connect(shutil.copytree(template, place / "shop")) as session:
        assert session._store is not None
        session.insert("brands", [("acme", "folded")])
        session._store.fold()
        with session._store.defining():
            session.insert("brands", [("acme", "before")])
            session.drop_view("strong")
            session.insert("brands", [("acme", "after")])
            session.delete("brands", [("acme", "before")])
            directory = shutil.copytree(place / "shop", place / "crashed")
            expected = everything(session)
    bury(LocalDisk(directory))
    return directory, expected


def names(disk: Disk) -> set[str]:
    folders = (*manifest.FOLDERS, log.FOLDER)
    return {name for folder in folders for name in disk.files(folder) if not name.endswith(".part")}


def require_all(place: Path | str, disk: Disk, expected: dict[str, Any]) -> None:
    """It opens with all that was there, to read and to write, and is sound."""
    bury(disk)
    with hw.connect(place, mode="r") as reader:
        assert everything(reader) == expected
    with hw.connect(place) as session:
        assert everything(session) == expected
        session.insert("brands", [("bolt", "next")])
        later = everything(session)
    report = check(disk, decoded_without_spark)
    assert report.is_sound, report
    with hw.connect(place) as session:
        assert everything(session) == later


@pytest.mark.parametrize("step", [9, EVERY])
@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_a_call_that_fails(crashed: tuple[Path, Any], tmp_path: Path, error: int, *, once: bool, step: int) -> None:
    source, expected = crashed
    calls, refusals = Fuse(1 << 40), []
    with breaking_calls(shutil.copytree(source, tmp_path / "counted"), calls):
        session = hw.connect(tmp_path / "counted")
    session.close()
    for number in range(error % step, calls.passed, step):
        directory = shutil.copytree(source, tmp_path / str(number))
        disk = LocalDisk(directory)
        before = {name: disk.read(name) for name in names(disk)}
        try:
            with breaking_calls(directory, Fuse(number, failure(error), once=once)):
                session = hw.connect(directory)
        except HeadwaterError as refused:
            refusals.append(str(refused))
            assert {name: disk.read(name) for name in before} == before
        else:
            session.close()
        require_all(directory, disk, expected)
        shutil.rmtree(directory)
    assert len(refusals) > calls.passed / step / 2
    assert all(os.strerror(error) in said for said in refusals), refusals


@pytest.mark.parametrize("step", [5, EVERY])
@pytest.mark.parametrize("once", [True, False])
def test_a_request_that_fails(crashed: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch, *, once: bool, step: int) -> None:
    source, expected = crashed
    fuse = Fuse(1 << 40)
    objects = BreakingObjects(fuse)
    monkeypatch.setattr(opening, "disk_at", lambda _: disk_of(objects))

    def refill() -> None:
        objects.content = {}
        for path in source.rglob("*"):
            if path.is_file():
                Objects.put(objects, f"bucket/shop/{path.relative_to(source)}", path.read_bytes())

    refill()
    hw.connect("objects").close()
    total, failed = fuse.passed, 0
    for number in range(0, total, step):
        refill()
        before = names(disk_of(objects))
        objects.fuse = Fuse(number, failure(errno.EIO), once=once)
        try:
            session = hw.connect("objects")
        except HeadwaterError:
            failed += 1
            objects.fuse = Fuse()
            assert names(disk_of(objects)) >= before
        else:
            objects.fuse = Fuse()
            session.close()
        require_all("objects", disk_of(objects), expected)
    assert failed > total / step / 3


@pytest.mark.parametrize("once", [True, False])
def test_a_new_directory_that_cannot_be_made_is_made_later(tmp_path: Path, *, once: bool) -> None:
    calls = Fuse(1 << 40)
    with breaking_calls(tmp_path, calls):
        session = hw.connect(tmp_path / "counted")
    session.close()
    for number in range(calls.passed):
        directory = tmp_path / str(number)
        with suppress(StorageFailed), breaking_calls(tmp_path, Fuse(number, failure(errno.ENOSPC), once=once)):
            hw.connect(directory).close()
        bury(LocalDisk(directory))
        with hw.connect(directory) as session:
            assert session.epoch == 0


def test_who_could_not_open_lets_the_next_one_in_at_once(crashed: tuple[Path, Any], tmp_path: Path) -> None:
    """Even where the disk is so full that it cannot write that it gives the lease back."""
    directory = shutil.copytree(crashed[0], tmp_path / "full")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifest, "write", Mock(side_effect=failure(errno.ENOSPC)()))
        patched.setattr(lease, "_put", _full_after(lease._put, 1))
        with pytest.raises(StorageFailed, match=os.strerror(errno.ENOSPC)):
            hw.connect(directory)
    with hw.connect(directory) as session:
        assert everything(session) == crashed[1]


def _full_after(real: Callable[..., None], times: int) -> Callable[..., None]:
    done = iter(range(times))

    def put(*given: Any) -> None:
        if next(done, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*given)

    return put


def test_the_shop_is_what_the_tests_take_it_for(crashed: tuple[Path, Any]) -> None:
    directory, expected = crashed
    assert set(expected) == {"epoch", *shop.TABLES, *shop.VIEWS} - {"strong"}
    found = log.segments(LocalDisk(directory))
    newest = manifest.newest(LocalDisk(directory))
    assert newest is not None
    assert newest.epoch == found[-1].first - 1 == expected["epoch"] - 2
