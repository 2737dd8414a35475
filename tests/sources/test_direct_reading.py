"""Reading by the driver itself: every row once, whatever fails in between, and an end when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from headwater.sources.direct_reading import DirectReading, pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from headwater.sources.frames import Batch
    from headwater.sources.reading import Position

SCHEMA = pa.schema({"n": pa.int64()})


class Numbers(DataSourceStreamReader):
    """The numbers up to `there`, in batches of at most three, each in partitions of one."""

    def __init__(self) -> None:
        self.there = 7
        self.fails = False
        self.stopped = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: ARG002, N802
        return {"at": min(start["at"] + 3, self.there)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(start["at"], end["at"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if self.fails and partition.value > 4:
            raise OSError("the server is gone")
        yield pa.record_batch([pa.array([partition.value])], schema=SCHEMA)

    def stop(self) -> None:
        self.stopped += 1


class Applied:
    """What was applied, and how far."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.position: Position | None = None

    def take(self, number: int, read: Callable[[], tuple[Batch, Position]]) -> None:
        batch, position = read()
        assert number == batch.number == position["batch"] == (-1 if self.position is None else self.position["batch"]) + 1
        self.numbers += batch.rows.column("n").to_pylist()
        self.position = position


def reading(source: Numbers, folder: Path, **options: Any) -> DirectReading:
    return DirectReading(lambda: source, SCHEMA, folder / "checkpoint", **options)


def test_each_row_once_over_failures_and_restarts(tmp_path: Path) -> None:
    source, applied = Numbers(), Applied()
    source.fails = True
    (tmp_path / "checkpoint").mkdir()
    running = reading(source, tmp_path).start("numbers", None, applied.take)
    running.await_idle()
    assert not running.is_active
    assert str(running.failure) == "the server is gone"
    assert applied.numbers == [0, 1, 2]
    assert not (tmp_path / "checkpoint").exists()
    source.fails = False
    running = reading(source, tmp_path).start("numbers", applied.position, applied.take)
    running.await_idle()
    assert (applied.numbers, running.failure, running.has_more) == ([*range(7)], None, False)
    source.there = 8
    running.await_idle()
    assert applied.numbers == [*range(8)]
    running.stop()
    assert not running.is_active
    assert source.stopped == 2
    # Who waits for a stream that has ended waits for nothing.
    running.await_idle()


def test_it_ends_when_all_is_read(tmp_path: Path) -> None:
    source, applied = Numbers(), Applied()
    running = reading(source, tmp_path, until_empty=True).start("numbers", None, applied.take)
    running.await_idle()
    assert applied.numbers == [*range(7)]
    running.stop()


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ({}, (0.01, False)),
        ({"processingTime": "2 seconds"}, (2.0, False)),
        ({"availableNow": True}, (0.01, True)),
        ({"once": True}, (0.01, True)),
        ({"continuous": "1 second"}, None),
        ({"processingTime": "soon"}, None),
    ],
)
def test_triggers(trigger: dict[str, Any], expected: tuple[float, bool] | None) -> None:
    assert pace(trigger) == expected
