"""Sorting by bits: against NumPy's sort, of hashes that are spread evenly and of such that are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headwater.state import sorting

Maker = Callable[[int], np.ndarray]
RNG = np.random.default_rng(1)
SIZES = [2, 100, 5_000, 70_000, 200_000]


def spread(count: int) -> np.ndarray:
    return RNG.integers(0, 1 << 64, count, dtype=np.uint64)


def skewed(count: int) -> np.ndarray:
    """Half of them one number, the others few different ones, or all in one corner."""
    found = RNG.choice(np.array([0, 1, 7, (1 << 64) - 1, 1 << 63], np.uint64), count)
    found[::2] = np.uint64(0x0123456789ABCDEF)
    found[::5] = RNG.integers(0, 1000, len(found[::5]), dtype=np.uint64)
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("many", [1, 1 << 16])
@pytest.mark.parametrize("make", [spread, skewed])
def test_numbers_ascend(make: Maker, many: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "_MANY", many)
    monkeypatch.setattr(sorting, "_PART_BITS", 10 if size > 5_000 else 1)
    numbers = make(size)
    expected = np.sort(numbers)
    np.testing.assert_array_equal(sorting.ascending(numbers), expected)


@pytest.mark.parametrize("make", [spread, skewed])
def test_the_order_is_of_all_places_and_ascends_but_for_the_lowest_bits(make: Maker) -> None:
    hashes = make(100_000)
    order = sorting.roughly_sorted(hashes.copy())
    np.testing.assert_array_equal(np.sort(order), np.arange(len(hashes)))
    shift = np.uint64(len(hashes).bit_length())
    high = hashes[order] >> shift
    assert (high[1:] >= high[:-1]).all()


@pytest.mark.parametrize("part", [1, 7, 1000, 1 << 18])
@pytest.mark.parametrize("make", [spread, skewed])
def test_an_order_is_finished_in_parts(make: Maker, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "_PART", part)
    hashes, ties = make(3_000), make(3_000)
    order = sorting.roughly_sorted(hashes.copy())
    found = [order, hashes[order], ties[order]]
    sorting.settled(*found, len(hashes).bit_length())
    expected = np.lexsort((ties, hashes))
    np.testing.assert_array_equal(found[1], hashes[expected])
    np.testing.assert_array_equal(found[2], ties[expected])
    np.testing.assert_array_equal(hashes[found[0]], found[1])
    np.testing.assert_array_equal(ties[found[0]], found[2])
