"""Delta tables: each epoch is one commit of the table, which says which epoch it is.

    changes   rows are appended, with `_weight` and `_commit_version`
    content   rows are merged by a key: what went is deleted, what came is put in its place

The number of the last epoch is the table's own transaction version of the export's name, so no commit is made twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import InvalidTarget
from headwater.sinks.keyed import last_by_key

if TYPE_CHECKING:
    from collections.abc import Sequence


class Delta:
    """A Delta table at a path or an address; with a key, it has the view's content."""

    def __init__(self, place: str, name: str, key: Sequence[str]) -> None:
        self._place = place
        self._name = f"headwater-{name}"
        self._key = list(key)
        try:
            import deltalake
        except ImportError as error:
            raise InvalidTarget("Delta tables are written with the package deltalake: pip install headwater[delta]") from error
        self._deltalake: Any = deltalake

    def position(self) -> int | None:
        if not self._deltalake.DeltaTable.is_deltatable(self._place):
            return None
        version = self._table().transaction_version(self._name)
        return None if version is None else int(version)

    def begin(self, epoch: int, rows: pa.Table) -> None:
        if not self._key:
            rows = _versioned(rows.append_column("_weight", pa.array(np.ones(rows.num_rows, np.int64))), epoch)
        self._deltalake.write_deltalake(
            self._place, rows, mode="overwrite", schema_mode="overwrite", commit_properties=self._says(epoch)
        )

    def write(self, epoch: int, changes: pa.Table) -> None:
        if not self._key:
            self._deltalake.write_deltalake(
                self._place, _versioned(changes, epoch), mode="append", commit_properties=self._says(epoch)
            )
            return
        went, came = last_by_key(changes, self._key)
        signed = pa.concat_tables([_signed(came, 1), _signed(went, -1)])
        names = [name for name in changes.column_names if name != "_weight"]
        same = " AND ".join(f"t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)}" for name in self._key)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        (
            self._table()
            .merge(signed, same, source_alias="s", target_alias="t", commit_properties=self._says(epoch))
            .when_matched_delete('s."_weight" < 0')
            .when_matched_update(values, 's."_weight" > 0')
            .when_not_matched_insert(values, 's."_weight" > 0')
            .execute()
        )

    def _table(self) -> Any:  # noqa: ANN401  (a class of an optional package)
        return self._deltalake.DeltaTable(self._place)

    def _says(self, epoch: int) -> Any:  # noqa: ANN401
        return self._deltalake.CommitProperties(app_transactions=[self._deltalake.Transaction(self._name, epoch)])


def _versioned(changes: pa.Table, epoch: int) -> pa.Table:
    return changes.append_column("_commit_version", pa.array(np.full(changes.num_rows, epoch)))


def _signed(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column("_weight", pa.array(np.full(rows.num_rows, weight)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
