"""The line of epochs: the present snapshot, the step to the next one, and what changed in each.

A commit computes everything beside the present snapshot and then replaces it by one assignment. So a failure changes nothing,
and readers in other threads, who take the snapshot once, see whole epochs. There are two locks, always taken in this order:

    defining   held by who makes the next catalog, from the first look at the present one to the end
    writing    held by who makes the next epoch: a transaction, or a definition that is swapped in. Interrupts wait meanwhile
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.errors import DamagedFile, UnknownEpoch
from headwater.interrupts import uninterrupted
from headwater.runtime.building import Building
from headwater.runtime.catalog import Snapshot, ViewEntry
from headwater.runtime.driver import NOTHING_OUTSIDE, Backfill, run_epoch
from headwater.runtime.executors import NoExecutors
from headwater.runtime.history import Changed, History
from headwater.runtime.journal import NoJournal
from headwater.runtime.rebuilding import Costs, rebuild
from headwater.runtime.recording import Recording
from headwater.runtime.subscriptions import Subscriptions
from headwater.runtime.writer_lock import WriterLock
from headwater.state.arrangement import Arrangement
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import Any

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Entry
    from headwater.runtime.driver import Outcome, Outer
    from headwater.runtime.executors import Executors
    from headwater.runtime.journal import Journal
    from headwater.runtime.streams import Work

# So much is made up for under the lock; what is more, beside the commits, unless they are faster for so many rounds.
_FEW_ROWS = 1_000
_ROUNDS = 10

_log = logging.getLogger("headwater")


class Epochs:
    """Commits epochs, one writer at a time."""

    def __init__(self, now: Snapshot | None = None, history: History | None = None) -> None:
        self.defining = RLock()
        self.writing = WriterLock()
        self.now = Snapshot() if now is None else now
        self.journal: Journal = NoJournal()
        self.executors: Executors = NoExecutors()
        self.work: dict[Step, Work] = {}
        self.history = History(self.now.epoch) if history is None else history
        self.subscriptions = Subscriptions(self.changes)
        self._recordings: tuple[Recording, ...] = ()
        self._costs = Costs()

    def commit(
        self, changes: Mapping[str, Delta], advanced: Mapping[Step, State], positions: Mapping[str, Any] | None = None
    ) -> int:
        """Applies the changes of tables, given by name in lower case, as one epoch; some new states may be known already.

        `positions` are those of all streams after it, if it moves one of them.
        """
        with self.writing:
            started = perf_counter()
            try:
                now, outcome = self._outcome_of_what_is_whole(changes, advanced)
                moved = now.positions if positions is None else positions
                then = Snapshot(now.epoch + 1, now.catalog, {**now.states, **outcome.states}, moved)
                views = _changed(now.catalog, outcome)
                self.journal.commit(then, changes, views, perf_counter() - started)
                for recording in self._recordings:
                    recording.add(outcome.outputs)
                for name, delta in changes.items():
                    self.history.add_if_few(name, then.epoch, delta)
                changed = {name: Changed(then.epoch, delta) for name, delta in views.items()}
                self._proceed(then, changed, outcome.work)
            finally:
                self.executors.committed(lambda: self.now)
            return self.now.epoch

    def replay(self, changes: Mapping[str, Delta], positions: Mapping[str, Any] | None = None) -> int:
        """Applies an epoch that was committed before, as the journal tells it; tables that were lost since do not hinder it."""
        with self.writing:
            now, outcome = self._outcome_of_what_is_whole(changes, {}, lossy=True)
            moved = now.positions if positions is None else positions
            then = Snapshot(now.epoch + 1, now.catalog, {**now.states, **outcome.states}, moved)
            for name, delta in changes.items():
                self.history.add_if_few(name, then.epoch, delta)
            changed = {name: Changed(then.epoch, delta) for name, delta in _changed(now.catalog, outcome).items()}
            self._proceed(then, changed, outcome.work)
            return self.now.epoch

    def _outcome_of_what_is_whole(
        self, changes: Mapping[str, Delta], advanced: Mapping[Step, State], *, lossy: bool = False
    ) -> tuple[Snapshot, Outcome]:
        """The outcome of an epoch, after views with damaged states were set aside; the snapshot it starts from.

        The tables that change must be there, unless the epoch is `lossy`.
        """
        while True:
            now = self.now
            sources = {now.tables[name].source: delta for name, delta in changes.items()}
            try:
                return now, self._outcome(now, sources, advanced)
            except DamagedFile as damage:
                _log.warning("%s", self.set_aside(damage))
                for name in () if lossy else changes:
                    self.now.kept(self.now.tables[name])

    def _outcome(self, now: Snapshot, sources: Mapping[Step, Delta], advanced: Mapping[Step, State]) -> Outcome:
        """The next states: by the deltas, on executors or here, or by a rebuild where that is cheaper.

        The latter, and executors, only while nobody follows the steps' deltas.
        """
        alone = not self._recordings and now.is_whole
        if alone:
            with self.writing.interruptible():
                # A job of Spark may take minutes.
                placed = self.executors.epoch(now, sources)
            if placed is not None:
                return placed
        started = perf_counter()
        if alone and self._costs.favour_rebuild(now, sources):
            outcome = rebuild(now, sources, advanced)
            self._costs.built({step: done for step, done in outcome.work.items() if done.rebuilt}, now, sources)
        else:
            steps = now.catalog.above(sources)
            wanted = {step for recording in self._recordings for step in recording.steps}
            whole = partial(now.following, sources=sources)
            outcome = run_epoch(steps, now.states, sources, advanced, wanted=wanted, contents=whole)
            self._costs.changed(outcome.work, sources)
        self.executors.learn(sources, perf_counter() - started)
        return outcome

    def define(self, catalog: Catalog, rebuilt: Collection[str] = (), loads: Outer = NOTHING_OUTSIDE) -> None:
        """Replaces the catalog as one epoch; the history tells what that changed in the views that are `rebuilt`.

        New tables begin with what they load.

        The new steps are built beside the commits that go on meanwhile, and brought up to them: first beside the next ones, and
        the rest, when it is small, while the others wait.
        """
        with self.defining:
            building = Building(self.now, catalog, rebuilt, loads)
            try:
                with self._recording(building.read) as recording:
                    building.start(recording.reached, self.executors)
                    for _ in range(_ROUNDS):
                        if recording.rows <= _FEW_ROWS:
                            break
                        with self.writing:
                            passed = recording.take(self.now)
                        building.follow(passed)
                    with self.journal.defining():
                        building.states = self.journal.prepare(catalog, building.states)
                        with self.writing:
                            building.follow(recording.take(self.now))
                            self._swap(building)
                            now = self.now
            finally:
                self.executors.committed(lambda: self.now)
            self._costs.built(building.work, now)

    def rehearse(self, catalog: Catalog, rebuilt: Collection[str], loads: Outer) -> None:
        """Builds what `define` would build, and forgets it."""
        with self.defining:
            try:
                Building(self.now, catalog, rebuilt, loads).start(self.now, self.executors)
            finally:
                self.executors.committed(lambda: self.now)

    def set_aside(self, damage: DamagedFile) -> DamagedFile:
        """Goes on without what was in a damaged file; gives the error with the names of what is affected."""
        with self.writing:
            before = self.now.lost
            self.now = self.now.without(damage)
            lost = [entry for entry in self.now.lost if entry not in before]
        views = ", ".join(repr(entry.name) for entry in lost if isinstance(entry, ViewEntry))
        tables = ", ".join(repr(entry.name) for entry in lost if not isinstance(entry, ViewEntry))
        affected = f". The views {views} are affected: s.repair(view) builds one again" if views else ""
        affected += f". The tables {tables} are lost: restore them from a backup" if tables else ""
        return DamagedFile(damage.file, damage.what, affected + ". All others go on")

    def exchange(self, kept: Callable[[State], State]) -> None:
        """Goes on with the same states in another shape."""
        with self.writing:
            now = self.now
            self.now = replace(now, states={step: kept(state) for step, state in now.states.items()})

    def changes(self, name: str, after: int) -> list[Changed]:
        """What changed in a table or view after an epoch, maybe with one that is under way; with columns that only order."""
        known = self.history.since(name, after)
        return self.journal.changes(name, after, self.history.earliest(name)) if known is None else known

    @uninterrupted
    def at(self, entry: Entry, epoch: int) -> Delta:
        """The rows that a table or view had at an epoch: those of now, less all that changed since."""
        now, name = self.now, entry.name.lower()
        self.require(epoch)
        began = self.history.began(name)
        if epoch < began:
            raise UnknownEpoch(f"{entry.name!r} is there from epoch {began} on, and was asked for at epoch {epoch}")
        later = [-delta for changed in self.changes(name, epoch) if changed.epoch <= now.epoch for delta in _deltas(changed)]
        return consolidate(Delta.concat([now.contents(entry), *later]))

    def content_at(self, epoch: int) -> Backfill:
        """What steps gave at an epoch, from the tables and views as they were then; those that were not there are empty."""
        states: dict[Step, State] = {}
        for entry in self.now.entries.values():
            kept = self.now.kept(entry)
            rows = Arrangement.empty(kept.schema, kept.key)
            with suppress(UnknownEpoch):
                rows = rows.insert(self.at(entry, epoch))
            states[entry.contents] = (rows,)
        return Backfill(states, {step.inputs[0]: step for step in states})

    def require(self, epoch: int) -> None:
        """Raises unless the epoch has been."""
        if not isinstance(epoch, int) or not 0 <= epoch <= self.now.epoch:
            raise UnknownEpoch(f"there is no epoch {epoch!r}; the last one is {self.now.epoch}")

    def tell(self) -> None:
        """Lets the subscribers know what changed."""
        self.subscriptions.tell()

    def _swap(self, building: Building) -> None:
        old, catalog = self.now.catalog, building.catalog
        states = {**self.now.states, **building.states}
        live = {step: states[step] for step in catalog.steps if step in states}
        gone = [name for name in old.entries if name not in catalog.entries]
        widened = [
            name for name, table in catalog.tables.items() if name in old.tables and table.source is not old.tables[name].source
        ]
        began = {*building.anew, *widened, *(name for name in catalog.entries if name not in old.entries)}
        then = Snapshot(self.now.epoch + 1, catalog, live, self.now.positions)
        changed = building.changed(then.epoch)
        then = self.journal.define(then, changed, {*began, *building.reshaped})
        self.history.forget([*gone, *began])
        self.history.begin(began, then.epoch)
        self.history.reshape(building.reshaped, then.epoch)
        self.subscriptions.forget(gone)
        self.work = {step: done for step, done in self.work.items() if step in live}
        self._costs.forget(catalog)
        self._proceed(then, changed, building.work)

    def _proceed(self, then: Snapshot, views: Mapping[str, Changed], work: Mapping[Step, Work]) -> None:
        """The next epoch is there. Its changes are told before it is, so that who asks for both misses none."""
        for name, changed in views.items():
            self.history.add(name, changed)
            self.subscriptions.announce(name, changed, then.views[name].arrow)
        self.work.update(work)
        self.now = then

    @contextmanager
    def _recording(self, steps: Collection[Step]) -> Iterator[Recording]:
        with self.writing:
            recording = Recording(self.now, steps)
            self._recordings = (*self._recordings, recording)
        try:
            yield recording
        finally:
            with self.writing:
                self._recordings = tuple(other for other in self._recordings if other is not recording)


def _deltas(changed: Changed) -> list[Delta]:
    """All that changed among the rows as they are kept; with other types, a view cannot be asked for."""
    return [changed.delta] if changed.former is None else [changed.former.gone, changed.delta]


def _changed(catalog: Catalog, outcome: Outcome) -> dict[str, Delta]:
    """What an epoch changed in views, by their names."""
    found = {name: delta for step, delta in outcome.outputs.items() for name in catalog.kept.get(step, ())}
    for name, view in catalog.views.items() if outcome.arranged else ():
        if view.contents in outcome.arranged:
            found[name] = outcome.arranged[view.contents].contents()
    return {name: delta for name, delta in found.items() if len(delta)}
