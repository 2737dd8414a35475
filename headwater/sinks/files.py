"""Files: a directory in which each epoch is a file, of Parquet, CSV or JSON lines, that appears whole or not at all.

    changes   epoch-<number>.<format>, one for each epoch, rows with a `_weight`; the first has all rows that were there
    content   epoch-<number>.<format>, only the newest: it appears before the one before it goes

The name of the newest file is how far the export is. An epoch that gives the view other columns is two files of changes: what
went, under the old columns, in epoch-<number>-gone.<format>, which appears first and does not count, and all rows under the new
ones. A hidden note says which export the directory is of.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from headwater.errors import DamagedFile
from headwater.sinks.json_forms import objects, unquoted
from headwater.sinks.ownership import clear, foreign, require_apart, require_replaceable, strange_files, taken_over
from headwater.store import manifest
from headwater.store.disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

FORMATS = ("parquet", "csv", "json")
NOTE = ".headwater-export.json"
_NAME = re.compile(r"epoch-(\d{12})(-gone)?\.(?:parquet|csv|json)")


class Files:
    """A directory of files; `content` gives all rows of the view now, for an export of content."""

    def __init__(
        self, folder: Path, form: str, content: Callable[[], tuple[int, pa.Table]] | None, owner: str, *, replace: bool
    ) -> None:
        self._folder = folder
        self._disk = LocalDisk(folder)
        self._form = form
        self._content = content
        self._owner = owner
        self._replace = replace

    def position(self) -> int | None:
        require_apart(self._folder)
        if self._is_own():
            return max(self._epochs(), default=None)
        strange = self._strange()
        if strange is not None and not self._replace:
            raise foreign(str(self._folder), strange)
        require_replaceable(self._folder)
        return None

    def begin(self, epoch: int, rows: pa.Table) -> None:
        if not self._is_own():
            self._take()
        before = self._files()
        if self._content is None:
            rows = rows.append_column("_weight", pa.array(np.ones(rows.num_rows, np.int64)))
        self._remove(before - {self._put(self._named(epoch), rows)})

    def write(self, epoch: int, changes: pa.Table) -> None:
        self._require_own()
        if self._content is None:
            self._put(self._named(epoch), changes)
            return
        before = self._files()
        now, rows = self._content()
        if self._named(now) not in before:
            self._remove(before - {self._put(self._named(now), rows)})

    def reshape(self, epoch: int, former: pa.Table, changes: pa.Table) -> bool:
        self._require_own()
        if self._content is None:
            if former.num_rows:
                self._put(self._named(epoch, "-gone"), former)
            self._put(self._named(epoch), changes)
            return False
        self.write(epoch, changes)
        return True

    def _is_own(self) -> bool:
        """Raises if the note is damaged, unless what is there is to go anyway."""
        if not (self._folder / NOTE).is_file():
            return False
        try:
            found = manifest.get(self._disk, NOTE)
        except DamagedFile:
            if self._replace:
                return False
            raise
        return bool(found["owner"] == self._owner)

    def _require_own(self) -> None:
        if not self._is_own():
            raise taken_over(str(self._folder))

    def _strange(self) -> str | None:
        # Someone may have been killed amid the note.
        return strange_files(self._folder, (f"{NOTE}.part",))

    def _take(self) -> None:
        """Makes the directory this export's. What was there goes before that is noted, so that nobody takes it for its own."""
        strange = self._strange()
        if strange is not None and not self._replace:
            raise foreign(str(self._folder), strange)
        clear(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        manifest.put(self._disk, NOTE, {"owner": self._owner})
        # What is there from here on is ours.
        self._replace = False

    def _named(self, epoch: int, what: str = "") -> str:
        return f"epoch-{epoch:012}{what}.{self._form}"

    def _put(self, name: str, rows: pa.Table) -> str:
        path = self._folder / name
        beside = path.with_name(f".{path.name}.part")
        with beside.open("wb") as file:
            _fill(file, rows, self._form)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        self._disk.settle(".")
        return name

    def _files(self) -> set[str]:
        return {each.name for each in self._folder.iterdir() if _NAME.fullmatch(each.name)}

    def _epochs(self) -> set[int]:
        found = map(_NAME.fullmatch, self._files())
        return {int(match[1]) for match in found if match is not None and match[2] is None}

    def _remove(self, names: set[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                (self._folder / name).unlink()


def _fill(file: BinaryIO, rows: pa.Table, form: str) -> None:
    if form == "parquet":
        pq.write_table(rows, file)
    elif form == "csv":
        columns = [column if _is_flat(column.type) else pa.array(unquoted(column), pa.string()) for column in rows.columns]
        pc_csv.write_csv(pa.Table.from_arrays(columns, names=rows.column_names), file)
    else:
        for batch in rows.to_batches():
            file.writelines(f"{row}\n".encode() for row in objects(pa.Table.from_batches([batch])))


def _is_flat(kind: pa.DataType) -> bool:
    """Whether CSV has a form for such values; others are as in JSON, without quotes of its own."""
    kinds = ("boolean", "integer", "floating", "decimal", "string", "large_string", "date", "timestamp", "null")
    return any(getattr(pa.types, f"is_{each}")(kind) for each in kinds)
