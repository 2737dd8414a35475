"""How far a job is: a bar of its tasks, for people who wait at a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext
    from rich.console import Console

_GROUP = "spark.jobGroup.id"
# What is over sooner needs no bar; and how often it moves.
_PATIENCE = 1.0
_INTERVAL = 0.25


@contextmanager
def shown(context: SparkContext, title: str) -> Iterator[None]:
    """Meanwhile the tasks of the jobs of this thread are counted on standard error, if it is a terminal without another bar."""
    # Tasks import this module with others, and need not have it.
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or _has_bar(context):
        yield
        return
    before, group, over = context.getLocalProperty(_GROUP), f"headwater {uuid4()}", Event()
    thread = Thread(target=_follow, args=(context, console, title, group, over), name="headwater-progress", daemon=True)
    context.setLocalProperty(_GROUP, group)
    thread.start()
    try:
        yield
    finally:
        over.set()
        context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]
        thread.join()


def _follow(context: SparkContext, console: Console, title: str, group: str, over: Event) -> None:
    if over.wait(_PATIENCE):
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        while not over.wait(_INTERVAL):
            done, total = tasks(context, group)
            progress.update(task, completed=done, total=total or None)


def tasks(context: SparkContext, group: str) -> tuple[int, int]:
    """How many tasks of a group of jobs are done, and how many there are."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def _has_bar(context: SparkContext) -> bool:
    """Whether Spark shows one itself."""
    return bool(context._jsc.sc().progressBar().isDefined())  # noqa: SLF001  (py4j)
