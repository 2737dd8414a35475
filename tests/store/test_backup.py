"""Backups: what was restored is what there was, the former copy survives, and nothing is mixed up."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from broken_disks import BreakingDisk, Fuse, Killed
from kept_tables import Directory, Work, bury, made
from kept_tables import check as consistent
from pretended_objects import Objects, disk_of

from headwater.errors import DamagedFile, InvalidTarget, UnknownFormat
from headwater.store import backup as backups
from headwater.store import lease, log, manifest
from headwater.store.backup import backup, restore
from headwater.store.checking import check
from headwater.store.disk import MARK, LocalDisk
from headwater.store.store import Retention

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    directory = Directory(LocalDisk(tmp_path / "shop"))
    Work(3).run(directory)
    directory.close()
    return tmp_path / "shop"


def content(path: Path) -> tuple[int, dict[str, Any]]:
    bury(LocalDisk(path))
    directory = Directory(LocalDisk(path))
    found = directory.now.epoch, directory.content()
    consistent(directory)
    directory.close()
    return found


def restored(copy: Path, path: Path) -> tuple[int, dict[str, Any]]:
    assert check(LocalDisk(copy), made).is_sound
    restore(copy, path)
    return content(path)


def edited(path: Path, steps: int = 4) -> tuple[int, dict[str, Any]]:
    directory = Directory(LocalDisk(path))
    Work(steps).run(directory, steps)
    found = directory.now.epoch, directory.content()
    directory.store._lease.release()
    return found


def test_what_was_backed_up_is_restored(shop: Path, tmp_path: Path) -> None:
    expected = edited(shop)
    seen: list[tuple[int, int]] = []
    copied = backup(shop, tmp_path / "copy", lambda done, total: seen.append((done, total)))
    assert copied.files
    assert seen[-1][0] == copied.bytes
    assert not (tmp_path / "copy" / lease.FILE).exists()
    assert restored(tmp_path / "copy", tmp_path / "again") == expected
    assert content(shop) == expected


def test_the_next_time_only_what_is_new_is_copied(shop: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    backup(shop, copy)
    assert backup(shop, copy).files == 0
    directory = Directory(LocalDisk(shop))
    directory.edit({"r": [(1, 1)]})
    # The log, and the manifest of the new writer.
    assert backup(shop, copy).files == 2
    directory.edit({"r": [(1, 2)]})
    grown = backup(shop, copy)
    assert grown.files == 1
    assert grown.present
    directory.store.fold()
    directory.edit({"s": [(1, 2)]})
    expected = directory.now.epoch, directory.content()
    backup(shop, copy)
    assert files(copy) == files(shop) - {lease.FILE, "lease.lock"}
    assert restored(copy, tmp_path / "again") == expected
    directory.close()


def files(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()}


def test_history_comes_along(shop: Path, tmp_path: Path) -> None:
    backup(shop, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "again")
    one, other = ([changed.epoch for changed in log.changes(LocalDisk(path), "r", 1, 0)] for path in (shop, tmp_path / "again"))
    assert one == other
    assert len(one) > 3


def test_what_is_restored_goes_its_own_way(shop: Path, tmp_path: Path) -> None:
    backup(shop, tmp_path / "copy")
    restored(tmp_path / "copy", tmp_path / "again")
    expected = edited(tmp_path / "again")
    assert content(tmp_path / "again") == expected
    with pytest.raises(InvalidTarget, match="is the backup of another directory"):
        backup(tmp_path / "again", tmp_path / "copy")
    assert check(LocalDisk(tmp_path / "again"), made).is_sound


def test_a_copy_while_the_writer_works(tmp_path: Path) -> None:
    directory = Directory(LocalDisk(tmp_path / "shop"))
    directory.define("joined")
    over, acknowledged = Event(), {}

    def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            directory.edit({"r": [(number % 5, number)], "s": [(number % 7, number)]})
            acknowledged[directory.now.epoch] = directory.content()
            if number % 20 == 0:
                directory.store.fold()

    thread = Thread(target=write)
    thread.start()
    try:
        for number in range(8):
            before = max(acknowledged, default=0)
            backup(tmp_path / "shop", tmp_path / "copy")
            epoch, found = restored(tmp_path / "copy", tmp_path / f"again{number}")
            assert epoch >= before
            assert epoch not in acknowledged or found == acknowledged[epoch]
    finally:
        over.set()
        thread.join()
        directory.close()


@pytest.mark.parametrize(
    ("after", "retained"), [*((after, 1_000) for after in range(19)), *((after, 0) for after in range(0, 16, 2))]
)
def test_an_interrupted_backup_leaves_the_former_one(
    shop: Path, tmp_path: Path, after: int, retained: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    last = first = edited(shop)
    backup(shop, copy)
    for seed in (4, 5):
        directory = Directory(LocalDisk(shop), retention=Retention(epochs=retained))
        Work(seed).run(directory, 2)
        directory.store.fold()
        Work(seed).edit(directory)
        last = directory.now.epoch, directory.content()
        directory.store._lease.release()
    fuse = Fuse(after)
    monkeypatch.setattr(backups, "disk_at", breaking(copy, fuse))
    with pytest.raises(Killed):
        backup(shop, copy)
    monkeypatch.undo()
    epoch, found = restored(copy, tmp_path / "again")
    assert first[0] <= epoch <= last[0]
    assert epoch not in (first[0], last[0]) or found in (first[1], last[1])
    backup(shop, copy)
    assert restored(copy, tmp_path / "once more") == last


def breaking(copy: Path, fuse: Fuse) -> Callable[[Path], LocalDisk]:
    return lambda path: BreakingDisk(path, fuse) if path == copy else LocalDisk(path)


def test_a_file_that_vanishes_is_taken_from_the_next_manifest(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Directory(LocalDisk(shop))

    class Folding(LocalDisk):
        """Folds, and so removes files, when the copy has just begun."""

        def map(self, name: str) -> Any:
            if not folded:
                folded.append(name)
                for seed in range(4):
                    Work(seed).run(directory, 3)
                    directory.store.fold()
            return super().map(name)

    folded: list[str] = []
    monkeypatch.setattr(backups, "disk_at", lambda path: Folding(path) if path == shop else LocalDisk(path))
    copied = backup(shop, tmp_path / "copy")
    assert folded
    assert not (shop / folded[0]).exists()
    assert copied.epoch == manifest.newest(LocalDisk(shop)).epoch  # type: ignore[union-attr]
    monkeypatch.undo()
    assert restored(tmp_path / "copy", tmp_path / "again") == (directory.now.epoch, directory.content())
    directory.close()


def test_damage_does_not_replace_a_good_copy(shop: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    expected = content(shop)
    backup(shop, copy)
    directory = Directory(LocalDisk(shop))
    directory.edit({"r": [(1, 1)], "s": [(1, 1)]})
    directory.close()
    disk = LocalDisk(shop)
    new = max(set(disk.files("runs")) - set(LocalDisk(copy).files("runs")))
    data = bytearray(disk.read(new))
    data[-9] ^= 1
    disk.path(new).write_bytes(data)
    with pytest.raises(DamagedFile, match="are not those that were written"):
        backup(shop, copy)
    disk.remove(new)
    with pytest.raises(DamagedFile, match="it is missing"):
        backup(shop, copy)
    assert restored(copy, tmp_path / "again") == expected


def test_refusals(shop: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with pytest.raises(UnknownFormat, match="there is no Headwater directory"):
        backup(tmp_path / "nothing", copy)
    for one, other in ((shop, shop / "copy"), (shop, tmp_path), (shop, shop), (shop, tmp_path / "x" / ".." / "shop" / "y")):
        with pytest.raises(InvalidTarget, match="are not apart"):
            backup(one, other)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("not a backup")
    with pytest.raises(InvalidTarget, match="is not empty and no backup"):
        backup(shop, tmp_path / "mine")
    backup(shop, copy)
    with pytest.raises(InvalidTarget, match="is not empty; remove it"):
        restore(copy, shop)
    with pytest.raises(InvalidTarget, match="are not apart"):
        restore(copy, copy / "shop")
    Directory(LocalDisk(copy)).close()
    with pytest.raises(InvalidTarget, match="was written to by process"):
        backup(shop, copy)


def test_a_directory_with_nothing_in_it(tmp_path: Path) -> None:
    Directory(LocalDisk(tmp_path / "shop")).close()
    assert backup(tmp_path / "shop", tmp_path / "copy").epoch == 0
    with pytest.raises(UnknownFormat, match="is empty, or was not finished"):
        restore(tmp_path / "copy", tmp_path / "again")


def test_to_objects_and_back(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = Objects()
    monkeypatch.setattr(backups, "disk_at", lambda path: disk_of(objects) if path == "objects" else LocalDisk(path))
    for _ in range(2):
        expected = edited(shop)
        backup(shop, "objects")
    assert backup(shop, "objects").files == 0
    assert check(disk_of(objects), made).is_sound
    restore("objects", tmp_path / "again")
    assert content(tmp_path / "again") == expected
    directory = Directory(disk_of(objects))
    assert (directory.now.epoch, directory.content()) == expected
    directory.edit({"r": [(1, 1)]})
    expected = directory.now.epoch, directory.content()
    directory.store._lease.release()
    backup("objects", tmp_path / "copy")
    assert restored(tmp_path / "copy", tmp_path / "from objects") == expected
    with pytest.raises(InvalidTarget, match="is not empty"):
        restore(tmp_path / "copy", "objects")


def test_a_file_that_only_has_its_size_is_copied_again(shop: Path, tmp_path: Path) -> None:
    """The power went when the name and the size were on disk, and the bytes were not."""
    copy = tmp_path / "copy"
    copied = LocalDisk(copy)
    manifest.mark(copied, manifest.identity(LocalDisk(shop)))
    for file in (shop / manifest.RUNS).iterdir():
        zeros = bytes(file.stat().st_size)
        copied.write(f"{manifest.RUNS}/{file.name}", lambda sink, zeros=zeros: sink.write(zeros))  # type: ignore[misc]
    backup(shop, copy)
    assert restored(copy, tmp_path / "again") == content(shop)


def test_who_was_killed_while_marking_a_copy_is_not_in_the_way(shop: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / f"{MARK}.part").write_bytes(b"")
    backup(shop, copy)
    assert restored(copy, tmp_path / "again") == content(shop)
