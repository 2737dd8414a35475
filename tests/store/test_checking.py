"""Checks of directories: what is sound is found sound, and each damage is found where it is, with all who suffer."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from kept_tables import Directory, Work, made
from pretended_objects import Objects, disk_of

from headwater.errors import UnknownFormat
from headwater.store import lease, log, manifest
from headwater.store.checking import EVERYTHING, Report, check
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.store.disk import Disk

ALL = ("table r", "table s", "view joined", "view again")


@pytest.fixture
def disk(tmp_path: Path) -> LocalDisk:
    """A directory whose writer has gone, with epochs in the log that are in no manifest."""
    return filled(LocalDisk(tmp_path))


def filled(disk: Any) -> Any:
    directory = Directory(disk)
    Work(2).run(directory)
    directory.close()
    directory = Directory(disk)
    for number in range(3):
        directory.edit({"r": [(1, number)], "s": [(2, number)]})
    directory.store._lease.release()
    return disk


def checked(disk: Disk) -> Report:
    # One that has nothing mapped yet.
    return check(LocalDisk(disk.root) if isinstance(disk, LocalDisk) else disk, made)


def only(report: Report) -> tuple[str, str, tuple[str, ...]]:
    assert not report.is_sound
    (finding,) = [each for each in report.findings if each.is_damage]
    return finding.file, finding.what, finding.affected


def newest(disk: Disk) -> manifest.Manifest:
    found = manifest.newest(disk)
    assert found is not None
    return found


def spoil(disk: LocalDisk, name: str, place: int) -> None:
    path = disk.path(name)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_what_is_sound(disk: LocalDisk) -> None:
    before = {path: path.stat().st_mtime_ns for path in disk.root.rglob("*")}
    seen: list[tuple[int, int]] = []
    report = check(disk, made, lambda done, total: seen.append((done, total)))
    assert report.is_sound
    assert report.epoch == newest(disk).epoch
    assert seen[-1] == (report.bytes, report.bytes)
    assert report.bytes >= sum(place.bytes for place in newest(disk).places())
    assert all(done <= total for done, total in seen)
    assert before == {path: path.stat().st_mtime_ns for path in disk.root.rglob("*")}


def test_objects_are_checked_too() -> None:
    objects = Objects()
    disk = filled(disk_of(objects))
    assert checked(disk).is_sound
    segment = max(log.segments(disk)).name
    objects.delete_file(f"bucket/shop/{segment}/00000001")
    file, what, _ = only(checked(disk))
    assert (file, what) == (segment, "its part 1 is missing")


def test_what_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="there is no Headwater directory"):
        checked(LocalDisk(tmp_path))


@pytest.mark.parametrize("text", ["", "{}", '{"format": 1}', "[1]"])
def test_a_mark_that_says_nothing(disk: LocalDisk, text: str) -> None:
    disk.replace(manifest.MARK, text.encode())
    assert only(checked(disk))[0] == "headwater.json"


def test_a_lease_that_says_nothing(disk: LocalDisk) -> None:
    disk.replace(lease.FILE, b"{")
    assert only(checked(disk))[0] == "lease.json"


def test_a_damaged_manifest(disk: LocalDisk) -> None:
    name = newest(disk).name
    spoil(disk, name, 40)
    assert only(checked(disk)) == (name, "its checksum is not the one it was written with", (EVERYTHING,))


def test_a_damaged_catalog(disk: LocalDisk) -> None:
    name = newest(disk).catalog
    assert name is not None
    disk.remove(name)
    file, what, affected = only(checked(disk))
    assert (file, affected) == (name, (EVERYTHING,))
    assert "it cannot be read" in what


def test_a_catalog_of_another_manifest(disk: LocalDisk) -> None:
    name = newest(disk).catalog
    assert name is not None
    manifest.put(disk, name, ["joined"])
    assert only(checked(disk))[0] == name


@pytest.mark.parametrize("harm", ["spoilt", "short", "empty", "gone"])
def test_a_damaged_run_and_who_suffers(disk: LocalDisk, harm: str) -> None:
    found = newest(disk)
    steps = made(["joined", "again"]).steps
    (position,) = [i for i, step in enumerate(steps) if step.label == "Arrange" and step.inputs[0].label == "joined"]
    alone(disk, found, position)
    place = newest(disk).states[position][0].runs[0]  # type: ignore[index]
    match harm:
        case "spoilt":
            spoil(disk, place.file, place.start + 100)
        case "short":
            disk.path(place.file).write_bytes(disk.read(place.file)[:-8])
        case "empty":
            disk.path(place.file).write_bytes(b"")
        case "gone":
            disk.remove(place.file)
    file, what, affected = only(checked(disk))
    assert (file, affected) == (place.file, ("view joined",))
    assert (
        what
        == {
            "spoilt": f"the bytes from {place.start:,} to {place.start + place.bytes:,} are not those that were written",
            "short": f"it has {place.bytes - 8:,} of {place.bytes:,} bytes",
            "empty": "it is missing, or cannot be read",
            "gone": "it is missing, or cannot be read",
        }[harm]
    )


def alone(disk: LocalDisk, found: manifest.Manifest, position: int) -> None:
    """Gives the state of a step a file of its own."""
    state = found.states[position]
    assert state is not None
    (kept,) = state
    places = []
    for number, place in enumerate(kept.runs):
        name = f"runs/99999999-{number:08}.arrow"
        piece = disk.read(place.file)[place.start : place.start + place.bytes]
        disk.write(name, lambda sink, piece=piece: sink.write(piece))
        places.append(type(place)(name, 0, place.bytes, place.rows, place.check))
    moved = manifest.Kept(kept.columns, kept.key, kept.width, tuple(places))
    states = (*found.states[:position], (moved,), *found.states[position + 1 :])
    manifest.write(disk, manifest.Manifest(found.fence, found.epoch, found.time, found.catalog, states))


def test_a_file_of_many_takes_all_with_it(disk: LocalDisk) -> None:
    for name in newest(disk).files():
        disk.remove(name)
    findings = [each for each in checked(disk).findings if each.is_damage]
    assert {each.file for each in findings} == set(newest(disk).files())
    assert {name for each in findings for name in each.affected} == set(ALL)


def test_states_that_were_lost_before(disk: LocalDisk) -> None:
    found = newest(disk)
    manifest.write(disk, manifest.Manifest(found.fence, found.epoch, found.time, found.catalog, (*found.states[:-1], None)))
    file, what, affected = only(checked(disk))
    assert (file, affected) == (found.name, ("view again",))
    assert "states were lost" in what


def test_the_end_of_the_log_may_be_torn_but_nothing_before_it(disk: LocalDisk) -> None:
    name = max(log.segments(disk)).name
    whole = disk.read(name)
    for size in range(len(whole) - 1, 0, -97):
        disk.path(name).write_bytes(whole[:size])
        assert checked(disk).is_sound
    disk.path(name).write_bytes(whole)
    spoil(disk, name, 40)
    file, what, affected = only(checked(disk))
    assert file == name
    assert what == "what it says at byte 0 is not what was written, and more follows"
    assert affected == (f"all tables and views from epoch {newest(disk).epoch + 1} on",)


def test_damage_within_the_log(disk: LocalDisk) -> None:
    segment, end = next((each, end) for each, end in log.with_ends(log.segments(disk)) if end and end > each.first)
    spoil(disk, segment.name, 30)
    file, what, affected = only(checked(disk))
    assert end is not None
    assert (file, what) == (segment.name, f"the epochs from {segment.first} to {end - 1} cannot be read")
    assert affected == (f"the past of all tables and views before epoch {newest(disk).epoch}",)


def test_a_segment_that_is_missing(disk: LocalDisk) -> None:
    second = log.segments(disk)[2]
    disk.remove(second.name)
    epoch = newest(disk).epoch
    _, what, affected = only(checked(disk))
    assert "cannot be read" in what
    assert affected == (f"the past of all tables and views before epoch {epoch}",)
    for segment in log.segments(disk):
        disk.remove(segment.name)
    assert "it is missing" in only(checked(disk))[1]
    writer = log.Writer(disk, 9)
    writer.begin(epoch + 3)
    writer.close()
    assert only(checked(disk))[1] == f"the epochs from {epoch + 1} to {epoch + 2}, which come before it, are missing"


def test_files_that_nothing_needs(disk: LocalDisk) -> None:
    disk.write("runs/00000001-00000099.arrow", lambda sink: sink.write(b"left over"))
    report = checked(disk)
    assert report.is_sound
    finding, former = report.findings
    assert former.file == min(disk.files(manifest.FOLDER))
    assert (finding.file, finding.affected) == ("runs/00000001-00000099.arrow", ())
    assert finding.what == "nothing needs its 9 bytes; a writer removes it when it folds"


def test_a_directory_in_use_is_sound_at_any_time(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    directory = Directory(disk)
    directory.define("joined", "again")
    over = Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            directory.edit({"r": [(number % 5, number)], "s": [(number % 7, number)]})
            if number % 3 == 0:
                directory.store.fold()

    thread = Thread(target=write)
    thread.start()
    try:
        reports = [checked(LocalDisk(tmp_path))]
        while len(reports) < 30 or (thread.is_alive() and reports[-1].epoch == reports[0].epoch):
            reports.append(checked(LocalDisk(tmp_path)))
    finally:
        over.set()
        thread.join()
        directory.close()
    assert [each for report in reports for each in report.findings if each.is_damage] == []
    assert reports[-1].epoch > reports[0].epoch
