"""Work on many rows, cut into pieces that stay within the processor's cache, on all cores."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PIECE = 1 << 14
_CORES = os.cpu_count() or 1


def in_pieces(count: int, work: Callable[[int, int], object]) -> None:
    """Calls ``work(start, stop)`` for pieces that cover 0 … count; each must write to a place of its own."""
    if count <= PIECE:
        work(0, count)
        return
    in_parts([partial(work, start, min(start + PIECE, count)) for start in range(0, count, PIECE)])


def in_parts(works: Sequence[Callable[[], object]]) -> None:
    """Calls them all, on all cores."""
    # Each core takes the next that nobody has taken: to hand them out one by one costs more than some of them take.
    waiting = iter(works)

    def take() -> None:
        for work in waiting:
            work()

    for done in [_threads().submit(take) for _ in range(min(_CORES, len(works)))]:
        done.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_CORES, thread_name_prefix="headwater-pieces")
