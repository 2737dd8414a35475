"""How large a sketch would be, by any column and by any number of fragments, before one is made: told from a sample.

One run of the query's own plan over the sample says which of its rows the answer needs: their numbers are the fragments of that
run. With these, the size of a sketch by a column is counted, whatever the column and its bounds:

    seen      rows in fragments that have a row of the sample that is needed
    unseen    f₁² / (2·f₂ + f₁·q / (1 − q))  fragments more, of which f₁ and f₂ were seen by one and by two of what was drawn

where q is the part that was drawn (Chao and Lin's estimate of what a sample without replacement has not met). Of all numbers
of fragments the least is taken that leaves hardly more rows than the greatest.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.algebra import plan
from headwater.annotations.fragments import Partition
from headwater.delta import Delta
from headwater.errors import EvaluationFailed, NotSupported, UnsafeSketch
from headwater.sketches.capture import numbered, sketch_plan, visible
from headwater.sketches.captured import Captured, Covered, Estimate
from headwater.sketches.facts import Unsafe
from headwater.skipping.partitioning import Attribute, partition_of
from headwater.skipping.reading import Ranges
from headwater.skipping.sampling import Sample, sampled
from headwater.skipping.sketching import chosen, known_partition, scans_of
from headwater.skipping.uses import counts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headwater.frontend.catalyst import Query
    from headwater.runtime.catalog import Snapshot, TableEntry
    from headwater.session import Session
    from headwater.sketches.facts import Access, Guard
    from headwater.skipping.sketching import Choice

    # A table, by its name in lower case, and the place of a column.
    Place = tuple[str, int]

# No more fragments than this are tried, and none of fewer rows, down to this number.
_FINEST, _SHALLOWEST, _COARSEST = 4_000, 100, 10
# Fewer fragments are as good if they leave no more rows than this.
_TIMES, _PLUS = 1.2, 0.005
# Of fewer rows than this, little is told about others.
_FEW = 10


@dataclass(frozen=True)
class Size:
    """A number of fragments, which part of a table is in those that are needed, and these as far as they were seen."""

    count: int
    share: float
    seen: frozenset[int]


@dataclass(frozen=True)
class Told:
    """An estimate, and which parts of all rows that the query reads are left and, for whole row groups, have to be read."""

    left: float
    read: float
    estimate: Estimate


@dataclass
class Estimating:
    """Estimates of sketches of one query."""

    session: Session
    query: Query
    sample: Sample
    witnesses: bool = False
    runs: dict[tuple[tuple[int, ...], frozenset[int]], dict[int, NDArray[np.int64]]] = field(default_factory=dict)
    """The rows that the answer needs of each scan, by the scans that were asked about and the barriers."""

    def estimate(self, place: Place, fragments: int | None) -> Told | None:
        """What a sample tells of a sketch by a column; None if there can be none."""
        assert self.query.root is not None
        now, (name, column) = self.session.snapshot, place
        numbers = [i for i, scan in enumerate(scans_of(self.query.root)) if scan.source.lower() == name]
        try:
            choice = chosen(now.catalog, self.query.root, [(number, column) for number in numbers], self._holds)
            needed = self._needed(choice)
        except (Unsafe, UnsafeSketch, NotSupported, EvaluationFailed):
            return None
        table = now.tables[name]
        partition, sizes = self._sizes(now, table, column, fragments, needed)
        finest = sizes[0]
        # Where no row that was drawn is needed, nothing is known of those that will be.
        fitting = reversed(sizes) if finest.seen else sizes
        size = next(each for each in fitting if each.share <= finest.share * _TIMES + _PLUS)
        groups = self._groups(now, table, Ranges(column, partition, finest.seen))
        counts = counts_of(self.query, now)
        part = sum(counts[number] for number in needed) / max(1, sum(counts.values()))
        left, read = (1 - part * (1 - share) for share in (finest.share, max(finest.share, groups or 0.0)))
        return Told(left, read, Estimate(name, table.arrow.names[column], size.count, size.share, groups))

    def _holds(self, guard: Guard) -> bool:
        """Whether a fact is true of the rows that were drawn."""
        return guard.holds(self.sample.rows[guard.table].rows.column(guard.column))

    def _needed(self, choice: Choice) -> dict[int, NDArray[np.int64]]:
        """For each scan that is sketched, the numbers of those of its rows in the sample that the answer needs."""
        numbers = tuple(dict.fromkeys(number for number, _ in choice.accesses))
        if (numbers, choice.barriers) not in self.runs:
            self.runs[numbers, choice.barriers] = self._run(numbers, choice.barriers)
        return self.runs[numbers, choice.barriers]

    def _run(self, numbers: Sequence[int], barriers: frozenset[int]) -> dict[int, NDArray[np.int64]]:
        assert self.query.root is not None
        root = self._limited(self.query.root)
        scans = scans_of(root)
        rows = {**self.sample.rows, **{_counted(name): self._counting(name) for name in self.sample.rows}}
        covered = []
        for number in numbers:
            name = scans[number].source.lower()
            given = rows[name]
            rows[numbered(scans[number]).source.lower()] = _with_numbers(given)
            covered.append(Covered(number, len(scans[number].types), _one_by_one(len(given))))
        asked = replace(self.query, analysed=None, root=root)
        sketch = Captured(asked, tuple(covered), barriers, (), witnesses=self.witnesses)
        found = self.session.definitions.over(sketch_plan(sketch, {}, self.session.engines.type_of), rows).rows
        accesses, fragments = (column.to_numpy() for column in found.columns)
        return {number: fragments[accesses == i] for i, number in enumerate(numbers)}

    def _sizes(
        self, now: Snapshot, table: TableEntry, column: int, fragments: int | None, needed: dict[int, NDArray[np.int64]]
    ) -> tuple[Partition, list[Size]]:
        """Sizes by the most fragments first; a partition that is there is taken as it is."""
        drawn = self.sample.rows[table.name.lower()]
        values, weights = drawn.rows.column(column), drawn.weights.astype(np.float64)
        known = partition = known_partition(now.catalog, table, column, fragments)
        if partition is None:
            finest = min(_FINEST, max(_COARSEST, now.total(table) // _SHALLOWEST))
            attribute = Attribute(table, column, pa.Table.from_batches([drawn.rows]), len(drawn))
            partition = partition_of(now.catalog, attribute, finest if fragments is None else fragments)
        places = partition.fragments(values)
        merged, sizes = 1, [self._size(partition, places, 1, weights, needed, table)]
        while known is None and fragments is None and partition.count // (2 * merged) >= _COARSEST:
            merged *= 2
            sizes.append(self._size(partition, places, merged, weights, needed, table))
        return partition, sizes

    def _size(  # noqa: PLR0913, PLR0917  (what it is counted from)
        self,
        partition: Partition,
        places: NDArray[np.int64],
        merged: int,
        weights: NDArray[np.float64],
        needed: dict[int, NDArray[np.int64]],
        table: TableEntry,
    ) -> Size:
        """The size if so many neighbouring fragments are one; of several scans of the table, on average."""
        places = np.where(places == partition.null, -(-partition.null // merged), places // merged)
        depths: NDArray[np.float64] = np.bincount(places, weights).astype(np.float64)
        is_drawn = self.sample.table == table.name.lower()
        rate = self._rate if is_drawn else 1.0
        shares, seen = [], set[int]()
        for rows in needed.values():
            units = self.sample.units[rows] if is_drawn else rows.astype(np.uint64)
            met = _met(places[rows], units, len(depths))
            shares.append(share(depths, met, rate))
            seen.update(np.flatnonzero(met).tolist())
        return Size(-(-partition.null // merged), sum(shares) / max(1, len(shares)), frozenset(seen))

    def _counting(self, table: str) -> Delta:
        """The rows of a table, each counted as often as the rows that it stands for: for scalar subqueries."""
        given = self.sample.rows[table]
        if table != self.sample.table or self.sample.weighted:
            return given
        return Delta(given.rows, given.weights * round(1 / self.sample.rate))

    def _limited(self, node: plan.Node, *, inside: bool = False) -> plan.Node:
        """The plan with limits that take as many of what was drawn as these stand for, but not too few to tell them apart.

        What is inside a scalar subquery reads rows that count as many.
        """
        if isinstance(node, plan.Scan):
            return replace(node, source=_counted(node.source)) if inside else node
        below = inside or isinstance(node, plan.Scalar)
        node = plan.with_children(node, [self._limited(child, inside=below) for child in node.children])
        if not isinstance(node, plan.Limit) or node.count is None or self.sample.weighted:
            return node
        return replace(node, count=self._taken(node.count + node.offset), offset=0)

    def _taken(self, count: int) -> int:
        return max(ceil(count * self.sample.rate), min(count, _FEW))

    @property
    def _rate(self) -> float:
        """Which part of what is needed is in the sample."""
        assert self.query.root is not None
        limits = [node for node in plan.walk(self.query.root) if isinstance(node, plan.Limit) and not self.sample.weighted]
        counts = [node.count + node.offset for node in limits if node.count]
        return max([self.sample.rate, *(self._taken(count) / count for count in counts)])

    def _groups(self, now: Snapshot, table: TableEntry, ranges: Ranges) -> float | None:
        """Which part of the row groups of files would be read; None if nothing is known of them."""
        if table.source not in now.outer:
            return None
        files, content = self.session.sketchbook.files, now.outer[table.source]
        found, total = files.groups(content, [ranges]), files.total(content)
        return found / total if found is not None and total else None


def share(depths: NDArray[np.float64], met: NDArray[np.int64], rate: float) -> float:
    """Which part of all rows is in fragments that are needed, those that a sample of this rate has not met included."""
    once, twice = int((met == 1).sum()), int((met == 2).sum())
    others = depths[(met == 0) & (depths > 0)]
    unseen = once**2 / (2 * twice + once * rate / (1 - rate)) if once and rate < 1 else 0.0
    more = min(unseen, len(others)) * others.mean() if len(others) else 0.0
    return float((depths[met > 0].sum() + more) / max(1.0, depths.sum()))


def _met(places: NDArray[np.int64], units: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """By how many different units each fragment is needed."""
    order = np.lexsort((units, places))
    places, units = places[order], units[order]
    is_new = np.ones(len(places), np.bool_)
    is_new[1:] = (places[1:] != places[:-1]) | (units[1:] != units[:-1])
    return np.bincount(places[is_new], minlength=count)


def _counted(table: str) -> str:
    return f"{table} (counted)"


def _with_numbers(given: Delta) -> Delta:
    arrays = [*given.rows.columns, pa.array(np.arange(len(given)))]
    return Delta(pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))]), given.weights)


def _one_by_one(count: int) -> Partition:
    """Each number of a row is a fragment of its own."""
    bounds = pa.RecordBatch.from_arrays([pa.array(np.arange(1, max(1, count)))], names=["c0"])
    return Partition("", "", 0, bounds, ())


def estimates(
    session: Session, query: Query, places: Iterable[Place], fragments: int | None, *, witnesses: bool = False
) -> list[Told]:
    """For those of the columns by which there can be a sketch: how much it leaves of all rows; the least first.

    Of about equal ones those come first that the answer shows, as these cost the least to maintain.
    """
    assert query.root is not None
    sample = sampled(session.snapshot, query.root)
    if sample is None:
        return []
    estimating = Estimating(session, query, sample, witnesses)
    found = []
    for place in places:
        told = estimating.estimate(place, fragments) if sample.table in (None, place[0]) else None
        if told is not None:
            rank = (round(told.read, 2), round(told.left, 2), not _is_shown(session, query, place), told.left, place)
            found.append((rank, told))
    return [told for _, told in sorted(found, key=itemgetter(0))]


def _is_shown(session: Session, query: Query, place: Place) -> bool:
    """Whether the answer shows the column of one of the accesses."""
    assert query.root is not None
    for number, scan in enumerate(scans_of(query.root)):
        access: Access = (number, place[1])
        with suppress(Unsafe):
            if scan.source.lower() == place[0] and access in visible(query.root, [access], session.engines.type_of):
                return True
    return False
