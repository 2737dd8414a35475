"""Arrangements as compiled loops see them: all their runs as a table of numbers, for a loop that looks up row after row.

    run      addresses of its hashes, lines and weights (0 if all weights are one number) | lines | words a line | that number
    place    of a column: its word, how much of it (as in a `spec` of blocks), its NULL bit

A loop that takes arrays is compiled for their number, and there may be any number of runs; so it gets addresses. Whoever calls
it holds the runs until it is done, for an arrangement may exchange its own meanwhile; runs never change.
"""

# ruff: noqa: ANN401  (what Numba gives to those who write its code)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import carray, types, uint64  # type: ignore[attr-defined]
from numba.extending import intrinsic

from headwater.compiled import compiled
from headwater.state.blocks import format_of
from headwater.state.loops import value
from headwater.state.searching import lower_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.state.arrangement import Arrangement
    from headwater.state.runs import Run

    Int64s = NDArray[np.int64]
    Words = NDArray[np.uint64]

HASHES, LINES, WEIGHTS, COUNT, WIDTH, WEIGHT = range(6)


class Stored(NamedTuple):
    """Runs of several arrangements, which of them each has (first and beyond the last), its key, the places of its columns."""

    runs: Int64s
    spans: Int64s
    keys: Int64s
    places: Int64s


def stored(arrangements: Sequence[Arrangement]) -> tuple[Stored, list[Run]]:
    """The arrangements as tables, and the runs to hold; columns of no fixed width have no place."""
    held: list[Run] = []
    runs: list[tuple[int, ...]] = []
    spans = np.empty((len(arrangements), 2), np.int64)
    widest = max((len(each.schema.types) for each in arrangements), default=0)
    keys, places = np.zeros((len(arrangements), widest), np.int64), np.full((len(arrangements), widest, 3), -1, np.int64)
    for number, arrangement in enumerate(arrangements):
        spans[number, 0] = len(runs)
        for run in arrangement.runs:
            held.append(run)
            words = run.block.words
            if not (words.flags.c_contiguous and run.hashes.flags.c_contiguous):
                raise ValueError("The lines of a run are not in one piece.")
            weights = 0 if run.is_uniform else _address(run.weights)
            runs.append((_address(run.hashes), _address(words), weights, len(run), words.shape[1], int(run.weights[0])))
        spans[number, 1] = len(runs)
        keys[number, : len(arrangement.key)] = arrangement.key
        for column, place in enumerate(format_of(tuple(arrangement.schema.types)).places):
            if place.kind is not None:
                places[number, column] = place.at // 2, place.size, place.flag
    return Stored(np.array(runs, np.int64).reshape(-1, 6), spans, keys, places), held


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


@intrinsic
def _pointer(_context: Any, _address: Any) -> Any:
    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.uint64)(types.int64), made  # type: ignore[no-untyped-call]


@compiled
def lines_of(runs: Int64s, run: int) -> tuple[NDArray[np.uint64], Words]:
    """The hashes and the lines of a run."""
    count, width = runs[run, COUNT], runs[run, WIDTH]
    hashes = carray(_pointer(runs[run, HASHES]), count)  # type: ignore[call-arg]
    return hashes, carray(_pointer(runs[run, LINES]), (count, width))


@compiled
def weight_of(runs: Int64s, run: int, line: int) -> int:
    if runs[run, WEIGHTS] == 0:
        return runs[run, WEIGHT]
    weights = carray(_pointer(runs[run, WEIGHTS]), runs[run, COUNT])  # type: ignore[call-arg]
    return np.int64(weights[line])


@compiled
def start_of(hashes: NDArray[np.uint64], wanted: np.uint64) -> int:
    """The first place of a hash that is not less: guessed from its size, and corrected by what is found there."""
    return lower_bound(hashes, wanted, nearer(hashes, wanted, nearer(hashes, wanted, guessed(hashes, wanted))))


@compiled
def guessed(hashes: NDArray[np.uint64], wanted: np.uint64) -> int:
    """Where a hash should be, as they are spread evenly."""
    return min(int(wanted * _density(hashes)), hashes.size - 1)


@compiled
def nearer(hashes: NDArray[np.uint64], wanted: np.uint64, guess: int) -> int:
    """A better guess, by what is found at another."""
    off = (np.float64(wanted) - np.float64(hashes[guess])) * _density(hashes)
    return min(max(guess + int(off), 0), hashes.size - 1)


@compiled
def _density(hashes: NDArray[np.uint64]) -> float:
    return hashes.size / 18446744073709551616.0


@compiled
def is_null(words: Words, line: int, places: Int64s, arrangement: int, column: int) -> bool:
    flag = places[arrangement, column, 2]
    return (words[line, flag >> 6] >> uint64(flag & 63)) & uint64(1) != uint64(0)


@compiled
def read(words: Words, line: int, places: Int64s, arrangement: int, column: int) -> int:
    """The value of a column of a line, if it is not NULL."""
    at, size = places[arrangement, column, 0], places[arrangement, column, 1]
    return np.int64(value(words, line, at, size))  # type: ignore[return-value]
