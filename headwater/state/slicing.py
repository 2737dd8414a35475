"""What a probe finds in an arrangement, in slices of a bounded number of rows.

    lookup(probe)  =  ⊎ of the slices,  each of at most PAIRS rows, and about _BYTES bytes with the rows of the probe

A probe of few rows may find most of an arrangement: ten keys of 20,000 rows each, looked up by 200,000 rows, are 400 million
pairs. Whoever applies a condition to a slice before the next one is made holds no more than one slice, and what has passed.

Most probes find few rows, and are looked up at once. If one finds more, the lines of its hashes are counted, and it is cut by
their sums. A single row that finds more is cut itself, by the lines that it meets.

The trap: a row and its retraction may live in different runs. Whatever a row of the probe finds of one and the same stored row
is in one slice, so that the two meet. So before what a single row finds is cut, the lines of different runs are merged.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headwater.delta import Delta
from headwater.state.arrangement import Matches
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.state.arrangement import Arrangement
    from headwater.state.runs import Run

    Indices = NDArray[np.int64]
    Wanted = tuple[int, ...] | None

# Rows of a slice, at most: what is in memory can stay in the cache.
PAIRS = 1 << 18
# Bytes of a slice, about; of few rows nobody asks how long they are.
_BYTES = 64 << 20
_FEW = 1 << 12
# Rows of a probe that are counted at a time.
_COUNTED = 1 << 18
# Rows of a probe that are looked up at first; then as many as are likely to fill a slice.
_FIRST = 1 << 12


def lookup_slices(
    kept: Arrangement, probe: pa.RecordBatch, chosen: Sequence[int], wanted: Wanted = None, *, filtered: bool = False
) -> Iterator[Matches]:
    """What `lookup` finds, without rows that are gone, in slices; none if it finds nothing.

    Rows of the probe are numbered as in the whole of it.
    """
    count = probe.num_rows
    if not count or not len(kept):
        return
    if not kept.key:
        yield from _with_every_row(kept, probe, wanted)
        return
    start, size = 0, _FIRST
    while start < count:
        part = probe if not start and count <= size else probe.slice(start, size)
        met = 0
        for found in _found(kept, part, chosen, wanted, filtered=filtered):
            met += len(found)
            there = found.existing()
            if len(there):
                yield _shifted(there, start)
        start += size
        size = max(1, min(PAIRS, size * PAIRS // max(met, 1)))


def bounds_of_slices(counts: Indices, most: int) -> list[int]:
    """Where to cut rows that count so much each, so that what is between two cuts counts at most so much, or is one row."""
    ends = np.cumsum(counts)
    bounds = [0]
    while bounds[-1] < len(counts):
        start = bounds[-1]
        before = ends[start - 1] if start else 0
        bounds.append(max(start + 1, int(np.searchsorted(ends, before + most, "right"))))
    return bounds


def counts_of(kept: Arrangement, probe: pa.RecordBatch, chosen: Sequence[int]) -> Indices:
    """How many rows each row of the probe may find: all that have the hash of its key."""
    if not kept.key:
        return np.full(probe.num_rows, len(kept))
    counts = np.zeros(probe.num_rows, np.int64)
    for start in range(0, probe.num_rows, _COUNTED):
        part = probe.slice(start, _COUNTED)
        starts, ends = kept.sought(part, chosen).spans(kept.runs)
        counts[start : start + _COUNTED] = (ends - starts).sum(axis=0)
    return counts


def collected(parts: Iterable[Delta]) -> Delta | None:
    """The sum of all parts, None if there are none; equal rows of many parts are merged as they come, as long as that helps."""
    found: list[Delta] = []
    rows, limit = 0, 2 * PAIRS
    for part in parts:
        found.append(part)
        rows += len(part)
        if rows > limit:
            found = [consolidate(Delta.concat(found))]
            merged, rows = rows, len(found[0])
            # Where few rows are equal, the next try is far away.
            limit = (2 if 2 * rows < merged else 8) * rows + 2 * PAIRS
    return Delta.concat(found) if found else None


def _found(
    kept: Arrangement, part: pa.RecordBatch, chosen: Sequence[int], wanted: Wanted, *, filtered: bool
) -> Iterator[Matches]:
    """What a part of a probe finds, rows that are gone among them: in one slice, most often."""
    found = kept.lookup_few(part, chosen, wanted, PAIRS, filtered=filtered)
    most = PAIRS if found is not None and len(found) <= _FEW else _most(kept, part, wanted)
    if found is not None and len(found) <= most:
        yield found
        return
    del found
    runs = kept.runs
    starts, ends = kept.sought(part, chosen).spans(runs)
    counts = (ends - starts).sum(axis=0)
    merged: tuple[list[int], Run] | None = None
    for start, stop in pairwise(bounds_of_slices(counts, most)):
        if counts[start] <= most:
            yield _shifted(kept.lookup(part.slice(start, stop - start), chosen, wanted), start)
            continue
        firsts = starts[:, start].tolist()
        if merged is None or merged[0] != firsts:
            spans = zip(runs, firsts, ends[:, start].tolist(), strict=True)
            merged = firsts, kept.merged([run.part(first, last) for run, first, last in spans if first < last])
        for first in range(0, len(merged[1]), most):
            lines = merged[1].part(first, min(first + most, len(merged[1])))
            yield _shifted(kept.lookup_among(lines, part.slice(start, 1), chosen, wanted), start)


def _with_every_row(kept: Arrangement, probe: pa.RecordBatch, wanted: Wanted) -> Iterator[Matches]:
    """The slices where there is no key: each row of the probe finds all rows."""
    count = probe.num_rows
    if count * len(kept) <= min(PAIRS, _FEW):
        found = kept.lookup(probe, (), wanted)
        if len(found):
            yield found
        return
    slices = kept.in_slices(_most(kept, probe, wanted))
    if wanted is not None:
        # Often there is little left to meet: not all columns tell rows apart, and none at all count them.
        parts = [consolidate(part.select(wanted)) for part in slices]
        slices = consolidate(Delta.concat(parts)).in_slices(_most(kept, probe, wanted)) if parts else iter(())
    for part in slices:
        most = max(1, _most(kept, probe, wanted) // max(len(part), 1))
        for start in range(0, count if len(part) else 0, most):
            asked = np.arange(start, min(start + most, count))
            met = part if len(asked) == 1 else part.take(np.tile(np.arange(len(part)), len(asked)))
            yield Matches(np.repeat(asked, len(part)), met.rows, met.weights, settled=True)


def _most(kept: Arrangement, probe: pa.RecordBatch, wanted: Wanted) -> int:
    """How many rows a slice may have, given how long they are on average with those of the probe beside them."""
    stored = 0 if wanted == () else kept.nbytes // len(kept)
    return max(1, min(PAIRS, _BYTES // (stored + probe.nbytes // probe.num_rows + 1)))


def _shifted(found: Matches, start: int) -> Matches:
    """Matches of a part of a probe that begins at the place."""
    return replace(found, probe=found.probe + start) if start else found
