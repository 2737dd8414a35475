"""A 64-bit hash of rows: ours, so that it is the same in every process, version and place for ever.

Hashes are persisted with the state and decide which shard a row lives on. The golden values in the tests pin them: a change
here is a change of the storage format. NULL equals NULL, NaN equals NaN, −0.0 equals 0.0; strings hash alike whatever their
Arrow layout, and so do integers and floats of different widths. Maps count as lists of entries: their order matters.

    mix           splitmix64's finaliser: a bijection of 64 bits which no sum or product survives
    row           h := mix(h + column) over the columns in order
    string, list  Σ mix(element ⊕ (position+1)·γ)  +  length·γ', mixed

The trap: a polynomial Σ element·bᵖᵒˢⁱᵗⁱᵒⁿ modulo 2⁶⁴ looks simpler, but the Thue–Morse strings of length 2048 collide in it for
every base b. So each element is mixed with its position *before* the sum. A hash may still collide; whoever uses it verifies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.state import layout, loops
from headwater.state.parallel import PIECE, in_pieces
from headwater.state.sharing import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headwater.state.blocks import Block, Format

    Hashes = NDArray[np.uint64]

SEED = np.uint64(0x853C49E6748FEA9B)


def hash_rows(rows: pa.RecordBatch, columns: Sequence[int]) -> Hashes:
    """The hash of every row over the given columns, in that order; without columns all rows have the same."""
    if rows.num_rows <= PIECE:
        made, block = packed(rows, columns)
        return hash_block(made, block, made.every)
    hashes = np.empty(rows.num_rows, np.uint64)

    def hash_piece(start: int, stop: int) -> None:
        made, block = packed(rows.slice(start, stop - start), columns)
        hashes[start:stop] = hash_block(made, block, made.every)

    in_pieces(rows.num_rows, hash_piece)
    return hashes


def hash_block(made: Format, block: Block, columns: Sequence[int]) -> Hashes:
    """The same for rows in a block."""
    total = np.empty(len(block), np.uint64)
    total.fill(SEED)
    for piece in made.pieces(tuple(columns)):
        if isinstance(piece, int):
            loops.combine(total, _hash_array(block.others[piece]))
        else:
            loops.hash_words(block.words, piece, total)
    return total


def _hash_array(array: pa.Array) -> Hashes:
    """A word per value, not yet mixed for the fixed-width types: whoever combines them mixes."""
    if array.type.id == layout.NULL:
        return np.full(len(array), loops.NULL)
    valid = layout.validity(array)
    hashes = _hash_values(layout.plain(array))
    return hashes if valid is None else np.where(valid, hashes, loops.NULL)


def _hash_values(array: pa.Array) -> Hashes:
    kind = array.type.id
    if kind in layout.FIXED:
        low, *high = layout.words(array)
        if not high:
            return low
        mixed = np.zeros(len(array), np.uint64)
        loops.combine(mixed, low + loops.GOLDEN)
        return mixed + high[0]
    hashes = np.empty(len(array), np.uint64)
    if kind in layout.BYTES:
        loops.hash_bytes(layout.data(array), layout.offsets(array), hashes)
        return hashes
    if kind in layout.LISTS:
        offsets = layout.offsets(array)
        children = _hash_array(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
        loops.fold(np.ascontiguousarray(children), np.diff(offsets), hashes)
        return hashes
    if kind == layout.STRUCT:
        hashes.fill(SEED)
        for field in layout.fields(array):
            loops.combine(hashes, np.ascontiguousarray(_hash_array(field)))
        return hashes
    raise layout.unsupported(array.type)
