"""Work on many rows, cut into pieces that stay within the processor's cache, on all cores."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PIECE = 1 << 14


def in_pieces(count: int, work: Callable[[int, int], object]) -> None:
    """Calls ``work(start, stop)`` for pieces that cover 0 … count; each must write to a place of its own."""
    if count <= PIECE:
        work(0, count)
        return
    starts = range(0, count, PIECE)
    for _ in _threads().map(lambda start: work(start, min(start + PIECE, count)), starts):
        pass


def in_parts(works: Sequence[Callable[[], object]]) -> None:
    """Calls them all, on all cores."""
    for _ in _threads().map(lambda work: work(), works):
        pass


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="headwater-pieces")
