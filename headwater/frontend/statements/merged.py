"""From the answer of `select_merged` to what is done: no target row may be matched by two source rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from headwater.errors import InvalidRows

if TYPE_CHECKING:
    import pyarrow as pa


def merged_actions(answer: pa.Table) -> pa.Table:
    """The rows with an action, without the column `row`; raises where Spark raises MERGE_CARDINALITY_VIOLATION."""
    rows = answer.column("row")
    matches = len(rows) - rows.null_count
    if pc.count_distinct(rows, mode="only_valid").as_py() < matches:
        raise InvalidRows(
            "MERGE_CARDINALITY_VIOLATION: the ON condition matches one row of the target with several rows of the source; "
            "make the source's rows unique, for example by GROUP BY"
        )
    return answer.filter(pc.is_valid(answer.column("action"))).drop_columns(["row"])
