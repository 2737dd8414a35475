"""Probes: rows that are looked for in runs, all at once.

The hash finds a place in a run, the words decide there, and strings and nested values are compared where the words agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.state import columns, equality, hashing, layout, searching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.state.blocks import Block, Format, Spec
    from headwater.state.runs import Run

    Indices = NDArray[np.int64]

UNBOUNDED = (1 << 62) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What of a stored row must be what of a probe's: words, by their specs, and places among the other columns.

    Or the `whole` rows, of one format, must be the same; −0.0 is another row than 0.0 then.
    """

    stored: Spec
    asked: Spec
    stored_others: Sequence[int]
    asked_others: Sequence[int]
    whole: bool = False


class Probe:
    """Rows to look for."""

    __slots__ = ("_block", "_compared", "_hashes")

    def __init__(self, made: Format, block: Block, hashed: Sequence[int], compared: Compared) -> None:
        self._hashes = hashing.hash_block(made, block, hashed)
        self._block = block
        self._compared = compared

    def among(self, run: Run, *, filtered: bool = False) -> tuple[Indices, Indices]:
        """All pairs (i, line) of a row of the probe and a line of the run that has what it asks for.

        If `filtered`, rows are not searched for of which the run knows that it has none.
        """
        found = self.few_among(run, UNBOUNDED, filtered=filtered)
        assert found is not None
        return found

    def few_among(self, run: Run, most: int, *, filtered: bool = False) -> tuple[Indices, Indices] | None:
        """The same pairs; None if there may be more than `most`."""
        compared, block, probe = self._compared, run.block, self._block
        specs = compared.stored, compared.asked
        wanted, words = self._hashes, probe.words
        passing = run.filter.passing(run.hashes, wanted) if filtered else None
        if passing is not None:
            wanted, words = wanted[passing], words[passing]
        asked, at, all_found = searching.locate(
            run.hashes, block.words, specs[0], wanted, words, specs[1], compared.whole, most
        )
        if not all_found:
            return None
        if passing is not None:
            asked = passing[asked]
        for i, j in zip(compared.stored_others, compared.asked_others, strict=True):
            if not len(at):
                break
            same = _same(block.others[i], at, probe.others[j], asked, signed_zeros=compared.whole)
            if np.count_nonzero(same) < len(same):
                asked, at = asked[same], at[same]
        return asked, at

    def spans(self, runs: Sequence[Run]) -> tuple[Indices, Indices]:
        """For each run and row of the probe, from where to where the lines are that have the hash of what it asks for."""
        shape = len(runs), len(self._hashes)
        starts, ends = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for i, run in enumerate(runs):
            searching.spans(run.hashes, self._hashes, starts[i], ends[i])
        return starts, ends


def _same(stored: pa.Array, at: Indices, sought: pa.Array, asked: Indices, *, signed_zeros: bool) -> NDArray[np.bool_]:
    """Whether the value stored at the place at[i] is the one sought at asked[i]."""
    if stored.type.id in layout.BYTES and sought.type.id in layout.BYTES and not (stored.null_count or sought.null_count):
        starts, asked_starts = layout.narrow_offsets(stored), layout.narrow_offsets(sought)
        return searching.same_bytes(starts, layout.data(stored), at, asked_starts, layout.data(sought), asked)
    left, right = columns.take(stored, pa.array(at)), columns.take(sought, pa.array(asked))
    return equality.equal_rows(columns.batch([left]), (0,), columns.batch([right]), (0,), signed_zeros=signed_zeros)
