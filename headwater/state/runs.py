"""Runs: the immutable pieces of an arrangement.

A run is consolidated, and sorted by the hash of its key; rows of one key hash are sorted by the hash of their other columns, so
that equal rows are neighbours and merging runs is sorting what is almost sorted.

Arrow's usual strings and lists count their bytes and elements in 32 bits. Where rows put together would be more than that, the
result has Arrow's large types instead, and `conform` brings small extracts of it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.state import consolidation, hashing, layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.delta import Delta

    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Consolidated rows, sorted by ``hashes`` (of the key) and then by ``ties`` (of the columns which are not the key)."""

    rows: pa.RecordBatch
    weights: NDArray[np.int64]
    hashes: Hashes
    ties: Hashes

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def nbytes(self) -> int:
        hashes = self.hashes.nbytes if self.ties is self.hashes else self.hashes.nbytes + self.ties.nbytes
        return int(self.rows.nbytes + self.weights.nbytes + hashes)

    def locate(self, hashes: Hashes) -> tuple[Indices, Indices]:
        """All pairs (i, row) such that the key of that row has the hash number i; quickest if the hashes ascend."""
        low = np.searchsorted(self.hashes, hashes)
        found = np.flatnonzero(self.hashes[np.minimum(low, len(self) - 1)] == hashes)
        low = low[found]
        lengths = np.searchsorted(self.hashes, hashes[found], "right") - low
        if len(found) == int(lengths.sum()):
            return found, low
        return np.repeat(found, lengths), layout.positions(lengths, low)[1]


def build(delta: Delta, key: Sequence[int]) -> Run:
    """A run of the delta's rows."""
    others = [i for i in range(delta.rows.num_columns) if i not in key]
    hashes = hashing.hash_rows(delta.rows, key or others)
    ties = hashing.hash_rows(delta.rows, others) if key and others else hashes
    return _consolidated(delta.rows, delta.weights, hashes, ties, np.argsort(hashes))


def merge(runs: Sequence[Run]) -> Run:
    """One run with the sum of the others: one or more, of one schema but for the size of its offsets."""
    if len(runs) == 1:
        return runs[0]
    hashes = np.concatenate([run.hashes for run in runs])
    single = runs[0].ties is runs[0].hashes
    ties = hashes if single else np.concatenate([run.ties for run in runs])
    rows = concat([run.rows for run in runs])
    # The stable sort is the one that finds out that its input consists of a few ascending runs.
    return _consolidated(rows, np.concatenate([run.weights for run in runs]), hashes, ties, np.argsort(hashes, kind="stable"))


def _consolidated(rows: pa.RecordBatch, weights: NDArray[np.int64], hashes: Hashes, ties: Hashes, order: Indices) -> Run:
    """The run of these rows, given an order in which their hashes ascend."""
    single = ties is hashes
    ordered = hashes[order]
    alike = ordered[1:] == ordered[:-1]
    if not single and alike.any():
        order, alike = _refined(order, alike, ties)
    weights = weights[order]
    if alike.any():
        groups = consolidation.segment(rows, range(rows.num_columns), order, alike, signed_zeros=True)
        order, weights = order[groups.representatives], consolidation.sum_by(groups.ids, groups.count, weights)
    kept = consolidation.nonzero(weights)
    if not kept.all():
        order, weights = order[kept], weights[kept]
    hashes = hashes[order]
    return Run(take(rows, order), weights, hashes, hashes if single else ties[order])


def _refined(order: Indices, alike: NDArray[np.bool_], ties: Hashes) -> tuple[Indices, NDArray[np.bool_]]:
    """The order refined by ties where hashes are alike, and which neighbours are alike even so.

    Only rows that share their hash move, and one sort of plain numbers moves them: the number of the hash among the shared ones
    and as many bits of the tie as there is room for beside it. The fewer bits, the smaller the groups they have to tell apart.
    """
    starts = np.ones(len(order), np.bool_)
    starts[1:] = ~alike
    shared = alike.copy()
    shared[:-1] |= alike[1:]
    places = np.flatnonzero(np.concatenate([alike[:1], shared]))
    moved = order[places]
    groups = np.cumsum(starts[places], dtype=np.uint64) - np.uint64(1)
    bits = int(groups[-1]).bit_length()
    numbers = (groups << np.uint64(64 - bits)) | (ties[moved] >> np.uint64(bits))
    inner = np.argsort(numbers, kind="stable")
    numbers = numbers[inner]
    refined, still = order.copy(), np.zeros(len(alike), np.bool_)
    refined[places] = moved[inner]
    still[places[1:][numbers[1:] == numbers[:-1]] - 1] = True
    return refined, still


def take(rows: pa.RecordBatch, indices: Indices) -> pa.RecordBatch:
    """The rows at the indices, of large types if they would not fit otherwise."""
    chosen = pa.array(indices)
    try:
        return rows.take(chosen)
    except pa.ArrowInvalid:
        return rows.cast(_enlarged(rows.schema)).take(chosen)


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One or more batches end to end, of large types if they would not fit otherwise, or if some already are."""
    if len(batches) == 1:
        return batches[0]
    try:
        return pa.concat_batches(batches)
    except pa.ArrowInvalid:
        return pa.concat_batches([batch.cast(_enlarged(batch.schema)) for batch in batches])


def conform(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in the schema, or in its large types if too many; they may differ from it in names, layout and nullability."""
    if rows.schema.equals(schema):
        return rows
    if [_large(kind).id for kind in rows.schema.types] != [_large(kind).id for kind in schema.types]:
        raise TypeError(f"Rows of the types {rows.schema.types} came where {schema.types} were due.")
    named = rows.rename_columns(schema.names)
    try:
        return named.cast(schema)
    except pa.ArrowInvalid:
        return named.cast(_enlarged(schema))


def _enlarged(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _large(field.type)) for field in schema])


def _large(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(pa.field(kind.value_field.name, _large(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _large(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_large(kind.key_type), _large(kind.item_type))
    return kind
