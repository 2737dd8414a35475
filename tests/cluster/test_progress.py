"""The bar of those who wait for a job."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import rich.console

import headwater as hw
from headwater.cluster import progress

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_tasks_of_a_group_of_jobs_are_counted(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert progress.tasks(context, "nobody's") == (0, 0)
    before = context.getLocalProperty("spark.jobGroup.id")
    context.setLocalProperty("spark.jobGroup.id", "test of progress")
    try:
        spark.range(0, 100, 1, 5).foreach(lambda _: None)
    finally:
        context.setLocalProperty("spark.jobGroup.id", before)  # type: ignore[arg-type]
    assert progress.tasks(context, "test of progress") == (5, 5)


def test_a_bar_is_shown_at_a_terminal(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    console = rich.console.Console

    def terminal(**_: Any) -> Any:
        return console(file=written, force_terminal=True, width=120)

    monkeypatch.setattr(rich.console, "Console", terminal)
    monkeypatch.setattr(progress, "_has_bar", lambda _: False)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    with hw.connect(spark=spark, placement="cluster") as s:
        s.create_table("t", source=spark.range(0, 10_000, 1, 8))
        assert len(s.table("t")) == 10_000
    assert "Headwater" in written.getvalue()
    assert "tasks" in written.getvalue()
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_nothing_is_shown_elsewhere(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with progress.shown(spark.sparkContext, "a title"):
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
    assert "a title" not in capfd.readouterr().err
