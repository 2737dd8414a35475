"""Draws a sketch: which fragments were needed, epoch by epoch, as an SVG or HTML page, or as a PNG.

A column is a fragment, from the lowest range to that of NULL; a row is an epoch that changed something, the latest below. Each
access is a block of its own. Nothing else is needed to draw: an SVG is text, and a PNG compressed rows of pixels.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from html import escape
from struct import pack
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WIDTH, _ROW, _MARGIN, _TITLE = 900, 12, 60, 28
_IN, _OUT = (31, 119, 180), (232, 236, 240)


@dataclass(frozen=True)
class Block:
    """An access: its title, the epochs that changed its fragments, and for each of them which fragments were in."""

    title: str
    epochs: tuple[int, ...]
    cells: NDArray[np.bool_]


def svg(blocks: Sequence[Block]) -> str:
    """The picture as SVG."""
    height = sum(_TITLE + _ROW * len(block.epochs) + _ROW for block in blocks)
    size = f'width="{_WIDTH + _MARGIN}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">']
    top = 0
    for block in blocks:
        parts.append(f'<text x="{_MARGIN}" y="{top + 18}" font-size="13">{escape(block.title)}</text>')
        top += _TITLE
        for epoch, row in zip(block.epochs, block.cells, strict=True):
            parts.append(f'<text x="{_MARGIN - 6}" y="{top + 10}" text-anchor="end">{epoch}</text>')
            parts.append(f'<rect x="{_MARGIN}" y="{top}" width="{_WIDTH}" height="{_ROW - 1}" fill="rgb{_OUT}"/>')
            parts += [_bar(first, last, len(row), top) for first, last in _runs(row)]
            top += _ROW
        top += _ROW
    return "\n".join([*parts, "</svg>"])


def _bar(first: int, last: int, count: int, top: int) -> str:
    left, width = _MARGIN + _WIDTH * first / count, max(0.5, _WIDTH * (last + 1 - first) / count)
    return f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_ROW - 1}" fill="rgb{_IN}"/>'


def _runs(row: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
    return [(int(first), int(stop) - 1) for first, stop in zip(edges[::2], edges[1::2], strict=True)]


def html(blocks: Sequence[Block]) -> str:
    """The picture as a page."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Sketch</title><body>\n{svg(blocks)}\n</body></html>\n'
    )


def png(blocks: Sequence[Block]) -> bytes:
    """The picture as PNG, without its texts."""
    bands = []
    for block in blocks:
        places = np.arange(_WIDTH) * block.cells.shape[1] // _WIDTH
        band = np.where(block.cells[:, places, None], np.array(_IN, np.uint8), np.array(_OUT, np.uint8))
        bands += [np.repeat(band, _ROW, axis=0), np.full((_ROW, _WIDTH, 3), 255, np.uint8)]
    pixels = np.concatenate(bands)
    lines = np.concatenate([np.zeros((len(pixels), 1), np.uint8), pixels.reshape(len(pixels), -1)], axis=1)
    header = pack(">IIBBBBB", _WIDTH, len(pixels), 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return pack(">I", len(content)) + kind + content + pack(">I", zlib.crc32(kind + content))
