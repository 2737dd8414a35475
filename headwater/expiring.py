"""Soft state: rows that are due go, as deletions in epochs of their own.

    epoch    the rows that are due by the session's clock, the earliest first, of all tables; so many at most, then the next one
    when     beside everything else (wall clock), after each commit (clock of the data), when the clock is advanced (one that is
             set), and when a directory is opened

To everything that follows from a table they are deletes like any other.
"""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import TYPE_CHECKING
from weakref import ref

from headwater.clocks import span
from headwater.delta import Delta
from headwater.errors import HeadwaterError, InvalidOption, InvalidSchema, UnknownName
from headwater.runtime.calendar import Calendar
from headwater.runtime.lifetimes import TIME, Lifetime
from headwater.runtime.transactions import Staging
from headwater.schema import arrow_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from pyspark.sql.types import StructType

    from headwater.clocks import Clock
    from headwater.compiler.dataflow import Step
    from headwater.runtime.catalog import Snapshot, TableEntry
    from headwater.session import Session

# So many rows go in one epoch at most.
MOST = 20_000
# With the wall clock, what is due is looked for so often: ten times within the shortest life, within these bounds, in seconds.
_OFTEN, _SELDOM = 0.01, 1.0
_AFTER_FAILURE = 60.0
_LONGEST = 1 << 60

_log = logging.getLogger("headwater")


def lifetime_of(schema: StructType, ttl: str | timedelta | None, event_time: str | None) -> Lifetime | None:
    """How long rows of a table of these columns are to live, as users say it."""
    if ttl is None:
        if event_time is not None:
            raise InvalidOption(f"event_time={event_time!r} says from when a row lives, but no ttl says how long")
        return None
    lasting = span(ttl)
    if lasting is None or not 0 < lasting <= _LONGEST:
        raise InvalidOption(f"ttl is a span of time above zero, a timedelta or a text such as '10 minutes', not {ttl!r}")
    if event_time is None:
        return Lifetime(lasting)
    names = [name.lower() for name in schema.names]
    if not isinstance(event_time, str) or event_time.lower() not in names:
        raise UnknownName(f"the event_time {event_time!r} is not a column of the table; it has {', '.join(schema.names)}")
    column = names.index(event_time.lower())
    kind = schema.fields[column].dataType
    if arrow_of(kind) != TIME:
        raise InvalidSchema(
            f"the event_time {event_time!r} is {kind.simpleString().upper()}, and only a TIMESTAMP says when something was"
        )
    return Lifetime(lasting, column)


class Expiring:
    """Removes what is due from the tables of a session."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self.clock = clock
        self._session = session
        self._calendars: dict[Step, Calendar] = {}
        self._over = Event()
        self._thread: Thread | None = None

    def require_times(self, table: str, lifetime: Lifetime | None) -> None:
        """Refuses a table whose rows would get their times from a clock that gets its own from rows."""
        if lifetime is not None and lifetime.event_time is None and self.clock.kind == "data":
            raise InvalidOption(
                f"by a clock of the data, nothing says when a row of {table!r} was inserted; name its event_time, "
                "or connect with another clock"
            )

    def noted(self, changes: Mapping[str, Delta]) -> None:
        """An epoch has changed tables; to be called before the next one can."""
        now = self._session.epochs.now
        for table in now.catalog.soft:
            name = table.times or table.name.lower()
            if name in changes:
                self._calendar(now.tables[name], table).late(changes[name])

    def begin(self) -> None:
        """The session was opened: what was due meanwhile goes."""
        for table in self._session.epochs.now.catalog.soft:
            self.require_times(table.name, table.lifetime)
        if self._session.epochs.now.catalog.soft:
            self._try()
        self.follow()

    def follow(self) -> None:
        """Something was committed, or defined; to be called without a lock."""
        if self._over.is_set() or not self._session.epochs.now.catalog.soft:
            return
        if self.clock.kind == "data":
            self._try()
        elif self.clock.kind == "wall" and self._thread is None:
            self._thread = Thread(target=_tick, args=(ref(self), self._over), name="headwater-expire", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Removes all that is due; to be called without a lock."""
        while self._remove():
            self._session.epochs.tell()
        self._session.epochs.tell()

    def tick(self) -> float:
        """The same, and when to come again, in seconds."""
        if not self._try():
            return _AFTER_FAILURE
        lives = [table.lifetime.ttl for table in self._session.epochs.now.catalog.soft if table.lifetime is not None]
        return min(max(min(lives) / 1e7, _OFTEN), _SELDOM) if lives else _SELDOM

    def close(self, *, wait: bool) -> None:
        self._over.set()
        if wait and self._thread is not None:
            self._thread.join()

    def _try(self) -> bool:
        """Removes what is due; what fails is tried again later, for nobody waits for it who could be told."""
        try:
            self.run()
        except HeadwaterError as error:
            if not self._over.is_set():
                _log.warning("Rows are due that cannot be removed: %s", error)
            return False
        return True

    def _remove(self) -> bool:
        """Removes the earliest of what is due, as one epoch; whether more may be due."""
        session = self._session
        session.epochs.journal.make_room()
        with session.noticing_damage(), session.epochs.writing:
            if self._over.is_set():
                return False
            now = session.snapshot
            timed = list(self._timed(now))
            for table, _, kept in timed:
                latest = None if table.times is not None else self._calendar(kept, table).latest(now.kept(kept))
                if latest is not None:
                    self.clock.observe(latest)
            moment, room, found = self.clock.now(), MOST, []
            for table, lifetime, kept in timed:
                due = self._calendar(kept, table).due(now.kept(kept), moment - lifetime.ttl, max(room, 1))
                room -= due.looked_at
                if due.looked_at:
                    found.append((table, due))
            staging = Staging(now, moment)
            for table, due in found:
                staging.change(table, -_rows(now, table, due.rows))
            if any(len(due.rows) for _, due in found):
                session.epochs.commit(*staging.net())
            for _, due in found:
                due.passed()
            return room <= 0

    def _timed(self, now: Snapshot) -> Iterator[tuple[TableEntry, Lifetime, TableEntry]]:
        """The tables whose rows expire, each with what keeps its times; not those of which something is lost."""
        live = set()
        for table in now.catalog.soft:
            kept = now.tables[table.times or table.name.lower()]
            if table.lifetime is not None and table.contents in now.states and kept.contents in now.states:
                live.add(kept.contents)
                yield table, table.lifetime, kept
        self._calendars = {step: calendar for step, calendar in self._calendars.items() if step in live}

    def _calendar(self, kept: TableEntry, table: TableEntry) -> Calendar:
        known = self._calendars.get(kept.contents)
        if known is None:
            assert table.lifetime is not None
            column = table.lifetime.event_time
            known = self._calendars[kept.contents] = Calendar(len(kept.arrow) - 1 if column is None else column)
        return known


def _rows(now: Snapshot, table: TableEntry, due: Delta) -> Delta:
    """The rows of a table that are due, from the rows, or their times, that are."""
    if table.times is None or not len(due):
        return due if table.times is None else Delta.empty(now.kept(table).schema)
    known = tuple(range(len(table.indexed)))
    if table.key is None:
        return due.select(known)
    found = now.kept(table).lookup(due.rows, known).existing()
    return Delta(found.rows, found.weights)


def _tick(expiring: ref[Expiring], over: Event) -> None:
    """Comes again and again, as long as there is a session."""
    wait = _OFTEN
    while not over.wait(wait):
        found = expiring()
        if found is None:
            return
        wait = found.tick()
        del found
