"""Calls: each epoch is handed to a Python function, or posted to a web address.

Both are told the epoch's number. The one that was told last is noted in the session's directory after the call; so after a kill
between the two, an epoch is told again, with the same number, and a receiver that remembers the last one leaves it out.

An epoch that gives the view other columns is two calls of a function, as an Arrow table has one schema: what went under the old
columns, then all rows under the new ones. It is one post, in which what went comes first.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import pyarrow as pa

from headwater.errors import DamagedFile, InvalidTarget
from headwater.sinks.json_forms import objects, texts
from headwater.store import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.store.disk import Disk

_TIMEOUT = 30.0


class Notes:
    """The last epoch that an export of a view has told: in a file with a checksum, or in memory if there is no directory."""

    def __init__(self, disk: Disk | None, file: str, view: str) -> None:
        self._disk = disk
        self._file = file
        self._view = view
        self._epoch: int | None = None

    def get(self, *, replace: bool) -> int | None:
        """Raises if the note is damaged, or of an export of another view, unless this one takes its place."""
        if self._disk is None or self._disk.size(self._file) is None:
            return self._epoch
        try:
            said = manifest.get(self._disk, self._file)
        except DamagedFile:
            if replace:
                return None
            raise
        if said["view"] != self._view:
            if replace:
                return None
            raise InvalidTarget(
                f"an export of this name has told view {said['view']!r}, not {self._view!r}; give this one another name, or "
                "write_to(…, replace=True), which begins with all rows"
            )
        return int(said["epoch"])

    def put(self, epoch: int) -> None:
        self._epoch = epoch
        if self._disk is not None:
            manifest.put(self._disk, self._file, {"view": self._view, "epoch": epoch})


class Calls:
    """A function that is called with an epoch and its changes, a table for each schema."""

    def __init__(self, call: Callable[[int, Sequence[pa.Table]], object], notes: Notes, *, replace: bool) -> None:
        self._call = call
        self._notes = notes
        self._replace = replace

    def position(self) -> int | None:
        return self._notes.get(replace=self._replace)

    def begin(self, epoch: int, rows: pa.Table) -> None:
        self.write(epoch, rows.append_column("_weight", pa.array(np.ones(rows.num_rows, np.int64))))

    def write(self, epoch: int, changes: pa.Table) -> None:
        self._tell(epoch, [changes])

    def reshape(self, epoch: int, former: pa.Table, changes: pa.Table) -> bool:
        self._tell(epoch, [table for table in (former, changes) if table.num_rows])
        return False

    def _tell(self, epoch: int, tables: Sequence[pa.Table]) -> None:
        self._call(epoch, tables)
        self._notes.put(epoch)
        self._replace = False


def calling(function: Callable[[int, pa.Table], object]) -> Callable[[int, Sequence[pa.Table]], None]:
    """Calls a user's function once for each table."""

    def call(epoch: int, tables: Sequence[pa.Table]) -> None:
        for table in tables:
            function(epoch, table)

    return call


class _NoRedirects(HTTPRedirectHandler):
    """A redirect is an answer like any other that is not 2xx: followed, a POST would become a GET, and its rows be lost."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401  (as urllib calls it)
        return None


def posting(address: str, view: str) -> Callable[[int, Sequence[pa.Table]], None]:
    """Posts `{"view": …, "epoch": …, "changes": [{…, "_weight": 1}, …]}`; an answer other than 2xx is a failure.

    A user and a password in the address are sent as basic authentication: urllib takes them for a part of the host's name.
    """
    opener = build_opener(_NoRedirects)
    address, credentials = _apart(address)
    name = texts(pa.array([view]))[0]

    def post(epoch: int, tables: Sequence[pa.Table]) -> None:
        changes = ",".join(row for table in tables for row in objects(table))
        body = f'{{"view":{name},"epoch":{epoch},"changes":[{changes}]}}'
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{quote(view)}-{epoch}", **credentials}
        request = Request(address, body.encode(), headers, method="POST")  # noqa: S310  (http or https, as the target says)
        try:
            with opener.open(request, timeout=_TIMEOUT):
                pass
        except HTTPError as error:
            error.close()
            moved = 300 <= error.code < 400
            raise OSError(f"{error.code} {error.reason}{'; redirects are not followed' if moved else ''}") from error

    return post


def _apart(address: str) -> tuple[str, dict[str, str]]:
    """An address without its user and password, and the header that says them."""
    parts = urlsplit(address)
    user, found, host = parts.netloc.rpartition("@")
    if not found:
        return address, {}
    name, _, password = user.partition(":")
    said = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {said}"}
