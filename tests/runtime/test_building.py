"""Views built beside commits: whatever is committed while a view is built, it holds what the tables say, then and later.

The commits come from another thread, in the middle of the build, and the build waits for them: so they must not wait for the
build. The naive twin joins the tables from scratch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import EDITS, KINDS, Line, arranged, catalog, view

from headwater.compiler.dataflow import Step
from headwater.evaluation.stages import Columns
from headwater.operators.accumulators import accumulator
from headwater.operators.aggregate import Aggregate, Measure
from headwater.operators.join import Join, JoinKey
from headwater.operators.linear import Linear, Union
from headwater.runtime import driver
from headwater.runtime import epochs as lines
from headwater.state import slicing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.delta import Delta
    from headwater.operators.operator import Input
    from headwater.runtime.catalog import TableEntry, ViewEntry


@dataclass(frozen=True)
class Interrupted(Join):
    """A join during which something else happens."""

    meanwhile: Callable[[], None] = field(default=lambda: None)

    def slices(self, inputs: Sequence[Input]) -> Iterator[Delta]:
        self.meanwhile()
        return super().slices(inputs)


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


@pytest.mark.parametrize("slice_", [1, 3, 1 << 18])
@settings(deadline=None, max_examples=50)
@given(before=EDITS, after=EDITS)
def test_a_sum_over_a_join_is_built_in_slices(slice_: int, before: Any, after: Any) -> None:
    line = Line()
    for edit in before:
        line.edit(*edit)
    counted = accumulator("Count", [])
    assert counted is not None
    sides = [arranged(line.tables[side].source, (0,)) for side in "rs"]
    pairs = Step(Join(KINDS * 2, JoinKey((0,), (0,), (False,)), 2, 2), tuple(sides), "Join")
    picked = Step(Linear(KINDS, Columns((1, 3), KINDS)), (pairs,), "Project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_SLICE", slice_)
        patch.setattr(driver, "_ROWS_A_GROUP", 0)
        # Commits, too, then sum up the pairs of a join part by part.
        patch.setattr(slicing, "PAIRS", slice_)
        line.define(view("v", Aggregate(KINDS, 2, (Measure(counted, ()),)), [picked]), rebuilt=["v"])
        line.check("v", counts(line))
        for edit in after:
            line.edit(*edit)
            line.check("v", counts(line))


def counts(line: Line) -> Counter[Any]:
    """The twin: how many pairs there are for each pair of values."""
    found = Counter((row[1], row[3]) for row in line.joined().elements())
    return Counter((*pair, count) for pair, count in found.items())


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
