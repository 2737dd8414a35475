"""Arrangements: the one form of state. Rows indexed by a key, so that a delta finds the rows it meets.

An arrangement is a *value*: `insert` gives a new one and leaves the old one as it was. So an epoch is computed beside the state
it starts from, to commit it is to assign a reference, to abort it is to forget, and a reader keeps the epoch it began with.

That is affordable because a value is a few immutable *runs* (`runs`), which old and new share. A delta becomes a new small run,
or, where that is a handful of rows, one with the last run; where it is no less than a tenth of all, it is merged with all at
once. When the last four are of about one size, they become one: sizes
fall geometrically, there are at most three runs of a kind to look into, and a row is copied ``log₄ n`` times in its life. Large
ones are merged in the background (`compaction`). A lookup hashes the probe's keys, finds them in every run, all at once, and
compares the keys, because hashes collide.

The trap: a row and its retraction may live in different runs until these are merged. What `lookup` returns is right as a *sum*:
whoever multiplies weights (a join) may take it as it is, whoever asks "is there a row?" must say ``.consolidated()`` first.
For the same reason ``len`` counts stored rows, and is no test for emptiness: ``contents()`` is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, end_to_end, no_rows, without_columns
from headwater.state import blocks, columns, compaction, consolidation, hashing, loops, runs
from headwater.state.blocks import format_of
from headwater.state.parallel import PIECE, in_pieces
from headwater.state.probing import UNBOUNDED, Compared, Probe
from headwater.state.runs import Run
from headwater.state.sharing import packed, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from headwater.state.blocks import Block, Format
    from headwater.state.compaction import Merging

    Indices = NDArray[np.int64]
    # Neighbouring runs, and one that holds their sum.
    Exchange = tuple[tuple[Run, ...], Run]

# So many runs of about one size are merged.
_FAN = 4
# An arrangement stays one run while it has no more than so many times the rows that come at once.
_WHOLE = 10
# A larger probe is looked up in pieces: what it takes beside the rows found is memory.
_AT_ONCE = 1 << 20
# Of more rows than this, only some are counted.
_COUNTED = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Rows found by a lookup: ``rows[i]``, with ``weights[i]``, has the key of row ``probe[i]`` of the probe."""

    probe: NDArray[np.int64]
    rows: pa.RecordBatch
    weights: NDArray[np.int64]
    settled: bool = False
    """Known to be consolidated, for it all comes from one run."""

    @staticmethod
    def end_to_end(starts: Sequence[int], parts: Sequence[Matches]) -> Matches:
        """The matches of pieces of a probe, each from its start on."""
        probe = np.concatenate([part.probe + start for start, part in zip(starts, parts, strict=True)])
        rows = pa.concat_batches([part.rows for part in parts])
        weights = np.concatenate([part.weights for part in parts])
        return Matches(probe, rows, weights, settled=all(part.settled for part in parts))

    def __len__(self) -> int:
        return len(self.probe)

    def existing(self) -> Matches:
        """The same without rows that are gone, where all rows are there a positive number of times."""
        return self if self.settled or not np.count_nonzero(self.weights < 0) else self.consolidated()

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

    __slots__ = ("_format", "_merging", "_runs", "key", "schema", "width")

    def __init__(self, schema: pa.Schema, key: tuple[int, ...], width: int | None, pieces: tuple[Run, ...]) -> None:
        self.schema = schema
        self.key = key
        self.width = width
        self._format = format_of(tuple(schema.types))
        self._runs = pieces
        self._merging: Merging | None = None

    @staticmethod
    def empty(schema: pa.Schema, key: Sequence[int], width: int | None = None) -> Arrangement:
        return Arrangement(schema, tuple(key), width, ())

    def insert(self, delta: Delta) -> Arrangement:
        """The arrangement with the delta added; this one stays as it is."""
        if len(delta) == 0:
            return self
        self._require_fitting(delta)
        pieces, merging = self._runs, self._merging
        if merging is not None and (merging.done or not merging.concerns(pieces)):
            pieces, merging = merging.applied(pieces), None
        busy = 0 if merging is None else merging.end(pieces)
        last = pieces[-1] if len(pieces) > busy and pieces[-1].takes(len(delta)) else None
        newest = runs.build(self._format, delta.rows, delta.weights, self.key, last)
        pieces = pieces if last is None else pieces[:-1]
        if len(newest):
            pieces = (*pieces, newest)
        if merging is None and _small_beside(pieces, len(newest)):
            pieces = tuple(run for run in [runs.merge(self._format, pieces, self.key)] if len(run))
        while due := _due(pieces[busy:]):
            if merging is None and sum(map(len, pieces[-due:])) > compaction.LARGE:
                merging = compaction.begin(self._format, pieces[-due:], self.key)
                break
            merged = runs.merge(self._format, pieces[-due:], self.key)
            pieces = (*pieces[:-due], merged) if len(merged) else pieces[:-due]
        return self._of(pieces, merging)

    def lookup(
        self, probe: pa.RecordBatch, chosen: Sequence[int], wanted: tuple[int, ...] | None = None, *, filtered: bool = False
    ) -> Matches:
        """All rows whose key equals the given columns of a row of the probe; not consolidated across runs.

        Of the rows found, all columns or the wanted ones. Where many keys have no row, it is quicker `filtered`.
        """
        if len(chosen) != len(self.key):
            raise ValueError(f"A key of {len(self.key)} columns was looked up by {len(chosen)}.")
        if probe.num_rows == 0 or not self._runs:
            return self._no_matches(wanted)
        if not self.key:
            return self._every_row(probe.num_rows, wanted)
        if probe.num_rows > _AT_ONCE:
            starts = range(0, probe.num_rows, _AT_ONCE)
            parts = [self.lookup(probe.slice(i, _AT_ONCE), chosen, wanted, filtered=filtered) for i in starts]
            return Matches.end_to_end(starts, parts)
        found = self._found(probe, chosen, UNBOUNDED, filtered=filtered)
        assert found is not None
        return self._matches(found, wanted)

    def lookup_few(
        self, probe: pa.RecordBatch, chosen: Sequence[int], wanted: tuple[int, ...] | None, most: int, *, filtered: bool
    ) -> Matches | None:
        """The same for a probe of some rows, where there are a key and some rows; None if more than `most` may be found."""
        found = self._found(probe, chosen, most, filtered=filtered)
        return None if found is None else self._matches(found, wanted)

    def lookup_among(self, run: Run, probe: pa.RecordBatch, chosen: Sequence[int], wanted: tuple[int, ...] | None) -> Matches:
        """The same among some rows, which are not its own."""
        asked, at = self.sought(probe, chosen).among(run)
        return self._matches([(run, asked, at)] if len(at) else [], wanted)

    def _matches(self, found: list[tuple[Run, Indices, Indices]], wanted: tuple[int, ...] | None) -> Matches:
        if not found:
            return self._no_matches(wanted)
        asked = _joined([asked for _, asked, _ in found])
        weights = end_to_end([run.weights_at(at) for run, _, at in found])
        rows = self.rows_at([(run, at) for run, _, at in found], wanted)
        # Rows of one run are different, but perhaps not in the columns wanted.
        return Matches(asked, rows, weights, settled=wanted is None and len(found) == 1)

    def weights_of(self, rows: pa.RecordBatch) -> Indices:
        """How often each of the rows is there; −0.0 is another row than 0.0."""
        found = np.zeros(rows.num_rows, np.int64)
        if not rows.num_rows or not self._runs:
            return found
        made, others = self._format, self._format.others(self._format.every)
        compared = Compared(made.exact, made.exact, others, others, whole=True)

        def add(start: int, stop: int) -> None:
            part = rows if stop - start == len(found) else rows.slice(start, stop - start)
            sought = Probe(made, whole(made, part), self.key or made.every, compared)
            for run in self._runs:
                asked, at = sought.among(run)
                loops.add_at(found[start:stop], asked, run.weights[at])

        in_pieces(len(found), add)
        return found

    def contents(self) -> Delta:
        """All rows, consolidated."""
        return next(self.in_slices(max(len(self), 1)), Delta(*self._nothing()))

    def in_slices(self, size: int) -> Iterator[Delta]:
        """The same in slices of so many rows, of which only one need be in memory at a time; none if there are no rows."""
        run = self._as_one()
        for start in range(0, 0 if run is None else len(run), size):
            assert run is not None
            rows = self._named(self._format.unpack(run.block.slice(start, size)))
            yield Delta(rows, np.ascontiguousarray(run.weights[start : start + size]))

    def _as_one(self) -> Run | None:
        """The sum of all runs; None if there are no rows."""
        if not self._runs:
            return None
        merged = runs.merge(self._format, self._runs, self.key)
        if len(self._runs) > 1 and not any(run.file for run in self._runs):
            # The same value in a better shape: the next one who asks, or inserts, need not merge again.
            self._runs = (merged,) if len(merged) else ()
        return merged

    @property
    def runs(self) -> tuple[Run, ...]:
        """What it is made of, the oldest first."""
        return self._runs

    @property
    def format(self) -> Format:
        """How its rows are laid out."""
        return self._format

    @property
    def is_merging(self) -> bool:
        """Whether some of the runs are being merged in the background."""
        return self._merging is not None

    def merged(self, pieces: Sequence[Run]) -> Run:
        """Some of the runs as one."""
        return runs.merge(self._format, pieces, self.key)

    def exchanged(self, exchanges: Mapping[Run, Exchange]) -> Arrangement:
        """The same value with other runs in place of neighbours that they are the sum of, found by the first of these."""
        pieces = self._runs
        if not any(run in exchanges for run in pieces):
            return self
        merging = self._merging
        if merging is not None:
            # What becomes part of a larger one is not merged any more: the arrangement sees that, and begins again.
            single = {first: new for first, (old, new) in exchanges.items() if len(old) == 1}
            merging = replace(merging, pieces=tuple(single.get(run, run) for run in merging.pieces))
        return self._of(exchanged(pieces, exchanges), merging)

    def difference(self, other: Arrangement) -> Delta:
        """The rows of this one less those of another with the same columns and key, consolidated."""
        gone = [Run(run.block, -run.weights, run.hashes) for run in other._runs]
        pieces = [*self._runs, *gone]
        if not pieces:
            return Delta(*self._nothing())
        merged = runs.merge(self._format, pieces, self.key)
        return Delta(self._named(self._format.unpack(merged.block)), np.ascontiguousarray(merged.weights))

    def within(self, first: int, last: int, count: int) -> Delta:
        """The rows, consolidated, whose hashes are in some of `count` equal ranges: from the `first` to before the `last`."""
        found = self.run_within(first, last, count)
        return self._of((found,) if found is not None else (), None).contents()

    def pieces_within(self, first: int, last: int, count: int) -> Iterator[Delta]:
        """The same in pieces: those of the runs, if none of them takes back rows of another."""
        pieces = self._parts(first, last, count)
        if not all(run.is_uniform and run.total > 0 for run in pieces):
            pieces = [self.merged(pieces)]
        return (Delta(self._named(self._format.unpack(run.block)), np.ascontiguousarray(run.weights)) for run in pieces)

    def run_within(self, first: int, last: int, count: int) -> Run | None:
        """The same as a run; None if there are no such rows."""
        pieces = self._parts(first, last, count)
        return self.merged(pieces) if pieces else None

    def _parts(self, first: int, last: int, count: int) -> list[Run]:
        # A range begins at the first hash whose upper half, times `count`, is in it: so the range of a hash is a product.
        bounds = np.array([-(-(number << 32) // count) << 32 for number in (first, last) if number < count], np.uint64)
        slices = [(run, *np.searchsorted(run.hashes, bounds), len(run)) for run in self._runs]
        return [run.part(int(found[0]), int(found[1])) for run, *found in slices if found[0] < found[1]]

    def __len__(self) -> int:
        """Stored rows: an upper bound of the rows of `contents`, for these may still be merged."""
        return sum(map(len, self._runs))

    @property
    def total(self) -> int:
        """The sum of all weights: how many rows there are, each counted as often as it is there."""
        return sum(run.total for run in self._runs)

    def rows_at(self, places: Sequence[tuple[Run, Indices]], wanted: tuple[int, ...] | None = None) -> pa.RecordBatch:
        """The rows at some places of its runs, one or more: all columns, or the wanted ones."""
        return self._rows_at([(run.block, at) for run, at in places], wanted)

    def sample(self, count: int) -> pa.RecordBatch:
        """Some of the rows; they lie in the order of hashes, so any of them are as good as others."""
        if not self._runs:
            return self._nothing()[0]
        largest = max(self._runs, key=len)
        return self._named(self._format.unpack(largest.block.take(np.arange(min(count, len(largest))))))

    def distinct(self, chosen: tuple[int, ...]) -> int:
        """How many different values the columns have, roughly: of many rows, those of some, or those with the lowest hashes."""
        if not self._runs:
            return 0
        found = np.concatenate([hashing.hash_block(self._format, run.block, chosen) for run in self._runs])
        sparse = -(-len(found) // _COUNTED)
        lowest = found[found <= np.uint64(((1 << 64) - 1) // sparse)]
        return max(len(np.unique(found[:_COUNTED])), sparse * len(np.unique(lowest)) if sparse > 1 else 0)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self._runs)

    def _of(self, pieces: tuple[Run, ...], merging: Merging | None) -> Arrangement:
        other = Arrangement.__new__(Arrangement)
        other.schema, other.key, other.width, other._format = self.schema, self.key, self.width, self._format  # noqa: SLF001
        other._runs, other._merging = pieces, merging  # noqa: SLF001
        return other

    def _found(
        self, probe: pa.RecordBatch, chosen: Sequence[int], most: int, *, filtered: bool
    ) -> list[tuple[Run, Indices, Indices]] | None:
        """The runs that have rows asked for, with pairs of a row of the probe and a line of the run; None if they are many."""
        if probe.num_rows <= PIECE:
            pairs = _few(self.sought(probe, chosen), self._runs, most, filtered=filtered)
            if pairs is None:
                return None
            found = [(run, asked, at) for run, (asked, at) in zip(self._runs, pairs, strict=True)]
        else:
            parts: dict[int, list[tuple[Indices, Indices]]] = {}
            left = [most]

            def find(start: int, stop: int) -> None:
                # Where one piece has found too many, the others need not begin.
                sought = self.sought(probe.slice(start, stop - start), chosen)
                pairs = _few(sought, self._runs, left[0], filtered=filtered) if left[0] >= 0 else None
                if pairs is None:
                    left[0] = -1
                else:
                    left[0] -= sum(len(at) for _, at in pairs)
                    parts[start] = [(asked + start, at) for asked, at in pairs]

            in_pieces(probe.num_rows, find)
            if len(parts) * PIECE < probe.num_rows:
                return None
            of_runs = zip(*(parts[start] for start in sorted(parts)), strict=True)
            found = [
                (run, np.concatenate([asked for asked, _ in pairs]), np.concatenate([at for _, at in pairs]))
                for run, pairs in zip(self._runs, of_runs, strict=True)
            ]
        return [(run, asked, at) for run, asked, at in found if len(at)]

    def sought(self, probe: pa.RecordBatch, chosen: Sequence[int]) -> Probe:
        """What the columns of the probe ask of the runs."""
        made, keys = packed(probe, chosen)
        stored = self._format
        compared = Compared(stored.spec(self.key), made.spec(made.every), stored.others(self.key), made.others(made.every))
        return Probe(made, keys, made.every, compared)

    def _rows_at(self, places: Sequence[tuple[Block, Indices]], wanted: tuple[int, ...] | None) -> pa.RecordBatch:
        """The rows at some places of blocks: all columns, or the wanted ones."""
        if wanted is None:
            return self._named(self._format.unpack(blocks.concat([block.take(at) for block, at in places])))
        if not wanted:
            return without_columns(sum(len(at) for _, at in places))
        (made, words), others = self._format.narrow(wanted), self._format.others(wanted)
        return made.unpack(blocks.concat([block.take_some(at, words, others) for block, at in places]))

    def _nothing(self) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        shape = (0,) if self.width is None else (0, self.width)
        return no_rows(self.schema), np.empty(shape, np.int64)

    def _no_matches(self, wanted: tuple[int, ...] | None) -> Matches:
        rows, weights = self._nothing()
        return Matches(np.empty(0, np.int64), rows if wanted is None else Delta(rows, weights).select(wanted).rows, weights)

    def _named(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows if rows.schema.names == self.schema.names else rows.rename_columns(self.schema.names)

    def _require_fitting(self, delta: Delta) -> None:
        expected = (len(delta),) if self.width is None else (len(delta), self.width)
        if delta.weights.shape != expected:
            raise ValueError(f"Weights of the shape {delta.weights.shape} came where {expected} was due.")
        if delta.schema.equals(self.schema):
            return
        given, due = delta.schema.types, self.schema.types
        if len(given) != len(due) or not all(map(columns.alike, given, due)):
            raise TypeError(f"Rows of the types {given} came where {due} were due.")

    def _every_row(self, count: int, wanted: tuple[int, ...] | None) -> Matches:
        everything = self.contents()
        if wanted is not None:
            everything = consolidation.consolidate(everything.select(wanted))
        if count == 1:
            return Matches(np.zeros(len(everything), np.int64), everything.rows, everything.weights, settled=True)
        every = np.tile(np.arange(len(everything)), count)
        asked = np.repeat(np.arange(count), len(everything))
        repeated = everything.take(every)
        return Matches(asked, repeated.rows, repeated.weights, settled=True)


def _few(sought: Probe, pieces: Sequence[Run], most: int, *, filtered: bool) -> list[tuple[Indices, Indices]] | None:
    """For each run the pairs of a row of the probe and a line; None if they may be more than `most`."""
    found = []
    for run in pieces:
        pairs = sought.few_among(run, most, filtered=filtered)
        if pairs is None:
            return None
        found.append(pairs)
        most -= len(pairs[0])
    return found


def exchanged(pieces: tuple[Run, ...], exchanges: Mapping[Run, Exchange]) -> tuple[Run, ...]:
    """The runs with others in place of neighbours that they are the sum of."""
    found: list[Run] = []
    while pieces:
        old, new = exchanges.get(pieces[0], (pieces[:1], pieces[0]))
        if pieces[: len(old)] != old:
            old, new = pieces[:1], pieces[0]
        found += [new] if len(new) else []
        pieces = pieces[len(old) :]
    return tuple(found)


def _due(pieces: tuple[Run, ...]) -> int:
    """How many of the last runs should be one: four, if the oldest of them is no larger than the others together."""
    if len(pieces) < _FAN:
        return 0
    oldest, *later = pieces[-_FAN:]
    return _FAN if len(oldest) <= sum(map(len, later)) and compaction.is_affordable(pieces[-_FAN:]) else 0


def _small_beside(pieces: tuple[Run, ...], added: int) -> bool:
    """Whether there is so little beside what is added that to be one run is worth more to the next lookup than it costs."""
    total = sum(map(len, pieces))
    return len(pieces) > 1 and total <= min(_WHOLE * added, PIECE) and compaction.is_affordable(pieces)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
