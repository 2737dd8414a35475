"""Directories in object stores: all that holds for those on disks, without appending, renaming and locks."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import closing
from threading import Barrier, Thread
from typing import TYPE_CHECKING

import oracle
import pytest
from broken_disks import Fuse, Killed
from kept_tables import Directory, Work, check, killed, made, reopened
from patience import wait_until
from pretended_objects import BreakingObjectDisk, Objects, disk_of
from pyarrow.fs import FileSystem
from small_tables import bag

import headwater as hw
from headwater.errors import DamagedFile, DirectoryInUse, InvalidOption
from headwater.runtime.catalog import Snapshot
from headwater.store import lease, log
from headwater.store.backup import backup, restore
from headwater.store.checking import check as checked
from headwater.store.disk import LocalDisk
from headwater.store.objects import ObjectDisk
from headwater.store.opening import disk_at
from headwater.store.reading import Reader
from headwater.store.store import Retention

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_directory_is_what_it_was() -> None:
    objects = Objects()
    work = Work(1)
    for _ in range(3):
        directory = Directory(disk_of(objects))
        work.run(directory)
        content, epoch = directory.content(), directory.now.epoch
        directory.close()
        directory = Directory(disk_of(objects))
        assert (directory.content(), directory.now.epoch) == (content, epoch)
        check(directory)
        directory.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("after", range(0, 60, 3))
def test_a_kill_at_any_put(after: int) -> None:
    objects = Objects()
    work = Work(after)
    with pytest.raises(Killed):
        killed(BreakingObjectDisk(objects, Fuse(after)), work)
    reopened(disk_of(objects), work)


@pytest.mark.parametrize("durability", ["async", "memory"])
def test_other_durability(durability: str) -> None:
    objects = Objects()
    work = Work(5)
    directory = Directory(disk_of(objects), durability)
    work.run(directory)
    directory.close()
    directory = Directory(disk_of(objects))
    assert directory.content() == work.acknowledged[directory.now.epoch]
    directory.close()


def test_the_past_is_read_from_objects() -> None:
    directory = Directory(disk_of(Objects()))
    directory.define("joined")
    directory.edit({"r": [(1, 1)], "s": [(1, 2)]})
    directory.edit({"r": [(1, 3)]})
    assert [changed.epoch for changed in directory.store.changes("joined", 1, 0)] == [2, 3]
    directory.close()


def test_readers_follow_objects() -> None:
    objects = Objects()
    directory = Directory(disk_of(objects))
    directory.define("joined")
    reader = Reader(disk_of(objects), made)
    now = Snapshot()
    for number in range(12):
        directory.edit({"r": [(1, number)], "s": [(1, number)]})
        if number % 5 == 4:
            directory.store.fold()
        now = reader.newest(now)
        assert now.epoch == directory.now.epoch
        assert {name: bag(now.contents(entry)) for name, entry in now.entries.items()} == directory.content()
    directory.close()


def test_a_log_is_one_object_for_each_sync() -> None:
    objects = Objects()
    disk = disk_of(objects)
    segment = disk.log("log/a.log")
    assert disk.files("log") == ["log/a.log"]
    assert disk.read("log/a.log") == b""
    segment.append([b"one", b"two"])
    assert disk.size("log/a.log") == 0
    segment.sync()
    segment.sync()
    segment.append([b"three"])
    segment.close()
    assert sorted(objects.content) == [f"bucket/shop/log/a.log/{number:08}" for number in range(3)]
    assert disk.read("log/a.log") == b"onetwothree"
    assert disk.size("log/a.log") == segment.size == 11
    assert [disk.read("log/a.log", start) for start in (3, 6, 8, 11, 20)] == [b"twothree", b"three", b"ree", b"", b""]
    disk.remove("log/a.log")
    assert not objects.content
    assert disk.size("log/a.log") is None
    with pytest.raises(FileNotFoundError):
        disk.read("log/a.log")


def test_a_log_with_a_part_missing_is_damaged() -> None:
    objects = Objects()
    disk = disk_of(objects)
    segment = disk.log("log/a.log")
    for text in (b"one", b"two"):
        segment.append([text])
        segment.sync()
    objects.delete_file("bucket/shop/log/a.log/00000001")
    with pytest.raises(DamagedFile, match="its part 1 is missing"):
        disk.read("log/a.log")


def test_a_file_is_fetched_once_and_outlives_its_object() -> None:
    objects = Objects()
    disk = disk_of(objects)
    assert disk.write("runs/a", lambda sink: sink.write(b"content")) == 7
    assert disk.map("runs/a")[:] == b"content"
    assert not objects.fetched
    other = disk_of(objects)
    memory = other.map("runs/a")
    assert other.map("runs/a") is memory
    assert objects.fetched == ["bucket/shop/runs/a"]
    disk.remove("runs/a")
    assert memory[:] == b"content"
    with pytest.raises(FileNotFoundError):
        disk_of(objects).map("runs/a")


def test_of_many_who_take_the_lease_at_once_one_goes_on() -> None:
    objects = Objects()
    together = Barrier(4)
    held: list[lease.Lease] = []
    refused: list[DirectoryInUse] = []

    def take() -> None:
        disk = disk_of(objects, settling=0.5)
        together.wait()
        try:
            held.append(lease.acquire(disk))
        except DirectoryInUse as error:
            refused.append(error)

    threads = [Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 3)
    held[0].require()
    held[0].release()


def test_a_sign_of_life_does_not_undo_a_take_over() -> None:
    objects = Objects()
    disk = disk_of(objects)
    first = lease.acquire(disk, timeout=0.3)
    second = lease.acquire(disk, timeout=0.0)
    disk.touch(lease.FILE)
    second.require()
    assert disk.touched(lease.FILE) >= objects.content["bucket/shop/lease.json"][1].timestamp()
    with pytest.raises(DirectoryInUse, match="has lost the directory"):
        first.require()
    for each in (first, second):
        each.release()


def test_a_lease_that_is_alive_is_not_taken() -> None:
    objects = Objects()
    holder = lease.acquire(disk_of(objects))
    with pytest.raises(DirectoryInUse, match="is being written by process"):
        lease.acquire(disk_of(objects))
    holder.release()


def test_fences_rise_without_the_lease(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    directory = Directory(disk)
    directory.define("joined")
    directory.edit({"r": [(1, 1)], "s": [(1, 2)]})
    directory.close()
    disk.remove(lease.FILE)
    directory = Directory(disk)
    directory.edit({"r": [(1, 5)]})
    directory.close()
    assert max(log.segments(disk)).fence == 2
    directory = Directory(disk)
    check(directory)
    assert directory.now.epoch == 3
    directory.close()


def test_places() -> None:
    local = disk_at("file:///srv/a%20shop")
    assert isinstance(local, LocalDisk)
    assert local.place == "/srv/a shop"
    address = "s3://key:secret@bucket/a/shop/?region=eu-west-1&endpoint_override=127.0.0.1:1&scheme=http"
    remote = disk_at(address)
    assert isinstance(remote, ObjectDisk)
    assert remote.place == "s3://bucket/a/shop", "what people see has no secrets"
    assert remote.address == address, "who goes there needs all of it"
    assert disk_at(local.address).place == local.place
    with pytest.raises(InvalidOption, match="is no place that PyArrow knows"):
        disk_at("carrier-pigeon://loft/shop")


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.fixture
def bucket() -> Iterator[str]:
    """A bucket that is reached by the protocol of S3, if the server of moto is installed: `pip install moto[server]`."""
    server = shutil.which("moto_server")
    if server is None:
        pytest.skip("there is no moto_server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [server, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: answers(port))
        options = f"scheme=http&endpoint_override=127.0.0.1:{port}&region=us-east-1&allow_bucket_creation=true"
        FileSystem.from_uri(f"s3://key:secret@bucket?{options}")[0].create_dir("bucket")
        yield f"s3://key:secret@bucket/NAME?{options}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_by_the_protocol_of_s3(bucket: str, tmp_path: Path) -> None:
    shop = bucket.replace("NAME", "shop")
    work = Work(1)
    for _ in range(2):
        directory = Directory(disk_at(shop))
        work.run(directory)
        content, epoch = directory.content(), directory.now.epoch
        with pytest.raises(DirectoryInUse, match="is being written by process"):
            lease.acquire(disk_at(shop))
        directory.close()
        directory = Directory(disk_at(shop), retention=Retention(epochs=5))
        assert (directory.content(), directory.now.epoch) == (content, epoch)
        check(directory)
        directory.edit({"r": [(1, 1)]})
        directory.store.fold()
        content, epoch = directory.content(), directory.now.epoch
        directory.close()
        assert checked(disk_at(shop), made).is_sound
        backup(shop, bucket.replace("NAME", "copies/shop"))
        assert min(segment.first for segment in log.segments(disk_at(shop))) > 1
    assert backup(shop, bucket.replace("NAME", "copies/shop")).files == 0
    restore(bucket.replace("NAME", "copies/shop"), tmp_path / "again")
    directory = Directory(LocalDisk(tmp_path / "again"))
    assert (directory.content(), directory.now.epoch) == (content, epoch)
    directory.close()


@pytest.mark.slow
def test_executors_reach_a_bucket(bucket: str, spark: SparkSession) -> None:
    """They are told how, with all options."""
    query = "SELECT k, sum(x) AS s FROM t GROUP BY k"
    with closing(hw.connect(bucket.replace("NAME", "there"), spark=spark, placement="cluster")) as session:
        session.create_table("t", "k INT, x INT")
        view = session.create_view("v", query)
        for number in range(3):
            session.insert("t", [(i % 5, i) for i in range(number, number + 20)])
            oracle.check(session, view, query)
    with closing(hw.connect(bucket.replace("NAME", "there"), spark=spark, placement="driver")) as session:
        oracle.check(session, session.view("v"), query)
