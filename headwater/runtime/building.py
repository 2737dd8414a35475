"""New steps of a catalog in the making: built over one snapshot, then brought up to the present one, while epochs go on.

    start    state and content of the new steps at epoch E, from scratch
    follow   one step of the dataflow over all that changed from E to a later epoch, as if it had been one commit

A step that was there before is not built again. Of what it gives, the new ones see the deltas that were recorded meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater.delta import Delta
from headwater.interrupts import uninterrupted
from headwater.runtime.driver import NOTHING_OUTSIDE, run_epoch
from headwater.runtime.history import Changed, Former, read, same_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.runtime.driver import Outer
    from headwater.runtime.executors import Executors
    from headwater.runtime.history import Change
    from headwater.runtime.recording import Passed
    from headwater.runtime.streams import Work


class Building:
    """The states that a catalog needs beyond those that there are, and how it changes the views that are rebuilt."""

    def __init__(self, now: Snapshot, catalog: Catalog, rebuilt: Collection[str] = (), loads: Outer = NOTHING_OUTSIDE) -> None:
        """`loads` are the rows with which new tables begin, by the steps that give them."""
        old = now.catalog
        self._loads = loads
        self.catalog = catalog
        self.states: dict[Step, State] = {}
        self.work: dict[Step, Work] = {}
        existing = set(now.states)
        lost = set(old.steps) - existing
        repaired = {step for name in rebuilt for step in catalog.behind(catalog.views[name])}
        self._new = [step for step in catalog.steps if step not in existing and (step not in lost or step in repaired)]
        self._views = {name: catalog.views[name] for name in rebuilt}
        self._replaced = {name: old.views[name] for name in rebuilt if name in old.views}
        self._lost = {name for name, view in self._replaced.items() if view.contents not in existing}
        self.reshaped = [
            name
            for name, view in self._replaced.items()
            if name not in self._lost and view.kept.types != self._views[name].kept.types
        ]
        """The views whose rows, as they are kept, have other columns than before."""
        self._former: dict[str, list[Delta]] = {
            name: []
            for name, view in self._replaced.items()
            if name in self.reshaped or (name not in self._lost and not same_columns(view.arrow, self._views[name].arrow))
        }
        self.anew = [name for name in self._views if name not in self._replaced or name in self._lost]
        """The views that are new, or were lost: nobody knows what they were before."""
        shown = [view.kept for view in (*self._views.values(), *self._replaced.values())]
        inputs = [child for step in self._new for child in step.inputs]
        self.read = frozenset(existing.intersection([*shown, *inputs]))
        """The existing steps whose deltas the new ones, and the views, are to follow."""
        self._changed: dict[str, list[Change]] = {}

    def start(self, now: Snapshot, executors: Executors) -> None:
        """Builds everything over the content at a snapshot."""
        # Of an attached table, nothing has changed yet.
        changes = [step for step in self._new if step in self.catalog.attached]
        steps = [step for step in self._new if step not in changes]
        placed = executors.build(now, self.catalog, steps, self._loads) if now.is_whole else None
        if placed is None:
            content = now.content_with(self._loads)
            content.build(steps)
            self.states = content.built
            self.work = {step: content.work[step] for step in self.states}
        else:
            self.states = placed
        self.states.update((step, step.operator.start()[0]) for step in changes)
        states = {**now.states, **self.states}
        for name, view in self._views.items():
            kept = states[view.contents][0]
            # What executors have built stays in files.
            self._changed[name] = [kept.contents() if placed is None else kept]
            if name not in self.anew:
                self._retracted(name).append(-now.contents(self._replaced[name]))

    @uninterrupted
    def follow(self, passed: Passed) -> None:
        """Brings everything up to a later snapshot."""
        changes = passed.changes()
        arranged = {step: passed.after.states[step] for step in self.read if step.operator.keeps_rows}
        whole = replace(passed.after, catalog=self.catalog)
        outcome = run_epoch(
            self._new,
            {**passed.before.states, **self.states},
            changes,
            arranged,
            contents=lambda new: whole.following({**self.states, **new}, {}),
        )
        self.states.update((step, state) for step, state in outcome.states.items() if step not in arranged)
        for name, view in self._views.items():
            if view.kept in outcome.outputs:
                self._changed[name].append(outcome.outputs[view.kept])
            if name not in self.anew and self._replaced[name].kept in changes:
                self._retracted(name).append(-changes[self._replaced[name].kept])

    def changed(self, epoch: int) -> dict[str, Changed]:
        """How the content of each rebuilt view changes when the catalog is swapped in with an epoch."""
        return {
            name: Changed(
                epoch,
                changes[0] if len(changes) == 1 else Delta.concat([read(change) for change in changes]),
                Former(Delta.concat(self._former[name]), self._replaced[name].arrow) if name in self._former else None,
                anew=name in self.anew,
            )
            for name, changes in self._changed.items()
        }

    def _retracted(self, name: str) -> list[Any]:
        """Where the rows go that a view had: beside the new ones, or apart from them if these have other columns."""
        return self._former[name] if name in self._former else self._changed[name]
