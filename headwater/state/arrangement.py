"""Arrangements: the one form of state. Rows indexed by a key, so that a delta finds the rows it meets.

An arrangement is a *value*: `insert` gives a new one and leaves the old one as it was. So an epoch is computed beside the state
it starts from, to commit it is to assign a reference, to abort it is to forget, and a reader keeps the epoch it began with.

That is affordable because a value is a few immutable *runs* (`runs`), which old and new share. A delta becomes a new small run;
when the run before it is not much larger, the two are merged. Sizes therefore fall geometrically: there are at most
``log n`` runs to look into, and a row is copied ``log n`` times in its life. A lookup hashes the probe's keys, searches
them in every run by bisection, all at once, and compares the rows found with the keys asked for, because hashes collide.

The trap: a row and its retraction may live in different runs until these are merged. What `lookup` returns is right as a *sum*:
whoever multiplies weights (a join) may take it as it is, whoever asks "is there a row?" must say ``.consolidated()`` first.
For the same reason ``len`` counts stored rows, and is no test for emptiness: ``contents()`` is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta
from headwater.state import consolidation, equality, hashing, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A run at least this many times as large as all that came after it is left alone.
_RATIO = 2


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Rows found by a lookup: ``rows[i]``, with ``weights[i]``, has the key of row ``probe[i]`` of the probe."""

    probe: NDArray[np.int64]
    rows: pa.RecordBatch
    weights: NDArray[np.int64]
    settled: bool = False
    """Known to be consolidated, for it all comes from one run."""

    def __len__(self) -> int:
        return len(self.probe)

    def existing(self) -> Matches:
        """The same without rows that are gone, where all rows are there a positive number of times."""
        return self if self.settled or not (self.weights < 0).any() else self.consolidated()

    def consolidated(self) -> Matches:
        """The same with equal pairs of probe and row merged, and zeros gone."""
        if self.settled:
            return self
        pairs = pa.RecordBatch.from_arrays([pa.array(self.probe), *self.rows.columns], ["probe", *self.rows.schema.names])
        delta = consolidation.consolidate(Delta(pairs, self.weights))
        rows = delta.rows.select(range(1, pairs.num_columns))
        return Matches(delta.rows.column(0).to_numpy(), rows, delta.weights, settled=True)


class Arrangement:
    """Rows with weights, indexed by the columns `key`; with a `width` the weights are vectors of so many integers."""

    __slots__ = ("_runs", "key", "schema", "width")

    def __init__(self, schema: pa.Schema, key: tuple[int, ...], width: int | None, pieces: tuple[runs.Run, ...]) -> None:
        self.schema = schema
        self.key = key
        self.width = width
        self._runs = pieces

    @staticmethod
    def empty(schema: pa.Schema, key: Sequence[int], width: int | None = None) -> Arrangement:
        return Arrangement(schema, tuple(key), width, ())

    def insert(self, delta: Delta) -> Arrangement:
        """The arrangement with the delta added; this one stays as it is."""
        if len(delta) == 0:
            return self
        pieces = list(self._runs)
        newest = [runs.build(self._fitting(delta), self.key)]
        total = len(newest[0])
        while pieces and len(pieces[-1]) < _RATIO * total:
            newest.append(pieces.pop())
            total += len(newest[-1])
        merged = runs.merge(newest[::-1])
        if len(merged):
            pieces.append(merged)
        return Arrangement(self.schema, self.key, self.width, tuple(pieces))

    def lookup(self, probe: pa.RecordBatch, columns: Sequence[int]) -> Matches:
        """All rows whose key equals the given columns of a row of the probe; not consolidated across runs."""
        if len(columns) != len(self.key):
            raise ValueError(f"A key of {len(self.key)} columns was looked up by {len(columns)}.")
        if probe.num_rows == 0 or not self._runs:
            return Matches(np.empty(0, np.int64), *self._nothing())
        if not self.key:
            return self._every_row(probe.num_rows)
        hashes = hashing.hash_rows(probe, columns)
        order = np.argsort(hashes)
        hashes = hashes[order]
        found = [(run, *run.locate(hashes)) for run in self._runs]
        found = [(run, asked, at) for run, asked, at in found if len(at)]
        if not found:
            return Matches(np.empty(0, np.int64), *self._nothing())
        asked = order[np.concatenate([asked for _, asked, _ in found])]
        rows = runs.conform(runs.concat([runs.take(run.rows, at) for run, _, at in found]), self.schema)
        weights = np.concatenate([run.weights[at] for run, _, at in found])
        keys = runs.take(probe.select(list(columns)), asked)
        same = equality.equal_rows(keys, range(len(columns)), rows, self.key)
        if not same.all():
            asked, rows, weights = asked[same], runs.take(rows, np.flatnonzero(same)), weights[same]
        return Matches(asked, rows, weights, settled=len(found) == 1)

    def contents(self) -> Delta:
        """All rows, consolidated."""
        pieces = self._runs
        if not pieces:
            return Delta(*self._nothing())
        merged = runs.merge(pieces)
        if len(pieces) > 1:
            # The same value in a better shape: the next one who asks, or inserts, need not merge again.
            self._runs = (merged,) if len(merged) else ()
        return Delta(runs.conform(merged.rows, self.schema), merged.weights)

    def __len__(self) -> int:
        """Stored rows: an upper bound of the rows of `contents`, for these may still be merged."""
        return sum(map(len, self._runs))

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self._runs)

    def _nothing(self) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        shape = (0,) if self.width is None else (0, self.width)
        return pa.RecordBatch.from_pylist([], self.schema), np.empty(shape, np.int64)

    def _fitting(self, delta: Delta) -> Delta:
        expected = (len(delta),) if self.width is None else (len(delta), self.width)
        if delta.weights.shape != expected:
            raise ValueError(f"Weights of the shape {delta.weights.shape} came where {expected} was due.")
        return Delta(runs.conform(delta.rows, self.schema), delta.weights)

    def _every_row(self, count: int) -> Matches:
        everything = self.contents()
        if count == 1:
            return Matches(np.zeros(len(everything), np.int64), everything.rows, everything.weights, settled=True)
        every = np.tile(np.arange(len(everything)), count)
        asked = np.repeat(np.arange(count), len(everything))
        return Matches(asked, runs.take(everything.rows, every), everything.weights[every], settled=True)
