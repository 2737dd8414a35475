"""Strings against patterns of pieces with anything between them, byte by byte: UTF-8 has no piece where there is none to read.

    StartsWith x    x %          EndsWith x    % x          Contains x    % x %          EqualTo x    x

A piece in the middle is looked for from the left, each after the one before; where the first of all places will not do for what
comes after it, no later one will.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.compiled import compiled
from headwater.evaluation.kernels.frames import validity

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.evaluation.kernels.frames import Vector

    Bytes = NDArray[np.uint8]
    Ends = NDArray[np.int32]

_NOTHING = np.frombuffer(b"\x00", np.uint8)


@dataclass(frozen=True)
class Pieces:
    """Byte strings laid end to end."""

    data: Bytes
    ends: Ends

    @staticmethod
    def of(texts: list[str]) -> Pieces:
        """The pieces of which each is a text."""
        written = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, written)]).astype(np.int32)
        return Pieces(np.frombuffer(b"".join(written) + b"\x00", np.uint8), ends)


def matched(texts: pa.StringArray, pieces: Pieces, *, from_start: bool, to_end: bool) -> Vector:
    """Which texts have the pieces in this order, the first at the start and the last at the end if so wanted."""
    starts, data = _buffers(texts)
    return _matched(starts, data, pieces.data, pieces.ends, (from_start, to_end)), validity(texts)


def among(texts: pa.StringArray, pieces: Pieces) -> Vector:
    """Which texts are one of the pieces."""
    starts, data = _buffers(texts)
    return _among(starts, data, pieces.data, pieces.ends), validity(texts)


def _buffers(texts: pa.StringArray) -> tuple[Ends, Bytes]:
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset)
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING


@compiled
def _is_at(data: Bytes, place: int, pieces: Bytes, first: int, last: int) -> bool:
    for k in range(first, last):  # noqa: SIM110  (a loop is compiled)
        if data[place + k - first] != pieces[k]:
            return False
    return True


@compiled
def _after(data: Bytes, place: int, end: int, pieces: Bytes, first: int, last: int) -> int:  # noqa: PLR0913, PLR0917
    """Where the first occurrence of a piece ends, −1 if there is none."""
    size = last - first
    for at in range(place, end - size + 1):
        if _is_at(data, at, pieces, first, last):
            return at + size
    return -1


@compiled
def _matched(starts: Ends, data: Bytes, pieces: Bytes, ends: Ends, anchors: tuple[bool, bool]) -> NDArray[np.bool_]:
    from_start, to_end = anchors
    found = np.zeros(len(starts) - 1, np.bool_)
    count = len(ends) - 1
    first, last = int(from_start), count - int(to_end)
    head = ends[1] if from_start else 0
    tail = ends[count] - ends[count - 1] if to_end else 0
    for i in range(len(found)):
        place, end = starts[i], starts[i + 1]
        size = end - place
        if count == 1 and from_start and to_end:
            found[i] = size == head and _is_at(data, place, pieces, 0, head)
            continue
        if size < head + tail:
            continue
        if from_start and not _is_at(data, place, pieces, 0, head):
            continue
        if to_end and not _is_at(data, end - tail, pieces, ends[count - 1], ends[count]):
            continue
        place, end = place + head, end - tail
        for piece in range(first, last):
            place = _after(data, place, end, pieces, ends[piece], ends[piece + 1])
            if place < 0:
                break
        found[i] = place >= 0
    return found


@compiled
def _among(starts: Ends, data: Bytes, pieces: Bytes, ends: Ends) -> NDArray[np.bool_]:
    found = np.zeros(len(starts) - 1, np.bool_)
    for i in range(len(found)):
        place = starts[i]
        size = starts[i + 1] - place
        for piece in range(len(ends) - 1):
            first, last = ends[piece], ends[piece + 1]
            if last - first == size and _is_at(data, place, pieces, first, last):
                found[i] = True
                break
    return found
