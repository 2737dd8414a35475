"""Rows that were packed a moment ago are not packed again.

In an epoch the same few rows are consolidated, looked up and inserted one after the other, and each time they are wanted as a
block. A batch never changes, so the blocks of the last small ones are remembered, by the batches themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.state import blocks
from headwater.state.blocks import format_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from headwater.state.blocks import Block, Format

# Larger batches are not kept alive for this.
_SMALL = 1 << 12
_REMEMBERED = 8

_recent: tuple[tuple[pa.RecordBatch, Block], ...] = ()


def packed(rows: pa.RecordBatch, chosen: Sequence[int]) -> tuple[Format, Block]:
    """Some columns of the rows as a block; the format reads them in the order given, whatever else the lines may hold."""
    chosen = tuple(chosen)
    made = format_of(tuple(rows.schema.types))
    if chosen == made.every:
        return made, whole(made, rows)
    block = _known(rows)
    if block is not None:
        return made.part(chosen), blocks.part(block, made.others(chosen))
    picked = rows.select(chosen)
    made = format_of(tuple(picked.schema.types))
    return made, made.pack(picked)


def prepare(rows: pa.RecordBatch) -> None:
    """Packs rows, if they are few, of which different columns will be asked for."""
    if rows.num_rows <= _SMALL:
        whole(format_of(tuple(rows.schema.types)), rows)


def whole(made: Format, rows: pa.RecordBatch) -> Block:
    """Rows of this format as a block."""
    block = _known(rows)
    if block is None:
        block = made.pack(rows)
        _remember(rows, block)
    return block


def joined(rows: pa.RecordBatch, parts: Sequence[pa.RecordBatch]) -> None:
    """Tells that the rows are those of the parts, end to end: where these are known as blocks, so is the whole."""
    found = [block for block in map(_known, parts) if block is not None]
    if len(found) == len(parts) > 1:
        _remember(rows, blocks.concat(found))


def _known(rows: pa.RecordBatch) -> Block | None:
    for batch, block in _recent:
        if batch is rows:
            return block
    return None


def _remember(rows: pa.RecordBatch, block: Block) -> None:
    global _recent  # noqa: PLW0603  (threads may forget each other's blocks, which costs them nothing but time)
    if len(block) <= _SMALL:
        _recent = ((rows, block), *_recent[: _REMEMBERED - 1])
