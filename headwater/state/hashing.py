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

from headwater.state import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LENGTH = np.uint64(0xD6E8FEB86659FD93)
_NULL = np.uint64(0x2545F4914F6CDD1D)
_SEED = np.uint64(0x853C49E6748FEA9B)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
# Of the last word of a string only the low 0 to 8 bytes count.
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)

# Temporaries of this many rows or bytes stay within the processor's cache.
_BLOCK_ROWS = 1 << 14
_BLOCK_BYTES = 1 << 20


def hash_rows(rows: pa.RecordBatch, columns: Sequence[int]) -> Hashes:
    """The hash of every row over the given columns, in that order; without columns all rows have the same."""
    count = rows.num_rows
    if count > _BLOCK_ROWS and columns:
        starts = range(0, count, _BLOCK_ROWS)
        return np.concatenate([hash_rows(rows.slice(start, _BLOCK_ROWS), columns) for start in starts])
    return _combine([_hash_array(rows.column(i)) for i in columns], count)


def _combine(parts: list[Hashes], count: int) -> Hashes:
    total = np.full(count, _SEED)
    for part in parts:
        total += part
        _mix(total)
    return total


def _hash_array(array: pa.Array) -> Hashes:
    """A word per value, not yet mixed for the fixed-width types: `_combine` and `_fold` mix."""
    kind = array.type.id
    if kind == layout.NULL:
        return np.full(len(array), _NULL)
    valid = layout.validity(array)
    hashes = _hash_values(layout.plain(array), kind)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _hash_values(array: pa.Array, kind: int) -> Hashes:
    if kind in layout.FIXED:
        low, *high = layout.words(array)
        return _mix(low + _GOLDEN) + high[0] if high else low
    kind = array.type.id
    if kind in layout.BYTES:
        return _hash_bytes(array)
    if kind in layout.LISTS:
        offsets = layout.offsets(array)
        child = _hash_array(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
        lengths = np.diff(offsets)
        return _fold(child, layout.positions(lengths, offsets[:-1])[0], lengths, lengths)
    if kind == layout.STRUCT:
        return _combine([_hash_array(field) for field in layout.fields(array)], len(array))
    raise layout.unsupported(array.type)


def _hash_bytes(array: pa.Array) -> Hashes:
    offsets = layout.offsets(array)
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    if size > _BLOCK_BYTES and len(array) > 1:
        half = len(array) // 2
        return np.concatenate([_hash_bytes(array.slice(0, half)), _hash_bytes(array.slice(half))])
    # Eight spare bytes, for the last word may reach beyond the data.
    data = np.zeros(size + 8, np.uint8)
    if size:
        data[:size] = np.frombuffer(array.buffers()[2], np.uint8, size, first)
    every_word = np.ndarray(size + 1, np.dtype("<u8"), data, strides=(1,))
    starts = offsets[:-1] - first
    lengths = np.diff(offsets)
    counts = (lengths + 7) >> 3
    within, _ = layout.positions(counts, starts)
    words = every_word[(within << 3) + np.repeat(starts, counts)]
    last = np.cumsum(counts) - 1
    full = counts > 0
    words[last[full]] &= _MASKS[(lengths - ((counts - 1) << 3))[full]]
    return _fold(words, within, counts, lengths)


def _fold(elements: Hashes, within: NDArray[np.int64], counts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Hashes:
    """One hash per row from its `counts` consecutive elements."""
    mixed = _mix(elements ^ ((within.view(np.uint64) + np.uint64(1)) * _GOLDEN))
    sums = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=sums[1:])
    ends = np.cumsum(counts)
    return _mix(sums[ends] - sums[ends - counts] + lengths.view(np.uint64) * _LENGTH)


def _mix(words: Hashes) -> Hashes:
    """In place."""
    words ^= words >> _S30
    words *= _FIRST
    words ^= words >> _S27
    words *= _SECOND
    words ^= words >> _S31
    return words
