"""Which rows of an arrangement are due: found in time that follows their number.

    order(run)      the rows of a run by their time, found once, for runs never change
    candidates      of each run those that were not passed yet, up to the time asked for, the earliest of all first
    due             the candidates that are still there, as often as they are

A row that is passed was there no more, or has gone in the epoch that passed it. The trap: it may come again, late, and if that
cancels out with the deletion before it, no run has a new row. So who commits tells of late rows, and they are candidates as
well. A run is sorted when it is first asked about, which costs no more than it did to merge it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta
from headwater.runtime.lifetimes import numbers_of
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.state.arrangement import Arrangement
    from headwater.state.runs import Run

    Numbers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class _Order:
    """The places of a run's rows by their times; the first `passed` of them were looked at."""

    places: Numbers
    times: Numbers
    passed: int = 0


@dataclass(frozen=True, eq=False)
class Due:
    """Rows that are there, as often as their weights say, and due."""

    rows: Delta
    looked_at: int
    """How many candidates there were."""
    _passing: Sequence[tuple[_Order, int]]
    _late: list[pa.RecordBatch] = field(default_factory=list)

    def passed(self) -> None:
        """They are gone; to be called when that is certain."""
        for order, count in self._passing:
            order.passed += count
        self._late.clear()


class Calendar:
    """The rows of an arrangement by the time in one of its columns. Rows without a time are never due."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._orders: dict[Run, _Order] = {}
        self._late: list[pa.RecordBatch] = []
        self._until = np.iinfo(np.int64).min

    def late(self, delta: Delta) -> None:
        """Notes a change of the arrangement, of which some rows may be due already."""
        column = delta.rows.column(self._column)
        is_late = (numbers_of(column) <= self._until) & (delta.weights > 0)
        if column.null_count:
            is_late &= column.is_valid().to_numpy(zero_copy_only=False)
        if is_late.any():
            self._late.append(delta.where(is_late).rows)

    def latest(self, kept: Arrangement) -> int | None:
        """The latest time there is, or was, in the arrangement."""
        return max((int(order.times[-1]) for order in self._known(kept) if len(order.times)), default=None)

    def due(self, kept: Arrangement, until: int, most: int) -> Due:
        """The rows with a time up to the one given, the earliest first; of so many candidates at most, and the late ones."""
        self._until = max(self._until, until)
        orders = self._known(kept)
        stops = [min(int(np.searchsorted(o.times, until, side="right")), o.passed + most) for o in orders]
        found = [order.times[order.passed : stop] for order, stop in zip(orders, stops, strict=True)]
        late = self._late
        if not late and not any(map(len, found)):
            return Due(Delta.empty(kept.schema), 0, ())
        counts = _earliest(found, most)
        places = [
            (run, order.places[order.passed : order.passed + count])
            for run, order, count in zip(kept.runs, orders, counts, strict=True)
            if count
        ]
        parts = [*([kept.rows_at(places)] if places else []), *late]
        rows = consolidate(Delta.concat([Delta.inserting(part) for part in parts])).rows
        weights = kept.weights_of(rows)
        looked_at = sum(counts) + sum(batch.num_rows for batch in late)
        return Due(Delta(rows, weights).where(weights > 0), looked_at, list(zip(orders, counts, strict=True)), late)

    def _known(self, kept: Arrangement) -> list[_Order]:
        """The order of each run; of runs that are gone, nothing is kept."""
        self._orders = {run: self._orders.get(run) or self._sorted(kept, run) for run in kept.runs}
        return list(self._orders.values())

    def _sorted(self, kept: Arrangement, run: Run) -> _Order:
        there = np.flatnonzero(run.weights > 0)
        column = kept.rows_at([(run, there)], (self._column,)).column(0)
        times = numbers_of(column)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            there, times = there[valid], times[valid]
        order = np.argsort(times, kind="stable")
        return _Order(there[order], times[order])


def _earliest(times: Sequence[Numbers], most: int) -> list[int]:
    """How many of each ascending sequence are among so many that are the earliest of all."""
    if sum(map(len, times)) <= most:
        return [len(each) for each in times]
    owner = np.repeat(np.arange(len(times)), [len(each) for each in times])
    chosen = np.argsort(np.concatenate(times), kind="stable")[:most]
    return np.bincount(owner[chosen], minlength=len(times)).tolist()
