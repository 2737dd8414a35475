"""Reading by Spark: a query of Structured Streaming, whose batches come to the driver as Arrow."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.errors import StreamFailed
from headwater.redaction import shown_cause
from headwater.sources import checkpoints
from headwater.sources.frames import Batch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.sources.reading import Position, Take


@dataclass(frozen=True, eq=False)
class SparkReading:
    """What Spark is asked to read, where it notes how far it is, and when it looks for more."""

    frame: DataFrame
    checkpoint: Path
    trigger: Mapping[str, Any]

    def start(self, name: str, applied: Position | None, take: Take) -> SparkRunning:
        from pyspark.errors import PySparkException

        from headwater.evaluation.spark import failure

        checkpoints.align(self.checkpoint, applied, name)

        def taken(frame: DataFrame, number: int) -> None:
            take(number, lambda: (Batch.of(frame, number), checkpoints.position(self.checkpoint, number)))

        writer = self.frame.writeStream.foreachBatch(taken).option("checkpointLocation", str(self.checkpoint))
        if self.trigger:
            writer = writer.trigger(**self.trigger)
        try:
            return SparkRunning(writer.start())
        except PySparkException as error:
            raise StreamFailed(f"stream {name!r} cannot be started: {failure(error)}") from shown_cause(error)


@dataclass(frozen=True, eq=False)
class SparkRunning:
    """A query of Spark's."""

    query: StreamingQuery

    @property
    def is_active(self) -> bool:
        return bool(self.query.isActive)

    @property
    def has_more(self) -> bool:
        return bool(self.query.status["isDataAvailable"])

    @property
    def rows_per_second(self) -> float:
        last = self.query.lastProgress
        return 0.0 if last is None else float(last["processedRowsPerSecond"])

    @property
    def failure(self) -> BaseException | None:
        return self.query.exception()

    def await_idle(self) -> None:
        from pyspark.errors import PySparkException

        with suppress(PySparkException):
            # What went wrong is told by `failure`.
            self.query.processAllAvailable() if self.query.isActive else self.query.awaitTermination()

    def stop(self) -> None:
        self.query.stop()
