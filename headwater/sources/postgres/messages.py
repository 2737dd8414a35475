"""What PostgreSQL's plug-in `pgoutput` says, from bytes to Arrow, without a step in Python for a row.

    messages   begin · commit · relation · insert · update · delete · truncate, each after its length, as a binary COPY has it
    pass 1     counts changes, rows and values
    pass 2     notes for each change its transaction, relation and kind, for each value where its bytes are
    then       values become the columns of a map, name → text, which has no entry for a value that was not sent

A value that is large and was not changed by an update is not sent (TOAST), and of an old row often only the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Numbers = NDArray[np.int64]

# COPY in binary begins with a signature, flags and the length of an extension.
_HEAD = 19
_BEGIN, _COMMIT, _RELATION, _INSERT, _UPDATE, _DELETE, _TRUNCATE = (ord(letter) for letter in "BCRIUDT")
_NEW, _NULL, _UNCHANGED = (ord(letter) for letter in "Nnu")
_OLD_KEY = ord("K")
_OPS = {_INSERT: "c", _UPDATE: "u", _DELETE: "d", _TRUNCATE: "t"}
# Microseconds from 1970 to 2000, where PostgreSQL's time begins.
_EPOCH = 946_684_800_000_000


@dataclass(frozen=True, eq=False)
class Relation:
    """A table as a message describes it; which of its columns are of the key."""

    name: str
    columns: tuple[str, ...]
    is_key: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class Parsed:
    """Changes, in order, and the rows that they have: of each the old one, if it was sent, before the new one."""

    changes: Numbers
    """For each: transaction's end, its number, its time, place of the relation, kind."""
    rows: Numbers
    """For each: the change, whether it is new, where its values begin, whether it is only a key."""
    values: Numbers
    """For each: column, kind, start and length of its bytes."""
    relations: tuple[Relation, ...]


@compiled
def _number(data: Bytes, at: int, size: int) -> int:
    found = 0
    for i in range(size):
        found = (found << 8) | int(data[at + i])
    return found


@compiled
def _scan(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917  (one case a message)
    data: Bytes,
    start: int,
    changes: Numbers,
    rows: Numbers,
    values: Numbers,
    relations: Numbers,
    fill: bool,  # noqa: FBT001
) -> tuple[int, int, int, int]:
    """Goes through all messages; with `fill`, notes what is found. Gives how many of each there are."""
    at, size = start, len(data)
    n_changes, n_rows, n_values, n_relations = 0, 0, 0, 0
    first = 0
    xid = time = 0
    while at + 2 <= size and _number(data, at, 2) != 0xFFFF:
        length = _number(data, at + 2, 4)
        here = at + 6
        at = here + length
        kind = data[here]
        if kind == _BEGIN:
            time = _number(data, here + 9, 8)
            xid = _number(data, here + 17, 4)
            first = n_changes
        elif kind == _COMMIT:
            end = _number(data, here + 10, 8)
            if fill:
                for i in range(first, n_changes):
                    changes[i, 0] = end
        elif kind == _RELATION:
            if fill:
                relations[n_relations, 0] = _number(data, here + 1, 4)
                relations[n_relations, 1] = here
            n_relations += 1
        elif kind == _TRUNCATE:
            count = _number(data, here + 1, 4)
            for i in range(count):
                if fill:
                    identity = _number(data, here + 6 + 4 * i, 4)
                    changes[n_changes, 1], changes[n_changes, 2], changes[n_changes, 4] = xid, time, kind
                    for r in range(n_relations):
                        if relations[r, 0] == identity:
                            changes[n_changes, 3] = r
                n_changes += 1
        elif kind in (_INSERT, _UPDATE, _DELETE):
            if fill:
                identity = _number(data, here + 1, 4)
                changes[n_changes, 1], changes[n_changes, 2], changes[n_changes, 4] = xid, time, kind
                for r in range(n_relations):
                    if relations[r, 0] == identity:
                        changes[n_changes, 3] = r
            place = here + 5
            while place < at:
                role = data[place]
                columns = _number(data, place + 1, 2)
                place += 3
                if fill:
                    rows[n_rows, 0], rows[n_rows, 1], rows[n_rows, 2] = n_changes, role == _NEW, n_values
                    rows[n_rows, 3] = role == _OLD_KEY
                n_rows += 1
                for column in range(columns):
                    what = data[place]
                    place += 1
                    count = 0
                    if what not in (_NULL, _UNCHANGED):
                        count = _number(data, place, 4)
                        place += 4
                    if fill:
                        values[n_values, 0], values[n_values, 1] = column, what
                        values[n_values, 2], values[n_values, 3] = place, count
                    n_values += 1
                    place += count
            n_changes += 1
    return n_changes, n_rows, n_values, n_relations


@compiled
def _gathered(data: Bytes, starts: Numbers, lengths: Numbers, out: Bytes) -> None:
    """Copies slices of the data, one after the other."""
    at = 0
    for i in range(len(starts)):
        for j in range(lengths[i]):
            out[at + j] = data[starts[i] + j]
        at += lengths[i]


def parse(copied: bytes) -> Parsed:
    """The changes in what COPY has sent."""
    data = np.frombuffer(copied, np.uint8)
    nothing = np.empty((0, 5), np.int64)
    counts = _scan(data, _HEAD, nothing, nothing, nothing, nothing, False)  # noqa: FBT003
    changes, rows, values, relations = (np.zeros((n, width), np.int64) for n, width in zip(counts, (5, 4, 4, 2), strict=True))
    _scan(data, _HEAD, changes, rows, values, relations, True)  # noqa: FBT003
    return Parsed(changes, rows, values, tuple(_relation(copied, int(at)) for at in relations[:, 1]))


def as_arrow(copied: bytes, parsed: Parsed, chosen: NDArray[np.bool_]) -> pa.RecordBatch:
    """The chosen changes: table, op, xid, lsn, ts, before and after."""
    changes = parsed.changes
    numbers = np.flatnonzero(chosen)
    tables = pa.array([relation.name for relation in parsed.relations], pa.string())
    ops = np.array([_OPS.get(kind, "") for kind in range(max(_OPS) + 1)])
    times = pa.array(changes[numbers, 2] + _EPOCH, pa.timestamp("us", tz="UTC"))
    sides = [_side(copied, parsed, chosen, numbers, is_new=is_new) for is_new in (False, True)]
    return pa.RecordBatch.from_arrays(
        [
            tables.take(pa.array(changes[numbers, 3])) if len(tables) else pa.array([], pa.string()),
            pa.array(ops[changes[numbers, 4]].tolist(), pa.string()),
            pa.array(changes[numbers, 1]),
            pa.array(changes[numbers, 0]),
            times,
            *sides,
        ],
        names=["table", "op", "xid", "lsn", "ts", "before", "after"],
    )


def _side(copied: bytes, parsed: Parsed, chosen: NDArray[np.bool_], numbers: Numbers, *, is_new: bool) -> pa.Array:
    """The old or the new rows of the chosen changes, as maps."""
    rows = parsed.rows
    ends = np.append(rows[1:, 2], len(parsed.values))
    wanted = np.flatnonzero((rows[:, 1] == is_new) & chosen[rows[:, 0]]) if len(rows) else np.empty(0, np.int64)
    sizes = (ends - rows[:, 2])[wanted]
    owners = np.repeat(np.arange(len(wanted)), sizes)
    places = np.repeat(rows[wanted, 2] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    cells = parsed.values[places]
    relations = parsed.changes[rows[wanted, 0], 3][owners]
    names, starts, keys = _names(parsed.relations)
    named = starts[relations] + cells[:, 0]
    kept = (cells[:, 1] != _UNCHANGED) & (keys[named] | (rows[wanted, 3][owners] == 0))
    counts = np.bincount(owners[kept], minlength=len(wanted))
    # A change without such a row has NULL: its map begins where the next one begins.
    place = np.searchsorted(numbers, rows[wanted, 0])
    has = np.zeros(len(numbers), np.bool_)
    has[place] = True
    sizes_of_all = np.zeros(len(numbers), np.int64)
    sizes_of_all[place] = counts
    offsets = np.concatenate([[0], np.cumsum(sizes_of_all)]).astype(np.int32)
    texts = _texts(copied, cells[kept])
    built = pa.MapArray.from_arrays(pa.array(offsets), names.take(pa.array(named[kept])), texts)
    return (
        pa.Array.from_buffers(
            built.type,
            len(numbers),
            [_bits(has), built.buffers()[1]],
            children=[pa.StructArray.from_arrays([built.keys, built.items], fields=list(built.type.field(0).type))],
        )
        if not has.all()
        else built
    )


def _names(relations: tuple[Relation, ...]) -> tuple[pa.Array, Numbers, NDArray[np.bool_]]:
    """All columns of all relations, where those of each begin, and which are of a key."""
    names = [column for relation in relations for column in relation.columns]
    sizes = np.array([len(relation.columns) for relation in relations], np.int64)
    keys = np.array([is_key for relation in relations for is_key in relation.is_key], np.bool_)
    return pa.array(names, pa.string()), np.cumsum(sizes) - sizes, keys


def _texts(copied: bytes, cells: Numbers) -> pa.Array:
    lengths = cells[:, 3]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    out = np.empty(int(offsets[-1]), np.uint8)
    _gathered(np.frombuffer(copied, np.uint8), cells[:, 2].copy(), lengths.copy(), out)
    buffers = [_bits(cells[:, 1] != _NULL), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.StringArray.from_buffers(len(cells), buffers[1], buffers[2], buffers[0])


def _bits(mask: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _relation(copied: bytes, at: int) -> Relation:
    def text(start: int) -> tuple[str, int]:
        end = copied.index(b"\0", start)
        return copied[start:end].decode(), end + 1

    schema, place = text(at + 5)
    table, place = text(place)
    count = int.from_bytes(copied[place + 1 : place + 3], "big")
    place += 3
    columns, keys = [], []
    for _ in range(count):
        keys.append(bool(copied[place] & 1))
        column, place = text(place + 1)
        columns.append(column)
        place += 8
    return Relation(f"{schema}.{table}", tuple(columns), tuple(keys))
