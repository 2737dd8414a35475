"""Requests to a running pipeline, and their outcomes: two files of its directory, by which `headwater apply` reaches it.

    request   the file of the description, when it was last changed, and a number of its own
    outcome   that number, and what went wrong, if anything did

The description itself is not copied, as it may have passwords in it. Both files appear whole; one that is not is somebody
else's, and nothing follows from it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headwater.errors import InvalidPipeline
from headwater.pipelines.described import read

if TYPE_CHECKING:
    from headwater.pipelines.described import Pipeline
    from headwater.store.disk import Disk

WANTED = "pipeline-wanted.json"
OUTCOME = "pipeline-outcome.json"


@dataclass(frozen=True)
class Request:
    """A description that is wanted from here on."""

    file: str
    changed: int
    """When the file was last changed, in nanoseconds since 1970."""
    number: str

    @staticmethod
    def of(file: Path) -> Request:
        try:
            return Request(str(file.absolute()), file.stat().st_mtime_ns, uuid4().hex)
        except OSError as error:
            raise InvalidPipeline(f"{str(file)!r} cannot be read: {error.strerror or error}") from error

    def pipeline(self) -> Pipeline:
        """What the file describes, if it is still the one that was meant."""
        described, now = read(Path(self.file)), Request.of(Path(self.file))
        if now.changed != self.changed:
            raise InvalidPipeline(f"{self.file!r} was changed after it was asked for; apply it again")
        return described


def put(disk: Disk, request: Request) -> None:
    """Asks whoever runs the pipeline of a directory."""
    disk.replace(WANTED, json.dumps(asdict(request)).encode())


def wanted(disk: Disk) -> Request | None:
    """The last request; None if there was none."""
    said = _read(disk, WANTED)
    try:
        return None if said is None else Request(str(said["file"]), int(said["changed"]), str(said["number"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _strange(WANTED) from error


def note(disk: Disk, request: Request, error: str | None) -> None:
    """Says what came of a request."""
    disk.replace(OUTCOME, json.dumps({"number": request.number, "error": error}).encode())


def outcome(disk: Disk, request: Request) -> str | None:
    """What came of a request: what went wrong, or nothing but an empty text; None as long as it is not known."""
    try:
        said = _read(disk, OUTCOME)
    except InvalidPipeline:
        return None
    return None if said is None or said.get("number") != request.number else str(said.get("error") or "")


def _read(disk: Disk, name: str) -> dict[str, Any] | None:
    try:
        said = json.loads(disk.read(name))
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise _strange(name) from error
    if not isinstance(said, dict):
        raise _strange(name)
    return said


def _strange(name: str) -> InvalidPipeline:
    return InvalidPipeline(f"the file {name!r} is not as `headwater apply` writes it, and is left out; apply again")
