"""Folding: runs that are only in memory go to files, and the arrangements go on with the files in their place.

Of an arrangement, the newest runs are merged before they are written, so that each fold adds one run to it. Files of which
little is still in use are written again with the next fold, so that they can go.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from headwater.state.arrangement import Arrangement, exchanged
from headwater.store import runfiles
from headwater.store.manifest import Kept, place_of
from headwater.store.runfiles import LARGE, StoredRun

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from headwater.operators.operator import State
    from headwater.state.arrangement import Exchange
    from headwater.state.runs import Run
    from headwater.store.disk import Disk


class Fold:
    """Runs on their way to files."""

    def __init__(self, disk: Disk, new_name: Callable[[], str], sparse: Collection[str] = ()) -> None:
        """`sparse` are the files of which too little is in use."""
        self._disk = disk
        self._new_name = new_name
        self._sparse = sparse
        self._written: dict[Run, Exchange] = {}
        # An arrangement may get into better shape at any time: what counts is what it was made of when it was written.
        self._runs: dict[Arrangement, tuple[Run, ...]] = {}
        self.bytes = 0

    def write(self, states: Iterable[State]) -> None:
        """Writes all runs of the states that are not in files yet."""
        pending = [each for state in states for arrangement in state for each in self._pending(arrangement)]
        self._written.update((parts[0], (parts, nothing)) for parts, nothing in pending if not len(nothing))
        pending = [each for each in pending if len(each[1])]
        small = [each for each in pending if each[1].nbytes < LARGE]
        large = [[each] for each in pending if each[1].nbytes >= LARGE]
        for group in [*large, small] if small else large:
            stored = runfiles.write(self._disk, self._new_name(), [run for _, run in group])
            for (parts, _), run in zip(group, stored, strict=True):
                self._written[parts[0]] = (parts, run)
                self.bytes += run.nbytes

    def kept(self, state: State) -> tuple[Kept, ...]:
        """A state of which all was written, for the manifest."""
        return tuple(Kept.of(a, [place_of(run) for run in exchanged(self._runs[a], self._written)]) for a in state)

    def stored(self, state: State) -> State:
        """A state of which all was written, of files alone."""
        return tuple(Arrangement(a.schema, a.key, a.width, exchanged(self._runs[a], self._written)) for a in state)

    def exchanged(self, state: State) -> State:
        """The state that was written, or a later one, with files in place of runs."""
        return tuple(arrangement.exchanged(self._written) for arrangement in state)

    def _pending(self, arrangement: Arrangement) -> Iterator[tuple[tuple[Run, ...], Run]]:
        """Runs to be written, and the neighbours that each of them is the sum of."""
        self._runs[arrangement] = arrangement.runs
        for stored, group in groupby(self._runs[arrangement], lambda run: isinstance(run, StoredRun)):
            found = tuple(group)
            if stored:
                yield from (((run,), run) for run in found if run.file in self._sparse)
            elif arrangement.is_merging:
                yield from (((run,), run) for run in found)
            else:
                yield found, arrangement.merged(found)
