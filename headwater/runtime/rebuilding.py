"""Beyond break-even: a change may be so large that building the steps anew from what the tables hold costs less.

    delta     seconds a changed row  ×  rows changed          as measured in epochs that changed the same tables
    rebuild   seconds of the build   ×  rows now / rows then  as measured when the steps were built
              + what it takes to read the tables, about as much as to insert their rows

Bulk deltas go through the same loops as builds, so this is rare: a table that is emptied or loaded anew, a small table whose
every row meets many of a large one. Both ways end in the same states. What a rebuild changed in a view is the difference of
what it holds after and before.
"""

from __future__ import annotations

from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.runtime.driver import Backfill, Outcome, run_epoch
from headwater.runtime.streams import Work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Snapshot, ViewEntry

NOTHING: Mapping[Step, Delta] = MappingProxyType({})
# Changes of fewer rows, or that take less time, are not worth a thought.
_MANY = 1_000
_SECONDS = 0.1
# So many rows pass through a step before what they take says something about the next ones.
_TELLING = 10_000
# The rebuild must be so much cheaper, for it is known less well.
_MARGIN = 0.5


class Costs:
    """What was measured of the steps there are."""

    def __init__(self) -> None:
        self._built: dict[Step, tuple[float, int]] = {}
        self._changed: dict[frozenset[Step], dict[Step, tuple[float, float]]] = {}

    def built(self, work: Mapping[Step, Work], now: Snapshot, sources: Mapping[Step, Delta] = NOTHING) -> None:
        """Learns from steps that were built over a snapshot with the changes given."""
        rows = _Rows(now, sources)
        self._built.update((step, (done.seconds, rows.below(step))) for step, done in work.items())

    def changed(self, work: Mapping[Step, Work], sources: Mapping[Step, Delta]) -> None:
        """Learns from an epoch."""
        count = sum(map(len, sources.values()))
        if count < _MANY:
            return
        known = self._changed.setdefault(frozenset(sources), {})
        for step, done in work.items():
            if done.rows_in + done.rows_out >= _TELLING:
                # Sums, in which what is long ago counts less, and large changes more than small ones.
                seconds, rows = known.get(step, (0.0, 0.0))
                known[step] = (seconds / 2 + done.seconds, rows / 2 + count)

    def forget(self, catalog: Catalog) -> None:
        """Keeps what concerns the steps of a catalog."""
        live = set(catalog.steps)
        self._built = {step: known for step, known in self._built.items() if step in live}
        self._changed = {
            sources: {step: costs for step, costs in known.items() if step in live}
            for sources, known in self._changed.items()
            if sources <= live
        }

    def favour_rebuild(self, now: Snapshot, sources: Mapping[Step, Delta]) -> bool:
        """Whether the steps above the sources are better built anew."""
        count = sum(map(len, sources.values()))
        if count < _MANY:
            return False
        steps = _steps_to_build(now.catalog, sources)
        outside = {table.source for table in now.catalog.attached.values()}
        if any(not outside.isdisjoint(now.catalog.below[step]) for step in steps):
            # Its rows would have to be brought here.
            return False
        known = self._changed.get(frozenset(sources), {})
        delta = count * sum(self._rate(known, step) for step in steps)
        if delta < _SECONDS or any(view.refresh == "incremental" for view in _views(now.catalog, steps)):
            return False
        rows = _Rows(now, sources)
        tables = [table.contents for table in now.tables.values() if table.source in sources]
        rebuild = sum(rows.below(step) * self._rate(known, step) for step in tables)
        for step in steps:
            seconds, then = self._built.get(step, (0.0, 0))
            rebuild += seconds * rows.below(step) / max(then, 1)
        return rebuild < _MARGIN * delta

    def _rate(self, known: Mapping[Step, tuple[float, float]], step: Step) -> float:
        """Seconds a changed row; where none was measured yet, as much as a row of a build."""
        if step in known:
            seconds, rows = known[step]
            return seconds / rows
        seconds, count = self._built.get(step, (0.0, 0))
        return seconds / max(count, _TELLING)


def rebuild(now: Snapshot, sources: Mapping[Step, Delta], advanced: Mapping[Step, State]) -> Outcome:
    """An epoch in which all steps above the sources are built anew; of their outputs, it gives what views keep."""
    catalog = now.catalog
    tables = [table.contents for table in catalog.tables.values() if table.source in sources]
    outcome = run_epoch(tables, now.states, sources, advanced)
    steps = _steps_to_build(catalog, sources)
    again = set(steps)
    kept = {step: state for step, state in now.states.items() if step not in again}
    keepers = {step.inputs[0]: step for step in kept if step.operator.keeps_rows}
    backfill = Backfill({**kept, **outcome.states}, keepers)
    backfill.build(steps)
    outcome.states.update(backfill.built)
    outcome.work.update((step, backfill.work[step]) for step in steps)
    for view in _views(catalog, steps):
        started = perf_counter()
        change = outcome.states[view.contents][0].difference(now.kept(view))
        if len(change):
            outcome.outputs[view.kept] = change
        done = outcome.work[view.contents]
        seconds = done.seconds + perf_counter() - started
        outcome.work[view.contents] = Work(done.rows_in, done.rows_out, seconds, rebuilt=True)
    return outcome


def _steps_to_build(catalog: Catalog, sources: Mapping[Step, Delta]) -> list[Step]:
    """The steps above the sources, but for what keeps the tables themselves."""
    tables = {table.contents for table in catalog.tables.values()}
    return [step for step in catalog.above(sources) if step not in tables]


def _views(catalog: Catalog, steps: Sequence[Step]) -> list[ViewEntry]:
    above = set(steps)
    return [view for view in catalog.views.values() if view.contents in above]


class _Rows:
    """How many rows there are in the tables, after the changes given."""

    def __init__(self, now: Snapshot, sources: Mapping[Step, Delta]) -> None:
        self._now = now
        self._changes = sources
        self._contents = {table.source: table for table in now.tables.values()}
        self._counts: dict[Step, int] = {}

    def below(self, step: Step) -> int:
        """The rows of all tables that a step depends on."""
        return sum(map(self._count, self._now.catalog.below[step]))

    def _count(self, source: Step) -> int:
        if source not in self._counts:
            change = self._changes.get(source)
            self._counts[source] = self._now.kept(self._contents[source]).total
            self._counts[source] += 0 if change is None else int(change.weights.sum())
        return self._counts[source]
