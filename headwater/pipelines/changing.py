"""Changing a pipeline from beside it: the plan is shown, and then done by whoever runs it, or here if nobody does."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

from headwater.errors import InvalidPipeline, UnknownFormat
from headwater.pipelines import requests, running
from headwater.pipelines.flowing import Flow
from headwater.pipelines.requests import Request
from headwater.session import connect
from headwater.store.inspecting import writer
from headwater.store.opening import disk_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.pipelines.described import Pipeline
    from headwater.pipelines.planning import Step

# Whoever runs the pipeline looks every second, and may have views to build.
_PATIENCE = 600.0
_INTERVAL = 0.1


def change(file: Path, confirmed: Callable[[], bool], told: Callable[[str], None], spark: SparkSession | None = None) -> None:
    """Brings a pipeline to what a file describes."""
    request = Request.of(file)
    pipeline = request.pipeline()
    disk = disk_at(pipeline.place(pipeline.directory))
    steps = _plan(pipeline, spark)
    for step in steps:
        told(str(step))
    if not steps:
        told("tables and views are as described; sources and sinks follow the description")
    if not confirmed():
        return
    if writer(disk) is None:
        with running.opened(pipeline, spark) as session:
            running.define(session, pipeline, Flow(session, pipeline))
            told(f"applied at epoch {session.epoch}")
        return
    requests.put(disk, request)
    end = monotonic() + _PATIENCE
    while (error := requests.outcome(disk, request)) is None:
        if monotonic() > end:
            raise InvalidPipeline(f"whoever writes to {disk.place!r} does not take it: it is no `headwater run`")
        sleep(_INTERVAL)
    if error:
        raise InvalidPipeline(f"it was not applied: {error}; what is running goes on")
    told("applied")


def _plan(pipeline: Pipeline, spark: SparkSession | None) -> list[Step]:
    try:
        session = connect(pipeline.place(pipeline.directory), spark=spark, mode="r")
    except UnknownFormat:
        # There is nothing yet.
        session = connect(spark=spark)
    with session:
        return running.planned(session, pipeline)
