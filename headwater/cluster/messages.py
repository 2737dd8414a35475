"""Messages: what tasks send each other through Spark's exchange, as rows of a few columns.

    wave | shard | route | body       a delta, or a note in JSON, for a shard of a wave

A message carries thousands of rows of a delta as one value, so that Spark moves bytes and looks into none of them. The shard of
a row is a range of the hash of its key, the hash by which runs are sorted: all shards read the same runs, each its own part,
and another number of shards moves nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from headwater.delta import Delta, beside
from headwater.errors import HeadwaterError
from headwater.state.hashing import hash_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headwater.operators.operator import Key

    Shards = NDArray[np.int64]

# As Spark states it, and not as text, which the JVM would be asked to read for every wave.
_NUMBERS = ("wave", "shard", "route")
SCHEMA = StructType([*(StructField(name, IntegerType()) for name in _NUMBERS), StructField("body", BinaryType())])
# Notes that go to the driver, and that other shards are to know of.
NOTE = -1
NEWS = -2
_ARROW = pa.schema([*((name, pa.int32()) for name in _NUMBERS), ("body", pa.binary())])
# Rows of a delta in one message, at most, and about how many bytes it has, as have messages that leave a task together.
_ROWS = 1 << 15
_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class Message:
    """Something for a shard of a wave."""

    wave: int
    shard: int
    route: int
    body: pa.Buffer

    @staticmethod
    def note(wave: int, shard: int, content: object, route: int = NOTE) -> Message:
        return Message(wave, shard, route, pa.py_buffer(json.dumps(content).encode()))

    @staticmethod
    def refusal(wave: int, shard: int, error: Exception) -> Message:
        """That a task cannot go on, and why."""
        code = error.code if isinstance(error, HeadwaterError) else ""
        why = str(error).removeprefix(f"[{code}] ") or "only Spark can evaluate a part of it"
        return Message.note(wave, shard, {"refused": why, "code": code})

    @property
    def content(self) -> Any:  # noqa: ANN401  (whatever was noted)
        return json.loads(self.body.to_pybytes())


def received(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """The messages in rows."""
    for batch in batches:
        wave, shard, route = (batch.column(i).to_pylist() for i in range(3))
        for i, body in enumerate(batch.column(3)):
            # Numbers in it are read where they lie, so they must lie where numbers may.
            yield Message(wave[i], shard[i], route[i], pa.py_buffer(body.as_py()))


def sent(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Rows with the messages."""
    waiting: list[Message] = []
    size = 0
    for message in messages:
        waiting.append(message)
        size += message.body.size
        if size > _BYTES:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(messages: Sequence[Message]) -> pa.RecordBatch:
    numbers = [pa.array([getattr(m, name) for m in messages], pa.int32()) for name in _NUMBERS]
    sizes = np.cumsum([0, *(m.body.size for m in messages)], dtype=np.int32)
    data = pa.py_buffer(b"".join(memoryview(m.body) for m in messages))
    bodies = pa.Array.from_buffers(pa.binary(), len(messages), [None, pa.py_buffer(sizes), data])
    return pa.RecordBatch.from_arrays([*numbers, bodies], schema=_ARROW)


def deltas(wave: int, route: int, delta: Delta, shards: Shards | int) -> Iterator[Message]:
    """A delta on its way: all of it to one shard, or each row to its own."""
    parts = iter([(shards, delta)]) if isinstance(shards, int) else _split(delta, shards)
    for shard, part in parts:
        # Rows may be long, and a message is one value.
        rows = max(1, min(_ROWS, _BYTES * len(part) // max(part.rows.nbytes, 1)))
        for start in range(0, len(part), rows):
            piece = Delta(part.rows.slice(start, rows), part.weights[start : start + rows])
            yield Message(wave, shard, route, packed(piece))


def shards_of(delta: Delta, key: Key, count: int) -> Shards:
    """The shard of each row: the place of its hash among so many equal ranges, as in `Arrangement.within`."""
    hashes = hash_rows(delta.rows, key)
    return ((hashes >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.int64)


def _split(delta: Delta, shards: Shards) -> Iterator[tuple[int, Delta]]:
    ends = np.cumsum(np.bincount(shards))
    # Short numbers are sorted by their digits.
    order = np.argsort(shards.astype(np.min_scalar_type(len(ends))), kind="stable")
    for shard, (start, stop) in enumerate(pairwise([0, *ends.tolist()])):
        if start < stop:
            yield shard, delta.take(order[start:stop])


def packed(delta: Delta) -> pa.Buffer:
    """A delta as bytes; its weights, numbers or vectors, are a column of fixed width behind the others."""
    weights = np.ascontiguousarray(delta.weights)
    width = weights.itemsize * (1 if weights.ndim == 1 else weights.shape[1])
    column = pa.Array.from_buffers(pa.binary(width), len(delta), [None, pa.py_buffer(weights)])
    batch = pa.RecordBatch.from_arrays([*delta.rows.columns, column], names=[*delta.schema.names, "weight"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def unpacked(body: pa.Buffer, *, vectors: bool) -> Delta:
    """The delta in the bytes; with vectors for weights, or numbers."""
    batch = pa.ipc.open_stream(body).read_next_batch()
    column = batch.column(batch.num_columns - 1)
    width = column.type.byte_width // 8
    numbers = np.frombuffer(column.buffers()[1], np.int64, len(column) * width, column.offset * width * 8).copy()
    rows = beside(batch.columns[:-1], batch.num_rows)
    return Delta(rows, numbers.reshape(-1, width) if vectors else numbers)
