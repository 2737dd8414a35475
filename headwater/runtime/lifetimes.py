"""How long the rows of a table live, and from when.

    due(row)  =  its time + ttl ≤ now

The time of a row stands in a column of it, or is when it was inserted. The latter is kept beside the table, in one of *times*,
which changes in the same epochs and which users do not see:

    times  =  the columns by which a row is known, and when it was inserted; as often as the row is there since then

Each copy of a row has its own time. A delete takes the copy that came first, and to replace a row by its like gives it a new
time, though nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.delta import Delta, beside
from headwater.state.consolidation import consolidate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.state.arrangement import Arrangement

TIME = pa.timestamp("us", tz="UTC")
# No name that a user can give has this in it.
_HIDDEN = "\0"


@dataclass(frozen=True)
class Lifetime:
    """Rows live for `ttl` microseconds from the time in column `event_time`, or (None) from when they were inserted."""

    ttl: int
    event_time: int | None = None


def times_of(table: str) -> str:
    """The name of what keeps the times of a table's rows."""
    return hidden(f"times of {table}")


def hidden(name: str) -> str:
    """The name of a table that users do not know of."""
    return f"{name}{_HIDDEN}"


def is_hidden(name: str) -> bool:
    """Whether a table is none that users know of."""
    return name.endswith(_HIDDEN)


def stamped(known: Delta, now: int) -> Delta:
    """Times of rows that are inserted now, of which the columns are given by which they are known."""
    times = pa.array(np.full(len(known), now, np.int64)).cast(TIME)
    return Delta(beside([*known.rows.columns, times], len(known)), known.weights)


def withdrawn(times: Arrangement, known: Delta) -> Delta:
    """The change of the times when so many copies of rows go: those that came first."""
    known = consolidate(known)
    every = tuple(range(known.rows.num_columns))
    found = times.lookup(known.rows, every).consolidated()
    stamps = numbers_of(found.rows.column(len(every)))
    order = np.lexsort((stamps, found.probe))
    probe, weights = found.probe[order], found.weights[order]
    before = np.cumsum(weights) - weights
    starts = np.flatnonzero(np.diff(probe, prepend=-1))
    before -= np.repeat(before[starts], np.diff(starts, append=len(probe)))
    gone = np.clip(known.weights[probe] - before, 0, weights)
    taken = gone.nonzero()[0]
    return Delta(found.rows.take(pa.array(order[taken])), -gone[taken])


def numbers_of(times: pa.Array) -> NDArray[np.int64]:
    """Times as microseconds since 1970; 0 where there is none."""
    found = times.cast(pa.int64())
    return np.asarray((found.fill_null(0) if found.null_count else found).to_numpy())
