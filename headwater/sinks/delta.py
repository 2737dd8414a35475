"""Delta tables: each epoch is one commit of the table, which says which epoch it is.

    changes   rows are appended, with `_weight` and `_commit_version`
    content   rows are merged by a key: what went is deleted, what came is put in its place

The number of the last epoch is the table's own transaction version of the export's name, so no commit is made twice. Another
transaction version, in every commit, says which export the table is of: a number made of its owner. When the view is given
other columns, one commit replaces the table's columns and rows by the new ones; earlier versions of it have the old ones.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.answers import rows_of_changes
from headwater.errors import InvalidTarget
from headwater.sinks.keyed import last_by_key
from headwater.sinks.ownership import clear, foreign, require_apart, require_replaceable, strange_files, taken_over

if TYPE_CHECKING:
    from collections.abc import Sequence

_OWNER = "headwater-owner"


class Delta:
    """A Delta table at a path or an address; with a key, it has the view's content."""

    def __init__(self, place: str, name: str, key: Sequence[str], owner: str, *, replace: bool) -> None:
        self._place = place
        self._name = f"headwater-{name}"
        self._key = list(key)
        # Versions are positive numbers of 64 bits.
        self._owner = int.from_bytes(blake2b(owner.encode(), digest_size=8).digest()) >> 1
        self._replace = replace
        try:
            import deltalake
        except ImportError as error:
            raise InvalidTarget("Delta tables are written with the package deltalake: pip install headwater[delta]") from error
        self._deltalake: Any = deltalake

    def position(self) -> int | None:
        if "://" not in self._place:
            require_apart(Path(self._place))
        table = self._own_table()
        if table is None and "://" not in self._place:
            require_replaceable(Path(self._place))
        version = None if table is None else table.transaction_version(self._name)
        return None if version is None else int(version)

    def begin(self, epoch: int, rows: pa.Table) -> None:
        if self._own_table() is None:
            self._take()
        if not self._key:
            rows = _versioned(rows.append_column("_weight", pa.array(np.ones(rows.num_rows, np.int64))), epoch)
        self._deltalake.write_deltalake(
            self._place, rows, mode="overwrite", schema_mode="overwrite", commit_properties=self._says(epoch)
        )
        # What is there from here on is ours.
        self._replace = False

    def write(self, epoch: int, changes: pa.Table) -> None:
        table = self._table()
        if table is None or table.transaction_version(_OWNER) != self._owner:
            raise taken_over(self._place)
        if not self._key:
            rows = _versioned(changes, epoch)
            self._deltalake.write_deltalake(table, rows, mode="append", commit_properties=self._says(epoch))
            return
        went, came = last_by_key(changes, self._key)
        signed = pa.concat_tables([_signed(came, 1), _signed(went, -1)])
        names = [name for name in changes.column_names if name != "_weight"]
        same = " AND ".join(f"t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)}" for name in self._key)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        (
            table.merge(signed, same, source_alias="s", target_alias="t", commit_properties=self._says(epoch))
            .when_matched_delete('s."_weight" < 0')
            .when_matched_update(values, 's."_weight" > 0')
            .when_not_matched_insert(values, 's."_weight" > 0')
            .execute()
        )

    def reshape(self, epoch: int, former: pa.Table, changes: pa.Table) -> bool:  # noqa: ARG002  (earlier versions have it)
        self.begin(epoch, rows_of_changes(changes))
        return True

    def _table(self) -> Any:  # noqa: ANN401  (a class of an optional package)
        found = not Path(self._place).is_file() and self._deltalake.DeltaTable.is_deltatable(self._place)
        return self._deltalake.DeltaTable(self._place) if found else None

    def _own_table(self) -> Any:  # noqa: ANN401
        """The table, if it is this export's; None if there is none, or one that is to be replaced."""
        table = self._table()
        if table is not None and table.transaction_version(_OWNER) == self._owner:
            return table
        strange = (
            "is a Delta table" if table is not None else None if "://" in self._place else strange_files(Path(self._place))
        )
        if strange is not None and not self._replace:
            raise foreign(self._place, strange)
        return None

    def _take(self) -> None:
        """What is there goes; a Delta table is overwritten, so that its earlier versions are still there."""
        table = self._table()
        if table is None and "://" not in self._place:
            clear(Path(self._place))
        elif table is not None and table.metadata().partition_columns:
            raise InvalidTarget(
                f"{self._place!r} is a Delta table with partitions, which an export has not; give another place"
            )

    def _says(self, epoch: int) -> Any:  # noqa: ANN401
        said = [self._deltalake.Transaction(self._name, epoch), self._deltalake.Transaction(_OWNER, self._owner)]
        return self._deltalake.CommitProperties(app_transactions=said)


def _versioned(changes: pa.Table, epoch: int) -> pa.Table:
    return changes.append_column("_commit_version", pa.array(np.full(changes.num_rows, epoch)))


def _signed(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column("_weight", pa.array(np.full(rows.num_rows, weight)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
