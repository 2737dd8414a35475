"""What goes wrong on executors, in place of Spark's daemon of Python workers: `spark.python.daemon.module=faults`.

The folder FAULTS, which the tests share with executors, says what happens whenever a task has written its runs:

    fail      holds a number: so many tasks raise
    pause     tasks say so, by a file `paused-…`, and wait until it is gone
    slow      tasks of odd numbers take so many seconds more

The names of all files that were written are lines of `written`.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from headwater.store import runfiles

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 600.0


def hooked(write: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """The function that writes runs, followed by what the folder says."""

    def write_and(disk: Any, name: str, runs: Any) -> Any:
        stored = write(disk, name, runs)
        with (folder / "written").open("a") as told:
            told.write(f"{name}\n")
        _fail(folder)
        _pause(folder)
        if (folder / "slow").exists() and int(name.split("-")[-2]) % 2:
            sleep(float((folder / "slow").read_text()))
        return stored

    return write_and


def _fail(folder: Path) -> None:
    with (folder / "fail").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        left = int(file.read() or 0)
        if left:
            file.truncate(0)
            file.write(str(left - 1))
            file.flush()
            raise RuntimeError("this task was told to fail")


def _pause(folder: Path) -> None:
    end = monotonic() + PATIENCE
    while (folder / "pause").exists() and monotonic() < end:
        (folder / f"paused-{os.getpid()}").touch()
        sleep(0.05)


def main() -> None:
    from pyspark.daemon import manager

    runfiles.write = hooked(runfiles.write, Path(os.environ["FAULTS"]))
    manager()


if __name__ == "__main__":
    main()
