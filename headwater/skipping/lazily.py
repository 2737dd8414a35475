"""Sketches that rest: brought up to date when they are used, by all that changed since the last time, as if it were one commit.

    sketch(D + ΔD₁ + … + ΔDₙ)  =  sketch(D) + one step of its own dataflow over  ΔD₁ + … + ΔDₙ

Commits do nothing for such a sketch: what changed in tables is remembered anyway. Its states belong to it alone, stand at the
epoch to which it was last brought, and are in memory only; where they are missing, or more has changed since than is
remembered, the sketch is captured anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

from headwater.compiler.dataflow import in_order
from headwater.compiler.pruning import columns_read
from headwater.delta import Delta
from headwater.runtime.driver import Backfill, run_epoch
from headwater.skipping.sketching import scans_of
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from headwater.compiler.dataflow import Step
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Snapshot, ViewEntry
    from headwater.session import Session
    from headwater.skipping.files import Files

# However many rows there are.
_ANY = 1 << 62


@dataclass(frozen=True)
class Resting:
    """The states of a sketch at an epoch; `contents` keeps its rows, `sources` are its tables by name."""

    contents: Step
    steps: tuple[Step, ...]
    sources: Mapping[str, Step]
    states: Mapping[Step, State]
    epoch: int

    @property
    def rows(self) -> pa.RecordBatch:
        return self.states[self.contents][0].contents().rows


@dataclass
class Lazily:
    """The sketches of a session that are maintained when they are used."""

    session: Session
    files: Files
    _known: dict[ViewEntry, Resting] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def reached(self, view: ViewEntry) -> int | None:
        """The epoch to which a sketch was last brought; None if it is yet to be captured."""
        found = self._known.get(view)
        return None if found is None else found.epoch

    def rows(self, view: ViewEntry, now: Snapshot, epoch: int | None = None) -> pa.RecordBatch | None:
        """The rows of a sketch at the epoch of a snapshot, or at an earlier one; None if they are not known then."""
        with self._lock:
            found = self._known.get(view)
            found = None if found is None else self._brought(found, now.epoch if epoch is None else epoch)
            if found is None and epoch is None:
                found = self._captured(view, now)
            if found is None:
                return None
            self._known = {other: states for other, states in self._known.items() if other in now.views.values()}
            self._known[view] = found
            return found.rows

    def _brought(self, resting: Resting, epoch: int) -> Resting | None:
        """The same at a later epoch; None if what changed is not known any more."""
        if epoch < resting.epoch:
            return None
        changes: dict[Step, Delta] = {}
        for name, source in resting.sources.items():
            found = self.session.epochs.history.since(name, resting.epoch)
            if found is None:
                return None
            deltas = [delta for at, delta in found if at <= epoch]
            if deltas:
                changes[source] = consolidate(Delta.concat(deltas))
        outcome = run_epoch(resting.steps, resting.states, changes)
        return replace(resting, states={**resting.states, **outcome.states}, epoch=epoch)

    def _captured(self, view: ViewEntry, now: Snapshot) -> Resting:
        contents = self.session.definitions.apart(now, view.query)
        sources = {name.lower(): now.entries[name.lower()].output for name in view.query.sources}
        steps = tuple(step for step in in_order([contents]) if step not in sources.values())
        content = Backfill(now.states, now.catalog.arranged, outer=now.outer, given=self._given(view, now))
        content.build(steps)
        return Resting(contents, steps, sources, {step: content.built[step] for step in steps}, now.epoch)

    def _given(self, view: ViewEntry, now: Snapshot) -> dict[Step, Delta]:
        """The rows of attached tables that can be read here, with the columns that the sketch reads."""
        assert view.query.root is not None
        columns: dict[str, set[int]] = {}
        for scan, read in zip(scans_of(view.query.root), columns_read(view.query.root), strict=True):
            columns.setdefault(scan.source.lower(), set()).update(read)
        found = {}
        for name, read in columns.items():
            source = now.entries[name].output
            rows = self.files.fetched(now.outer[source], [()], read, _ANY) if source in now.outer else None
            if rows is not None:
                found[source] = rows
        return found
