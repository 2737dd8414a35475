"""Filling: values that a source did not send, because an update left them as they were.

    value of a row  =  what was sent  |  the value in the row before it in the batch  |  the value in the row of the table

The row before is the last one with the key that the row had: an update may change the key as well. Only numbers of rows go
through the loop, and only in batches in which something was not sent; the values themselves are fetched at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.state.consolidation import group_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headwater.runtime.catalog import TableEntry
    from headwater.sources.events import Events
    from headwater.sources.sifting import Bad
    from headwater.state.arrangement import Arrangement


def filled(
    kept: Arrangement, table: TableEntry, rows: pa.RecordBatch, events: Events, absent: Mapping[int, NDArray[np.bool_]]
) -> tuple[pa.RecordBatch, Bad]:
    """The rows with all their values, and complaints about those for which there are none."""
    assert table.key is not None
    came = ~events.went
    wanting = {i: mask & came for i, mask in absent.items() if i not in table.key}
    wanting = {i: mask for i, mask in wanting.items() if mask.any()}
    if not wanting:
        return rows, {}
    before = _before(group_rows(rows, table.key).ids, events)
    asked = np.flatnonzero(np.logical_or.reduce(list(wanting.values())))
    # Whose key a row had that is not in the batch before: its own, or that of the old row beside it.
    beside = asked - 1
    old = (asked > 0) & events.went[beside] & (events.places[beside] == events.places[asked])
    found = kept.lookup(rows.take(pa.array(np.where(old, beside, asked))), table.key).existing()
    stored = np.full(rows.num_rows, -1)
    stored[asked[found.probe]] = np.arange(len(found))
    bad: Bad = {}
    columns = list(rows.columns)
    for i, mask in wanting.items():
        place = np.arange(rows.num_rows)
        for at in np.flatnonzero(mask):
            source = before[at]
            while source >= 0 and events.went[source] and absent[i][source]:
                source = before[source]
            if source >= 0:
                place[at] = place[source]
            elif stored[at] >= 0:
                place[at] = rows.num_rows + stored[at]
            else:
                bad[int(at)] = f"column {table.arrow.field(i).name!r} was not sent, and the row is not there"
        columns[i] = pa.concat_arrays([rows.column(i), found.rows.column(i)]).take(pa.array(place))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema), bad


def _before(keys: NDArray[np.int64], events: Events) -> NDArray[np.int64]:
    """For each row, the one before it in the batch; −1 if there is none."""
    found = np.full(len(keys), -1)
    last: dict[int, int] = {}
    for at, (key, went) in enumerate(zip(keys.tolist(), events.went.tolist(), strict=True)):
        if went:
            # The old row is as good as the one that was there, where it has the value.
            found[at] = last.pop(key, -1)
            continue
        if at and events.went[at - 1] and events.places[at - 1] == events.places[at]:
            found[at] = at - 1
        else:
            found[at] = last.get(key, -1)
        last[key] = at
    return found
