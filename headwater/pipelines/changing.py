"""Changing a pipeline from beside it: the plan is shown, and then done by whoever runs it, or here if nobody does."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from headwater.errors import InvalidPipeline, UnknownFormat
from headwater.pipelines import running
from headwater.pipelines.described import read
from headwater.session import connect
from headwater.store.inspecting import writer
from headwater.store.opening import disk_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from headwater.pipelines.described import Pipeline
    from headwater.pipelines.planning import Step

# Whoever runs the pipeline looks every second, and may have views to build.
_PATIENCE = 600.0
_INTERVAL = 0.1


def change(file: Path, confirmed: Callable[[], bool], told: Callable[[str], None], spark: SparkSession | None = None) -> None:
    """Brings a pipeline to what a file describes."""
    pipeline = read(file)
    folder = Path(pipeline.place(pipeline.directory))
    steps = _plan(pipeline, folder, spark)
    for step in steps:
        told(str(step))
    if not steps:
        told("tables and views are as described; sources and sinks follow the description")
    if not confirmed():
        return
    text = file.read_text(encoding="utf-8")
    if writer(disk_at(folder)) is None:
        with running.opened(pipeline, spark) as session:
            running.define(session, pipeline)
            running.put(folder, text, pipeline.base)
            told(f"applied at epoch {session.epoch}")
        return
    running.put(folder, text, pipeline.base)
    end = monotonic() + _PATIENCE
    while (came := running.outcome(folder, text)) is None:
        if monotonic() > end:
            raise InvalidPipeline(f"whoever writes to {str(folder)!r} does not take it: it is no `headwater run`")
        sleep(_INTERVAL)
    if came["error"] is not None:
        raise InvalidPipeline(f"it was not applied to its end: {came['error']}; what is running goes on")
    told("applied")


def _plan(pipeline: Pipeline, folder: Path, spark: SparkSession | None) -> list[Step]:
    try:
        session = connect(folder, spark=spark, mode="r")
    except UnknownFormat:
        # There is nothing yet.
        session = connect(spark=spark)
    with session:
        return running.planned(session, pipeline)
