"""Sources and sinks: those of a session become those that are described, and what was begun by hand is left alone.

    pause     what is to be followed in another way stops after the batch that it is at
    require   everything is checked against the tables and views that there would be
    go        what is described is followed and written, what is not described any more stops

In between, tables and views become what is described. So no batch is read by an old description into a new table, where the
values of a new column would be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import InvalidPipeline
from headwater.relations import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.drafts import Draft
    from headwater.pipelines.described import Pipeline, SinkOf, SourceOf
    from headwater.pipelines.planning import Step
    from headwater.session import Session
    from headwater.sources.streams import Stream

_CORRUPT = ("json", "csv", "xml")
_ENDED = ("stopped", "failed")


class Flow:
    """The sources and sinks of a session, on their way to what is described."""

    def __init__(self, session: Session, pipeline: Pipeline) -> None:
        self._session = session
        self._pipeline = pipeline
        self._sources = [name for name in pipeline.sources if not self._is_followed(name)]
        self._sinks = [name for name in pipeline.sinks if not self._is_written(name)]
        self._frames = {name: self._frame(name) for name in self._sources}
        self._paused: list[Stream] = []

    def pause(self) -> None:
        known = self._session.streams()
        for stream in (known[name] for name in self._sources if name in known):
            if stream.is_running:
                stream.stop()
                self._paused.append(stream)

    def resume(self) -> None:
        """What was paused goes on as it was."""
        for stream in self._paused:
            stream.resume()

    def require(self, draft: Draft, steps: list[Step]) -> None:
        """Raises if something described cannot be followed or written, or if something by hand would end."""
        going = {step.name.lower() for step in steps if step.kind == "view" and step.sign == "−"}
        for name, export in self._session.exports().items():
            if export.description is None and export.view.lower() in going and export.progress.state not in _ENDED:
                raise InvalidPipeline(
                    f"{self._pipeline.at('views')}: view {export.view!r} is not described, and would go, but export {name!r}, "
                    "which was begun by hand, writes it; stop the export, or describe the view"
                )
        for name, frame in self._frames.items():
            source, several = self._pipeline.sources[name], bool(self._pipeline.sources[name].tables)
            tables = source.tables if source.table is None else {source.table: source.table}
            entries = {each: draft.catalog.tables[table.lower()] for each, table in tables.items()}
            with self._pipeline.located("sources", name):
                self._session.following.require_followable(frame, entries, source.mode, source.on_error, several=several)
        for name in self._sinks:
            sink = self._pipeline.sinks[name]
            with self._pipeline.located("sinks", name):
                view = View(self._session, sink.view.lower())
                self._session.exporting.require(view, sink.view, **self._written(sink), name=name)

    def go(self) -> None:
        """Starts all that can be started; then tells what could not."""
        for name, stream in self._session.streams().items():
            if stream.description is not None and name not in self._pipeline.sources:
                stream.stop()
        for name, export in self._session.exports().items():
            if export.description is not None and (name not in self._pipeline.sinks or name in self._sinks):
                export.stop()
        failed = []
        for kind, names, start in (("sources", self._sources, self._follow), ("sinks", self._sinks, self._write)):
            for name in names:
                try:
                    with self._pipeline.located(kind, name):
                        start(name)
                except InvalidPipeline as error:
                    failed.append(error)
        if failed:
            told = "; ".join(str(error).partition("] ")[2] for error in failed)
            raise InvalidPipeline(f"tables and views are as described, but this could not be started: {told}") from failed[0]

    def _follow(self, name: str) -> None:
        source = self._pipeline.sources[name]
        trigger = {} if source.every is None else {"processingTime": source.every}
        table = dict(source.tables) or source.table
        assert table is not None
        frame = self._frames[name]
        stream = self._session.follow(table, frame, mode=source.mode, name=name, on_error=source.on_error, trigger=trigger)
        stream.description = self._description_of(source)

    def _write(self, name: str) -> None:
        sink = self._pipeline.sinks[name]
        export = self._session.view(sink.view).write_to(**self._written(sink), name=name)
        export.description = (self._pipeline.base, sink)

    def _written(self, sink: SinkOf) -> dict[str, Any]:
        target = self._pipeline.place(sink.target)
        options = {"format": sink.format, "of": sink.of, "table": sink.table, "key": sink.key, "replace": sink.replace}
        return {"target": target, **options}

    def _is_followed(self, name: str) -> bool:
        """Whether a source is followed as it is described; raises if a stream by hand has its name."""
        stream = self._session.streams().get(name)
        if stream is None or not stream.is_running:
            return False
        if stream.description is None:
            raise InvalidPipeline(
                f"{self._pipeline.at('sources', name)}: a stream of that name is followed by hand; stop it, or rename this"
            )
        return stream.description == self._description_of(self._pipeline.sources[name])

    def _is_written(self, name: str) -> bool:
        """Whether a sink is written as it is described; raises if an export by hand has its name."""
        export = self._session.exports().get(name)
        if export is None or export.progress.state in _ENDED:
            return False
        if export.description is None:
            raise InvalidPipeline(
                f"{self._pipeline.at('sinks', name)}: an export of that name was begun by hand; stop it, or rename this"
            )
        return export.description == (self._pipeline.base, self._pipeline.sinks[name])

    def _description_of(self, source: SourceOf) -> object:
        """All that decides how a source is read: with other columns of its table, it is read in another way."""
        names = [source.table] if source.table is not None else source.tables.values()
        return self._pipeline.base, source, [self._pipeline.tables[name] for name in names]

    def _frame(self, name: str) -> DataFrame:
        from headwater.sinks.spark_source import register

        source, located = self._pipeline.sources[name], self._pipeline.located
        register(self._session.spark)
        with located("sources", name, "options"):
            reader = self._session.spark.readStream.options(**{key: str(value) for key, value in source.options.items()})
            reader = reader.format(source.format)
        if source.format in ("parquet", "orc", "avro", *_CORRUPT) and source.table is not None:
            columns = source.schema or self._pipeline.tables[source.table].columns
            unread = ", _corrupt_record STRING" if source.format in _CORRUPT and "_corrupt_record" not in columns else ""
            with located("sources", name, "schema"):
                reader = reader.schema(columns.replace(" NOT NULL", "") + unread)
        elif source.schema is not None:
            with located("sources", name, "schema"):
                reader = reader.schema(source.schema)
        with located("sources", name, "format" if source.path is None else "path"):
            return reader.load() if source.path is None else reader.load(self._pipeline.place(source.path))
