"""Records of the log: what one epoch changed, in bytes that tell whether they are whole.

    record  =  length | checksum | head | delta | delta | …
    head    =  JSON: epoch, time, the epoch up to which all was certain when it was written, and of each delta the relation,
               its length, and, the first time in a segment, its columns; how far streams were applied, if that changed

The rows that a view loses when it is given other columns are a delta of their own, with the names of the columns of before.

Deltas are Arrow messages with the weights as their last column. Of a record that was not written to its end, or that was
damaged, nothing is read: the checksum is over all of it.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import xxhash

from headwater.delta import Delta
from headwater.runtime.history import Former

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FRAME = struct.Struct("<QQ")
_HEAD = struct.Struct("<I")
_FORMER = "former"


@dataclass(frozen=True, eq=False)
class Record:
    """What an epoch changed: rows of tables, and of views with the columns that only serve to order them."""

    epoch: int
    time: float
    tables: Mapping[str, Delta]
    views: Mapping[str, Delta]
    began: list[str] | None = None
    """In an epoch that defines something: the tables and views whose history starts with it."""
    untold: Sequence[str] = ()
    """Those that changed in more rows than are logged: what they were before cannot be told."""
    positions: Mapping[str, Any] | None = None
    """How far all streams were applied, by name, if the epoch has moved one of them."""
    former: Mapping[str, Former] = field(default_factory=dict)
    """What views were that the epoch gave other columns."""


class Encoder:
    """Records to bytes; one for each segment, which describes every relation once."""

    def __init__(self) -> None:
        self._described: dict[str, pa.Schema] = {}

    def encode(self, record: Record, certain: int) -> list[bytes | pa.Buffer]:
        """The pieces of a record, written when all epochs up to a `certain` one were certain."""
        described = []
        bodies: list[bytes | pa.Buffer] = []
        former = {name: each.gone for name, each in record.former.items()}
        for kind, deltas in (("table", record.tables), ("view", record.views), (_FORMER, former)):
            for name, delta in deltas.items():
                body = _with_weights(delta).serialize()
                entry = {"kind": kind, "name": name, "bytes": body.size}
                if kind == _FORMER:
                    entry["names"] = _as_text(record.former[name].names)
                columns = self._columns(f"{kind} {name}", delta.schema)
                described.append(entry if columns is None else {**entry, "columns": columns})
                bodies.append(body)
        began = {} if record.began is None else {"began": record.began}
        untold = {"untold": list(record.untold)} if record.untold else {}
        moved = {} if record.positions is None else {"positions": dict(record.positions)}
        said = {"epoch": record.epoch, "time": record.time, "certain": certain, "deltas": described}
        head = json.dumps({**said, **began, **untold, **moved}).encode()
        # Arrays are read where they lie, so they lie at multiples of eight.
        head += b" " * (-(_FRAME.size + _HEAD.size + len(head)) % 8)
        pieces = [_HEAD.pack(len(head)), head, *bodies]
        check = xxhash.xxh3_64()
        for piece in pieces:
            check.update(piece)
        return [_FRAME.pack(sum(map(len, pieces)), check.intdigest()), *pieces]

    def _columns(self, relation: str, schema: pa.Schema) -> str | None:
        if self._described.get(relation) == schema:
            return None
        self._described[relation] = schema
        return _as_text(schema)


class Decoder:
    """Bytes to records, in the order in which they were written."""

    def __init__(self) -> None:
        self._described: dict[str, pa.Schema] = {}

    def decode(self, data: bytes, start: int = 0) -> Iterator[tuple[Record, int]]:
        """The whole records from a place on, each with the place where it ends."""
        while (payload := framed(data, start)) is not None:
            record = self._record(payload)
            if record is None:
                return
            start += _FRAME.size + len(payload)
            yield record, start

    def _record(self, payload: memoryview) -> Record | None:
        """The record; None if it depends on an earlier one, which is missing, for the columns of a relation."""
        head, start = _head(payload)
        found: dict[str, dict[str, Delta]] = {"table": {}, "view": {}, _FORMER: {}}
        names: dict[str, pa.Schema] = {}
        for entry in head["deltas"]:
            relation = f"{entry['kind']} {entry['name']}"
            if "columns" in entry:
                self._described[relation] = _as_schema(entry["columns"])
            if relation not in self._described:
                return None
            if "names" in entry:
                names[entry["name"]] = _as_schema(entry["names"])
            body = pa.py_buffer(payload[start : start + entry["bytes"]])
            found[entry["kind"]][entry["name"]] = _without_weights(body, self._described[relation])
            start += entry["bytes"]
        return Record(
            head["epoch"],
            head["time"],
            found["table"],
            found["view"],
            head.get("began"),
            tuple(head.get("untold", ())),
            head.get("positions"),
            {name: Former(delta, names[name]) for name, delta in found[_FORMER].items()},
        )


def says_certain(data: bytes, start: int, epoch: int) -> bool:
    """Whether a whole record comes somewhere after a place, written when an epoch was certain."""
    payloads = (framed(data, place) for place in range(start, len(data), 8))
    return any(payload is not None and _certain(payload) >= epoch for payload in payloads)


def _certain(payload: memoryview) -> int:
    """What a record says; earlier releases have made each one certain before the next."""
    head, _ = _head(payload)
    return int(head.get("certain", head["epoch"] - 1))


def _head(payload: memoryview) -> tuple[dict[str, Any], int]:
    """What a record says of itself, and the place after it."""
    (length,) = _HEAD.unpack_from(payload)
    return json.loads(bytes(payload[_HEAD.size : _HEAD.size + length])), _HEAD.size + length


def framed(data: bytes, start: int) -> memoryview | None:
    """The payload of the record that begins at a place; None if no whole one does."""
    if start + _FRAME.size > len(data):
        return None
    length, check = _FRAME.unpack_from(data, start)
    payload = memoryview(data)[start + _FRAME.size : start + _FRAME.size + length]
    if len(payload) < length or xxhash.xxh3_64_intdigest(payload) != check:
        return None
    return payload


def _as_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _as_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _with_weights(delta: Delta) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*delta.rows.columns, pa.array(delta.weights)], [*delta.schema.names, "weight"])


def _without_weights(body: pa.Buffer, schema: pa.Schema) -> Delta:
    batch = pa.ipc.read_record_batch(pa.ipc.read_message(body), schema.append(pa.field("weight", pa.int64())))
    rows = batch.select(range(len(schema)))
    return Delta(rows, batch.column(len(schema)).to_numpy())
