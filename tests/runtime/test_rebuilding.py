"""Rebuilds: whichever way an epoch takes, views and their history are the same; and the way is chosen by what was measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import EDITS, KINDS, Line, Row, arranged, batch, catalog, table, view

from headwater.delta import Delta
from headwater.operators.accumulators import accumulator
from headwater.operators.aggregate import Aggregate, Measure
from headwater.operators.join import Join, JoinKey
from headwater.operators.linear import Union
from headwater.runtime import rebuilding
from headwater.runtime.epochs import Epochs
from headwater.runtime.rebuilding import Costs
from headwater.runtime.streams import Work

CHOICES = st.lists(st.booleans(), min_size=12, max_size=12)


def defined() -> Line:
    """A join, a view on its rows, and one of a single table that the join does not read alone."""
    line = Line()
    sides = [arranged(line.tables[side].source, (0,)) for side in "rs"]
    first = view("join", Join(KINDS * 2, JoinKey((0,), (0,), (False,)), 2, 2), sides)
    count = accumulator("Count", [pa.int64()])
    assert count is not None
    second = view("sizes", Aggregate(KINDS * 2, 1, (Measure(count, (1,)),)), [first.output])
    line.define(first, second, view("all", Union(KINDS, 1), [line.tables["r"].source]), rebuilt=["join", "sizes", "all"])
    return line


def check(line: Line) -> None:
    joined = line.joined()
    line.check("join", joined)
    line.check("all", Counter(line.rows["r"]))
    sizes: Counter[Row] = Counter()
    for row, weight in joined.items():
        sizes[row[0]] += weight
    line.check("sizes", Counter(dict.fromkeys(sizes.items(), 1)))


@settings(deadline=None, max_examples=60)
@given(edits=st.lists(EDITS, max_size=3).map(lambda parts: [edit for part in parts for edit in part]), choices=CHOICES)
def test_epochs_by_delta_and_by_rebuild_give_the_same(edits: Any, choices: list[bool]) -> None:
    line = defined()
    with pytest.MonkeyPatch.context() as patch:
        for edit, choice in zip(edits, choices, strict=False):
            patch.setattr(Costs, "favour_rebuild", lambda *_, choice=choice: choice)
            line.edit(*edit)
            check(line)


def loaded(refresh: str = "auto") -> tuple[Epochs, Any]:
    """A table of 20 000 rows with a view, each built in known times."""
    entry = table("t", {"k": pa.int64(), "x": pa.int64()})
    epochs = Epochs()
    shown = replace(view("v", Union(KINDS, 1), [entry.source]), refresh=refresh)
    epochs.define(catalog(entry))
    epochs.commit({"t": Delta.inserting(numbers(20_000))}, {})
    epochs.define(catalog(entry, shown), ["v"])
    work = {step: Work(20_000, 20_000, 1.0, rebuilt=True) for step in (shown.output, shown.contents)}
    epochs._costs.built(work, epochs.now)
    return epochs, entry


def numbers(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(np.arange(count))] * 2, schema=batch([], KINDS).schema)


@pytest.mark.parametrize(("refresh", "expected"), [("auto", True), ("incremental", False)])
def test_a_table_that_is_emptied_is_not_unravelled_row_by_row(refresh: str, *, expected: bool) -> None:
    epochs, entry = loaded(refresh)
    some, most = Delta(numbers(5_000), -np.ones(5_000, np.int64)), Delta(numbers(18_000), -np.ones(18_000, np.int64))
    assert not epochs._costs.favour_rebuild(epochs.now, {entry.source: some})
    assert epochs._costs.favour_rebuild(epochs.now, {entry.source: most}) == expected
    epochs.commit({"t": most}, {})
    assert epochs.work[epochs.now.views["v"].contents].rebuilt == expected
    assert epochs.now.kept(epochs.now.views["v"]).total == 2_000
    (change,) = epochs.changes("v", epochs.now.epoch - 1)
    assert change.delta.weights.tolist() == [-1] * 18_000


def test_what_deltas_cost_is_learnt_from_epochs() -> None:
    epochs, entry = loaded()
    delta = {entry.source: Delta.inserting(numbers(2_000))}
    shown = epochs.now.views["v"]
    costs = epochs._costs
    assert not costs.favour_rebuild(epochs.now, delta)
    costs.changed({shown.output: Work(2_000, 40_000, 8.0)}, delta)
    assert costs.favour_rebuild(epochs.now, delta), "each row takes four milliseconds, to build them all some two seconds"
    for _ in range(10):
        costs.changed({shown.output: Work(2_000, 40_000, 0.2)}, delta)
    assert not costs.favour_rebuild(epochs.now, delta)
    few = {entry.source: Delta.inserting(numbers(rebuilding._MANY - 1))}
    costs.changed({shown.output: Work(999, 40_000, 100.0)}, few)
    assert not costs.favour_rebuild(epochs.now, few), "so few rows are not worth a thought"
    costs.forget(catalog(entry))
    assert shown.output not in costs._built
    assert shown.output not in costs._changed[frozenset({entry.source})]
