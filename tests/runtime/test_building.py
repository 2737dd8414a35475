"""Views built beside commits: whatever is committed while a view is built, it holds what the tables say, then and later.

The commits come from another thread, in the middle of the build, and the build waits for them: so they must not wait for the
build. The naive twin joins the tables from scratch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import Row, arranged, bag, batch, catalog, kept, table, view

from headwater.operators.join import Join, JoinKey
from headwater.operators.linear import Union
from headwater.runtime import epochs as lines
from headwater.runtime.epochs import Epochs
from headwater.runtime.transactions import Staging

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.delta import Delta
    from headwater.operators.operator import Input, State
    from headwater.runtime.catalog import TableEntry, ViewEntry

COLUMNS = {"k": pa.int64(), "x": pa.int64()}
KINDS = tuple(COLUMNS.values())
ROWS = st.tuples(st.integers(0, 3), st.integers(0, 3))
EDIT = st.tuples(st.sampled_from("rs"), st.lists(ROWS, max_size=4), st.lists(st.integers(0, 20), max_size=3))
EDITS = st.lists(EDIT, max_size=4)


@dataclass(frozen=True)
class Interrupted(Join):
    """A join during which something else happens."""

    meanwhile: Callable[[], None] = field(default=lambda: None)

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        self.meanwhile()
        return super().step(state, inputs)


class Line:
    """Two tables on a line of epochs, with what they should hold."""

    def __init__(self) -> None:
        self.epochs = Epochs()
        self.tables = {name: table(name, COLUMNS) for name in "rs"}
        self.rows: dict[str, list[Row]] = {"r": [], "s": []}
        self.views: list[ViewEntry] = []
        self.define()

    def define(self, *views: ViewEntry, rebuilt: Sequence[str] = ()) -> None:
        self.epochs.define(catalog(*self.tables.values(), *views), rebuilt)
        self.views = list(views)

    def edit(self, name: str, inserted: list[Row], deleted: list[int]) -> None:
        entry, present = self.tables[name], self.rows[name]
        gone = [present.pop(place % len(present)) for place in deleted if present]
        staging = Staging(self.epochs.now)
        staging.delete(entry, batch(gone, KINDS))
        staging.insert(entry, batch(inserted, KINDS))
        present += inserted
        self.epochs.commit(*staging.net())

    def beside(self, edits: list[Any]) -> None:
        """Commits in another thread, and waits for it."""
        thread = Thread(target=lambda: [self.edit(*edit) for edit in edits])
        thread.start()
        thread.join()

    def interrupt(self, pending: list[Any]) -> None:
        """Commits the next edits, unless this is the end of the build, for which writers wait."""
        if pending and not self.epochs.writing._is_owned():  # type: ignore[attr-defined]
            self.beside(pending.pop())

    def joined(self) -> Counter[Row]:
        return Counter((*left, *right) for left in self.rows["r"] for right in self.rows["s"] if left[0] == right[0])

    def check(self, name: str, expected: Counter[Row]) -> None:
        assert kept(self.epochs, name) == expected
        replayed: Counter[Row] = Counter()
        for _, delta in self.epochs.history.since(name, 0):
            replayed.update(bag(delta))
        assert Counter({row: weight for row, weight in replayed.items() if weight}) == expected


def join(tables: dict[str, TableEntry], meanwhile: Callable[[], None], name: str = "v") -> ViewEntry:
    sides = [arranged(tables[side].source, (0,)) for side in "rs"]
    return view(name, Interrupted(KINDS * 2, JoinKey((0,), (0,), (False,)), 2, 2, meanwhile=meanwhile), sides)


@pytest.mark.parametrize("few", [0, 2, 1000])
@settings(deadline=None, max_examples=50)
@given(before=EDITS, during=st.lists(EDITS, max_size=3), after=EDITS)
def test_a_view_is_exact_whatever_is_committed_while_it_is_built(few: int, before: Any, during: Any, after: Any) -> None:
    line = Line()
    for edit in before:
        line.edit(*edit)
    pending = list(during)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_FEW_ROWS", few)
        line.define(join(line.tables, lambda: line.interrupt(pending)), rebuilt=["v"])
    line.check("v", line.joined())
    pending.clear()
    for edit in after:
        line.edit(*edit)
        line.check("v", line.joined())


@settings(deadline=None, max_examples=50)
@given(before=EDITS, during=EDITS, after=EDITS)
def test_a_view_is_replaced_while_commits_go_on(before: Any, during: Any, after: Any) -> None:
    """The old view holds the union, the new one the join; the history tells the way from one to the other."""
    line = Line()
    both = Union(KINDS, 2)
    line.define(view("v", both, [entry.source for entry in line.tables.values()]), rebuilt=["v"])
    wide = view("w", Union(KINDS * 2, 1), [join(line.tables, lambda: None).output])
    line.define(*line.views, wide, rebuilt=["w"])
    for edit in before:
        line.edit(*edit)
    pending = [during]
    again = join(line.tables, lambda: line.interrupt(pending), "w")
    line.define(line.views[0], again, rebuilt=["w"])
    pending.clear()
    for edit in after:
        line.edit(*edit)
    line.check("w", line.joined())
    line.check("v", Counter(line.rows["r"]) + Counter(line.rows["s"]))


def test_a_build_that_fails_changes_nothing_and_hinders_nobody() -> None:
    line = Line()
    line.edit("r", [(1, 1)], [])
    line.edit("s", [(1, 2)], [])
    line.define(join(line.tables, lambda: None), rebuilt=["v"])

    def fail() -> None:
        line.beside([("r", [(1, 5)], [])])
        raise RuntimeError("no")

    before = line.epochs.now
    with pytest.raises(RuntimeError, match="no"):
        line.epochs.define(catalog(*line.tables.values(), *line.views, join(line.tables, fail, "w")), ["w"])
    assert line.epochs.now.catalog is before.catalog
    assert line.epochs.now.epoch == before.epoch + 1
    assert not line.epochs._recordings
    line.edit("s", [(1, 3)], [])
    line.check("v", line.joined())


def test_what_is_there_already_is_not_built_again() -> None:
    line = Line()
    line.edit("r", [(1, 1)], [])
    line.edit("s", [(1, 2)], [])
    ran: list[int] = []
    first = join(line.tables, lambda: ran.append(line.epochs.now.epoch))
    line.define(first, rebuilt=["v"])
    ran.clear()
    second = view("w", Union(KINDS * 2, 1), [first.contents])
    line.define(first, second, rebuilt=["w"])
    assert not ran, "its rows are in the arrangement of the first view"
    line.edit("r", [(1, 7)], [])
    assert len(ran) == 1
    line.check("w", line.joined())
