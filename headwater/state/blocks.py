"""Blocks: rows laid out to be found, copied and compared one by one, as state needs it.

Arrow keeps a column together, which is right for computing with columns. State is read a few rows at a time, from all over,
and then a row in one place is worth more: values of fixed width stand side by side in 64-bit words, a row a line; strings,
lists and structs stay Arrow columns beside the lines.

    line  =  one bit a column: is it NULL | the values: a word each, two for decimals and intervals, half a word for small ones

Halves of words are filled in the order of the columns: first what the NULL bits leave, if these are 32 at most.

Two rows are the same row iff their words are (and their other columns are): every NaN is one NaN, a NULL's words are zero.
As *keys*, −0.0 and 0.0 are the same as well; whoever compares or hashes keys says so in its `spec` of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.delta import without_columns
from headwater.state import columns, layout, loops
from headwater.state.parallel import PIECE, in_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Words = NDArray[np.uint64]
    Spec = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a column is: in the words, from half `at` on (with the number of its NULL bit), or among the other columns."""

    type: pa.DataType
    kind: layout.Kind | None
    at: int
    flag: int

    @property
    def size(self) -> int:
        """How many words it takes, or which half of a word."""
        assert self.kind is not None
        if self.kind.halves > 1:
            return self.kind.halves // 2
        return loops.HIGH if self.at & 1 else loops.LOW


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows in a format."""

    words: Words
    others: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def nbytes(self) -> int:
        return int(self.words.nbytes) + sum(array.nbytes for array in self.others)

    def slice(self, start: int, count: int) -> Block:
        """So many rows from a place on; nothing is copied."""
        return Block(self.words[start : start + count], tuple(array.slice(start, count) for array in self.others))

    def take(self, indices: Indices) -> Block:
        """The rows at the indices."""
        words = np.empty((len(indices), self.words.shape[1]), np.uint64)
        if len(indices) <= PIECE:
            loops.gather(self.words, indices, words)
        else:
            in_pieces(len(indices), lambda start, stop: loops.gather(self.words, indices[start:stop], words[start:stop]))
        return Block(words, taken(self.others, indices))

    def take_some(self, indices: Indices, columns: Indices, others: Sequence[int]) -> Block:
        """The same with some of the words, and some of the columns of no fixed width."""
        words = np.empty((len(indices), len(columns)), np.uint64)
        in_pieces(
            len(indices), lambda start, stop: loops.gather_some(self.words, indices[start:stop], columns, words[start:stop])
        )
        return Block(words, taken(tuple(self.others[i] for i in others), indices))


def concat(blocks: Sequence[Block]) -> Block:
    """One or more blocks of one format, end to end."""
    if len(blocks) == 1:
        return blocks[0]
    return Block(np.concatenate([block.words for block in blocks]), _joined(blocks))


def part(block: Block, others: Sequence[int]) -> Block:
    """The same lines, and of the columns of no fixed width some."""
    return Block(block.words, tuple(block.others[i] for i in others)) if block.others else block


@dataclass(frozen=True, eq=False)
class Spliced:
    """Blocks that are thought of as laid end to end, each from its start on."""

    blocks: Sequence[Block]
    starts: Indices

    def take(self, indices: Indices) -> Block:
        """The rows at the indices."""
        words = np.empty((len(indices), self.blocks[0].words.shape[1]), np.uint64)

        def splice(start: int, stop: int) -> None:
            piece, into = indices[start:stop], words[start:stop]
            for block, first in zip(self.blocks, self.starts, strict=False):
                loops.gather_from(block.words, first, piece, into)

        in_pieces(len(indices), splice)
        return Block(words, taken(self._others, indices))

    @cached_property
    def _others(self) -> tuple[pa.Array, ...]:
        return _joined(self.blocks)


def _joined(blocks: Sequence[Block]) -> tuple[pa.Array, ...]:
    return tuple(columns.concat(parts) for parts in zip(*(block.others for block in blocks), strict=True))


def taken(others: tuple[pa.Array, ...], indices: Indices) -> tuple[pa.Array, ...]:
    """The values of columns of no fixed width at the indices."""
    if not others:
        return ()
    chosen = pa.array(indices)
    return tuple(columns.take(array, chosen) for array in others)


class Format:
    """How rows of some types are laid out."""

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        kinds = [layout.kind_of(kind) for kind in types]
        fixed = sum(kind is not None for kind in kinds)
        self._flags = -(-fixed // 64) * 2 if fixed > 32 else min(fixed, 1)
        self._spare = 1 if self._flags == 1 else None
        end = self._flags + self._flags % 2
        others = flag = 0
        places = []
        for given, kind in zip(types, kinds, strict=True):
            if kind is None:
                places.append(Place(given, None, others, -1))
                others += 1
                continue
            if kind.halves == 1 and self._spare is not None:
                at, self._spare = self._spare, None
            else:
                at = end
                end += kind.halves + kind.halves % 2
                self._spare = at + 1 if kind.halves == 1 else self._spare
            places.append(Place(given, kind, at, flag))
            flag += 1
        self.places = tuple(places)
        self.width = end // 2
        self._all_fixed = fixed == len(types)
        self._parts: dict[tuple[int, ...], Format] = {}
        self._narrow: dict[tuple[int, ...], tuple[Format, Indices]] = {}
        self._specs: dict[tuple[int, ...], Spec] = {}
        self._pieces: dict[tuple[int, ...], list[Spec | int]] = {}
        self._beside: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._schema = pa.schema([pa.field(f"c{i}", kind) for i, kind in enumerate(types)])

    def part(self, chosen: tuple[int, ...]) -> Format:
        """The format of blocks with the same words and, of the other columns, the chosen ones: it reads the chosen columns."""
        known = self._parts.get(chosen)
        if known is None:
            known = self._parts[chosen] = Format(tuple(self.places[i].type for i in chosen))
            fixed = [self.places[i] for i in chosen]
            known.places = tuple(own if mine.kind is None else mine for own, mine in zip(known.places, fixed, strict=True))
            known.width, known._flags = self.width, self._flags
        return known

    def narrow(self, chosen: tuple[int, ...]) -> tuple[Format, Indices]:
        """The format of blocks that have, of the words, the NULL bits and those of the chosen columns; and which these are."""
        known = self._narrow.get(chosen)
        if known is None:
            made = Format(tuple(self.places[i].type for i in chosen))
            words, places = list(range(-(-self._flags // 2))), []
            for own, mine in zip(made.places, (self.places[i] for i in chosen), strict=True):
                if mine.kind is None:
                    places.append(own)
                    continue
                first = mine.at // 2
                words += [word for word in range(first, first + max(mine.size, 1)) if word not in words]
                places.append(replace(own, at=2 * words.index(first) + mine.at % 2, flag=mine.flag))
            made.places, made.width, made._flags = tuple(places), len(words), self._flags
            known = self._narrow[chosen] = made, np.array(words, np.int64)
        return known

    @cached_property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.places)))

    @cached_property
    def table(self) -> Indices:
        """For each column its first word, words, and NULL bit; −1 where it is of no fixed width."""
        rows = [(-1, -1, -1) if p.kind is None else (p.at // 2, p.size, p.flag) for p in self.places]
        return np.array(rows, np.int64).reshape(-1, 3)

    @cached_property
    def _fixed(self) -> list[tuple[int, Place, layout.Kind]]:
        """The columns that are in the words, with their numbers."""
        return [(i, place, place.kind) for i, place in enumerate(self.places) if place.kind is not None]

    def beside(self, key: tuple[int, ...]) -> tuple[int, ...]:
        """The columns that are not in the key."""
        known = self._beside.get(key)
        if known is None:
            known = self._beside[key] = tuple(i for i in self.every if i not in key)
        return known

    def spec(self, chosen: tuple[int, ...]) -> Spec:
        """The fixed-width ones of the columns, for compiled loops: first word, words, NULL bit, whether it is a float."""
        known = self._specs.get(chosen)
        if known is None:
            known = self._specs[chosen] = self._described(chosen)
        return known

    @cached_property
    def exact(self) -> Spec:
        """The same for all columns, where −0.0 is not 0.0."""
        spec = self._described(self.every)
        spec[:, 3] = 0
        return spec

    def _described(self, chosen: tuple[int, ...]) -> Spec:
        rows = [(p.at // 2, p.size, p.flag, p.kind.floating) for p in map(self.places.__getitem__, chosen) if p.kind]
        return np.array(rows, np.int64).reshape(-1, 4)

    def pieces(self, chosen: tuple[int, ...]) -> list[Spec | int]:
        """The chosen columns in order: neighbours of fixed width as one spec, each other one by its place among the others."""
        known = self._pieces.get(chosen)
        if known is None:
            known = []
            for is_fixed, group in groupby(chosen, lambda i: self.places[i].kind is not None):
                found = tuple(group)
                known += [self.spec(found)] if is_fixed else [self.places[i].at for i in found]
            self._pieces[chosen] = known
        return known

    def others(self, chosen: Sequence[int]) -> list[int]:
        """Where the chosen columns of no fixed width are among the others."""
        return [self.places[i].at for i in chosen if self.places[i].kind is None]

    def pack(self, rows: pa.RecordBatch) -> Block:
        """Rows of these types as a block."""
        words = np.empty((rows.num_rows, self.width), np.uint64)
        if rows.num_rows <= PIECE:
            self._write(words, rows)
        else:
            in_pieces(rows.num_rows, lambda start, stop: self._write(words[start:stop], rows.slice(start, stop - start)))
        return Block(words, self._others(rows))

    def pack_at(self, rows: pa.RecordBatch, indices: Indices) -> Block:
        """The rows at the indices as a block."""
        words = np.empty((len(indices), self.width), np.uint64)
        fixed = rows.select([i for i, place in enumerate(self.places) if place.kind is not None])
        narrow = format_of(tuple(fixed.schema.types))
        in_pieces(
            len(indices),
            lambda start, stop: narrow._write(words[start:stop], fixed.take(pa.array(indices[start:stop]))),  # noqa: SLF001
        )
        return Block(words, taken(self._others(rows), indices))

    def unpack(self, block: Block) -> pa.RecordBatch:
        """The rows of a block under the engine's names; of large types where these are needed."""
        if not self.places:
            return without_columns(len(block))
        nulls = self._flags and np.count_nonzero(block.words.view(np.uint32)[:, : self._flags])
        arrays = []
        for place, values in zip(self.places, self._read(block), strict=True):
            if place.kind is None:
                arrays.append(columns.conform(values, place.type))
                continue
            missing = self._missing(block.words, place) if nulls else None
            arrays.append(place.kind.column(place.type, values, missing))
        if self._all_fixed:
            return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return pa.RecordBatch.from_arrays(arrays, names=self._schema.names)

    def _read(self, block: Block) -> list[Any]:
        """The values of every column."""
        fixed = [(place, place.kind) for place in self.places if place.kind is not None]
        found: list[Any] = [block.others[p.at] if p.kind is None else p.kind.empty(len(block)) for p in self.places]
        into = [values for place, values in zip(self.places, found, strict=True) if place.kind is not None]

        def read(start: int, stop: int) -> None:
            lines, halves = _views(block.words[start:stop])
            for (place, kind), values in zip(fixed, into, strict=True):
                if kind.halves == 1:
                    kind.read(halves, place.at, values[start:stop])
                else:
                    kind.read(lines, place.at // 2, values[start:stop])

        in_pieces(len(block), read)
        return found

    def _others(self, rows: pa.RecordBatch) -> tuple[pa.Array, ...]:
        if self._all_fixed:
            return ()
        return tuple(layout.plain(rows.column(i)) for i, place in enumerate(self.places) if place.kind is None)

    def _write(self, words: Words, rows: pa.RecordBatch) -> None:
        if not self.width:
            return
        lines, halves = _views(words)
        halves[:, : self._flags] = 0
        if self._spare is not None:
            halves[:, self._spare] = 0
        for i, place, kind in self._fixed:
            array = rows.column(i)
            if kind.halves == 1:
                kind.write(array, halves, place.at)
            else:
                kind.write(array, lines, place.at // 2)
            if array.null_count:
                missing = array.is_null().to_numpy(zero_copy_only=False)
                halves[missing, place.at : place.at + kind.halves] = 0
                words[:, place.flag >> 6] |= missing.astype(np.uint64) << np.uint64(place.flag & 63)

    @staticmethod
    def _missing(words: Words, place: Place) -> NDArray[np.bool_] | None:
        missing: NDArray[Any] = (words[:, place.flag >> 6] >> np.uint64(place.flag & 63)) & np.uint64(1)
        return missing.astype(bool) if missing.any() else None


def _views(words: Words) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Lines as signed words, and as halves of words: the low half comes first."""
    return words.view(np.int64), words.view("<i4")


@cache
def format_of(types: tuple[pa.DataType, ...]) -> Format:
    """The format for rows of these types."""
    return Format(types)
