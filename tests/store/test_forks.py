"""A session belongs to its process: what a fork does with it changes nothing."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

import pytest
import shop
from kept_tables import Directory, Work, check

import headwater as hw
from headwater.ownership import ScratchFolder
from headwater.store import lease
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def refused(*uses: Callable[[], object]) -> None:
    for use in uses:
        with pytest.raises(hw.ForkedSession, match="a fork of it") as error:
            use()
        assert error.value.code == "FORKED_SESSION"


def in_fork(work: Callable[[], None]) -> None:
    """Does the work in a child, which then ends as if it were killed."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:  # noqa: BLE001  (the parent cannot see it)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_fork_cannot_use_a_session(tmp_path: Path, spark: SparkSession) -> None:
    directory = tmp_path / "shop"
    shop.make(directory, spark)
    with hw.connect(directory, spark=spark) as session:
        stop = session.view("revenue").subscribe(print)
        export = session.view("best").write_to(lambda _epoch, _changes: None, name="e")
        export.await_idle()
        epoch, held = session.epoch, lease.current(LocalDisk(directory))

        def child() -> None:
            refused(
                lambda: session.insert("brands", [("a", "b")]),
                lambda: session.sql("INSERT INTO brands VALUES ('a', 'b')"),
                lambda: session.create_table("t", "k INT"),
                lambda: session.drop_view("strong"),
                lambda: session.view("revenue").subscribe(print),
                lambda: session.table("brands").rows(),
                session.close,
                session.await_idle,
                stop,
                export.stop,
                export.await_idle,
                session._store.fold,  # type: ignore[union-attr]
                session._store.close,  # type: ignore[union-attr]
                session._store.make_certain,  # type: ignore[union-attr]
                session._store._lease.release,  # type: ignore[union-attr]
            )
            # Leaves a block that the parent is in, too.
            session.__exit__(None, None, None)

        in_fork(child)
        assert lease.current(LocalDisk(directory)) == held
        assert session.insert("brands", [("acme", "z")]) == epoch + 1
    with hw.connect(directory, spark=spark) as session:
        assert session.epoch == epoch + 1


def test_a_fork_within_a_transaction_commits_nothing(tmp_path: Path, spark: SparkSession) -> None:
    directory = tmp_path / "shop"
    shop.make(directory, spark)
    with hw.connect(directory, spark=spark) as session:
        before = len(session.table("brands"))

        def child() -> None:
            refused(lambda: transaction.insert("brands", [("c", "d")]))

        def and_leave() -> None:
            refused(lambda: block.__exit__(None, None, None))

        block = session.transaction()
        transaction = block.__enter__()
        transaction.insert("brands", [("a", "b")])
        in_fork(child)
        in_fork(and_leave)
        block.__exit__(None, None, None)
        assert len(session.table("brands")) == before + 1


def test_a_fork_of_a_busy_writer_writes_nothing(tmp_path: Path) -> None:
    """Whatever locks other threads held at the moment of the fork, it is refused at once."""
    directory = Directory(LocalDisk(tmp_path))
    work = Work(1)
    work.run(directory, 4)
    with directory.store._folding:
        in_fork(lambda: refused(lambda: work.edit(directory), directory.store.fold, directory.close))
    work.run(directory, 3)
    check(directory)
    epoch, content = directory.now.epoch, directory.content()
    directory.close()
    again = Directory(LocalDisk(tmp_path))
    assert (again.now.epoch, again.content()) == (epoch, content)
    again.close()


def test_a_lock_ends_with_its_holder_and_not_with_a_fork_of_it(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    ended, end = os.pipe()
    with disk.exclusive():
        child = os.fork()
        if not child:
            os.close(end)
            os.read(ended, 1)
            os._exit(0)
    try:
        with disk.exclusive():
            pass
    finally:
        os.close(ended)
        os.close(end)
        os.waitpid(child, 0)


def test_a_fork_that_ends_leaves_temporary_folders() -> None:
    folder = ScratchFolder()
    (folder.path / "file").write_text("mine")
    # What runs at the exit of a process, and when the object goes.
    in_fork(folder.remove)
    assert (folder.path / "file").read_text() == "mine"
    folder.remove()
    assert not folder.path.exists()
