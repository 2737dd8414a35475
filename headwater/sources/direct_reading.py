"""Reading by the driver itself: a data source that is ours is asked by a thread here for what Spark would ask it for.

    offset′ = latestOffset(offset);   batch = rows of partitions(offset, offset′);   the epoch notes offset′

So a row that is committed at its source is in a view some milliseconds later, where a batch of Spark's takes tenths of a second
before it has a row. There are no notes but the epoch's: what was not applied is read again from the offset of what was.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from threading import Condition, Event, Thread, current_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.durations import microseconds
from headwater.sources.frames import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql.datasource import DataSourceStreamReader

    from headwater.sources.reading import Position, Take

_PAUSE = 0.01


@dataclass(frozen=True, eq=False)
class DirectReading:
    """A source, and when it is asked for more."""

    made: Callable[[], DataSourceStreamReader]
    schema: pa.Schema
    checkpoint: Path
    """Where Spark noted how far it was, if it read the stream before."""
    pause: float = _PAUSE
    until_empty: bool = False

    def start(self, name: str, applied: Position | None, take: Take) -> DirectRunning:
        # Spark would go on from older notes; without any, it takes the epoch's.
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        return DirectRunning(name, self, applied, take)


class DirectRunning:
    """The thread that asks."""

    def __init__(self, name: str, reading: DirectReading, applied: Position | None, take: Take) -> None:
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        self._reading = reading
        self._limit = ReadAllAvailable()
        self._reader = reading.made()
        self._take = take
        self._number = -1 if applied is None else int(applied["batch"])
        self._at: dict[str, Any] = self._reader.initialOffset() if applied is None else json.loads(applied["offsets"][0])
        self._told_to_stop = Event()
        # Looks that were begun, and the last one of them that found nothing.
        self._looked = Condition()
        self._looks = self._found_nothing = 0
        self.has_more = False
        self.rows_per_second = 0.0
        self.failure: BaseException | None = None
        self._thread = Thread(target=self._run, name=f"headwater: {name}", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return not self._told_to_stop.is_set()

    def stop(self) -> None:
        self._told_to_stop.set()
        if current_thread() is not self._thread:
            self._thread.join()

    def await_idle(self) -> None:
        with self._looked:
            wanted = self._looks + 1
            self._looked.wait_for(lambda: self._found_nothing >= wanted or self._told_to_stop.is_set())

    def _run(self) -> None:
        try:
            while not self._told_to_stop.is_set() and (self._applied_more() or not self._reading.until_empty):
                pass
        except Exception as error:  # noqa: BLE001  (told to whoever asks how the stream does)
            self.failure = error
        finally:
            self._reader.stop()
            with self._looked:
                self._told_to_stop.set()
                self._looked.notify_all()

    def _applied_more(self) -> bool:
        """Applies a batch, or waits a moment if there is none."""
        with self._looked:
            self._looks += 1
        end = self._reader.latestOffset(self._at, self._limit)
        if end == self._at:
            with self._looked:
                self.has_more, self._found_nothing = False, self._looks
                self._looked.notify_all()
            self._told_to_stop.wait(self._reading.pause)
            return False
        self.has_more = True
        started = perf_counter()
        rows = 0

        def read() -> tuple[Batch, Position]:
            nonlocal rows
            parts = self._reader.partitions(self._at, end)
            pieces = [batch for part in parts for batch in self._reader.read(part)]
            batch = Batch(self._number, pa.Table.from_batches(pieces, self._reading.schema))
            rows = batch.rows.num_rows
            return batch, {"batch": self._number, "version": "v1", "watermark": 0, "offsets": [json.dumps(end)]}

        self._number += 1
        self._take(self._number, read)
        self._at = end
        self.rows_per_second = rows / (perf_counter() - started)
        return True


def pace(trigger: Mapping[str, Any]) -> tuple[float, bool] | None:
    """Seconds between two looks, and whether to end when nothing is there; None for what only Spark does."""
    if not trigger:
        return _PAUSE, False
    (kind, value), *others = trigger.items()
    if others or kind not in ("processingTime", "availableNow", "once"):
        return None
    if kind == "processingTime":
        span = microseconds(str(value))
        return None if span is None else (span / 1e6, False)
    return _PAUSE, True
