"""Tables and views as users hold them: thin handles on a session, by name."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.answers import Answer, Told, change_table, table_of
from headwater.boundary import bounded
from headwater.delta import Delta
from headwater.errors import InvalidOption, UnknownName
from headwater.explanation import explained, maintenance, statistics
from headwater.runtime.catalog import TableEntry, ViewEntry
from headwater.runtime.history import with_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headwater.annotations.fragments import Partition
    from headwater.provenance.why import Why
    from headwater.provenance.why_not import WhyNot
    from headwater.runtime.catalog import Entry, Snapshot
    from headwater.runtime.subscriptions import News
    from headwater.session import Session
    from headwater.sinks.exporting import Export, Retry
    from headwater.sinks.targets import Target
    from headwater.sketches.captured import Captured
    from headwater.skipping.drawing import Block


@bounded
class Relation(Answer):
    """A table or view: its present answer."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    @property
    def name(self) -> str:
        return self._entry.name

    @property
    def schema(self) -> StructType:
        return self._entry.schema

    def arrow(self) -> pa.Table:
        """The rows now, as an Arrow table."""
        return self.whole()[1]

    def whole(self) -> tuple[int, pa.Table]:
        """The number of the last epoch, and the rows at it."""
        now = self._session.snapshot
        entry = self._at(now)
        order = entry.order if isinstance(entry, ViewEntry) else ()
        with self._session.noticing_damage():
            return now.epoch, table_of(now.contents(entry), entry.arrow, order)

    def at(self, epoch: int) -> Answer:
        """The answer as it was at an epoch, as far back as changes are kept."""
        entry = self._entry
        order = entry.order if isinstance(entry, ViewEntry) else ()
        with self._session.noticing_damage():
            rows = self._session.epochs.at(entry, epoch)
        return Answer(self._session, entry.schema, table_of(rows, entry.arrow, order))

    def dataframe(self) -> Any:  # noqa: ANN401  (Spark is imported late)
        """The rows as a Spark DataFrame, on which another view may be built."""
        return self._session.dataframe(self._name)

    def __len__(self) -> int:
        """How many rows there are."""
        now = self._session.snapshot
        with self._session.noticing_damage():
            return now.total(self._at(now))

    def __bool__(self) -> bool:
        """A table or view is there, whether it has rows or not."""
        return True

    @property
    def _entry(self) -> Entry:
        return self._at(self._session.snapshot)

    def _at(self, now: Snapshot) -> Entry:
        """What it is in a snapshot, of which there may be another one at any time."""
        entry = now.entries.get(self._name)
        if entry is None:
            raise UnknownName(f"there is no table or view {self._name!r} any more")
        return entry


@bounded
class Past:
    """Tables and views as they were at an epoch."""

    def __init__(self, session: Session, epoch: int) -> None:
        self._session = session
        self._epoch = epoch
        session.epochs.require(epoch)

    def table(self, name: str) -> Answer:
        return self._session.table(name).at(self._epoch)

    def view(self, name: str) -> Answer:
        return self._session.view(name).at(self._epoch)

    def sql(self, query: str) -> Answer:
        """The answer of a query over all of them."""
        return self._session.answer(query, self._session.epochs.content_at(self._epoch), self._epoch)


@bounded
class Table(Relation):
    """A table of the session."""

    @property
    def key(self) -> tuple[str, ...] | None:
        """The names of the columns that identify a row."""
        entry = self._entry
        assert isinstance(entry, TableEntry)
        return None if entry.key is None else tuple(entry.arrow.names[i] for i in entry.key)

    @property
    def ttl(self) -> timedelta | None:
        """How long its rows live, if not until they are deleted."""
        entry = self._entry
        assert isinstance(entry, TableEntry)
        return None if entry.lifetime is None else timedelta(microseconds=entry.lifetime.ttl)

    @property
    def event_time(self) -> str | None:
        """The column from whose time on a row lives; None if it lives from when it was inserted."""
        entry = self._entry
        assert isinstance(entry, TableEntry)
        column = None if entry.lifetime is None else entry.lifetime.event_time
        return None if column is None else entry.arrow.names[column]

    def insert(self, rows: object) -> int:
        return self._session.insert(self._name, rows)

    def delete(self, rows: object) -> int:
        return self._session.delete(self._name, rows)

    def upsert(self, rows: object) -> int:
        return self._session.upsert(self._name, rows)

    def replace(self, source: Any, *, format: str | None = None) -> int:  # noqa: A002, ANN401  (Spark is imported late)
        """Gives the table the rows of a source, as one epoch of what differs."""
        return self._session.replace(self._name, source, format=format)

    def export(self, path: str | Path, *, cluster_by: str | None = None, files: int | None = None) -> None:
        """Writes the rows as Parquet files, clustered on a column, if one is given, so that ranges of it are in few of them."""
        self._session.export(self._name, path, cluster_by=cluster_by, files=files)

    def drop(self) -> None:
        self._session.drop_table(self._name)

    def __repr__(self) -> str:
        return f"Table({self._name!r})"


@bounded
class View(Relation):
    """A live view of the session."""

    def changes(self, since: int = 0) -> Iterator[tuple[int, pa.Table]]:
        """What changed after an epoch: the epoch and the rows, with a `_weight` above 0 if they came, below 0 if they went.

        Each table has the columns that the view had then. An epoch that gives the view other columns comes twice: all rows that
        it had go, under the columns of before, and all rows that it has come, under the new ones.

        Changes are kept for 10 000 epochs that touched the view, or a million rows of them. Who asks for older ones gets the
        error `HistoryGone`, and reads the view whole.
        """
        return ((told.epoch, table) for told in self.told(since) for table in told.tables)

    def told(self, since: int) -> Iterator[Told]:
        """The same, epoch by epoch, with what an export must know about them."""
        now = self._session.snapshot
        names = self._at(now).arrow
        found = with_names(self._session.epochs.changes(self._name, since), names, now.epoch)
        return (Told.of(changed, columns) for changed, columns in found)

    def subscribe(self, callback: Callable[[int, pa.Table], None]) -> Callable[[], None]:
        """Calls `callback(epoch, changes)` after each commit that changes the view; the function returned ends that.

        The calls come in the order of epochs, one at a time, from a thread of the subscription: neither commits nor other
        subscribers wait for them, and they may use the session as they like. `Session.await_idle` waits until all are made.
        The function that ends the subscription waits for the calls of the commits before it, unless it is called within one.

        A subscriber that is slow is told each epoch as long as its changes are kept. One that falls further behind is ended,
        with an error in the log: it reads the view whole, and subscribes again.

        As with `changes`, it is called twice with an epoch that gives the view other columns.
        """
        self._at(self._session.snapshot)

        def hear(news: News) -> None:
            for delta, names in news.parts:
                if len(delta):
                    callback(news.epoch, change_table(delta, names))

        return self._session.epochs.subscriptions.add(self._name, hear)

    def noticing(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback()`, which must not wait, after each commit that may have changed or dropped the view.

        It is called in the thread of the commit. The function returned ends that.
        """
        self._at(self._session.snapshot)
        return self._session.epochs.subscriptions.add_notice(self._name, callback)

    def write_to(  # noqa: PLR0913  (each a choice of its own)
        self,
        target: Target,
        *,
        format: str | None = None,  # noqa: A002  (the public name)
        of: str | None = None,
        table: str | None = None,
        key: str | Sequence[str] | None = None,
        name: str | None = None,
        retry: Retry | None = None,
        replace: bool = False,
    ) -> Export:
        """Writes the view to a target from here on: all rows first, then every epoch that changes it, exactly once.

        A target is a directory, with the `format` parquet, csv or json; a Delta table, with the format delta; a `table` of
        PostgreSQL, by its address postgresql://…; a web address, to which changes are posted; or a function, which is called
        with an epoch and its changes. `of` is changes or content; content is kept by a `key`, of which the view has each value
        once. `name`, the view's unless another is given, is what the export is known by when it goes on, also in a later
        process. What fails is tried again as `retry` says. What is at a target that this export has not made itself is left
        alone, with the error `InvalidTarget`; with `replace` it goes.
        """
        return self._session.exporting.begin(
            self, target, format=format, of=of, table=table, key=key, name=name, retry=retry, replace=replace
        )

    def explain(self, format: str = "text") -> str:  # noqa: A002  (the public name)
        """How the view is maintained, as text, JSON or a Mermaid diagram."""
        now = self._session.snapshot
        return explained(now, self._view(now), self._session.epochs.work, self._session.executors, format)

    def stats(self) -> dict[str, Any]:
        """Figures: maintenance class, rows, state, the last epoch's work."""
        now = self._session.snapshot
        return statistics(now, self._view(now), self._session.epochs.work, self._session.executors)

    def why(self, row: object) -> Why:
        """Which base rows make a row of the view true; `row` is a tuple of its values or a dict."""
        from headwater.provenance import asking

        now = self._session.snapshot
        view = self._view(now)
        with self._session.noticing_damage():
            return asking.why(now, self._session.engines, view, self._session.one_row(view, row))

    def why_not(self, row: object) -> WhyNot:
        """Which partner or condition is missing for a row that the view does not have."""
        from headwater.provenance import asking

        now = self._session.snapshot
        view = self._view(now)
        with self._session.noticing_damage():
            return asking.why_not(now, self._session.engines, view, self._session.one_row(view, row))

    def depends_on(self, table: str, row: object) -> list[tuple[Any, ...]]:
        """The rows of the view that would not be there without a row of a table."""
        from headwater.provenance import asking

        now = self._session.snapshot
        entry = self._session.table_entry(table)
        with self._session.noticing_damage():
            return asking.depends_on(now, self._view(now), entry, self._session.one_row(entry, row))

    def drop(self) -> None:
        self._session.drop_view(self._name)

    @property
    def refresh(self) -> str:
        return self._view(self._session.snapshot).refresh

    @property
    def maintenance(self) -> str:
        """The costliest class of its operators: linear, stateful, touched groups or recomputed."""
        return maintenance(self._view(self._session.snapshot))

    def _view(self, now: Snapshot) -> ViewEntry:
        entry = self._at(now)
        assert isinstance(entry, ViewEntry)
        return entry

    def __repr__(self) -> str:
        return f"View({self._name!r})"


@bounded
class Sketch(View):
    """A sketch of the session: the fragments of tables that the answer of its query needs, as rows (access, fragment)."""

    @property
    def query(self) -> str | None:
        """The query as SQL; None if it was a DataFrame."""
        return self._captured.query.text

    @property
    def is_valid(self) -> bool:
        """Whether all facts hold that it relies on; while one does not, it is not used."""
        return self._fragments() is not None

    def ranges(self) -> dict[str, list[str]]:
        """The ranges that are needed now, by table and column; of several accesses of one table, all that any of them needs."""
        found: dict[str, list[str]] = {}
        for name, (partition, fragments) in self.fragments().items():
            texts = [partition.text(interval) for interval in partition.intervals(fragments)]
            found[name] = [*texts, *(["NULL"] if partition.null in fragments else [])]
        return found

    def fragments(self) -> dict[str, tuple[Partition, frozenset[int]]]:
        """The partition and the fragments that are needed now, by table and column."""
        found: dict[str, tuple[Partition, frozenset[int]]] = {}
        for access, fragments in zip(self._captured.accesses, self._fragments() or [], strict=False):
            name = f"{access.partition.table}.{access.partition.column}"
            found[name] = (access.partition, found.get(name, (None, frozenset[int]()))[1] | fragments)
        return found

    def stats(self) -> dict[str, Any]:
        """Figures: ranges and share of each access, guards, uses, what these skipped and saved, what it costs to maintain."""
        now = self._session.snapshot
        view = self._view(now)
        usage = self._session.sketchbook.used(self._name)
        maintained = statistics(now, view, self._session.epochs.work, self._session.executors)
        fragments = self._fragments()
        accesses = []
        for covered, chosen in zip(self._captured.accesses, fragments or [], strict=False):
            partition = covered.partition
            size = {"fragments": len(chosen), "of": partition.count, "share": partition.share(chosen)}
            place = {"table": partition.table, "column": partition.column, "partition": partition.version}
            accesses.append({**place, **size, "ranges": len(partition.intervals(chosen))})
        return {
            "valid": fragments is not None,
            "maintain": "lazy" if self._captured.lazy else "eager",
            "epoch": self._session.sketchbook.lazily.reached(view) if self._captured.lazy else now.epoch,
            "accesses": accesses,
            "guards": [
                f"{guard.table}.{now.tables[guard.table].arrow.names[guard.column]} {guard.kind}"
                for guard in self._captured.guards
            ],
            "times_used": usage.times,
            "rows_skipped": usage.rows_skipped,
            "seconds_used": usage.seconds,
            "seconds_saved": usage.seconds_saved,
            "seconds_of_upkeep": usage.upkeep,
            "maintenance": maintained,
            "upkeep": self._upkeep(view),
            "tuning": asdict(self._captured.tuning),
            "estimates": [asdict(each) for each in self._captured.estimates],
        }

    def _upkeep(self, view: ViewEntry) -> dict[str, Any] | None:
        """Of a sketch that rests: how often it was captured and maintained, and what both took; None of others."""
        costs = self._session.sketchbook.lazily.upkeep.get(view)
        return None if costs is None else asdict(costs)

    def plot(self, file: str | Path | None = None) -> str | Path:
        """Which ranges were needed, epoch by epoch: as SVG, or in a file whose name ends in .svg, .html or .png."""
        from headwater.skipping import drawing

        blocks = self._blocks()
        if file is None:
            return drawing.svg(blocks)
        target = Path(file)
        if target.suffix not in (".svg", ".html", ".png"):
            raise InvalidOption(f"a picture is a file that ends in .svg, .html or .png, not {target.name!r}")
        if target.suffix == ".png":
            target.write_bytes(drawing.png(blocks))
        else:
            target.write_text(drawing.svg(blocks) if target.suffix == ".svg" else drawing.html(blocks), encoding="utf-8")
        return target

    def _blocks(self) -> list[Block]:
        """The fragments of each access at every epoch that changed them, as far back as changes are kept."""
        import numpy as np

        from headwater.skipping.drawing import Block

        began = self._session.epochs.history.earliest(self._name)
        changes = [(epoch, table.to_pydict()) for epoch, table in self.changes(since=began)]
        now = self._fragments() or []
        blocks = []
        for number, covered in enumerate(self._captured.accesses):
            chosen = now[number] if number < len(now) else frozenset[int]()
            states = [(self._session.epoch, chosen)]
            for epoch, rows in reversed(changes):
                moved = [
                    (fragment, weight)
                    for access, fragment, weight in zip(rows["access"], rows["fragment"], rows["_weight"], strict=True)
                    if access == number
                ]
                if moved:
                    states[-1] = (epoch, chosen)
                    chosen = (chosen - {f for f, weight in moved if weight > 0}) | {f for f, weight in moved if weight < 0}
                    states.append((began, chosen))
            states.reverse()
            cells = np.zeros((len(states), covered.partition.count), bool)
            for row, (_, fragments) in enumerate(states):
                cells[row, list(fragments)] = True
            title = f"{covered.partition.table}.{covered.partition.column}"
            blocks.append(Block(title, tuple(epoch for epoch, _ in states), cells))
        return blocks

    def drop(self) -> None:
        self._session.drop_sketch(self._name)

    def _fragments(self) -> list[frozenset[int]] | None:
        from headwater.skipping.sketching import fragments_in

        now = self._session.snapshot
        return fragments_in(self._session.sketchbook.content(now, self._view(now)), self._captured)

    def whole(self) -> tuple[int, pa.Table]:
        """The number of the last epoch, and the numbers of accesses and fragments at it."""
        now = self._session.snapshot
        entry = self._view(now)
        with self._session.noticing_damage():
            rows = self._session.sketchbook.content(now, entry)
        return now.epoch, table_of(Delta.inserting(rows), entry.arrow)

    def __len__(self) -> int:
        """How many fragments there are, of all accesses together."""
        return self.arrow().num_rows

    @property
    def _captured(self) -> Captured:
        sketch = self._view(self._session.snapshot).sketch
        assert sketch is not None
        return sketch

    def __repr__(self) -> str:
        return f"Sketch({self._name!r})"
