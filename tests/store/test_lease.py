"""The lease: one writer at a time, whoever it is and however long it sleeps."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import shop
from kept_tables import Directory, Work, check
from patience import wait_until

import headwater as hw
from headwater.errors import DirectoryInUse, SessionClosed, StorageFailed
from headwater.store import lease, manifest, opening
from headwater.store.disk import _LOCK, LocalDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from processes import Process, Processes


@pytest.fixture
def directory(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path / "shop")


def test_a_race(directory: Path, processes: Processes) -> None:
    for _ in range(3):
        racing = [processes.start("slow", directory, seed=seed, pause=0.01) for seed in range(4)]
        for process in racing:
            wait_for_either(process)
        winners = [process for process in racing if "opened" in process.said()[0]]
        losers = [process.said()[0] for process in racing if process not in winners]
        assert len(winners) == 1
        assert [said["refused"] for said in losers] == ["DIRECTORY_IN_USE"] * 3
        assert all(f"is being written by process {winners[0].number} of " in said["message"] for said in losers)
        winners[0].wait_for("epoch")
        winners[0].kill()


def wait_for_either(process: Process) -> None:
    wait_until(process.said)


class OvertakenDisk(LocalDisk):
    """A disk on which another one opens the directory just before an operation."""

    def __init__(self, root: Path, before: int) -> None:
        super().__init__(root)
        self.left = before
        self.other: hw.Session | None = None
        self._is_alone = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self.overtake()
        with super().exclusive():
            self._is_alone = True
            yield
            self._is_alone = False

    def overtake(self) -> None:
        if not self._is_alone:
            self.left -= 1
            if self.left == 0:
                # It may be too late.
                with suppress(DirectoryInUse):
                    self.other = hw.connect(str(self.root))

    def size(self, name: str) -> int | None:
        self.overtake()
        return super().size(name)

    def read(self, name: str, start: int = 0) -> bytes:
        self.overtake()
        return super().read(name, start)

    def files(self, folder: str) -> list[str]:
        self.overtake()
        return super().files(folder)


@pytest.mark.parametrize("before", range(1, 13))
def test_who_is_overtaken_while_opening_a_new_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """If two come at once, one gets it, and the other is told who has it."""
    disk = OvertakenDisk(tmp_path / "new", before)
    monkeypatch.setattr(opening, "disk_at", lambda path: LocalDisk(Path(path)) if isinstance(path, str) else disk)
    session: hw.Session | None = None
    with suppress(DirectoryInUse):
        session = hw.connect(disk.root)
    assert (session is None) != (disk.other is None)
    identity = manifest.identity(LocalDisk(disk.root))
    for each in (session, disk.other):
        if each is not None:
            each.close()
    with hw.connect(str(disk.root)):
        assert manifest.identity(LocalDisk(disk.root)) == identity


def test_a_race_for_a_new_directory(tmp_path: Path, processes: Processes) -> None:
    racing = [processes.start("hold", tmp_path / "new") for _ in range(4)]
    for process in racing:
        wait_for_either(process)
    said = [process.said()[0] for process in racing]
    assert sorted("opened" in line for line in said) == [False, False, False, True]
    assert {line["refused"] for line in said if "refused" in line} == {"DIRECTORY_IN_USE"}
    for process in racing:
        process.kill()
    hw.connect(tmp_path / "new").close()


def test_who_was_killed_is_succeeded_at_once(directory: Path, processes: Processes) -> None:
    process = processes.start("slow", directory, seed=1, pause=0)
    epoch = process.wait_for("epoch", 3)["epoch"]
    with pytest.raises(DirectoryInUse, match=f"process {process.number} of "):
        hw.connect(directory)
    process.kill()
    with hw.connect(directory) as session:
        assert session.epoch >= epoch


def put_to_sleep(process: Process, directory: Path) -> None:
    """At any moment but one at which it holds the lock: nobody could take over then."""
    with (directory / _LOCK).open("wb") as lock:
        while True:
            process.signal(signal.SIGSTOP)
            process.wait_until_stopped()
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                process.signal(signal.SIGCONT)
                time.sleep(0.01)
            else:
                return


@pytest.mark.parametrize("pause", [0, 0.02])
def test_who_slept_too_long_has_lost_it(directory: Path, processes: Processes, pause: float) -> None:
    sleeper = processes.start("slow", directory, seed=1, pause=pause, timeout=1, fold=2000)
    sleeper.wait_for("epoch", 5)
    put_to_sleep(sleeper, directory)
    acknowledged = sleeper.said()[-1]["epoch"]
    successor = processes.start("slow", directory, seed=2, pause=0, timeout=1, fold=2000)
    assert "still" not in str(successor.said())
    while "refused" in (said := successor.said() or [{}])[0] or not said[0]:
        time.sleep(0.2)
        if "refused" in said[0]:
            successor = processes.start("slow", directory, seed=2, pause=0, timeout=1, fold=2000)
    assert successor.wait_for("opened")["opened"] in (acknowledged, acknowledged + 1)
    successor.wait_for("epoch", 20)
    sleeper.signal(signal.SIGCONT)
    failed = sleeper.wait_for("failed")
    assert failed["failed"] == "DIRECTORY_IN_USE"
    assert f"is now held by process {successor.number} of " in failed["message"]
    sleeper.wait_for("closed")
    last = successor.wait_for("epoch", 60)["epoch"]
    successor.kill()
    epochs = [said["epoch"] for said in successor.said() if "epoch" in said]
    assert epochs == [*range(epochs[0], epochs[-1] + 1)]
    with hw.connect(directory) as session:
        assert session.epoch >= last
        # Nothing of the sleeper's but what it had acknowledged: the successor alone says what there is.
        with hw.connect(directory, mode="r") as reader:
            assert shop.content(reader) == shop.content(session)


class Sleeper:
    """A writer that falls asleep at a point, while another one takes over, and goes on afterwards."""

    def __init__(self, path: Path) -> None:
        self.disk = LocalDisk(path)
        self.work = Work(1)
        self.successor: Directory | None = None
        self._exclusive = self.disk.exclusive
        self._is_alone = False
        self.disk.exclusive = self.alone  # type: ignore[method-assign]
        self.directory = Directory(self.disk)
        self.work.run(self.directory, 5)

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._exclusive():
            self._is_alone = True
            yield
            self._is_alone = False

    def taken_over(self) -> None:
        """What happens while it sleeps, unless nobody can take over just then."""
        if self.successor is None and not self._is_alone:
            # It was not seen for long.
            os.utime(self.disk.path(lease.FILE), (0, 0))
            self.successor = Directory(LocalDisk(self.disk.root))
            self.work.acknowledged = {}
            for _ in range(3):
                self.work.edit(self.successor)
            self.work.note(self.successor)

    def asleep(self, method: Callable[..., object], *, after: bool = False) -> Callable[..., object]:
        def sleeping(*given: object, **named: object) -> object:
            if after:
                done = method(*given, **named)
                self.taken_over()
                return done
            self.taken_over()
            return method(*given, **named)

        return sleeping


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", ["write", "rename", "settle", "log", "remove", "files", "size"])
@pytest.mark.parametrize("action", ["define", "fold", "edit", "close", "collect"])
def test_asleep_amid_an_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, action: str, *, after: bool
) -> None:
    sleeper = Sleeper(tmp_path)
    directory = sleeper.directory

    def collect() -> None:
        with directory.store.defining():
            directory.store._collect()

    actions = {
        "define": lambda: directory.define("joined", "again"),
        "fold": directory.store.fold,
        "edit": lambda: sleeper.work.edit(directory),
        "close": directory.close,
        "collect": collect,
    }
    if action in ("fold", "close"):
        sleeper.work.edit(directory)
    epoch = directory.now.epoch
    with monkeypatch.context() as patch:
        patch.setattr(sleeper.disk, point, sleeper.asleep(getattr(sleeper.disk, point), after=after))
        try:
            actions[action]()
        except (DirectoryInUse, StorageFailed):
            # What it has written may be removed before it looks.
            assert directory.now.epoch == epoch
    if sleeper.successor is None:
        directory.close()
        return
    for _ in range(2):
        with pytest.raises(SessionClosed if directory.store.is_closed else DirectoryInUse):
            sleeper.work.edit(directory)
    directory.close()
    whole = sleeper.successor.now.epoch, sleeper.successor.content()
    # The successor ends without a word.
    lease._put(sleeper.disk, replace(sleeper.successor.store._lease.holder, started="long ago"))
    again = Directory(LocalDisk(tmp_path))
    assert (again.now.epoch, again.content()) == whole
    check(again)
    sleeper.work.run(again, 3)
    check(again)
    again.close()
    again = Directory(LocalDisk(tmp_path))
    check(again)
    again.close()


def test_release_after_the_lease_was_lost(tmp_path: Path) -> None:
    first = lease.acquire(LocalDisk(tmp_path))
    os.utime(tmp_path / lease.FILE, (0, 0))
    second = lease.acquire(LocalDisk(tmp_path))
    first.release()
    second.require()
    assert lease.current(LocalDisk(tmp_path)) == second.holder
    second.release()


def test_a_fence_is_above_all_that_was_written(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    for number in range(3):
        directory = Directory(disk)
        Work(number).run(directory, 2)
        directory.close()
    before = manifest.newest(disk)
    assert before is not None
    (tmp_path / lease.FILE).unlink()
    directory = Directory(disk)
    assert directory.store._lease.fence > before.fence
    directory.close()
