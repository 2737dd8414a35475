"""What some steps give while epochs pass, for who is busy meanwhile.

Several epochs are one change: the sum of their deltas, from the states before the first to the states after the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.delta import Delta
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.compiler.dataflow import Step
    from headwater.runtime.catalog import Snapshot


@dataclass(frozen=True, eq=False)
class Passed:
    """What happened between two snapshots, delta by delta."""

    before: Snapshot
    after: Snapshot
    deltas: Mapping[Step, list[Delta]]

    def changes(self) -> dict[Step, Delta]:
        """The net change of each step."""
        return {step: consolidate(Delta.concat(deltas)) for step, deltas in self.deltas.items()}


class Recording:
    """The outputs of the given steps since the snapshot `reached`."""

    def __init__(self, reached: Snapshot, steps: Collection[Step]) -> None:
        self.reached = reached
        self.rows = 0
        self.steps = steps
        self._deltas: dict[Step, list[Delta]] = {}

    def add(self, outputs: Mapping[Step, Delta]) -> None:
        """Notes what one epoch gave."""
        for step in self.steps:
            if step in outputs:
                self._deltas.setdefault(step, []).append(outputs[step])
                self.rows += len(outputs[step])

    def take(self, now: Snapshot) -> Passed:
        """All that was noted until now; the recording goes on from here."""
        passed = Passed(self.reached, now, self._deltas)
        self.reached, self._deltas, self.rows = now, {}, 0
        return passed
