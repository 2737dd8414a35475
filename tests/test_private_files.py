"""What a session keeps is its user's alone, however loose the umask is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.private_files import make_folder, write_text
from headwater.store.backup import backup, restore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def loose() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(root: Path) -> dict[str, str]:
    """What others may do, by path; below the notes of a stream Spark decides, and nobody gets there."""
    paths = [root, *(path for path in root.rglob("*") if "streams" not in path.parent.parts)]
    return {str(path.relative_to(root)): oct(S_IMODE(path.stat().st_mode)) for path in paths}


@pytest.mark.usefixtures("loose")
def test_everything_in_a_directory_is_private(spark: SparkSession, tmp_path: Path) -> None:
    state, files = tmp_path / "new" / "state", tmp_path / "files"
    files.mkdir()
    with hw.connect(state, spark=spark) as session:
        session.create_table("t", "id BIGINT", key="id")
        view = session.create_view("v", "SELECT COUNT(*) AS n FROM t")
        session.insert("t", [(1,)])
        view.write_to(lambda _epoch, _changes: None).await_idle()
        stream = spark.readStream.schema("id BIGINT").json(str(files))
        session.follow("t", stream, trigger={"availableNow": True}).await_idle()
    backup(state, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "again")
    for root in (state, tmp_path / "copy", tmp_path / "again"):
        found = modes(root)
        assert {name: mode for name, mode in found.items() if mode not in ("0o700", "0o600")} == {}
        assert {found["."], found["log"], found["runs"]} == {"0o700"}
    assert modes(state)["streams"] == "0o700"


@pytest.mark.usefixtures("loose")
def test_a_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    hw.connect(tmp_path).close()
    found = modes(tmp_path)
    assert found.pop(".") == "0o750"
    assert set(found.values()) <= {"0o700", "0o600"}
    make_folder(tmp_path)
    write_text(tmp_path / "text", "1")
    assert modes(tmp_path)["text"] == "0o600"


LISTENING = """
import os, pathlib, sys
import headwater as hw

with hw.connect() as session:
    assert session.spark.range(10).repartition(2).count() == 10
    pids, parents = {os.getpid()}, {}
    for each in pathlib.Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                pass
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    sockets = set()
    for pid in pids:
        try:
            sockets |= {os.readlink(each) for each in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            pass
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                print(fields[1].rpartition(":")[0])
"""
# As the kernel writes 127.0.0.1, ::1 and ::ffff:127.0.0.1.
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the sockets of processes are told by /proc")
def test_a_spark_of_our_own_listens_on_loopback_only() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run([sys.executable, "-c", LISTENING], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    assert found, "Spark's driver listens somewhere"
    assert set(found) <= LOOPBACK
