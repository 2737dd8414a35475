"""Ctrl-C at any moment of a commit: KeyboardInterrupt, an epoch that is there or is not, and a session that goes on."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
import shop
from patience import PATIENCE

import headwater as hw
from headwater.interrupts import Deferral

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Interrupting:
    """Presses Ctrl-C at one of the calls that are made within, counted from one."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.calls = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls == self.at:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)


def interrupted(at: int | None, work: Callable[[], object]) -> int | None:
    """How many calls the work makes; None if it was interrupted."""
    with Interrupting(at) as pressing:
        try:
            work()
        except KeyboardInterrupt:
            return None
    return pressing.calls


@pytest.fixture
def session(tmp_path: Path, template: Path) -> Any:
    opened = hw.connect(shutil.copytree(template, tmp_path / "shop"))
    yield opened
    opened.close()


def sweep(session: hw.Session, step: int, first: int) -> None:
    """Interrupts one commit after another, each somewhat later than the one before."""
    changes = shop.transactions(1, session)
    tables = shop.content(session)
    for _ in range(3):
        change = next(changes)
        shop.apply(tables, change)
        shop.commit(session, change)
    handler = signal.getsignal(signal.SIGINT)
    at, done, stopped = first, 0, 0
    for change in changes:
        before = session.epoch
        calls = interrupted(at, lambda change=change: shop.commit(session, change))  # type: ignore[misc]
        assert signal.getsignal(signal.SIGINT) is handler
        assert session.epoch in (before, before + 1)
        if session.epoch == before:
            stopped += 1
            assert shop.content(session) == tables
            shop.commit(session, change)
        shop.apply(tables, change)
        assert shop.content(session) == tables
        if calls is not None:
            # The commit had ended before.
            done += 1
            if done == 3:
                break
        at += step
    assert stopped
    with hw.connect(session._store.disk.place, mode="r") as reader:  # type: ignore[union-attr]
        assert reader.epoch == session.epoch
        assert shop.content(reader) == tables


def test_a_commit_is_there_or_not(session: hw.Session) -> None:
    sweep(session, 61, 5)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 8))
def test_a_commit_is_there_or_not_wherever_it_is_interrupted(session: hw.Session, first: int) -> None:
    sweep(session, 7, first)


def test_a_users_own_handler_is_asked_and_stays() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        deferral, inner = Deferral(), Deferral()
        deferral.start()
        inner.start()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        inner.stop()
        assert came == []
        deferral.stop()
        assert came == [signal.SIGINT]
        deferral.start()
        deferral.stop()
        signal.raise_signal(signal.SIGINT)
        assert came == [signal.SIGINT] * 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_who_waits_for_a_transaction_can_be_interrupted(session: hw.Session) -> None:
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with session.transaction():
            begun.set()
            end.wait(PATIENCE)

    holding = threading.Thread(target=hold)
    holding.start()
    begun.wait(PATIENCE)
    pressing = threading.Timer(0.2, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        session.insert("brands", [("acme", "z")])
    end.set()
    holding.join()
    pressing.join()
    session.insert("brands", [("acme", "z")])
