"""The line of epochs: the present snapshot, the step to the next one, and what changed in each.

A commit computes everything beside the present snapshot and then replaces it by one assignment. So a failure changes nothing,
and readers in other threads, who take the snapshot once, see whole epochs. There are two locks, always taken in this order:

    defining   held by who makes the next catalog, from the first look at the present one to the end
    writing    held by who makes the next epoch: a transaction, or a definition that is swapped in
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from headwater.runtime.building import Building
from headwater.runtime.catalog import Snapshot
from headwater.runtime.driver import run_epoch
from headwater.runtime.history import History
from headwater.runtime.rebuilding import Costs, rebuild
from headwater.runtime.recording import Recording
from headwater.runtime.subscriptions import Subscriptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog
    from headwater.runtime.driver import Outcome, Work

# So much is made up for under the lock; what is more, beside the commits, unless they are faster for so many rounds.
_FEW_ROWS = 1_000
_ROUNDS = 10


class Epochs:
    """Commits epochs, one writer at a time."""

    def __init__(self) -> None:
        self.defining = RLock()
        self.writing = RLock()
        self.now = Snapshot()
        self.work: dict[Step, Work] = {}
        self.history = History()
        self.subscriptions = Subscriptions()
        self._recordings: tuple[Recording, ...] = ()
        self._costs = Costs()

    def commit(self, changes: Mapping[str, Delta], advanced: Mapping[Step, State]) -> int:
        """Applies the changes of tables, given by name in lower case, as one epoch; some new states may be known already."""
        with self.writing:
            now = self.now
            sources = {now.tables[name].source: delta for name, delta in changes.items()}
            outcome = self._outcome(now, sources, advanced)
            for recording in self._recordings:
                recording.add(outcome.outputs)
            shown = now.catalog.shown
            changed = {name: delta for step, delta in outcome.outputs.items() if step in shown for name in shown[step]}
            self._proceed(Snapshot(now.epoch + 1, now.catalog, {**now.states, **outcome.states}), changed, outcome.work)
            return self.now.epoch

    def _outcome(self, now: Snapshot, sources: Mapping[Step, Delta], advanced: Mapping[Step, State]) -> Outcome:
        """The next states: by the deltas, or by a rebuild where that is cheaper and nobody follows the steps' deltas."""
        if not self._recordings and self._costs.favour_rebuild(now, sources):
            outcome = rebuild(now, sources, advanced)
            self._costs.built({step: done for step, done in outcome.work.items() if done.rebuilt}, now, sources)
        else:
            outcome = run_epoch(now.catalog.above(sources), now.states, sources, advanced)
            self._costs.changed(outcome.work, sources)
        return outcome

    def define(self, catalog: Catalog, rebuilt: Collection[str] = ()) -> None:
        """Replaces the catalog as one epoch; the history tells what that changed in the views that are `rebuilt`.

        The new steps are built beside the commits that go on meanwhile, and brought up to them: first beside the next ones, and
        the rest, when it is small, while the others wait.
        """
        with self.defining:
            building = Building(self.now.catalog, catalog, rebuilt)
            with self._recording(building.read) as recording:
                building.start(recording.reached)
                for _ in range(_ROUNDS):
                    if recording.rows <= _FEW_ROWS:
                        break
                    with self.writing:
                        passed = recording.take(self.now)
                    building.follow(passed)
                with self.writing:
                    building.follow(recording.take(self.now))
                    self._swap(building)
                    now = self.now
            self._costs.built(building.work, now)

    def tell(self) -> None:
        """Calls the subscribers of what changed; to be called without a lock."""
        self.subscriptions.tell()

    def _swap(self, building: Building) -> None:
        old, catalog = self.now.catalog, building.catalog
        states = {**self.now.states, **building.states}
        live = {step: states[step] for step in catalog.steps}
        gone = [name for name in old.entries if name not in catalog.entries]
        self.history.forget([*gone, *building.restarted])
        self.subscriptions.forget(gone)
        self.work = {step: done for step, done in self.work.items() if step in live}
        self._costs.forget(catalog)
        self._proceed(Snapshot(self.now.epoch + 1, catalog, live), building.changed, building.work)

    def _proceed(self, then: Snapshot, changed: Mapping[str, Delta], work: Mapping[Step, Work]) -> None:
        """The next epoch is there. Its changes are told before it is, so that who asks for both misses none."""
        for name, delta in changed.items():
            self.history.add(name, then.epoch, delta)
            self.subscriptions.announce(name, then.epoch, delta, then.views[name].arrow)
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
