"""Session windows, merged: rows of a group whose windows overlap or touch get one, from the first start to the last end.

    start    0 ├────┤                    0 ├────────────┤
             3    ├────┤        →        0 ├────────────┤
             6         ├───┤             0 ├────────────┤
            20               ├──┤       20                ├──┤

A row comes with the window of its own time, from that to the end of the gap after it, as a struct. One pass over the rows of a
group by their starts finds the sessions: a window that starts after the end of all before it begins a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.delta import beside
from headwater.errors import EvaluationFailed
from headwater.state.consolidation import group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Times = NDArray[np.int64]

MERGED_SESSION = "MergedSession"


def merged_sessions(rows: pa.RecordBatch, keys: Sequence[int], session: int) -> pa.RecordBatch:
    """The rows, each followed by the merged window; its own is in the column `session`, and `keys` are those of its group."""
    windows = rows.column(session)
    if windows.null_count:
        raise EvaluationFailed("a session window is NULL: Spark merges those of a grouping set only where all of them have it")
    bounds = [windows.field(i).cast(pa.int64()).to_numpy(zero_copy_only=False) for i in range(2)]
    starts, ends = (np.ascontiguousarray(bound, np.int64) for bound in bounds)
    groups = group_rows(rows, keys).ids
    starts, ends = _merged(groups, starts, ends, np.lexsort((starts, groups)))
    merged = [pa.array(bound).cast(windows.type.field(i).type) for i, bound in enumerate((starts, ends))]
    return beside([*rows.columns, pa.StructArray.from_arrays(merged, fields=list(windows.type))], rows.num_rows)


@compiled
def _merged(groups: Times, starts: Times, ends: Times, order: Times) -> tuple[Times, Times]:
    """Start and end of the session of each row; `order` is by group and start."""
    firsts, lasts = starts.copy(), ends.copy()
    begun = 0
    for place in range(1, len(order) + 1):
        here = order[begun]
        if place < len(order):
            row = order[place]
            if groups[row] == groups[here] and starts[row] <= lasts[here]:
                lasts[here] = max(lasts[here], ends[row])
                continue
        for inside in range(begun + 1, place):
            firsts[order[inside]] = starts[here]
            lasts[order[inside]] = lasts[here]
        begun = place
    return firsts, lasts
