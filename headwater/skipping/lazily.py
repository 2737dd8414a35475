"""Sketches that rest: brought up to date when they are used, by all that changed since the last time, as if it were one commit.

    sketch(D + ΔD₁ + … + ΔDₙ)  =  sketch(D) + one step of its own dataflow over  ΔD₁ + … + ΔDₙ

Commits do nothing for such a sketch: what changed in tables is remembered anyway. Rows that no access selects are left out
before changes are put together. Its states belong to it alone, stand at the epoch to which it was last brought, and are in
memory only; where they are missing, or more has changed since than is remembered, the sketch is captured anew. So it is where
that is expected to cost less:

    maintain    seconds a changed row, as measured when it was maintained      ×  rows changed
    capture     seconds of the last capture                                    ×  rows now / rows then
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from headwater.compiler.dataflow import in_order
from headwater.compiler.pruning import columns_read
from headwater.compiler.recipes import Mask
from headwater.delta import Delta
from headwater.operators.operator import Exhausted
from headwater.runtime.driver import Backfill, run_epoch
from headwater.sketches.tuning import needed
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

# So many rows must change before what they take says something about others.
_TELLING = 100
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
    needed: Mapping[str, Mask]
    """For which changed rows of a table the sketch is touched at all."""

    @property
    def rows(self) -> pa.RecordBatch:
        return self.states[self.contents][0].contents().rows


@dataclass
class Upkeep:
    """What was measured of a sketch: captures, and how it was maintained; old figures count less than new ones."""

    captures: int = 0
    capture_seconds: float = 0.0
    rows_captured: int = 0
    maintained: int = 0
    seconds: float = 0.0
    rows: float = 0.0

    def captured(self, seconds: float, rows: int) -> None:
        self.captures += 1
        self.capture_seconds, self.rows_captured = seconds, rows

    def followed(self, seconds: float, rows: int) -> None:
        self.maintained += 1
        if rows >= _TELLING:
            self.seconds, self.rows = self.seconds / 2 + seconds, self.rows / 2 + rows

    def favours_capture(self, changed: int, rows: int) -> bool:
        """Whether to capture it anew from so many rows is expected to be cheaper than to follow so many changed ones."""
        if not self.rows or not self.captures:
            return False
        capture = self.capture_seconds * rows / max(1, self.rows_captured)
        return changed * self.seconds / self.rows > capture


@dataclass
class Lazily:
    """The sketches of a session that are maintained when they are used."""

    session: Session
    files: Files
    upkeep: dict[ViewEntry, Upkeep] = field(default_factory=dict)
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
            found = None if found is None else self._brought(view, found, now, epoch)
            if found is None and epoch is None:
                found = self._captured(view, now)
            if found is None:
                return None
            self._known = {other: states for other, states in self._known.items() if other in now.views.values()}
            self.upkeep = {other: costs for other, costs in self.upkeep.items() if other in now.views.values()}
            self._known[view] = found
            return found.rows

    def _brought(self, view: ViewEntry, resting: Resting, now: Snapshot, past: int | None) -> Resting | None:
        """The same at a later epoch; None if what changed is not known any more, or if it is better captured anew."""
        epoch = now.epoch if past is None else past
        if epoch < resting.epoch:
            return None
        started = perf_counter()
        changes: dict[Step, Delta] = {}
        for name, source in resting.sources.items():
            found = self.session.epochs.history.since(name, resting.epoch)
            if found is None:
                return None
            deltas = [self._selected(resting, name, changed.delta) for changed in found if changed.epoch <= epoch]
            if deltas:
                changes[source] = consolidate(Delta.concat(deltas))
        count, costs = sum(map(len, changes.values())), self.upkeep.setdefault(view, Upkeep())
        if past is None and costs.favours_capture(count, self._rows(resting, now)):
            return None
        try:
            outcome = run_epoch(resting.steps, resting.states, changes)
        except Exhausted:
            # A buffer has run empty: it is filled from the tables, as all else is.
            return None
        if count:
            costs.followed(perf_counter() - started, count)
        return replace(resting, states={**resting.states, **outcome.states}, epoch=epoch)

    def _selected(self, resting: Resting, name: str, delta: Delta) -> Delta:
        """The rows of a change that concern the sketch."""
        mask = resting.needed.get(name)
        return delta if mask is None or not len(delta) else delta.where(mask(delta.rows))

    def _rows(self, resting: Resting, now: Snapshot) -> int:
        return sum(now.total(now.entries[name]) for name in resting.sources)

    def _captured(self, view: ViewEntry, now: Snapshot) -> Resting:
        started = perf_counter()
        contents = self.session.definitions.apart(now, view.query)
        sources = {name.lower(): now.entries[name.lower()].output for name in view.query.sources}
        steps = tuple(step for step in in_order([contents]) if step not in sources.values())
        content = Backfill(now.states, now.catalog.arranged, outer=now.outer, given=self._given(view, now))
        content.build(steps)
        assert view.sketch is not None
        assert view.query.root is not None
        selected = needed(view.query.root) if view.sketch.tuning.push_down else {}
        masks = {name: Mask(condition, self.session.engines) for name, condition in selected.items()}
        found = Resting(contents, steps, sources, {step: content.built[step] for step in steps}, now.epoch, masks)
        self.upkeep.setdefault(view, Upkeep()).captured(perf_counter() - started, self._rows(found, now))
        return found

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
