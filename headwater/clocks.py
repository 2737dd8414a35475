"""The engine's clock, by which rows expire: that of the wall, that of the data, or one that stands until it is advanced.

It never runs back, whatever the machine's clock does. Times are microseconds since 1970, as timestamps have them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import time_ns

from headwater.durations import microseconds
from headwater.errors import InvalidOption

# Before all times: where a clock of the data stands until there is any.
_BEFORE = -(1 << 62)
_START = datetime(1970, 1, 1, tzinfo=UTC)
_WAYS = '"wall", "data" (the latest event time there was), or a datetime with a time zone, at which it stands until advanced'


class Clock:
    """Tells the time; `kind` is wall, data or set."""

    def __init__(self, given: str | datetime) -> None:
        if isinstance(given, datetime):
            self.kind, self._time = "set", _instant(given, f"the clock is {_WAYS}, not {given!r}")
        elif given in ("wall", "data"):
            self.kind, self._time = given, _BEFORE
        else:
            raise InvalidOption(f"the clock is {_WAYS}, not {given!r}")

    def now(self) -> int:
        """The time, or one before all times if the clock is that of data of which there was none yet."""
        if self.kind == "wall":
            self._time = max(self._time, time_ns() // 1_000)
        return self._time

    def shown(self) -> datetime | None:
        """The time, for people."""
        now = self.now()
        return None if now == _BEFORE else _START + timedelta(microseconds=now)

    def observe(self, time: int) -> None:
        """There are data of this time."""
        if self.kind == "data":
            self._time = max(self._time, time)

    def advance(self, to: datetime | timedelta | str) -> None:
        """Goes on to a time, or by a span."""
        if self.kind == "wall":
            raise InvalidOption("the wall clock goes on by itself; connect with clock=datetime(…) for one that is advanced")
        if isinstance(to, datetime):
            then = _instant(to, f"a clock is advanced to a datetime with a time zone, not {to!r}")
        else:
            by = span(to)
            if by is None or by < 0:
                raise InvalidOption(f"a clock is advanced to a datetime, or by a span such as '10 minutes', not {to!r}")
            if self._time == _BEFORE:
                raise InvalidOption("there were no data yet, so the clock has no time to go on from; advance it to a datetime")
            then = self._time + by
        if then < self._time:
            raise InvalidOption(f"a clock does not run back: it is {self.shown()}, and was to be advanced to {to!r}")
        self._time = then


def span(given: object) -> int | None:
    """A span of time in microseconds; None if it is none."""
    if isinstance(given, timedelta):
        return given // timedelta(microseconds=1)
    return microseconds(given) if isinstance(given, str) else None


def _instant(given: datetime, otherwise: str) -> int:
    if given.tzinfo is None:
        raise InvalidOption(otherwise)
    return (given - _START) // timedelta(microseconds=1)
