"""What compiled rounds came to: how groups differ from what the arrangements have of them, as deltas.

    derivations   all that are more or fewer than before, marks among them
    rows          the marks alone: rows that are believed or dropped, with their ranks

Columns are written where Arrow takes them as they are: there may be tens of millions of derivations, and they are copied once.
"""

# ruff: noqa: PLR0913, PLR0917  (a compiled loop takes its arrays one by one)

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compiled import compiled
from headwater.delta import Delta
from headwater.operators.groups import (
    BEFORE,
    COLUMNS,
    ENTRIES,
    GROUPS,
    HEAD,
    KEY,
    KEYS,
    NEXT,
    NULLS,
    ORDER,
    RELATION,
    ROUND,
    VALUE,
    WEIGHT,
    Known,
)
from headwater.state import layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.operators.fixpoint import Fixpoint

    Int64s = NDArray[np.int64]

# Of a relation: derivations that changed, marks among them, and the columns in which a group has NULL.
_DERIVATIONS, _MARKS, _MISSING = range(3)


def outcome(fixpoint: Fixpoint, known: Known, relations: Int64s) -> tuple[list[Delta | None], list[Delta | None]]:
    """The changes of derivations of each relation, and of its rows."""
    counts = _counts(known, len(relations))
    numbers = range(len(relations))
    return (
        [_delta(fixpoint, known, relations, i, counts[i], marks=False) for i in numbers],
        [_delta(fixpoint, known, relations, i, counts[i], marks=True) for i in numbers],
    )


def row_of(fixpoint: Fixpoint, known: Known, relations: Int64s, group: int, value: int) -> tuple[int, tuple[object, ...]]:
    """A relation, and the row of it that a group is with a value."""
    groups = known.groups[group : group + 1].copy()
    groups[0, HEAD] = 0
    alone = Known(known.slots, groups, np.array([[value, 0, 1, 0, -1]]), known.sizes.copy())
    alone.sizes[GROUPS] = alone.sizes[ENTRIES] = 1
    relation = int(groups[0, RELATION])
    found = outcome(fixpoint, alone, relations)[0][relation]
    assert found is not None
    return relation, tuple(found.rows.to_pylist()[0].values())[:-1]


def _delta(fixpoint: Fixpoint, known: Known, relations: Int64s, relation: int, counts: Int64s, *, marks: bool) -> Delta | None:
    """Changes of one relation as rows with rounds, or with ranks."""
    count = int(counts[_MARKS if marks else _DERIVATIONS])
    if not count:
        return None
    *values, rounds, weights = lines = np.empty((int(relations[relation, COLUMNS]) + 2, count), np.int64)
    nulls = np.empty(count if counts[_MISSING] else 0, np.int64)
    _write(known, relation, relations, marks, lines, nulls)
    columns = []
    for i, kind in enumerate(fixpoint.relations[relation].types):
        made = layout.kind_of(kind)
        assert made is not None
        missing = (nulls >> i) & 1
        narrow = values[i].astype(made.empty(0).dtype, copy=False)
        columns.append(made.column(kind, narrow, missing.astype(bool) if missing.any() else None))
    rows = pa.RecordBatch.from_arrays([*columns, pa.array(rounds)], schema=fixpoint.schemas[relation])
    return Delta(rows, weights)


@compiled
def _counts(known: Known, relations: int) -> Int64s:
    counts = np.zeros((relations, 3), np.int64)
    for group in range(known.sizes[GROUPS]):
        mine = counts[known.groups[group, RELATION]]
        mine[_MISSING] |= known.groups[group, NULLS]
        at = known.groups[group, HEAD]
        while at >= 0:
            if known.entries[at, WEIGHT] != known.entries[at, BEFORE]:
                mine[_DERIVATIONS] += 1
                mine[_MARKS] += known.entries[at, ROUND] < 0
            at = known.entries[at, NEXT]
    return counts


@compiled
def _write(known: Known, relation: int, relations: Int64s, marks: bool, lines: Int64s, nulls: Int64s) -> None:  # noqa: FBT001
    """Fills columns, the last two with the rounds and the weights; NULL bits where there is room for them."""
    _, groups, entries, sizes = known
    keys, columns, order = relations[relation, KEYS], relations[relation, COLUMNS], relations[relation, ORDER]
    made = 0
    for group in range(sizes[GROUPS]):
        at = groups[group, HEAD] if groups[group, RELATION] == relation else -1
        while at >= 0:
            weight, due = entries[at, WEIGHT] - entries[at, BEFORE], entries[at, ROUND]
            if weight != 0 and (due < 0 or not marks):
                for c in range(keys):
                    lines[c, made] = groups[group, KEY + c]
                if columns > keys:
                    lines[keys, made] = entries[at, VALUE] if order > 0 else ~entries[at, VALUE]
                lines[columns, made], lines[columns + 1, made] = -due if marks else due, weight
                if nulls.size:
                    nulls[made] = groups[group, NULLS]
                made += 1
            at = entries[at, NEXT]
