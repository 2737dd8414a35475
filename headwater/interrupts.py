"""Ctrl-C while an epoch is made: it is noted at once, and raised at the next safe moment.

Python runs the handler of a signal between any two instructions of the main thread, also where compiled code calls back into
Python. An exception there comes out as a SystemError, or breaks what the compiler holds. A `Deferral` puts a handler in its
place that only notes the signal, which is passed on to the handler from before: at `check`, or when the deferral stops. So
whatever runs under a deferral is done, or is left at a place that is meant for it.
"""

from __future__ import annotations

# The functions of `signal` look for a name of every handler, which takes ten times as long as all else here.
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from functools import wraps
from threading import get_ident, main_thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object]

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Those that have noted a signal: seldom any.
_waiting: list[Deferral] = []


class Deferral:
    """Lets interrupts of the main thread wait from `start` to `stop`; within another deferral, it does nothing."""

    __slots__ = ("_before", "_frame")

    def __init__(self) -> None:
        self._before: Handler | None = None
        self._frame: FrameType | None = None

    def start(self) -> None:
        if get_ident() == main_thread().ident:
            before = getsignal(SIGINT)
            if callable(before) and not isinstance(getattr(before, "__self__", None), Deferral):
                self._before = before
                signal(SIGINT, self._note)

    def stop(self) -> None:
        """Passes on what has come meanwhile, which usually raises KeyboardInterrupt."""
        before = self._before
        if before is not None and get_ident() == main_thread().ident:
            if getsignal(SIGINT) == self._note:
                signal(SIGINT, before)
            self.pass_on()
            self._before = None

    def pass_on(self) -> None:
        """Lets the handler from before have what has come so far."""
        before = self._before
        if self in _waiting and before is not None:
            _waiting.remove(self)
            frame, self._frame = self._frame, None
            before(SIGINT, frame)

    def _note(self, _number: int, frame: FrameType | None) -> None:
        if self not in _waiting:
            self._frame = frame
            _waiting.append(self)


def check() -> None:
    """A safe moment of a thread that may be deferring interrupts: what waits is raised here."""
    if _waiting and get_ident() == main_thread().ident:
        _waiting[-1].pass_on()


def uninterrupted(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, during which interrupts wait."""

    @wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        deferral = Deferral()
        deferral.start()
        try:
            return function(*args, **kwargs)
        finally:
            deferral.stop()

    return run
