"""Calls: each epoch is handed to a Python function, or posted to a web address.

Both are told the epoch's number. The one that was told last is noted in the session's directory after the call; so after a kill
between the two, an epoch is told again, with the same number, and a receiver that remembers the last one leaves it out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT = 30.0


class Notes:
    """The last epoch that was told, by the name of the export, in a file; without a directory, in memory."""

    def __init__(self, read: Callable[[], str | None], replace: Callable[[str], None]) -> None:
        self._read = read
        self._replace = replace

    def get(self) -> int | None:
        said = self._read()
        return None if said is None else int(json.loads(said)["epoch"])

    def put(self, epoch: int) -> None:
        self._replace(json.dumps({"epoch": epoch}))


class Calls:
    """A function that is called with an epoch and its changes."""

    def __init__(self, call: Callable[[int, pa.Table], object], notes: Notes) -> None:
        self._call = call
        self._notes = notes

    def position(self) -> int | None:
        return self._notes.get()

    def begin(self, epoch: int, rows: pa.Table) -> None:
        self.write(epoch, rows.append_column("_weight", pa.array([1] * rows.num_rows, pa.int64())))

    def write(self, epoch: int, changes: pa.Table) -> None:
        self._call(epoch, changes)
        self._notes.put(epoch)


def posting(address: str, view: str) -> Callable[[int, pa.Table], None]:
    """Posts `{"view": …, "epoch": …, "changes": [{…, "_weight": 1}, …]}`; an answer other than 2xx is a failure."""

    def post(epoch: int, changes: pa.Table) -> None:
        body = json.dumps({"view": view, "epoch": epoch, "changes": changes.to_pylist()}, default=str)
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{view}-{epoch}"}
        request = Request(address, body.encode(), headers, method="POST")  # noqa: S310  (http or https, as the target says)
        try:
            with urlopen(request, timeout=_TIMEOUT):  # noqa: S310
                pass
        except HTTPError as error:
            raise OSError(f"{error.code} {error.reason}") from error

    return post
