"""Running a pipeline: a session is brought to what is described, its sources are followed and its sinks written, until it ends.

Tables and views become what is described in one epoch, or stay as they are if anything is wrong. A running pipeline looks for
requests every second: that is how `headwater apply` reaches it.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, InvalidPipeline
from headwater.pipelines import requests
from headwater.pipelines.described import OF_THE_SESSION, read
from headwater.pipelines.flowing import Flow
from headwater.pipelines.planning import There, added_columns, keys, plan
from headwater.redaction import redacted
from headwater.session import REFRESH, connect, key_of
from headwater.store.opening import disk_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from headwater.drafts import Draft
    from headwater.pipelines.described import Pipeline
    from headwater.pipelines.planning import Step
    from headwater.pipelines.requests import Request
    from headwater.session import Session
    from headwater.store.disk import Disk

_INTERVAL = 1.0


def opened(pipeline: Pipeline, spark: SparkSession | None = None) -> Session:
    """A session on the pipeline's directory."""
    return connect(pipeline.place(pipeline.directory), spark=spark, retain=pipeline.retain, durability=pipeline.durability)


def planned(session: Session, pipeline: Pipeline) -> list[Step]:
    """What it takes to get there."""
    return plan(pipeline, _there(session), _columns(session, pipeline))


def applied(session: Session, pipeline: Pipeline) -> list[Step]:
    """Gets there: tables and views in one epoch, then sources and sinks, which go on where they were."""
    flow = Flow(session, pipeline)
    flow.pause()
    try:
        steps = define(session, pipeline, flow)
    except BaseException:
        flow.resume()
        raise
    flow.go()
    return steps


def define(session: Session, pipeline: Pipeline, flow: Flow) -> list[Step]:
    """Makes tables and views what is described, in one epoch, if sources and sinks can be what is described then."""
    steps = planned(session, pipeline)
    widens = any((step.kind, step.sign) == ("table", "~") for step in steps)
    for name in pipeline.tables:
        if name not in session.tables():
            session.forget_streams_into(name)
    changed = [step.name for step in steps if step.kind == "view" and step.sign in "+~"]
    try:
        with session.drafting(widens=widens) as draft:
            _draft(session, pipeline, draft, steps, changed)
            flow.require(draft, steps)
    except (InvalidPipeline, *OF_THE_SESSION):
        raise
    except HeadwaterError as error:
        raise InvalidPipeline(f"{_culprit(session, pipeline, steps, changed, widens=widens)}: {error}") from error
    return steps


def _draft(session: Session, pipeline: Pipeline, draft: Draft, steps: list[Step], changed: list[str]) -> None:
    """Drafts the tables and some of the views that are described, without those that go."""
    there, columns = _there(session), _columns(session, pipeline)
    for name, table in pipeline.tables.items():
        if name in there.tables:
            added = added_columns(pipeline, name, there, columns[name])
            if added:
                with pipeline.located("tables", name, "columns"):
                    draft.add_columns(name, type(columns[name])(added))
            continue
        with pipeline.located("tables", name, "key"):
            key = key_of(columns[name], keys(table) or None)
        with pipeline.located("tables", name):
            draft.create_table(name, columns[name], key)
    going = _without_free(draft, {step.name for step in steps if step.kind == "view" and step.sign == "−"})
    for name in changed:
        _draft_view(pipeline, draft, name)
    for name in _without_free(draft, going):
        with pipeline.located("views"):
            draft.drop_view(name)


def _draft_view(pipeline: Pipeline, draft: Draft, name: str) -> None:
    view = pipeline.views[name]
    if view.refresh not in REFRESH:
        place = pipeline.at("views", name, "refresh")
        raise InvalidPipeline(f"{place}: it is one of {', '.join(REFRESH)}, not {view.refresh!r}")
    with pipeline.located("views", name, "query"):
        query = draft.analysed(name, view.query)
    with pipeline.located("views", name, "strategy"):
        query = draft.with_strategy(query, view.strategy)
    with pipeline.located("views", name):
        draft.put_view(name, query, view.refresh)


def _without_free(draft: Draft, going: set[str]) -> set[str]:
    """Drops the views that no other one reads, and gives those that are left."""
    while free := {name for name in going if not draft.catalog.readers(name)}:
        for name in free:
            draft.drop_view(name)
        going = going - free
    return going


def _culprit(session: Session, pipeline: Pipeline, steps: list[Step], changed: list[str], *, widens: bool) -> str:
    """Which view it is that cannot be built over the rows that there are: the first without which all goes well."""
    for count, name in enumerate(changed, 1):
        try:
            with session.drafting(widens=widens, rehearsal=True) as draft:
                _draft(session, pipeline, draft, [step for step in steps if step.sign != "−"], changed[:count])
        except HeadwaterError:
            return pipeline.at("views", name, "query")
    return pipeline.at("views" if changed else "tables")


def _there(session: Session) -> There:
    tables = {name: (table.schema, table.key) for name, table in session.tables().items()}
    return There(tables, {name: session.snapshot.views[name.lower()].query.text for name in session.views()})


def _columns(session: Session, pipeline: Pipeline) -> dict[str, StructType]:
    found = {}
    for name, table in pipeline.tables.items():
        with pipeline.located("tables", name, "columns"):
            found[name] = session.columns(table.columns)
    return found


def run(file: Path, told: Callable[[str], None], over: Event | None = None, spark: SparkSession | None = None) -> None:
    """Runs what a file describes, and whatever is asked for in its place, until it is over."""
    pipeline = read(file)
    over = Event() if over is None else over
    disk = disk_at(pipeline.place(pipeline.directory))
    asked = Asked(disk, told)
    asked.decline()
    with opened(pipeline, spark) as session:
        for step in applied(session, pipeline):
            told(str(step))
        told(f"running at epoch {session.epoch}")
        while not over.wait(_INTERVAL):
            request = asked.next()
            if request is not None:
                _take(session, disk, request, told)


class Asked:
    """The requests to a running pipeline, each once."""

    def __init__(self, disk: Disk, told: Callable[[str], None]) -> None:
        self._disk = disk
        self._told = told
        self._last: Request | None = None
        self._strange: str | None = None

    def next(self) -> Request | None:
        """A request that is new; what cannot be read is told once, and left out."""
        try:
            found = requests.wanted(self._disk)
        except InvalidPipeline as error:
            if str(error) != self._strange:
                self._strange = str(error)
                self._told(self._strange)
            return None
        self._strange = None
        if found is None or found == self._last:
            return None
        self._last = found
        return found

    def decline(self) -> None:
        """Answers a request to whoever ran the pipeline before."""
        request = self.next()
        if request is not None and requests.outcome(self._disk, request) is None:
            requests.note(self._disk, request, "the pipeline was started anew meanwhile; apply it again")


def _take(session: Session, disk: Disk, request: Request, told: Callable[[str], None]) -> None:
    """What was asked for in place of what is running; if it cannot be, all goes on as it is."""
    try:
        for step in applied(session, request.pipeline()):
            told(str(step))
    except Exception as error:  # noqa: BLE001  (whatever a description makes fail, what is running goes on)
        requests.note(disk, request, redacted(str(error)))
        told(redacted(str(error)))
        return
    requests.note(disk, request, None)
    told(f"applied at epoch {session.epoch}")
