"""Arrangements as compiled loops see them: all their runs as a table of numbers, for a loop that looks up row after row.

    run      addresses of its hashes, lines and weights (0 if all weights are one number) | lines | words a line | that number
             | address of its signposts (0 if there are none) | bits of a hash that these leave out
    place    of a column: its word, how much of it (as in a `spec` of blocks), its NULL bit

A loop that takes arrays is compiled for their number, and there may be any number of runs; so it gets addresses. Whoever calls
it holds the runs until it is done, for an arrangement may exchange its own meanwhile; runs never change.
"""

# ruff: noqa: ANN401  (what Numba gives to those who write its code)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from headwater.compiled import inner
from headwater.state.loops import HIGH, LOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headwater.state.arrangement import Arrangement
    from headwater.state.runs import Run
    from headwater.state.signposts import Signposts

    Int64s = NDArray[np.int64]
    Words = NDArray[np.uint64]

HASHES, LINES, WEIGHTS, COUNT, WIDTH, WEIGHT, POSTS, SHIFT = range(8)


class Stored(NamedTuple):
    """Runs of several arrangements, which of them each has (first and beyond the last), its key, the places of its columns."""

    runs: Int64s
    spans: Int64s
    keys: Int64s
    places: Int64s


def stored(arrangements: Sequence[Arrangement]) -> tuple[Stored, list[tuple[Run, Signposts]]]:
    """The arrangements as tables, and what to hold; columns of no fixed width have no place."""
    held: list[tuple[Run, Signposts]] = []
    spans = np.empty((len(arrangements), 2), np.int64)
    widest = max((len(each.schema.types) for each in arrangements), default=0)
    keys, places = np.zeros((len(arrangements), widest), np.int64), np.full((len(arrangements), widest, 3), -1, np.int64)
    for number, arrangement in enumerate(arrangements):
        spans[number] = len(held), len(held) + len(arrangement.runs)
        # The signposts, too: a run that two threads read from a file may exchange its own.
        held += [(run, run.signposts) for run in arrangement.runs]
        keys[number, : len(arrangement.key)] = arrangement.key
        found = arrangement.format.table
        places[number, : len(found)] = found
    # Runs never change: what is said of one is found once.
    runs = [signposts.line or _described(run, signposts) for run, signposts in held]
    return Stored(np.array(runs, np.int64).reshape(-1, 8), spans, keys, places), held


def _described(run: Run, signposts: Signposts) -> tuple[int, ...]:
    words = run.block.words
    if not (words.flags.c_contiguous and run.hashes.flags.c_contiguous):
        raise ValueError("The lines of a run are not in one piece.")
    weights = 0 if run.is_uniform else _address(run.weights)
    posts = signposts.along(run.hashes)
    ways = (0, 0) if posts is None else (_address(posts), 65 - len(posts).bit_length())
    line = (_address(run.hashes), _address(words), weights, len(run), words.shape[1], int(run.weights[0]), *ways)
    signposts.line = line
    return line


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


# So few hashes are looked at one after the other.
_ALONG = 8
# A line that will be read, and what stands beside it, are this many bytes, as the processor fetches them.
_FETCHED = 64


@intrinsic
def _word(_context: Any, _address: Any) -> Any:
    def made(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return types.uint64(types.int64), made


@intrinsic
def _half(_context: Any, _address: Any) -> Any:
    def made(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(32).as_pointer()))

    return types.uint32(types.int64), made


@intrinsic
def fetch(_context: Any, _address: Any) -> Any:
    """Has the processor fetch what is at an address, while other things are done."""

    def made(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place, number = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        # To be read, to be kept in all caches, of data.
        what = [ir.Constant(number, said) for said in (0, 3, 1)]
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, *what])
        return context.get_dummy_value()

    return types.void(types.int64), made


@inner
def weight_of(runs: Int64s, run: int, line: int) -> int:
    if runs[run, WEIGHTS] == 0:
        return runs[run, WEIGHT]
    return np.int64(_word(runs[run, WEIGHTS] + 8 * line))  # type: ignore[call-arg, return-value]


@inner
def fetch_lines(runs: Int64s, run: int, line: int, count: int) -> None:
    """Has the processor fetch some lines of a run, and their weights."""
    first, size = line_of(runs, run, line), 8 * runs[run, WIDTH] * count
    for address in range(first, first + size, _FETCHED):
        fetch(address)  # type: ignore[call-arg]
    fetch(first + size - 1)  # type: ignore[call-arg]
    if runs[run, WEIGHTS] != 0:
        fetch(runs[run, WEIGHTS] + 8 * line)


@inner
def fetch_post(runs: Int64s, run: int, wanted: np.uint64) -> None:
    """Has the processor fetch the number that says where hashes begin like this."""
    if runs[run, POSTS] != 0:
        fetch(_post(runs, run, wanted))  # type: ignore[call-arg]


@inner
def near(runs: Int64s, run: int, wanted: np.uint64) -> tuple[int, int]:
    """From where to where a hash may be; that is on its way then."""
    start, end = 0, runs[run, COUNT]
    if runs[run, POSTS] != 0:
        post = _post(runs, run, wanted)
        start, end = np.int64(_half(post)), np.int64(_half(post + 4))  # type: ignore[call-arg, assignment]
    fetch(runs[run, HASHES] + 8 * start)  # type: ignore[call-arg]
    return start, end


@inner
def lines_with(runs: Int64s, run: int, wanted: np.uint64, start: int, end: int) -> tuple[int, int]:
    """From where to where lines have a hash, within the place where they may be."""
    hashes = runs[run, HASHES]
    while end - start > _ALONG:
        middle = (start + end) >> 1
        found = _word(hashes + 8 * middle)  # type: ignore[call-arg, var-annotated]
        if found < wanted:
            start = middle + 1
        elif found > wanted:
            end = middle
        else:
            # There may be more than a few on both sides.
            return _first(hashes, wanted, start, middle, False), _first(hashes, wanted, middle, end, True)  # noqa: FBT003
    less = same = 0
    # Without a branch that depends on what is found.
    for at in range(start, end):
        found = _word(hashes + 8 * at)  # type: ignore[call-arg]
        less += found < wanted
        same += found == wanted
    return start + less, start + less + same


@inner
def _first(hashes: int, wanted: np.uint64, start: int, end: int, beyond: bool) -> int:  # noqa: FBT001
    """The first place of a hash that is not less, or, `beyond` that, greater; by bisection."""
    while start < end:
        middle = (start + end) >> 1
        found = _word(hashes + 8 * middle)  # type: ignore[call-arg, var-annotated]
        if found < wanted or (beyond and found == wanted):
            start = middle + 1
        else:
            end = middle
    return start


@inner
def _post(runs: Int64s, run: int, wanted: np.uint64) -> int:
    return runs[run, POSTS] + 4 * np.int64(wanted >> np.uint64(runs[run, SHIFT]))


@inner
def line_of(runs: Int64s, run: int, line: int) -> int:
    """Where a line is in memory."""
    return runs[run, LINES] + 8 * runs[run, WIDTH] * line


@inner
def nulls_of(line: int) -> int:
    """The first bits that say which columns of a line are NULL."""
    return np.int64(_word(line))  # type: ignore[call-arg, return-value]


@inner
def is_null(line: int, places: Int64s, arrangement: int, column: int) -> bool:
    flag = places[arrangement, column, 2]
    return (_word(line + 8 * (flag >> 6)) >> uint64(flag & 63)) & uint64(1) != uint64(0)  # type: ignore[call-arg]


@inner
def read(line: int, places: Int64s, arrangement: int, column: int) -> int:
    """The value of a column of a line; zero if it is NULL."""
    size = places[arrangement, column, 1]
    word = np.int64(_word(line + 8 * places[arrangement, column, 0]))  # type: ignore[call-arg]
    if size == LOW:
        return (word << 32) >> 32
    return word >> 32 if size == HIGH else word
