"""Probes: rows that are looked for in runs, all at once.

The hash finds a place in a run, the words decide there, and strings and nested values are compared where the words agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.state import columns, equality, hashing, loops, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from headwater.state.blocks import Block, Format, Spec
    from headwater.state.runs import Run

    Indices = NDArray[np.int64]

# More rows than this go through a run in the order of their hashes.
_MANY = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What of a stored row must be what of a probe's: words, by their specs, and places among the other columns."""

    stored: Spec
    asked: Spec
    stored_others: Sequence[int]
    asked_others: Sequence[int]
    signed_zeros: bool = False


class Probe:
    """Rows to look for."""

    __slots__ = ("_block", "_compared", "_hashes", "_order")

    def __init__(self, made: Format, block: Block, hashed: Sequence[int], compared: Compared) -> None:
        self._hashes = hashing.hash_block(made, block, hashed)
        self._block = block
        self._compared = compared
        self._order: Indices | None = None
        if len(self._hashes) > _MANY:
            self._order = runs.roughly_sorted(self._hashes)
            self._hashes, self._block = self._hashes.take(self._order), block.take(self._order)

    def among(self, run: Run) -> tuple[Indices, Indices]:
        """All pairs (i, line) of a row of the probe and a line of the run that has what it asks for."""
        compared = self._compared
        asked, at = loops.locate(run.hashes, run.block.words, compared.stored, self._hashes, self._block.words, compared.asked)
        if len(at) and compared.asked_others:
            same = self._same_others(run, at, asked)
            asked, at = asked[same], at[same]
        return (asked if self._order is None else self._order[asked]), at

    def _same_others(self, run: Run, at: Indices, asked: Indices) -> NDArray[np.bool_]:
        compared = self._compared
        stored = columns.batch([columns.take(run.block.others[i], pa.array(at)) for i in compared.stored_others])
        wanted = columns.batch([columns.take(self._block.others[i], pa.array(asked)) for i in compared.asked_others])
        every = range(len(compared.asked_others))
        return equality.equal_rows(stored, every, wanted, every, signed_zeros=compared.signed_zeros)
