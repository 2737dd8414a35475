"""Checkpoints: what Spark notes of a stream, brought in line with what the directory knows to be applied.

Spark writes a batch's offsets before the batch, and notes it as done after it. An epoch that applies a batch carries both the
batch's number and its offsets. Where the two disagree, the epoch is right:

    nothing was applied           Spark begins anew
    noted as done, not applied    the note is removed, and Spark gives the batch again, with the same offsets
    applied, not noted as done    Spark gives the batch again, and it is recognised by its number
    the checkpoint is gone        it is written anew from the offsets of the last batch, if the source needs no more than these
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headwater.errors import InvalidStream
from headwater.filenames import file_name, former_file_name
from headwater.private_files import make_folder, write_text

if TYPE_CHECKING:
    from pathlib import Path

_OFFSETS, _COMMITS = "offsets", "commits"
# Offsets of this kind are numbers into lists that only the checkpoint has.
_NUMBERED = '{"logOffset":'


def folder_of(streams: Path, name: str) -> Path:
    """The folder of a stream's checkpoint, among those of all streams, into which nobody else can look."""
    make_folder(streams)
    folder, former = streams / file_name(name), former_file_name(name)
    if former is not None and (streams / former).is_dir() and not folder.exists():
        (streams / former).rename(folder)
    return folder


def offsets(checkpoint: Path, batch: int) -> list[str]:
    """The offsets of a batch, one for each source, as Spark has written them."""
    return _lines(checkpoint, batch)[2:]


def position(checkpoint: Path, batch: int) -> dict[str, Any]:
    """What an epoch notes of the batch that it applies."""
    version, described, *found = _lines(checkpoint, batch)
    return {"batch": batch, "version": version, "watermark": json.loads(described)["batchWatermarkMs"], "offsets": found}


def align(checkpoint: Path, applied: dict[str, Any] | None, name: str) -> None:
    """Makes the checkpoint of a stream say what was applied."""
    if applied is None:
        shutil.rmtree(checkpoint, ignore_errors=True)
        return
    last = int(applied["batch"])
    known = _batches(checkpoint / _OFFSETS)
    if not known:
        _write_anew(checkpoint, applied, name)
        return
    if last not in known or offsets(checkpoint, last) != applied["offsets"]:
        raise InvalidStream(
            f"the checkpoint of stream {name!r} does not know batch {last}, which was applied, as it was: it is of another "
            f"past of the directory. `s.forget({name!r})` begins anew; or bring back the folder {checkpoint.name!r} that fits"
        )
    for folder, first in ((_COMMITS, last + 1), (_OFFSETS, last + 2)):
        for batch in _batches(checkpoint / folder):
            if batch >= first:
                _remove(checkpoint / folder, batch)


def _write_anew(checkpoint: Path, applied: dict[str, Any], name: str) -> None:
    if any(_NUMBERED in offset for offset in applied["offsets"]):
        raise InvalidStream(
            f"the checkpoint of stream {name!r} is gone, and with it the list of files that were read; batches up to "
            f"{applied['batch']} are applied. `s.forget({name!r})` begins anew, with all files"
        )
    last = int(applied["batch"])
    version, watermark = applied["version"], applied["watermark"]
    described = json.dumps({"batchWatermarkMs": watermark, "batchTimestampMs": 0, "conf": {}})
    done = json.dumps({"nextBatchWatermarkMs": watermark})
    for folder, lines in ((_OFFSETS, [version, described, *applied["offsets"]]), (_COMMITS, [version, done])):
        make_folder(checkpoint)
        make_folder(checkpoint / folder)
        # Spark wants to see the batch before the last one, too, and takes nothing from it.
        for batch in range(max(last - 1, 0), last + 1):
            write_text(checkpoint / folder / str(batch), "\n".join(lines))
    # Spark refuses notes of a query that has no name.
    write_text(checkpoint / "metadata", json.dumps({"id": str(uuid4())}))


def _lines(checkpoint: Path, batch: int) -> list[str]:
    return (checkpoint / _OFFSETS / str(batch)).read_text(encoding="utf-8").split("\n")


def _batches(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit())


def _remove(folder: Path, batch: int) -> None:
    (folder / f".{batch}.crc").unlink(missing_ok=True)
    (folder / str(batch)).unlink(missing_ok=True)
