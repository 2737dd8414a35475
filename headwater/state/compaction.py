"""Compaction: large runs are merged in a thread beside the epochs, so that none of them waits for it.

    runs a, b, c, d  ↦  a + b + c + d          the same content in a better shape

An arrangement that finds its runs due begins a merge and goes on with the runs as they are; the next one that grows out of it
and finds the merge done takes the result in their place. An epoch that fails forgets its arrangements, and with them a merge:
nobody waits for it, nothing depends on it.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from headwater.state import runs

if TYPE_CHECKING:
    from concurrent.futures import Future

    from headwater.state.blocks import Format
    from headwater.state.runs import Run

# Rows in all from which on a merge would be felt by the epoch that does it: some milliseconds.
LARGE = 1 << 16
# Bytes in all from which on runs are left as they are, because a merge has them all in memory; None: there is no such limit.
_most: int | None = None

_log = logging.getLogger("headwater")


@dataclass(frozen=True, slots=True, eq=False)
class Merging:
    """A merge under way."""

    pieces: tuple[Run, ...]
    result: Future[Run]

    @property
    def done(self) -> bool:
        return self.result.done()

    def concerns(self, present: tuple[Run, ...]) -> bool:
        """Whether the runs being merged are among these, side by side; not if somebody needed them merged at once."""
        if self.pieces[-1] not in present:
            return False
        end = self.end(present)
        return present[max(0, end - len(self.pieces)) : end] == self.pieces

    def end(self, present: tuple[Run, ...]) -> int:
        """How many of the runs present are the ones being merged, or older."""
        return present.index(self.pieces[-1]) + 1

    def applied(self, present: tuple[Run, ...]) -> tuple[Run, ...]:
        """The runs with the result in place of its parts; unchanged if the merge has failed, so that it begins again."""
        if not self.concerns(present):
            return present
        error = self.result.exception()
        if error is not None:
            _log.warning("Runs could not be merged and stay as they are for now", exc_info=error)
            return present
        end = self.end(present)
        merged = self.result.result()
        return (*present[: end - len(self.pieces)], *((merged,) if len(merged) else ()), *present[end:])


def limit_memory(most: int | None) -> None:
    """Merges of this process are to need no more memory than this; lookups then go through more runs."""
    global _most  # noqa: PLW0603  (memory belongs to the process)
    _most = most


def is_affordable(pieces: tuple[Run, ...]) -> bool:
    """Whether there is memory for the sum of the runs."""
    return _most is None or sum(run.nbytes for run in pieces) <= _most


def begin(made: Format, pieces: tuple[Run, ...], key: tuple[int, ...]) -> Merging:
    """Merges runs in the background."""
    return Merging(pieces, _thread().submit(runs.merge, made, pieces, key))


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="headwater-compaction")
