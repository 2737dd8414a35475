"""Processes that are to be killed, stopped and watched: started by a line of JSON, each a fork of one that is warm.

A line says which role a process has, in which directory, and where it reports what it did. A report is a file outside of the
directory; what is in it was said before the process was killed.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shop
from broken_disks import BreakingDisk, Fuse

import headwater as hw
from headwater.store import opening, store

if TYPE_CHECKING:
    from collections.abc import Callable


class Report:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def say(self, **what: object) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


def load(report: Report, directory: str, *, seed: int, steps: int | None = None, **options: Any) -> None:
    """Commits as fast as it can, defines now and then, and folds often."""
    session = hw.connect(directory, **options)
    full = session.snapshot.catalog
    report.say(opened=session.epoch)
    for number, changes in enumerate(shop.transactions(seed, session)):
        if number == steps:
            break
        if number % 9 == 5 and "strong" in full.views:
            report.say(defines=True)
            if "strong" in session.views():
                session.drop_view("strong")
            else:
                session.epochs.define(full, ("strong",))
            report.say(epoch=session.epoch)
        report.say(changes=changes)
        report.say(epoch=shop.commit(session, changes))
    session.close()
    report.say(closed=session.epoch)


def slow(report: Report, directory: str, *, seed: int, pause: float, **options: Any) -> None:
    """Commits at times, and says what came of it; folds when it is told that it lost the directory."""
    try:
        session = hw.connect(directory, **options)
    except hw.HeadwaterError as error:
        report.say(refused=error.code, message=str(error))
        return
    report.say(opened=session.epoch)
    for changes in shop.transactions(seed, session):
        try:
            report.say(epoch=shop.commit(session, changes))
        except hw.HeadwaterError as error:
            report.say(failed=error.code, message=str(error))
            break
        time.sleep(pause)
    assert session._store is not None
    for attempt in (session._store.fold, session._store._collect, session.close):
        try:
            attempt()
        except hw.HeadwaterError as error:
            report.say(failed=error.code, message=str(error))
    report.say(closed=True)


def hold(report: Report, directory: str) -> None:
    """Has a directory, if it gets it."""
    try:
        session = hw.connect(directory)
    except hw.HeadwaterError as error:
        report.say(refused=error.code, message=str(error))
        return
    report.say(opened=session.epoch)
    time.sleep(60)


def read(report: Report, directory: str) -> None:
    """Follows for ever, and says how many rows it saw at each epoch."""
    session = hw.connect(directory, mode="r")
    first: list[int] | None = None
    while True:
        now = session.snapshot
        counts = [now.kept(now.entries[name]).total for name in PAIRED]
        first = first or counts
        report.say(epoch=now.epoch, more=[here - before for here, before in zip(counts, first, strict=True)])
        session.wait(1)


PAIRED = ("items", "orders", "unsold")


def pairs(report: Report, directory: str, *, seed: int, steps: int | None = None, **options: Any) -> None:
    """Each epoch brings, or takes, as many items as orders, none of which is of one of the items."""
    session = hw.connect(directory, **options)
    report.say(opened=session.epoch)
    number = 1_000_000 * (seed + 1)
    for step in count():
        if step == steps:
            break
        added = [number + 10 * step + more for more in range(step % 3 + 1)]
        with session.transaction() as transaction:
            transaction.insert("items", [(key, "acme", 1, 1.0) for key in added])
            transaction.insert("orders", [(key, -1, 1) for key in added])
            if step % 5 == 4:
                transaction.delete("items", [(added[0] - 10, "acme", 1, 1.0)])
                transaction.delete("orders", [(added[0] - 10, -1, 1)])
        report.say(epoch=session.epoch)
    session.close()
    report.say(closed=session.epoch)


ROLES: dict[str, Callable[..., None]] = {"load": load, "slow": slow, "hold": hold, "read": read, "pairs": pairs}


def play(
    role: str, report: str, directory: str, *, fold: int = 4096, timeout: float = 10.0, fuse: int | None = None, **options: Any
) -> None:
    """What a process does until it ends, or is ended."""
    store._BYTES = fold
    store._SECONDS = options.pop("seconds", store._SECONDS)
    opening.Store = partial(store.Store, timeout=timeout)  # type: ignore[assignment,misc]
    said = Report(report)
    if fuse is not None:
        burning = Fuse(fuse, error=lambda: os.kill(os.getpid(), signal.SIGKILL))  # type: ignore[arg-type,return-value]
        opening.disk_at = lambda path: BreakingDisk(Path(path), burning)
        ROLES[role](said, directory, **options)
        said.say(operations=burning.passed)
        return
    ROLES[role](said, directory, **options)


def main(template: str) -> None:
    """Warms up on a copy of a directory, and then forks a process for each line."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        shutil.copytree(template, copy)
        play("load", f"{place}/report", str(copy), seed=1, steps=40)
    # What is left of that belongs to threads that a fork does not have: nobody there may clean it up.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        process = os.fork()
        if not process:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                play(**json.loads(line))
            except Exception:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(0)
        print(process, flush=True)  # noqa: T201
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
