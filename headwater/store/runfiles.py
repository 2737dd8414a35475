"""Runs in files: the arrays of a run as one Arrow record batch, mapped when read.

    bundle  =  run | run | …         each an Arrow IPC stream of one batch, from a multiple of 64 bytes on
    run     =  words: one binary a row | hashes | weights, or the one they all are | the other columns, as they are

Many small runs share a file, because each file costs a sync; a large one has a file of its own, so that it can go alone.
A run is checked against its checksum when it is first read, not before: to open a directory costs nothing, and yet no wrong
number is ever computed from a damaged file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import xxhash

from headwater.errors import DamagedFile, StorageFailed
from headwater.state.blocks import Block
from headwater.state.runs import Run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap

    from numpy.typing import NDArray

    from headwater.store.disk import Disk

# From so many bytes on, a run has a file of its own.
LARGE = 1 << 20
_ALIGNED = 64
# What all weights are, where they are all the same.
_SAME = b"weight"


@dataclass(frozen=True)
class Place:
    """Where a run is kept: a slice of a file, with its checksum and the number of its rows."""

    file: str
    start: int
    bytes: int
    rows: int
    check: str


class StoredRun(Run):
    """A run in a file, which is read, and checked, when it is first needed."""

    __slots__ = ("_memory", "place")
    place: Place

    def __init__(self, disk: Disk, place: Place) -> None:
        object.__setattr__(self, "place", place)
        # Mapped at once, so that it can be read even when the file has been removed since.
        object.__setattr__(self, "_memory", mapped(disk, place.file))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (a field of the run)
        """Called for fields that are not there yet, that is, once."""
        if name not in Run.__slots__:
            raise AttributeError(name)
        run = read(self._memory, self.place)
        for field in Run.__slots__:
            object.__setattr__(self, field, getattr(run, field))
        return getattr(run, name)

    def __len__(self) -> int:
        return self.place.rows

    @property
    def file(self) -> str:
        return self.place.file

    def is_hit(self, damage: DamagedFile) -> bool:
        place = self.place
        below = damage.stop is None or place.start < damage.stop
        return place.file == damage.file and below and damage.start < place.start + place.bytes

    @property
    def nbytes(self) -> int:
        return self.place.bytes


def write(disk: Disk, name: str, runs: Sequence[Run]) -> list[StoredRun]:
    """Writes runs into one new file; where each of them is."""
    slices: list[tuple[int, int]] = []

    def fill(sink: pa.NativeFile) -> None:
        for run in runs:
            sink.write(b"\0" * (-sink.tell() % _ALIGNED))
            start = sink.tell()
            batch = _batch(run)
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            slices.append((start, sink.tell() - start))

    disk.write(name, fill)
    memory = disk.map(name)
    return [
        StoredRun(disk, Place(name, start, size, len(run), _digest(memory, start, size)))
        for run, (start, size) in zip(runs, slices, strict=True)
    ]


def mapped(disk: Disk, name: str) -> mmap | None:
    """The content of a file; None if it is missing or empty.

    Any other failure may pass, so it is an error: what is set aside once does not come back.
    """
    try:
        return disk.map(name)
    except (FileNotFoundError, ValueError):
        return None
    except OSError as error:
        raise StorageFailed(
            f"the file {name!r} of {disk.place!r} could not be read: {error.strerror or error}; nothing was changed. If it "
            "stays so, remove the file to go on without what is in it"
        ) from error


def read(found: mmap | None, place: Place) -> Run:
    """The run at a place of a file, of arrays that lie in the file itself."""
    memory = checked(found, place)
    whole = pa.py_buffer(memory)
    batch = pa.ipc.open_stream(whole.slice(place.start, place.bytes)).read_next_batch()

    def lines(name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """A binary column as lines of numbers; the buffer of a column is read-only, what it lies in is not."""
        if name not in batch.schema.names:
            return np.empty((place.rows, 0), dtype)
        column = batch.column(name)
        width = column.type.byte_width // 8
        start = column.buffers()[1].address - whole.address
        return np.frombuffer(memory, dtype, place.rows * width, start).reshape(place.rows, width)

    same = (batch.schema.metadata or {}).get(_SAME)
    if same is not None:
        weights = np.broadcast_to(np.array([int(same)]), place.rows)
    elif "weights" in batch.schema.names:
        weights = lines("weights", np.int64)[:, 0]
    else:
        weights = lines("vectors", np.int64)
    others = [batch.column(i) for i, name in enumerate(batch.schema.names) if name.startswith("other")]
    return Run(Block(lines("words", np.uint64), tuple(others)), weights, lines("hashes", np.uint64)[:, 0])


def checked(memory: mmap | None, place: Place) -> mmap:
    """The file in which a run is, if it is there and the checksum is right."""
    if memory is None:
        raise DamagedFile(place.file, "it is missing, or cannot be read")
    if len(memory) < place.start + place.bytes:
        what = f"it has {len(memory):,} of {place.start + place.bytes:,} bytes"
        raise DamagedFile(place.file, what, start=len(memory))
    if _digest(memory, place.start, place.bytes) != place.check:
        stop = place.start + place.bytes
        what = f"the bytes from {place.start:,} to {stop:,} are not those that were written"
        raise DamagedFile(place.file, what, start=place.start, stop=stop)
    return memory


def _batch(run: Run) -> pa.RecordBatch:
    columns: dict[str, NDArray[Any]] = {"words": run.block.words, "hashes": run.hashes}
    same = {_SAME: str(int(run.weights[0]))} if run.is_uniform else {}
    if not same:
        columns["weights" if run.weights.ndim == 1 else "vectors"] = run.weights
    arrays = {name: _binary(values) for name, values in columns.items() if values.size}
    arrays |= {f"other{i}": array for i, array in enumerate(run.block.others)}
    return pa.RecordBatch.from_arrays([*arrays.values()], names=[*arrays], metadata=same or None)


def _binary(lines: NDArray[Any]) -> pa.Array:
    width = 8 * (1 if lines.ndim == 1 else lines.shape[1])
    return pa.Array.from_buffers(pa.binary(width), len(lines), [None, pa.py_buffer(np.ascontiguousarray(lines))])


def _digest(memory: mmap, start: int, size: int) -> str:
    return xxhash.xxh3_64_hexdigest(memoryview(memory)[start : start + size])
