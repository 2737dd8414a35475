"""The line of epochs: the present snapshot, the step to the next one, and what changed in each.

A commit computes everything beside the present snapshot and then replaces it by one assignment. So a failure changes nothing,
and readers in other threads, who take the snapshot once, see whole epochs.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

from headwater.compiler.dataflow import in_order
from headwater.runtime.catalog import Snapshot, ViewEntry
from headwater.runtime.driver import run_epoch
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Entry
    from headwater.runtime.driver import Work

    # Gets the epoch, what changed, and the view's columns under the users' names.
    Subscriber = Callable[[int, Delta, pa.Schema], None]

_log = logging.getLogger("headwater")


class Epochs:
    """Commits epochs, one writer at a time."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.now = Snapshot()
        self.work: dict[Step, Work] = {}
        self._order: list[Step] = []
        self._history: dict[str, list[tuple[int, Delta]]] = defaultdict(list)
        self._subscribers: dict[str, list[Subscriber]] = defaultdict(list)
        self._calls: deque[tuple[str, Subscriber, int, Delta, pa.Schema]] = deque()
        self._calling = False

    def commit(self, changes: Mapping[str, Delta]) -> int:
        """Applies the changes of tables, given by name in lower case, as one epoch."""
        with self.lock:
            tables = self.now.tables
            sources = {tables[name].source: delta for name, delta in changes.items()}
            outcome = run_epoch(self._order, self.now.states, sources)
            self.work.update(outcome.work)
            states = {**self.now.states, **outcome.states}
            self.now = replace(self.now, epoch=self.now.epoch + 1, states=states)
            self._publish(
                {name: outcome.outputs[v.output] for name, v in self.now.views.items() if v.output in outcome.outputs}
            )
            return self.now.epoch

    def redefine(
        self,
        entries: Mapping[str, Entry],
        states: Mapping[Step, State],
        work: Mapping[Step, Work],
        changed: Mapping[str, Delta],
        restarted: Iterable[str],
    ) -> None:
        """Replaces the catalog as one epoch.

        `changed` tells how the content of views changed by that; the history of `restarted` ones begins anew, with all rows.
        """
        with self.lock:
            roots = [step for entry in entries.values() for step in (entry.output, entry.contents)]
            self._order = in_order(roots)
            live = set(self._order)
            self.work = {step: done for step, done in {**self.work, **work}.items() if step in live}
            kept = {step: state for step, state in states.items() if step in live}
            self.now = Snapshot(self.now.epoch + 1, dict(entries), kept)
            for name in [name for name in (*self._history, *self._subscribers) if name not in entries]:
                self._history.pop(name, None)
                self._subscribers.pop(name, None)
            for name in restarted:
                self._history.pop(name, None)
            self._publish(changed)

    @property
    def steps(self) -> list[Step]:
        return self._order

    def changes(self, name: str, since: int) -> list[tuple[int, Delta]]:
        """What happened to a view after an epoch."""
        return [(epoch, delta) for epoch, delta in self._history.get(name, ()) if epoch > since]

    def subscribe(self, name: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls the subscriber after each epoch that changes the view; the answer ends that."""
        with self.lock:
            self._subscribers[name].append(subscriber)

        def end() -> None:
            with self.lock, suppress(ValueError):
                self._subscribers[name].remove(subscriber)

        return end

    def _publish(self, changed: Mapping[str, Delta]) -> None:
        epoch = self.now.epoch
        for name, raw in changed.items():
            delta = consolidate(raw)
            entry = self.now.entries[name]
            if not len(delta) or not isinstance(entry, ViewEntry):
                continue
            self._history[name].append((epoch, delta))
            self._calls += [(name, subscriber, epoch, delta, entry.arrow) for subscriber in self._subscribers[name]]
        self._call()

    def _call(self) -> None:
        """Calls subscribers, epoch by epoch, also if one of them commits the next epoch."""
        if self._calling:
            return
        self._calling = True
        try:
            while self._calls:
                name, subscriber, epoch, delta, names = self._calls.popleft()
                try:
                    subscriber(epoch, delta, names)
                except Exception:  # noqa: BLE001  (whatever a user's function may raise)
                    _log.exception("A subscriber of view %r failed; epoch %d is committed all the same", name, epoch)
        finally:
            self._calling = False
