"""Files: a directory in which each epoch is a file, of Parquet, CSV or JSON lines, that appears whole or not at all.

    changes   epoch-<number>.<format>, one for each epoch, rows with a `_weight`; the first has all rows that were there
    content   epoch-<number>.<format>, only the newest: it appears before the one before it goes

The name of the newest file is how far the export is.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from headwater.errors import InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMATS = ("parquet", "csv", "json")
_NAME = re.compile(r"epoch-(\d{12})\.(parquet|csv|json)")


class Files:
    """A directory of files; `content` gives all rows of the view now, for an export of content."""

    def __init__(self, folder: Path, form: str, content: Callable[[], tuple[int, pa.Table]] | None) -> None:
        self._folder = folder
        self._form = form
        self._content = content
        folder.mkdir(parents=True, exist_ok=True)
        strange = [each.name for each in folder.iterdir() if not _ours(each.name)]
        if strange:
            raise InvalidTarget(f"{str(folder)!r} has other files, such as {strange[0]!r}; give a directory of its own")

    def position(self) -> int | None:
        return max(self._epochs(), default=None)

    def begin(self, epoch: int, rows: pa.Table) -> None:
        before = self._epochs()
        if self._content is None:
            rows = rows.append_column("_weight", pa.array([1] * rows.num_rows, pa.int64()))
        self._put(epoch, rows)
        self._remove(before - {epoch})

    def write(self, epoch: int, changes: pa.Table) -> None:
        if self._content is None:
            self._put(epoch, changes)
            return
        before = self._epochs()
        now, rows = self._content()
        if now in before:
            return
        self._put(now, rows)
        self._remove(before - {now})

    def _put(self, epoch: int, rows: pa.Table) -> None:
        path = self._folder / f"epoch-{epoch:012}.{self._form}"
        beside = path.with_name(f".{path.name}.part")
        with beside.open("wb") as file:
            _fill(file, rows, self._form)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _epochs(self) -> set[int]:
        found = (_NAME.fullmatch(each.name) for each in self._folder.iterdir())
        return {int(match[1]) for match in found if match is not None}

    def _remove(self, epochs: set[int]) -> None:
        for epoch in epochs:
            with suppress(FileNotFoundError):
                (self._folder / f"epoch-{epoch:012}.{self._form}").unlink()


def _fill(file: object, rows: pa.Table, form: str) -> None:
    if form == "parquet":
        pq.write_table(rows, file)
    elif form == "csv":
        pc_csv.write_csv(rows, file)
    else:
        for batch in rows.to_batches():
            for row in batch.to_pylist():
                file.write(json.dumps(row, default=str, ensure_ascii=False).encode() + b"\n")  # type: ignore[attr-defined]


def _ours(name: str) -> bool:
    return _NAME.fullmatch(name) is not None or (name.startswith(".epoch-") and name.endswith(".part"))
