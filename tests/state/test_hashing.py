from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_samples import SAMPLES, TYPES, batch, batches, meanings

from headwater.state.hashing import hash_rows

# Persisted state depends on these: if one changes, so must the version of the storage format.
GOLDEN: dict[str, list[int]] = {
    "bool": [0xD675B9DEE52294C2, 0xFE10AB7382E8E160, 0x8CCD4DA2E838E916],
    "int8": [0xFE10AB7382E8E160, 0xF84614B03DE604B6, 0xAB39CDA03E9F44D7, 0x8CCD4DA2E838E916],
    "int16": [0xFE10AB7382E8E160, 0x807B4AAE3B4090B0, 0x8CCD4DA2E838E916],
    "int32": [0xFE10AB7382E8E160, 0x0D553674EBD3B52A, 0xA7B0098BBF9AAE09, 0x8CCD4DA2E838E916],
    "int64": [0xFE10AB7382E8E160, 0x0D553674EBD3B52A, 0x6D5EBCAD9E7A3B7E, 0x8CCD4DA2E838E916],
    "float": [
        0xFE10AB7382E8E160,
        0xFE10AB7382E8E160,
        0xEEE517DEE12F7359,
        0x4FC5FFD34D310320,
        0x39FDA9287D69F4F1,
        0x8CCD4DA2E838E916,
    ],
    "double": [
        0xFE10AB7382E8E160,
        0xFE10AB7382E8E160,
        0x4E41D2A34BB5A251,
        0x4FC5FFD34D310320,
        0x9567347E2548181F,
        0x8CCD4DA2E838E916,
    ],
    "decimal128(38, 2)": [0x6B340A1156E2B13D, 0x65A271545134AE79, 0x47AA78CE402F1580, 0x8CCD4DA2E838E916],
    "string": [
        0xFE10AB7382E8E160,
        0x7A6EA229A31880BF,
        0x8E33FD82C626BE90,
        0x5A1BDB2F1947BB3A,
        0x7CECC9F4F401E7EE,
        0x8CCD4DA2E838E916,
    ],
    "large_string": [0xFE10AB7382E8E160, 0x7A6EA229A31880BF, 0x7CECC9F4F401E7EE, 0x8CCD4DA2E838E916],
    "string_view": [0xFE10AB7382E8E160, 0x7A6EA229A31880BF, 0x7CECC9F4F401E7EE, 0x8CCD4DA2E838E916],
    "binary": [0xFE10AB7382E8E160, 0xC47D04B932CB47CC, 0x14D939034FD69FA5, 0x1689B921769C1047, 0x8CCD4DA2E838E916],
    "date32[day]": [0xFE10AB7382E8E160, 0x6FA99466D517A85C, 0x8CCD4DA2E838E916],
    "timestamp[us]": [0xFE10AB7382E8E160, 0xCF47EB14DE9F51B3, 0x8CCD4DA2E838E916],
    "timestamp[us, tz=UTC]": [0xCF47EB14DE9F51B3, 0x8CCD4DA2E838E916],
    "duration[us]": [0xFE10AB7382E8E160, 0xC3C31785692D0719, 0x8CCD4DA2E838E916],
    "time64[us]": [0xFE10AB7382E8E160, 0x9E4B5FD24CAB9C4D, 0x8CCD4DA2E838E916],
    "month_day_nano_interval": [0x6B340A1156E2B13D, 0xB354499FDF58B07C, 0x8CCD4DA2E838E916],
    "null": [0x8CCD4DA2E838E916],
    "list<item: int32>": [
        0xFE10AB7382E8E160,
        0xA61110E14BE8E54E,
        0xC47D04B932CB47CC,
        0xAC2237C11DEE7196,
        0xB61527A155DF7732,
        0x8CCD4DA2E838E916,
    ],
    "list<item: list<item: string>>": [
        0xFE10AB7382E8E160,
        0xC47D04B932CB47CC,
        0xA61110E14BE8E54E,
        0x8D3B965F07F567CA,
        0x411604834C5FB268,
        0x8CCD4DA2E838E916,
    ],
    "struct<x: double, y: string>": [
        0x16E1CC736EE55F1A,
        0x16E1CC736EE55F1A,
        0xE8409FCA3E52F04F,
        0x7F6DD857D9A7638C,
        0x8CCD4DA2E838E916,
    ],
    "struct<>": [0x60E71088A1BB8184, 0x8CCD4DA2E838E916],
    "map<string, int64>": [0xFE10AB7382E8E160, 0x95D7AC482A80B7E0, 0x76F4729E8ADD385E, 0xE318BB288ACE6D06, 0x8CCD4DA2E838E916],
    "list<item: struct<m: map<int32, list<item: double>>>>": [
        0xBEBFDC7AB36A4A7F,
        0x5FFBE93A565B4BD7,
        0x861912C8D618C0EB,
        0xFE10AB7382E8E160,
        0x8CCD4DA2E838E916,
    ],
}


def hashes(array: pa.Array) -> list[int]:
    return hash_rows(pa.record_batch([array], ["c0"]), [0]).tolist()


@pytest.mark.parametrize("kind", SAMPLES, ids=str)
def test_golden_values(kind: pa.DataType) -> None:
    assert hashes(pa.array(SAMPLES[kind], kind)) == GOLDEN[str(kind)]


def test_golden_value_of_a_row_and_of_no_columns() -> None:
    rows = batch([pa.int64(), pa.string(), pa.float64()], [(7, "headwater", None)])
    assert [hash_rows(rows, columns).tolist() for columns in ([0, 1, 2], [1, 0], [])] == [
        [0xAF9EA1AA33378636],
        [0x59E627BEB6EE0E9E],
        [0x853C49E6748FEA9B],
    ]


@given(st.lists(TYPES, max_size=3).flatmap(batches))
def test_rows_have_one_hash_iff_they_are_equal(rows: pa.RecordBatch) -> None:
    computed = hash_rows(rows, range(rows.num_columns)).tolist()
    assert len(computed) == rows.num_rows
    first = {}
    for meaning, number in zip(meanings(rows), computed, strict=True):
        assert first.setdefault(meaning, number) == number
    assert len(set(first.values())) == len(first)


@given(st.data())
def test_a_slice_hashes_as_the_whole(data: st.DataObject) -> None:
    rows = data.draw(st.lists(TYPES, min_size=1, max_size=2).flatmap(batches))
    whole = hash_rows(rows, range(rows.num_columns))
    for i in range(rows.num_rows):
        assert hash_rows(rows.slice(i, 1), range(rows.num_columns)).tolist() == [whole[i]]
        copied = batch(rows.schema.types, [tuple(column[i].as_py() for column in rows.columns)])
        assert hash_rows(copied, range(rows.num_columns)).tolist() == [whole[i]]


def test_the_order_of_columns_matters_and_their_place_does_not() -> None:
    rows = batch([pa.int32(), pa.int32(), pa.int32()], [(1, 2, 1), (2, 1, 2)])
    there, back, shifted = (hash_rows(rows, columns) for columns in ([0, 1], [1, 0], [2, 1]))
    assert there[0] != back[0]
    assert there[0] == back[1]
    assert there.tolist() == shifted.tolist()


def test_blocks_leave_no_seams() -> None:
    count = 40_000
    numbers = pa.array(np.arange(count) % 1000)
    rows = pa.record_batch([numbers, numbers.cast(pa.string())], ["c0", "c1"])
    computed = hash_rows(rows, [0, 1])
    assert computed.reshape(-1, 1000).tolist() == [computed[:1000].tolist()] * (count // 1000)
    assert len(set(computed.tolist())) == 1000
    large = pa.array(["x" * 300_000 + str(i) for i in range(12)])
    assert hashes(large) == [hashes(large.slice(i, 1))[0] for i in range(12)]


def test_every_nan_is_one_nan_and_zero_has_no_sign() -> None:
    quiet, negative, payload = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], np.uint64).view(
        np.float64
    )
    assert len(set(hashes(pa.array([quiet, negative, payload, math.nan])))) == 1
    assert len(set(hashes(pa.array([0.0, -0.0])))) == 1


def test_what_lies_under_a_null_does_not_matter() -> None:
    validity = pa.py_buffer(b"\x05")
    numbers = pa.Array.from_buffers(pa.int64(), 3, [validity, pa.py_buffer(np.array([1, 99, 2]).tobytes())])
    assert hashes(numbers) == hashes(pa.array([1, None, 2]))
    offsets = pa.py_buffer(np.array([0, 1, 3, 4], np.int32).tobytes())
    text = pa.Array.from_buffers(pa.string(), 3, [validity, offsets, pa.py_buffer(b"aXYb")])
    assert hashes(text) == hashes(pa.array(["a", None, "b"]))
    child = pa.array([1, 8, 9, 2])
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 3, [validity, offsets], children=[child])
    assert hashes(lists) == hashes(pa.array([[1], None, [2]]))
    struct = pa.StructArray.from_arrays([pa.array([1, 99, 2])], ["x"], mask=pa.array([False, True, False]))
    assert hashes(struct) == hashes(pa.array([{"x": 1}, None, {"x": 2}]))


def test_layouts_of_one_value_hash_alike() -> None:
    text = ["", "a", None, "a text of more than twelve bytes"]
    assert len({tuple(hashes(pa.array(text, kind))) for kind in (pa.string(), pa.large_string(), pa.string_view())}) == 1
    assert len({tuple(hashes(pa.array([1, None, -1], kind))) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}) == 1
    lists = [[], [1], None]
    assert hashes(pa.array(lists, pa.list_(pa.int8()))) == hashes(pa.array(lists, pa.large_list(pa.int64())))


def test_thue_morse_strings_do_not_collide() -> None:
    one, other = "ab", "ba"
    for _ in range(11):
        one, other = one + other, other + one
    for width in (1, 8):
        wide = [text.replace("a", "a" * width).replace("b", "b" * width) for text in (one, other)]
        assert len(set(hashes(pa.array(wide)))) == 2


@pytest.mark.parametrize(
    "values", [np.arange(200_000), np.arange(200_000) << 32, np.arange(200_000) * 1.0], ids=["low", "high", "float"]
)
def test_regular_numbers_spread_over_all_bits(values: np.ndarray) -> None:
    computed = np.array(hashes(pa.array(values)), np.uint64)
    assert len(np.unique(computed)) == len(values)
    for shift in (0, 24, 56):
        buckets = np.bincount((computed >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert np.abs(buckets / (len(values) / 256) - 1).max() < 0.2


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="dictionary"):
        hashes(pa.array(["a"]).dictionary_encode())
