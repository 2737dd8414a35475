"""Functions and web addresses: each epoch is told, whatever is answered, and how far that is cannot be changed unnoticed."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from tests.sinks.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    Connect = Callable[[], hw.Session]

QUICK = hw.Retry(attempts=3, pause=0.01, longest=0.02)


@pytest.fixture
def connect(spark: SparkSession, tmp_path: Path) -> Iterator[Connect]:
    sessions: list[hw.Session] = []

    def opened() -> hw.Session:
        session = hw.connect(tmp_path / "state", spark=spark)
        sessions.append(session)
        if "t" not in session.tables():
            session.create_table("t", "id BIGINT", key="id")
            session.create_view("v", "SELECT id FROM t")
            session.create_view("w", "SELECT id FROM t")
            session.insert("t", [(1,)])
        return session

    yield opened
    for session in sessions:
        session.close()


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_redirects_are_not_followed(connect: Connect, status: int) -> None:
    session = connect()
    with receiving() as receiver:
        receiver.answer = lambda: status
        export = session.view("v").write_to(receiver.address, retry=QUICK)
        with pytest.raises(hw.ExportFailed, match=f"{status} .*; redirects are not followed"):
            export.await_idle()
        assert export.progress.state == "failed"
        assert receiver.requests == ["POST"] * QUICK.attempts
        receiver.answer = lambda: 200
        session.insert("t", [(2,)])
        export.resume()
        export.await_idle()
        changes = [change for _, body in receiver.taken for change in body["changes"]]
    assert changes == [{"id": 1, "_weight": 1}, {"id": 2, "_weight": 1}] or len(changes) == 2


def test_a_redirect_is_tried_again(connect: Connect) -> None:
    session = connect()
    states: list[str] = []
    with receiving() as receiver:

        def answer() -> int:
            # The first answer is given before the export knows of a failure, the second after it.
            states.append(session.exports()["v"].progress.state if states else "")
            return 302 if len(states) < 3 else 200

        receiver.answer = answer
        session.view("v").write_to(receiver.address, retry=QUICK).await_idle()
        assert states[1:] == ["retrying", "retrying"]
        assert len(receiver.taken) == 1


def test_a_user_and_a_password_in_the_address_are_sent(connect: Connect) -> None:
    with receiving() as receiver:
        address = receiver.address.replace("//", "//Ada:p%40ss@")
        export = connect().view("v").write_to(address, retry=QUICK)
        export.await_idle()
        assert receiver.authorized == [f"Basic {b64encode(b'Ada:p@ss').decode()}"]
        assert [body["changes"] for _, body in receiver.taken] == [[{"id": 1, "_weight": 1}]]


def test_a_view_with_any_name_is_posted(connect: Connect) -> None:
    session = connect()
    view = session.create_view("grün und blau", "SELECT id FROM t")
    with receiving() as receiver:
        view.write_to(receiver.address).await_idle()
        ((key, body),) = receiver.taken
    assert key == f"gr%C3%BCn%20und%20blau-{body['epoch']}"
    assert body["view"] == "grün und blau"


def test_a_changed_note_is_noticed(connect: Connect, tmp_path: Path) -> None:
    session = connect()
    told: list[int] = []

    def call(epoch: int, _: Any) -> None:
        told.append(epoch)

    session.view("v").write_to(call).await_idle()
    session.close()
    (note,) = (tmp_path / "state" / "exports").iterdir()
    whole = note.read_bytes()
    digits = str(told[-1]).encode()
    changed = whole.replace(b'"epoch":' + digits, b'"epoch":' + digits + b"0")
    assert changed != whole
    session = connect()
    session.insert("t", [(2,)])
    for damaged in (changed, whole[:-1], b"", json.dumps({"epoch": 10**6}).encode()):
        note.write_bytes(damaged)
        with pytest.raises(hw.DamagedFile, match="exports/"):
            session.view("v").write_to(call)
        assert note.read_bytes() == damaged
    assert len(told) == 1
    note.write_bytes(whole)
    session.view("v").write_to(call).await_idle()
    assert told[1:] == [session.epoch]


def test_a_damaged_note_can_be_left_behind(connect: Connect, tmp_path: Path) -> None:
    session = connect()
    told: list[Any] = []
    session.view("v").write_to(lambda *_: None).await_idle()
    session.close()
    (note,) = (tmp_path / "state" / "exports").iterdir()
    note.write_bytes(b"")
    session = connect()
    session.view("v").write_to(lambda _, changes: told.extend(changes["id"].to_pylist()), replace=True).await_idle()
    assert told == [1]


def test_an_export_of_another_view_does_not_go_on_with_the_note(connect: Connect) -> None:
    session = connect()
    session.view("v").write_to(lambda *_: None, name="calls").await_idle()
    session.close()
    session = connect()
    told: list[Any] = []
    with pytest.raises(hw.InvalidTarget, match="has told view 'v', not 'w'"):
        session.view("w").write_to(lambda _, changes: told.append(changes), name="calls")
    session.view("w").write_to(lambda _, changes: told.append(changes), name="calls", replace=True).await_idle()
    assert len(told) == 1


def test_a_note_of_epochs_that_have_not_been_is_noticed(connect: Connect, tmp_path: Path) -> None:
    from headwater.store import manifest
    from headwater.store.disk import LocalDisk

    session = connect()
    session.view("v").write_to(lambda *_: None).await_idle()
    session.close()
    (note,) = (tmp_path / "state" / "exports").iterdir()
    manifest.put(LocalDisk(note.parent), note.name, {"view": "v", "epoch": 1000})
    with pytest.raises(hw.ExportFailed, match="the target has epoch 1000, and the last one here is"):
        connect().view("v").write_to(lambda *_: None).await_idle()
