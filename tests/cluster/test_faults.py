"""Faults: whatever dies amid an epoch, nothing is lost and nothing comes twice, and what was left behind is collected."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from standalone import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from driving import Driver
    from standalone import Standalone

    Drive = Callable[..., Driver]

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where executors are told what goes wrong."""
    made = tmp_path / "faults"
    made.mkdir()
    return made


def settings(folder: Path, **more: str) -> dict[str, str]:
    told = {"spark.python.daemon.module": "faults", "spark.executorEnv.FAULTS": str(folder)}
    return told | {name.replace("_", "."): value for name, value in more.items()}


def begin(drive: Drive, folder: Path, directory: Path, **more: str) -> Driver:
    """A session in a directory, after its first transaction."""
    driver = drive(settings(folder, **more))
    driver.ask("connect", directory=str(directory))
    driver.ask("create")
    assert driver.ask("epoch", number=0)["where"] == "cluster"
    return driver


def paused(folder: Path) -> None:
    """Tasks of the epoch that was begun have written files, and wait."""
    wait_for("a task that has written", lambda: list(folder.glob("paused-*")))


def require_clean(driver: Driver) -> None:
    """After the next fold there is no file but those that are needed."""
    told = driver.ask("fold")
    assert told["files"] == told["needed"]


def attempts(folder: Path) -> dict[str, int]:
    """How many files were written by each task, under all its attempts."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in (folder / "written").read_text().split():
        found[name.rpartition("-")[0]].add(name)
    return {task: len(names) for task, names in found.items()}


def test_a_task_that_fails_twice(drive: Drive, folder: Path, tmp_path: Path) -> None:
    driver = begin(drive, folder, tmp_path / "kept")
    (folder / "fail").write_text("2")
    assert driver.ask("epoch", number=1)["where"] == "cluster"
    assert (folder / "fail").read_text() == "0"
    driver.ask("check", numbers=2)
    driver.ask("epoch", number=2, placement="driver")
    driver.ask("check", numbers=3)
    require_clean(driver)


@pytest.mark.slow
def test_a_job_that_spark_gives_up(drive: Drive, folder: Path, tmp_path: Path) -> None:
    """Nothing has changed; and who did not ask for executors does not notice."""
    driver = begin(drive, folder, tmp_path / "kept")
    (folder / "fail").write_text("1000")
    driver.tell("epoch", number=1)
    told = driver.hear()
    assert told.get("error") == "JOB_FAILED", told
    assert "this task was told to fail" in told["text"]
    driver.ask("check", numbers=1)
    (folder / "fail").write_text("0")
    assert driver.ask("epoch", number=1)["where"] == "cluster"
    driver.ask("check", numbers=2)
    require_clean(driver)


@pytest.mark.slow
def test_an_executor_that_is_killed(cluster: Standalone, drive: Drive, folder: Path, tmp_path: Path) -> None:
    driver = begin(drive, folder, tmp_path / "kept")
    (folder / "pause").touch()
    driver.tell("epoch", number=1)
    paused(folder)
    assert cluster.kill_executors(cluster.workers[0]) == 1
    (folder / "pause").unlink()
    told = driver.hear()
    assert told.get("where") == "cluster", told
    driver.ask("check", numbers=2)
    assert driver.ask("epoch", number=2)["where"] == "cluster"
    driver.ask("check", numbers=3)
    require_clean(driver)


@pytest.mark.slow
def test_a_worker_goes_and_another_comes(cluster: Standalone, drive: Drive, folder: Path, tmp_path: Path) -> None:
    driver = begin(drive, folder, tmp_path / "kept")
    (folder / "pause").touch()
    driver.tell("epoch", number=1)
    paused(folder)
    cluster.kill_worker(cluster.workers.pop(0))
    cluster.add_worker()
    (folder / "pause").unlink()
    told = driver.hear()
    assert told.get("where") == "cluster", told
    driver.ask("check", numbers=2)
    assert driver.ask("epoch", number=2)["where"] == "cluster"
    driver.ask("check", numbers=3)
    require_clean(driver)


@pytest.mark.slow
def test_tasks_that_run_twice(drive: Drive, folder: Path, tmp_path: Path) -> None:
    """Those that take a little longer are started once more elsewhere, and both attempts write."""
    speculation = {
        "spark_speculation": "true",
        "spark_speculation_interval": "10ms",
        "spark_speculation_multiplier": "1.01",
        "spark_speculation_quantile": "0.1",
        "spark_speculation_minTaskRuntime": "10ms",
    }
    driver = begin(drive, folder, tmp_path / "kept", **speculation)
    (folder / "slow").write_text("3")
    for number in (1, 2):
        assert driver.ask("epoch", number=number)["where"] == "cluster"
        driver.ask("check", numbers=number + 1)
    assert max(attempts(folder).values()) > 1, "no task was started twice"
    (folder / "slow").unlink()
    driver.ask("epoch", number=3)
    driver.ask("check", numbers=4)
    require_clean(driver)


@pytest.mark.slow
def test_a_driver_that_is_killed_before_it_commits(drive: Drive, folder: Path, tmp_path: Path) -> None:
    driver = begin(drive, folder, tmp_path / "kept")
    mark = tmp_path / "computed"
    driver.ask("hang_at_commit", mark=str(mark))
    driver.tell("epoch", number=1)
    wait_for("the end of the job", mark.exists)
    left = {f"runs/{path.name}" for path in (tmp_path / "kept" / "runs").iterdir()}
    driver.kill()
    again = drive(settings(folder))
    epoch = again.ask("connect", directory=str(tmp_path / "kept"))["epoch"]
    again.ask("check", numbers=1)
    assert again.ask("epoch", number=1)["epoch"] == epoch + 1
    again.ask("check", numbers=2)
    told = again.ask("fold")
    assert told["files"] == told["needed"]
    orphans = left - set(told["needed"])
    assert orphans, "the job that nobody committed had written something"
    again.ask("disconnect")
