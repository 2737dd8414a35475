"""Transactions against a naive twin: a list of rows that is searched from end to end.

What the staging gives — the net delta, and the new state if it has one — must be what the twin has, and it refuses what the
twin refuses; a change that is refused leaves what came before.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import Row, bag, batch, catalog, cell, kept, table

from headwater.errors import DuplicateKey, HeadwaterError, MissingRow, NullKey
from headwater.runtime.epochs import Epochs
from headwater.runtime.transactions import Staging

COLUMNS = {"k": pa.int64(), "x": pa.float64(), "s": pa.string()}
KINDS = tuple(COLUMNS.values())

ROWS = st.tuples(st.integers(0, 5), st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]), st.sampled_from([None, "a", "ä"]))
CHANGES = st.tuples(
    st.sampled_from(["insert", "delete", "upsert", "replace"]),
    st.lists(ROWS, max_size=4),
    st.lists(st.integers(0, 20), max_size=4),
)
SCRIPTS = st.lists(st.lists(CHANGES, max_size=6), max_size=4)
KEYS = st.sampled_from([(0,), (0, 2), (1,), None])


class Twin:
    """The rows of a table, and what may be done with them."""

    def __init__(self, key: tuple[int, ...] | None, rows: list[Row]) -> None:
        self.key = key
        self.rows = list(rows)

    def of(self, row: Row) -> Row:
        assert self.key is not None
        return tuple(cell(row[i] + 0.0 if isinstance(row[i], float) else row[i]) for i in self.key)

    def insert(self, rows: list[Row]) -> type[HeadwaterError] | None:
        if self.key is not None:
            if any(row[i] is None for row in rows for i in self.key):
                return NullKey
            keys = Counter(map(self.of, [*self.rows, *rows]))
            if any(count > 1 for count in keys.values()):
                return DuplicateKey
        self.rows += rows
        return None

    def delete(self, rows: list[Row]) -> type[HeadwaterError] | None:
        left, gone = [tuple(map(cell, row)) for row in self.rows], [tuple(map(cell, row)) for row in rows]
        if Counter(gone) - Counter(left):
            return MissingRow
        for row in gone:
            place = left.index(row)
            del left[place]
            del self.rows[place]
        return None

    def upsert(self, rows: list[Row]) -> type[HeadwaterError] | None:
        assert self.key is not None
        error = Twin(self.key, []).insert(rows)
        if error is None:
            keys = set(map(self.of, rows))
            self.rows = [row for row in self.rows if self.of(row) not in keys] + rows
        return error


@settings(deadline=None, max_examples=300)
@given(key=KEYS, script=SCRIPTS)
def test_a_transaction_does_what_its_twin_does(key: tuple[int, ...] | None, script: list[list[Any]]) -> None:
    entry = table("t", COLUMNS, key)
    epochs = Epochs()
    epochs.define(catalog(entry))
    twin = Twin(key, [])
    for transaction in script:
        staging, before = Staging(epochs.now), Counter(tuple(map(cell, row)) for row in twin.rows)
        for kind, new, places in transaction:
            old = [twin.rows[place % len(twin.rows)] for place in places] if twin.rows else []
            twin = changed(staging, twin, kind, new, old)
            present = staging.content.content(entry.source)
            assert bag(present) == Counter(tuple(map(cell, row)) for row in twin.rows)
        after = Counter(tuple(map(cell, row)) for row in twin.rows)
        changes, advanced = staging.net()
        change = Counter(after)
        change.subtract(before)
        expected = Counter({row: weight for row, weight in change.items() if weight})
        assert (bag(changes["t"]) if changes else Counter()) == expected
        epochs.commit(changes, advanced)
        assert kept(epochs, "t") == after
        assert epochs.now.kept(entry).total == len(twin.rows)


def changed(staging: Staging, twin: Twin, kind: str, new: list[Row], old: list[Row]) -> Twin:
    """Changes both, or neither if it cannot be done."""
    then = Twin(twin.key, twin.rows)
    entry = staging._snapshot.tables["t"]
    rows, gone = batch(new, KINDS), batch(old if kind != "delete" else [*old, *new[:1]], KINDS)
    match kind:
        case "insert":
            error = then.insert(new)
        case "delete":
            error = then.delete([*old, *new[:1]])
        case "upsert" if twin.key is not None:
            error = then.upsert(new)
        case "upsert":
            return twin
        case _:
            error = then.delete(old) or then.insert(new)
    arguments = {"insert": (rows,), "delete": (gone,), "upsert": (rows,), "replace": (gone, rows)}[kind]
    if error is None:
        getattr(staging, kind)(entry, *arguments)
        return then
    with pytest.raises(error):
        getattr(staging, kind)(entry, *arguments)
    return twin


def test_the_way_into_the_state_is_taken_once() -> None:
    """A delete and an insert of other keys wait for the epoch; changes that must see each other are the new state."""
    entry = table("t", COLUMNS, (0,))
    epochs = Epochs()
    epochs.define(catalog(entry))
    first = Staging(epochs.now)
    first.insert(entry, batch([(1, 1.5, "a"), (2, None, "b")], KINDS))
    changes, advanced = first.net()
    assert not advanced
    epochs.commit(changes, advanced)
    second = Staging(epochs.now)
    second.delete(entry, batch([(1, 1.5, "a")], KINDS))
    second.insert(entry, batch([(3, 1.5, "a")], KINDS))
    changes, advanced = second.net()
    assert not advanced
    epochs.commit(changes, advanced)
    third = Staging(epochs.now)
    third.delete(entry, batch([(3, 1.5, "a")], KINDS))
    third.insert(entry, batch([(3, 2.5, "a")], KINDS))
    third.delete(entry, batch([(3, 2.5, "a")], KINDS))
    third.insert(entry, batch([(3, 1.5, "a")], KINDS))
    assert third.net() == ({}, {}), "it all cancels out"
    third.upsert(entry, batch([(2, 0.5, None)], KINDS))
    changes, advanced = third.net()
    assert bag(changes["t"]) == {(2, None, "b"): -1, (2, cell(0.5), None): 1}
    assert list(advanced) == [entry.contents]
    epochs.commit(changes, advanced)
    assert epochs.now.states[entry.contents] == advanced[entry.contents]
    assert kept(epochs, "t") == {(2, cell(0.5), None): 1, (3, cell(1.5), "a"): 1}
