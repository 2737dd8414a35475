"""Targets: from what users name — a path, an address, a function — to an export.

a function                           called with each epoch and its changes
http://… or https://…                posted to
postgresql://… or postgres://…       a table of PostgreSQL, by key
a path, with the format delta        a Delta table: by key, or of changes
a path, with parquet, csv or json    a directory of files: of changes, or of content
"""

from __future__ import annotations

import logging
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headwater.errors import DamagedFile, InvalidOption, InvalidTarget, NameTaken
from headwater.filenames import file_name, former_file_name, require_name
from headwater.redaction import redacted
from headwater.sinks.calls import Calls, Notes, calling, posting
from headwater.sinks.delta import Delta
from headwater.sinks.exporting import OF, Export, Retry
from headwater.sinks.files import FORMATS, Files
from headwater.sinks.ownership import owner_of
from headwater.sinks.postgres import Postgres
from headwater.store import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from headwater.relations import View
    from headwater.sinks.exporting import Sink
    from headwater.store.disk import Disk

    Target = str | Path | Callable[[int, pa.Table], object]

_log = logging.getLogger("headwater")
_WEB = ("http://", "https://")
_POSTGRES = ("postgresql://", "postgres://")


class Exports:
    """The exports of a session; `disk` is its directory, if it has one."""

    def __init__(self, disk: Disk | None, now: Callable[[], int]) -> None:
        self._disk = disk
        # What a session without a directory has written, no later one can go on with.
        self._identity = (None if disk is None else manifest.identity(disk)) or uuid4().hex
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
        replace: bool,
    ) -> Export:
        """Begins, or goes on with, an export; a target that is not its own is refused at once, if it can be reached."""
        called = view.name if name is None else require_name(name, "an export")
        if called in self._known and self._known[called].progress.state not in ("stopped", "failed"):
            raise NameTaken(f"an export {called!r} is at work already; stop it first, or give this one another name")
        chosen: dict[str, Any] = {"format": format, "of": of, "table": table, "key": key, "replace": replace}
        sink, has = self.require(view, view.name, target, **chosen, name=called)
        address = "" if callable(target) else str(target)
        try:
            sink.position()
        except (InvalidTarget, DamagedFile):
            raise
        except Exception as error:  # noqa: BLE001  (whatever a target raises: it is tried again, beside everything else)
            _log.debug("The target of export %r is away: %s", called, redacted(str(error), address))
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
        replace: bool,
    ) -> tuple[Sink, str]:
        """The target, and whether it has content or changes; refuses what cannot be one. The view may be one to come."""
        if of is not None and of not in OF:
            raise InvalidOption(f"of is one of {', '.join(OF)}, not {of!r}")
        columns = [] if key is None else [key] if isinstance(key, str) else list(key)
        sink, default = self._sink(view, view_name, target, format, of, table, columns, name, replace)
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
        replace: bool,  # noqa: FBT001
    ) -> tuple[Sink, str]:
        """The target, and whether it has content or changes if nothing is said."""
        if callable(target):
            _require_changes(of, "a function")
            return Calls(calling(target), self._notes(view_name, name), replace=replace), "changes"
        place = str(target)
        if place.startswith(_WEB):
            _require_changes(of, "a web address")
            return Calls(posting(place, view_name), self._notes(view_name, name), replace=replace), "changes"
        if place.startswith(_POSTGRES):
            if of == "changes":
                raise InvalidOption("a table of PostgreSQL has the content of a view, not its changes")
            owner = owner_of(self._identity, view_name, name, "content", *key)
            return Postgres(place, table or view_name, name, key, owner, replace=replace), "content"
        if form == "delta":
            if (of == "content") != bool(key) and of is not None:
                raise InvalidOption("a Delta table has content by a key, or changes without one")
            default = "content" if key else "changes"
            owner = owner_of(self._identity, view_name, name, default, *key)
            return Delta(place, name, key, owner, replace=replace), default
        if form not in FORMATS:
            raise InvalidOption(f"format is one of {', '.join(FORMATS)} or delta for a directory, not {form!r}")
        owner = owner_of(self._identity, view_name, name, of or "changes", form)
        return Files(Path(place), form, view.whole if of == "content" else None, owner, replace=replace), "changes"

    def _notes(self, view_name: str, name: str) -> Notes:
        file, former = f"exports/{file_name(name)}.json", former_file_name(name)
        if self._disk is not None and former is not None and self._disk.size(file) is None:
            earlier = f"exports/{former}.json"
            file = file if self._disk.size(earlier) is None else earlier
        return Notes(self._disk, file, view_name.lower())


def _require_changes(of: str | None, what: str) -> None:
    if of == "content":
        raise InvalidOption(f"{what} is told changes; read the content with rows(), arrow() or dataframe()")
