"""Running a pipeline: a session is brought to what is described, its sources are followed and its sinks written, until it ends.

What is wanted stands in a file of the directory, from which a running pipeline takes it whenever it changes: that is how
`headwater apply` reaches it. What came of it stands in another one.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.pipelines.described import parse
from headwater.pipelines.planning import There, keys, plan
from headwater.session import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from headwater.pipelines.described import Pipeline, SourceOf
    from headwater.pipelines.planning import Step
    from headwater.session import Session

WANTED = "pipeline-wanted.json"
OUTCOME = "pipeline-outcome.json"
_CORRUPT = ("json", "csv", "xml")
_INTERVAL = 1.0
_log = logging.getLogger("headwater")


def opened(pipeline: Pipeline, spark: SparkSession | None = None) -> Session:
    """A session on the pipeline's directory."""
    return connect(pipeline.place(pipeline.directory), spark=spark, retain=pipeline.retain, durability=pipeline.durability)


def planned(session: Session, pipeline: Pipeline) -> list[Step]:
    """What it takes to get there."""
    tables = {name: (table.schema, table.key) for name, table in session.tables().items()}
    views = {name: session.snapshot.views[name.lower()].query.text for name in session.views()}
    columns = {name: session.columns(table.columns) for name, table in pipeline.tables.items()}
    return plan(pipeline, There(tables, views), columns)


def applied(session: Session, pipeline: Pipeline) -> list[Step]:
    """Gets there: tables and views first, then sources and sinks, which go on where they were."""
    steps = define(session, pipeline)
    _flow(session, pipeline)
    return steps


def define(session: Session, pipeline: Pipeline) -> list[Step]:
    """Makes tables and views what is described."""
    steps = planned(session, pipeline)
    for name, table in pipeline.tables.items():
        if name not in session.tables():
            session.create_table(name, table.columns, key=keys(table) or None)
        known = {each.lower() for each in session.table(name).schema.names}
        described = session.columns(table.columns)
        added = [field for field in described.fields if field.name.lower() not in known]
        if added:
            session.add_columns(name, type(described)(added))
    changed = {step.name for step in steps if step.kind == "view" and step.sign in "+~"}
    for name, view in pipeline.views.items():
        if name in changed:
            session.create_view(name, view.query, refresh=view.refresh, strategy=view.strategy, replace=True)
    going = {step.name for step in steps if step.kind == "view" and step.sign == "−"}
    while going:
        # Those first that no other one reads.
        free = {name for name in going if not going.intersection(view.name for view in session.snapshot.readers(name))}
        for name in free:
            session.drop_view(name)
        going -= free
    return steps


def _flow(session: Session, pipeline: Pipeline) -> None:
    for name, stream in session.streams().items():
        if name not in pipeline.sources:
            stream.stop()
    for name, source in pipeline.sources.items():
        known = session.streams().get(name)
        if known is None or not known.is_running:
            trigger = {} if source.every is None else {"processingTime": source.every}
            table = dict(source.tables) or source.table
            assert table is not None
            frame = _read(session, pipeline, source)
            session.follow(table, frame, mode=source.mode, name=name, on_error=source.on_error, trigger=trigger)
    for name, export in session.exports().items():
        if name not in pipeline.sinks:
            export.stop()
    for name, sink in pipeline.sinks.items():
        known_sink = session.exports().get(name)
        if known_sink is None or known_sink.progress.state in ("stopped", "failed"):
            target = pipeline.place(sink.target)
            view = session.view(sink.view)
            view.write_to(
                target, format=sink.format, of=sink.of, table=sink.table, key=sink.key, name=name, replace=sink.replace
            )


def _read(session: Session, pipeline: Pipeline, source: SourceOf) -> DataFrame:
    from headwater.sinks.spark_source import register

    register(session.spark)
    reader = session.spark.readStream.format(source.format).options(**{k: str(v) for k, v in source.options.items()})
    if source.format in ("parquet", "orc", "avro", *_CORRUPT) and source.table is not None:
        columns = source.schema or pipeline.tables[source.table].columns
        unread = ", _corrupt_record STRING" if source.format in _CORRUPT and "_corrupt_record" not in columns else ""
        reader = reader.schema(columns.replace(" NOT NULL", "") + unread)
    elif source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load() if source.path is None else reader.load(pipeline.place(source.path))


def run(
    text: str, base: Path, told: Callable[[str], None], over: Event | None = None, spark: SparkSession | None = None
) -> None:
    """Runs what a text describes, and whatever takes its place in the directory, until it is over."""
    pipeline = parse(text, base)
    over = Event() if over is None else over
    with opened(pipeline, spark) as session:
        folder = Path(pipeline.place(pipeline.directory))
        put(folder, text, base)
        for step in applied(session, pipeline):
            told(str(step))
        _note(folder, text, None)
        told(f"running at epoch {session.epoch}")
        while not over.wait(_INTERVAL):
            found = wanted(folder)
            if found is not None and found[0] != text:
                text = found[0]
                _take(session, folder, *found, told)


def _take(session: Session, folder: Path, text: str, base: Path, told: Callable[[str], None]) -> None:
    """What was put in place of what is running; if it cannot be, all goes on as it is."""
    try:
        for step in applied(session, parse(text, base)):
            told(str(step))
    except HeadwaterError as error:
        _note(folder, text, str(error))
        told(str(error))
        return
    _note(folder, text, None)
    told(f"applied at epoch {session.epoch}")


def put(folder: Path, text: str, base: Path) -> None:
    """What is wanted from here on; appears whole."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{WANTED}.part"
    beside.write_text(json.dumps({"base": str(base), "text": text}), encoding="utf-8")
    beside.rename(folder / WANTED)


def wanted(folder: Path) -> tuple[str, Path] | None:
    """What is wanted, and where its paths are meant from."""
    try:
        said = json.loads((folder / WANTED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return str(said["text"]), Path(said["base"])


def outcome(folder: Path, text: str) -> dict[str, Any] | None:
    """What came of a text that was put; None as long as nothing did."""
    try:
        said = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return dict(said) if said["text"] == text else None


def _note(folder: Path, text: str, error: str | None) -> None:
    beside = folder / f"{OUTCOME}.part"
    beside.write_text(json.dumps({"text": text, "error": error}), encoding="utf-8")
    beside.rename(folder / OUTCOME)
