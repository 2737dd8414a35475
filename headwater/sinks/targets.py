"""Targets: from what users name — a path, an address, a function — to an export.

a function                           called with each epoch and its changes
http://… or https://…                posted to
postgresql://… or postgres://…       a table of PostgreSQL, by key
a path, with the format delta        a Delta table: by key, or of changes
a path, with parquet, csv or json    a directory of files: of changes, or of content
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.errors import InvalidOption, NameTaken
from headwater.filenames import file_name, former_file_name, require_name
from headwater.sinks.calls import Calls, Notes, posting
from headwater.sinks.delta import Delta
from headwater.sinks.exporting import OF, Export, Retry
from headwater.sinks.files import FORMATS, Files
from headwater.sinks.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from headwater.relations import View
    from headwater.sinks.exporting import Sink
    from headwater.store.disk import Disk

    Target = str | Path | Callable[[int, pa.Table], object]

_WEB = ("http://", "https://")
_POSTGRES = ("postgresql://", "postgres://")


class Exports:
    """The exports of a session; `disk` is its directory, if it has one."""

    def __init__(self, disk: Disk | None, now: Callable[[], int]) -> None:
        self._disk = disk
        self._now = now
        self._known: dict[str, Export] = {}

    @property
    def known(self) -> Mapping[str, Export]:
        return MappingProxyType(dict(self._known))

    def begin(  # noqa: PLR0913  (as users say it)
        self,
        view: View,
        target: Target,
        *,
        format: str | None,  # noqa: A002
        of: str | None,
        table: str | None,
        key: str | Sequence[str] | None,
        name: str | None,
        retry: Retry | None,
    ) -> Export:
        """Begins, or goes on with, an export."""
        called = view.name if name is None else require_name(name, "an export")
        if called in self._known and self._known[called].progress.state not in ("stopped", "failed"):
            raise NameTaken(f"an export {called!r} is at work already; stop it first, or give this one another name")
        sink, has = self.require(view, view.name, target, format=format, of=of, table=table, key=key, name=called)
        address = "" if callable(target) else str(target)
        export = Export(called, view, sink, has, now=self._now, retry=retry or Retry(), address=address)
        self._known[called] = export
        export.resume()
        return export

    def require(  # noqa: PLR0913  (as users say it)
        self,
        view: View,
        view_name: str,
        target: Target,
        *,
        format: str | None,  # noqa: A002
        of: str | None,
        table: str | None,
        key: str | Sequence[str] | None,
        name: str,
    ) -> tuple[Sink, str]:
        """The target, and whether it has content or changes; refuses what cannot be one. The view may be one to come."""
        if of is not None and of not in OF:
            raise InvalidOption(f"of is one of {', '.join(OF)}, not {of!r}")
        columns = [] if key is None else [key] if isinstance(key, str) else list(key)
        sink, default = self._sink(view, view_name, target, format, of, table, columns, name)
        return sink, of or default

    def close(self) -> None:
        for export in self._known.values():
            export.stop()

    def _sink(  # noqa: PLR0913, PLR0917
        self,
        view: View,
        view_name: str,
        target: Target,
        form: str | None,
        of: str | None,
        table: str | None,
        key: list[str],
        name: str,
    ) -> tuple[Sink, str]:
        """The target, and whether it has content or changes if nothing is said."""
        if callable(target):
            _require_changes(of, "a function")
            return Calls(target, self._notes(name)), "changes"
        place = str(target)
        if place.startswith(_WEB):
            _require_changes(of, "a web address")
            return Calls(posting(place, view_name), self._notes(name)), "changes"
        if place.startswith(_POSTGRES):
            if of == "changes":
                raise InvalidOption("a table of PostgreSQL has the content of a view, not its changes")
            return Postgres(place, table or view_name, name, key), "content"
        if form == "delta":
            if (of == "content") != bool(key) and of is not None:
                raise InvalidOption("a Delta table has content by a key, or changes without one")
            return Delta(place, name, key), "content" if key else "changes"
        if form not in FORMATS:
            raise InvalidOption(f"format is one of {', '.join(FORMATS)} or delta for a directory, not {form!r}")
        return Files(Path(place), form, view.whole if of == "content" else None), "changes"

    def _notes(self, name: str) -> Notes:
        disk, file = self._disk, f"exports/{file_name(name)}.json"
        former = former_file_name(name)
        places = [file] if former is None else [file, f"exports/{former}.json"]
        if disk is None:
            kept: list[str] = []
            return Notes(lambda: kept[-1] if kept else None, kept.append)

        def read() -> str | None:
            found = next((each for each in places if disk.size(each) is not None), None)
            return None if found is None else disk.read(found).decode()

        return Notes(read, lambda text: disk.replace(file, text.encode()))


def _require_changes(of: str | None, what: str) -> None:
    if of == "content":
        raise InvalidOption(f"{what} is told changes; read the content with rows(), arrow() or dataframe()")
