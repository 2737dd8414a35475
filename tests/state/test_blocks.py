"""Blocks: rows written into lines and read from them, whatever their width."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.state.blocks import format_of
from headwater.state.hashing import hash_block, hash_rows

SAMPLES = {
    pa.int32(): [None, 0, -1, 2**31 - 1, -(2**31)],
    pa.int64(): [0, None, -1, 2**63 - 1, -(2**63)],
    pa.bool_(): [True, False, None, True, False],
    pa.decimal128(12, 2): [None, Decimal("-1.25"), Decimal(0), Decimal("99999999.99"), Decimal(1)],
    pa.int8(): [-128, 127, 0, None, -1],
    pa.string(): ["a", None, "", "longer than eight", "ä"],
    pa.date32(): [0, -1, None, 20_000, 1],
    pa.float32(): [-0.0, 0.0, None, 1.5, -1.5],
    pa.uint32(): [0, 2**32 - 1, 2**31, None, 1],
}
KINDS = tuple(SAMPLES)


def rows_of(columns: int) -> pa.RecordBatch:
    kinds = [KINDS[i % len(KINDS)] for i in range(columns)]
    arrays = [pa.array(np.roll(np.array(SAMPLES[kind], object), i).tolist(), kind) for i, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(columns)])


@pytest.mark.parametrize("columns", [0, 1, 2, 9, 35, 36, 37, 38, 72, 73, 80])
def test_what_is_written_is_read(columns: int) -> None:
    rows = rows_of(columns) if columns else pa.RecordBatch.from_struct_array(pa.array([{}] * 5, pa.struct([])))
    made = format_of(tuple(rows.schema.types))
    block = made.pack(rows)
    assert made.unpack(block).equals(rows)
    order = np.array([3, 0, 4, 4])
    assert made.unpack(made.pack_at(rows, order)).equals(rows.take(pa.array(order)))
    for chosen in (tuple(range(0, columns, 2)), tuple(range(columns))[::-3]):
        if not chosen:
            continue
        wanted = rows.select(chosen)
        assert hash_block(made, block, chosen).tolist() == hash_rows(wanted, range(len(chosen))).tolist()
        narrow, words = made.narrow(chosen)
        part = narrow.unpack(block.take_some(order, words, made.others(chosen)))
        assert part.columns == wanted.take(pa.array(order)).columns


def test_small_values_and_null_bits_share_words() -> None:
    made = format_of((pa.int64(), pa.int32(), pa.int32(), pa.int32()))
    assert made.width == 3
    assert format_of((pa.int64(),)).width == 2
    assert format_of((pa.bool_(),)).width == 1
    assert format_of((pa.int32(),) * 33).width == 1 + 17
