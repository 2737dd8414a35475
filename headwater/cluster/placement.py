"""Placement: each epoch is run where it is quicker, in the driver or on the executors.

    driver     seconds a changed row  ×  rows                                     as measured in the driver
    executors  seconds of a job of so few rows  +  seconds a row  ×  rows          as measured on the executors

Both are measured for the set of tables that change, since other tables mean other steps. Until something was measured, a row
is taken to cost what rows of the same size mostly cost. What only Spark can evaluate, and all that follows from it, is left to
the driver, which asks Spark; the rest of the epoch may still be placed on the executors.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from threading import get_ident
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.cluster import reading
from headwater.cluster.closures import closed, is_closable
from headwater.cluster.cluster import Frame, Refused, Whole
from headwater.cluster.comparing import Weighted, difference
from headwater.cluster.sides import small_sides
from headwater.errors import ExecutorsNotReady, InvalidOption, JobFailed, NotSupported
from headwater.runtime.driver import Backfill, Outcome, run_epoch
from headwater.state.arrangement import Arrangement

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from headwater.cluster.cluster import Change, Cluster
    from headwater.cluster.yard import Yard, Yards
    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.errors import HeadwaterError
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Snapshot, TableEntry
    from headwater.runtime.driver import Outer
    from headwater.runtime.outside import Content, Outside

MODES = ("auto", "driver", "cluster")
# Fewer changed rows are not worth a thought of executors, nor are fewer rows to build a view of.
_MANY = 50_000
_MANY_TO_BUILD = 2_000_000
# What is assumed before anything was measured: seconds of a job, and seconds a row of a step, in the driver on all its cores,
# and on one core of an executor, where rows are packed, moved and written as well.
_JOB = 1.0
_HERE = 5e-8
_THERE = 5e-7

_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class Decision:
    """Where an epoch was run, and why."""

    where: str
    why: str
    driver: float | None = None
    executors: float | None = None
    """The seconds that each was expected to take."""
    waves: int = 0
    shards: int = 0
    """The shape of the job, where there was one."""


@dataclass
class _Line:
    """Seconds by rows: `start + each · rows`, with the latest measurements counting most."""

    start: float
    each: float
    points: list[tuple[int, float]] = field(default_factory=list)

    def at(self, rows: int) -> float:
        return self.start + self.each * rows

    def learn(self, rows: int, seconds: float) -> None:
        """Adds a point; a line through few points, or through points of about one size, is moved and not turned."""
        self.points = [*self.points[-7:], (rows, seconds)]
        counts = [count for count, _ in self.points]
        if max(counts) > 4 * min(counts):
            mean = sum(counts) / len(counts)
            height = sum(s for _, s in self.points) / len(self.points)
            spread = sum((count - mean) ** 2 for count in counts)
            self.each = max(sum((count - mean) * (s - height) for count, s in self.points) / spread, 0.0)
            self.start = max(height - self.each * mean, 0.0)
        else:
            scale = seconds / self.at(rows) if self.at(rows) > 0 else 1.0
            self.start, self.each = self.start * (1 + scale) / 2, self.each * (1 + scale) / 2


class Placement:
    """The executors of a session, used as its `mode` says."""

    def __init__(self, cluster: Cluster, yards: Yards, mode: str, is_started: Callable[[], bool]) -> None:
        """`is_started` tells whether Spark runs: it is not started for an epoch that the driver can run as well."""
        self._cluster = cluster
        self._yards = yards
        self._is_started = is_started
        self._open: dict[int, list[Yard]] = {}
        self._warned = ""
        self.mode = mode
        self.last = Decision("driver", "nothing was run yet")
        self._driver: dict[frozenset[Step], _Line] = {}
        self._executors: dict[frozenset[Step], _Line] = {}

    # -- epochs

    def epoch(self, now: Snapshot, sources: Mapping[Step, Delta]) -> Outcome | None:
        steps = now.catalog.above(sources)
        placeable, rest = _split(steps)
        self.last = self._decide(now, sources, steps, placeable)
        if self.last.where == "driver":
            return None
        left = {child for step in rest for child in step.inputs}
        wanted = [step for step in (*sources, *placeable) if step in left]
        views = ", ".join(sorted(view.name for view in now.views.values() if view.contents in set(steps)))
        started = perf_counter()
        try:
            yard = self._yard()
            title = f"Headwater, epoch {now.epoch + 1}: {views or 'no views'}"
            ran = self._cluster.run(placeable, now.states, sources, yard, title, wanted)
        except (Refused, NotSupported) as error:
            self.last = Decision("driver", f"the executors refused: {error}")
            return None
        except (ExecutorsNotReady, JobFailed) as error:
            self._require_choice(error)
            self.last = Decision("driver", f"the executors failed: {error}")
            return None
        self._line(self._executors, sources, steps).learn(_rows(sources), perf_counter() - started)
        self.last = replace(self.last, waves=ran.waves, shards=ran.shards)
        outcome = ran.outcome
        if rest:
            changes = {**sources, **outcome.outputs}
            follow = run_epoch(rest, now.states, changes, outcome.states, contents=lambda new: now.following(new, sources))
            outcome = Outcome(follow.states, follow.outputs, outcome.arranged, {**outcome.work, **follow.work})
        return outcome

    def learn(self, sources: Mapping[Step, Delta], seconds: float) -> None:
        if self.mode == "auto" and _rows(sources) >= _MANY // 10:
            line = self._driver.setdefault(frozenset(sources), _Line(0.0, seconds / max(_rows(sources), 1)))
            line.learn(_rows(sources), seconds)

    def committed(self, now: Callable[[], Snapshot]) -> None:
        for yard in self._open.pop(get_ident(), ()):
            self._yards.settled(yard, now)

    def close(self) -> None:
        self._yards.close()

    def _require_choice(self, error: HeadwaterError) -> None:
        """Raises what executors failed with, unless nobody asked for them; then the driver does the work, and says so once."""
        if self.mode != "auto":
            raise error
        if str(error) != self._warned:
            self._warned = str(error)
            _log.warning("The driver goes on alone: %s", error)

    def _yard(self) -> Yard:
        """For a job of this thread, until `committed` is called by it."""
        yard = self._yards.open()
        self._open.setdefault(get_ident(), []).append(yard)
        return yard

    def _decide(
        self, now: Snapshot, sources: Mapping[Step, Delta], steps: Sequence[Step], placeable: Sequence[Step]
    ) -> Decision:
        rows = _rows(sources)
        if self.mode == "driver":
            return Decision("driver", "placement is driver")
        if not any(step.operator.maintenance != "linear" for step in placeable if step not in _tables(now)):
            return Decision("driver", "no step can be placed on executors")
        if self.mode == "cluster":
            return Decision("cluster", "placement is cluster")
        if rows < _MANY:
            return Decision("driver", f"a change of {rows:,} rows is small")
        if not self._is_started():
            return Decision("driver", "Spark was not started yet")
        here = self._line(self._driver, sources, steps).at(rows)
        there = self._line(self._executors, sources, steps).at(rows)
        where = "cluster" if there < here else "driver"
        return Decision(where, f"{here:.2f} s in the driver and {there:.2f} s on executors were expected", here, there)

    def _line(self, lines: dict[frozenset[Step], _Line], sources: Mapping[Step, Delta], steps: Sequence[Step]) -> _Line:
        """What is known of changes of these tables."""
        changed = frozenset(sources)
        if changed not in lines:
            lines[changed] = self._expected(len(steps), there=lines is self._executors)
        return lines[changed]

    def _expected(self, steps: int, *, there: bool) -> _Line:
        """What is assumed of so many steps."""
        return _Line(_JOB, _THERE * steps / self._cluster.cores) if there else _Line(0.0, _HERE * steps)

    # -- builds

    def build(self, now: Snapshot, catalog: Catalog, steps: Sequence[Step], loads: Outer) -> dict[Step, State] | None:
        if self.mode == "driver" or not steps or not self._is_started():
            return None
        outer = {**now.outer, **loads}
        changes, run = _content(now, steps, outer)
        found = [change for several in changes.values() for change in several]
        rows = sum(len(change.kept) for change in found if isinstance(change, Whole))
        # What is outside is read by executors, however little it is.
        outside = any(isinstance(change, Frame) for change in found)
        if _split(run)[1] or not (outside or self._is_built_there(rows, len(run))):
            return None
        names = {name for name, view in catalog.views.items() if name not in now.views}
        sides = small_sides(run, changes, _MANY)
        here = now.content_with(loads)
        here.build([side for side in sides if side not in now.states])
        there = {side: here.built[side] if side in here.built else now.states[side] for side in sides}
        # What is run again begins as it once began; of the rest, the job has all rows to come.
        empty = {step: _emptied(state) for step, state in now.states.items() if step not in set(run)}
        start = Backfill(empty, now.catalog.arranged)
        start.build(run)
        states = {**empty, **start.built, **there}
        title = f"Headwater builds {', '.join(sorted(names)) or 'views again'}"
        try:
            yard = self._yard()
            built = dict(here.built)
            contents: dict[Step, Arrangement] = {}
            for fixpoint in (step for step in run if is_closable(step, start.built)):
                inner, before = _content(now, fixpoint.inputs, outer, there, built, contents)
                done = closed(self._cluster, fixpoint, before, states, inner, yard, title)
                built.update(done.states)
                contents[fixpoint] = done.rows
            left = [step for step in steps if step not in built]
            changes, run = _content(now, left, outer, there, built, contents)
            ran = self._cluster.run(run, states, changes, yard, title)
        except (Refused, NotSupported):
            return None
        except (ExecutorsNotReady, JobFailed) as error:
            self._require_choice(error)
            return None
        return {step: built[step] if step in built else ran.outcome.states[step] for step in steps}

    def _is_built_there(self, rows: int, steps: int) -> bool:
        """Whether executors are to build so many steps over rows that are kept."""
        if self.mode == "cluster":
            return rows > 0
        here, there = (self._expected(steps, there=place).at(rows) for place in (False, True))
        return rows >= _MANY_TO_BUILD and there < here

    # -- snapshots

    def difference(self, table: TableEntry, kept: Arrangement, new: Outside) -> Delta | None:
        """What changes in a table, of which this is kept, when it gets other rows; None if the driver is to compare them."""
        if self.mode == "driver":
            return None
        gone = [] if table.attached is None else [Weighted(table.attached, -1)]
        try:
            title = f"Headwater compares {table.name}"
            return difference(self._cluster, [Weighted(new, 1), *gone], kept, self._yard(), title)
        except Refused:
            return None
        except ExecutorsNotReady as error:
            self._require_choice(error)
            return None


def require_mode(mode: str) -> str:
    if mode not in MODES:
        raise InvalidOption(f"placement is one of {', '.join(MODES)}, not {mode!r}")
    return mode


def _rows(sources: Mapping[Step, Delta]) -> int:
    return sum(map(len, sources.values()))


def _tables(now: Snapshot) -> set[Step]:
    return {table.contents for table in now.tables.values()}


def _split(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The steps that executors can run, and those that only the driver can, with all that follow from them."""
    placeable: list[Step] = []
    rest: dict[Step, None] = {}
    for step in steps:
        if step.operator.needs_driver or any(child in rest for child in step.inputs):
            rest[step] = None
        else:
            placeable.append(step)
    return placeable, list(rest)


def _content(  # noqa: PLR0913, PLR0917  (where content can be)
    now: Snapshot,
    steps: Sequence[Step],
    outer: Outer,
    there: Collection[Step] = (),
    built: Mapping[Step, State] = MappingProxyType({}),
    contents: Mapping[Step, Arrangement] = MappingProxyType({}),
) -> tuple[dict[Step, list[Change]], list[Step]]:
    """Where the content of steps that new ones read is, and what must run beside the new ones to have it.

    Of steps that are `there`, nothing comes. Some are `built` already, and of some the `contents` are known.
    """
    changes: dict[Step, list[Change]] = {}
    run: dict[Step, None] = {}
    outside: list[Step] = []
    states = {**now.states, **built}

    def reach(step: Step) -> None:
        if step in run or step in changes or step in there:
            return
        keeper = step if step.operator.keeps_rows else now.catalog.arranged.get(step)
        if step in contents:
            changes[step] = [Whole(contents[step])]
            return
        if step in states and keeper is not None and keeper in states:
            changes[step] = [Whole(states[keeper][0])]
            return
        if step in outer:
            outside.append(step)
            changes[step] = []
            return
        for child in step.inputs:
            reach(child)
        run[step] = None

    for step in steps:
        reach(step)
    for step in outside:
        changes[step] = _outside(outer[step], [reader for reader in run if step in reader.inputs])
    return changes, list(run)


def _outside(content: Content, readers: Sequence[Step]) -> list[Change]:
    rows, columns = reading.read(content.outside, readers)
    found: list[Change] = [Frame(rows, content.outside.columns, columns)]
    if content.changes is not None and len(content.changes):
        found.append(Whole(content.changes))
    return found


def _emptied(state: State) -> State:
    return tuple(Arrangement.empty(kept.schema, kept.key, kept.width) for kept in state)
