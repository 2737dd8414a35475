"""A sample of what a query reads: of its largest table some rows, or some groups with all their rows; of the others every row.

    rows      one of many rows, each with the weight of all that it stands for: counts and sums of large groups come out right
    groups    all rows of one of many keys that the query groups by: counts and sums of small groups are what they are

Only one table is drawn from, for partners that are both drawn by lot seldom meet. The same rows give the same sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.delta import Delta, one_batch
from headwater.errors import EvaluationFailed
from headwater.runtime.catalog import TableEntry
from headwater.sketches.transfer import groupings
from headwater.skipping.sketching import scans_of
from headwater.state.hashing import hash_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headwater.runtime.catalog import Entry, Snapshot

# Of the largest table this part is drawn, but at least and at most so many rows; others must have no more than the last.
PART, FEWEST, MOST = 0.05, 100_000, 1_000_000
# With fewer rows than this of a group its sum tells little.
_TELLING = 30
# A few groups may have most of the rows; then so many times the rows that were wanted are too many.
_TIMES = 4
_SEED = 7
_SLICE = 1 << 20


@dataclass(frozen=True)
class Sample:
    """Rows by table, with the weights that they count with; `table` is the one drawn from, None if all rows are there.

    Of that table, `units` says which rows were drawn together, and `rate` which part of all units was.
    """

    rows: Mapping[str, Delta]
    table: str | None
    units: NDArray[np.uint64]
    rate: float
    weighted: bool
    """Whether a row counts as often as the rows that it stands for."""


def sampled(now: Snapshot, root: plan.Node) -> Sample | None:
    """What to evaluate a query of this plan on in place of its tables; None if two of them are large, or one is a view."""
    names = list(dict.fromkeys(scan.source.lower() for scan in scans_of(root)))
    sizes = {name: _stored(now, now.entries[name]) for name in names}
    largest = max(names, key=sizes.__getitem__)
    wanted = min(MOST, max(FEWEST, round(PART * sizes[largest])))
    large = sizes[largest] > wanted
    if any(size > MOST for name, size in sizes.items() if name != largest) or (large and largest not in now.tables):
        return None
    rows = {name: _every_row(now, now.entries[name]) for name in names if not large or name != largest}
    if not large:
        return Sample(rows, None, np.empty(0, np.uint64), 1.0, weighted=False)
    return _drawn(now, root, largest, wanted / sizes[largest], rows)


def _stored(now: Snapshot, entry: Entry) -> int:
    """How many rows there are, equal ones counted once where that is known."""
    return now.total(entry) if entry.output in now.outer else len(now.kept(entry))


def _every_row(now: Snapshot, entry: Entry) -> Delta:
    return now.contents(entry) if isinstance(entry, TableEntry) else now.content.content(entry.output)


def _drawn(now: Snapshot, root: plan.Node, largest: str, rate: float, others: Mapping[str, Delta]) -> Sample:
    entry, keys = now.entries[largest], _keys(root, largest)
    drawn = _some_rows(now, entry, rate)
    if keys and _are_small(drawn, keys):
        groups = _some_groups(now, entry, keys, rate, _TIMES * len(drawn))
        if groups is not None:
            return Sample({**others, largest: groups}, largest, hash_rows(groups.rows, keys), rate, weighted=False)
    units = np.arange(len(drawn), dtype=np.uint64)
    weighted = any(isinstance(node, plan.Aggregate) for node in plan.walk(root))
    if weighted:
        drawn = Delta(drawn.rows, drawn.weights * max(1, round(1 / rate)))
    return Sample({**others, largest: drawn}, largest, units, rate, weighted)


def _keys(root: plan.Node, table: str) -> list[int]:
    """The columns of a table by which the query groups its rows; of several aggregates, those that all of them have."""
    numbers = {i for i, scan in enumerate(scans_of(root)) if scan.source.lower() == table}
    found = ({column for number, column in keys if number in numbers} for keys in groupings(root))
    sets = [columns for columns in found if columns]
    return sorted(set.intersection(*sets) or sets[0]) if sets else []


def _are_small(drawn: Delta, keys: Sequence[int]) -> bool:
    """Whether so few rows of a group are in the sample that they do not tell how large it is."""
    return len(np.unique(hash_rows(drawn.rows, keys))) * _TELLING > len(drawn)


def _some_rows(now: Snapshot, entry: Entry, rate: float) -> Delta:
    """One of many rows, at equal distances where they are at hand."""
    if entry.output in now.outer:
        return _collected(entry, now.outer[entry.output].frame().sample(rate, _SEED))
    parts, step, skipped = [], max(1, round(1 / rate)), 0
    for part in now.kept(entry).in_slices(_SLICE):
        parts.append(part.take(np.arange(skipped, len(part), step)))
        skipped = (skipped - len(part)) % step
    return Delta.concat(parts)


def _some_groups(now: Snapshot, entry: Entry, keys: Sequence[int], rate: float, most: int) -> Delta | None:
    """All rows of one of many values of the keys; None if these are too many."""
    if entry.output in now.outer:
        from pyspark.sql import functions

        frame = now.outer[entry.output].frame()
        bucket = functions.pmod(functions.xxhash64(*(frame[f"c{key}"] for key in keys)), functions.lit(_SLICE))
        found = _collected(entry, frame.where(bucket < round(rate * _SLICE)).limit(most + 1))
    else:
        ceiling = np.uint64(rate * 2.0**63) * np.uint64(2)
        slices = now.kept(entry).in_slices(_SLICE)
        found = Delta.concat([part.where(hash_rows(part.rows, keys) < ceiling) for part in slices])
    return found if len(found) <= most else None


def _collected(entry: Entry, frame: object) -> Delta:
    from pyspark.errors import PySparkException

    from headwater.evaluation.spark import failure

    try:
        found = one_batch(frame.toArrow())  # type: ignore[attr-defined]
    except PySparkException as error:
        raise EvaluationFailed(failure(error)) from error
    arrays = [array.cast(kind) for array, kind in zip(found.columns, entry.arrow.types, strict=True)]
    return Delta.inserting(pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))]))
