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

_recent: tuple[tuple[pa.RecordBatch, Format, Block], ...] = ()


def packed(rows: pa.RecordBatch, chosen: Sequence[int]) -> tuple[Format, Block]:
    """Some columns of the rows as a block; the format reads them in the order given, whatever else the lines may hold."""
    chosen = tuple(chosen)
    known = _known(rows)
    if known is None and len(chosen) == rows.num_columns and chosen == tuple(range(len(chosen))):
        made = format_of(tuple(rows.schema.types))
        return made, whole(made, rows)
    if known is None:
        picked = rows.select(chosen)
        made = format_of(tuple(picked.schema.types))
        return made, made.pack(picked)
    made, block = known
    return known if chosen == made.every else (made.part(chosen), blocks.part(block, made.others(chosen)))


def prepare(rows: pa.RecordBatch) -> None:
    """Packs rows, if they are few, of which different columns will be asked for."""
    if rows.num_columns > 1 and rows.num_rows <= _SMALL:
        whole(format_of(tuple(rows.schema.types)), rows)


def whole(made: Format, rows: pa.RecordBatch) -> Block:
    """Rows of this format as a block."""
    known = _known(rows)
    if known is not None:
        return known[1]
    block = made.pack(rows)
    _remember(rows, made, block)
    return block


def joined(rows: pa.RecordBatch, parts: Sequence[pa.RecordBatch]) -> None:
    """Tells that the rows are those of the parts, end to end: where these are known as blocks, so is the whole."""
    found = [known for known in map(_known, parts) if known is not None]
    if len(found) == len(parts) > 1:
        _remember(rows, found[0][0], blocks.concat([block for _, block in found]))


def _known(rows: pa.RecordBatch) -> tuple[Format, Block] | None:
    for batch, made, block in _recent:
        if batch is rows:
            return made, block
    return None


def _remember(rows: pa.RecordBatch, made: Format, block: Block) -> None:
    global _recent  # noqa: PLW0603  (threads may forget each other's blocks, which costs them nothing but time)
    if len(block) <= _SMALL:
        _recent = ((rows, made, block), *_recent[: _REMEMBERED - 1])
