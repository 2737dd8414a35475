"""Sums that are made in several places and then absorbed do what a step does: for every function that merges."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from edit_scripts import KEYS, Edit, Row, cell, delta_of, rows_of, scripted, scripts, weighed
from hypothesis import given
from hypothesis import strategies as st

from headwater.delta import Delta
from headwater.errors import EvaluationFailed
from headwater.operators.accumulators import accumulator
from headwater.operators.accumulators.comoments import FORMULAS as COMOMENTS
from headwater.operators.accumulators.moments import FORMULAS as MOMENTS
from headwater.operators.aggregate import Aggregate, Extreme, Measure
from headwater.operators.operator import Input

if TYPE_CHECKING:
    from headwater.operators.operator import State

DOUBLES = st.sampled_from([None, 0.0, -0.0, 1.5, -1e16, 1e16, 5e-324, 1e300, float("nan"), float("inf"), float("-inf")])
# The keys are the first two columns.
TYPES = (
    pa.float64(),
    pa.int32(),
    pa.int64(),
    pa.float64(),
    pa.float64(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 4),
    pa.float32(),
    pa.int16(),
    pa.duration("us"),
    pa.bool_(),
)
ROWS = st.tuples(
    st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
    KEYS,
    st.none() | st.integers(-(2**62), 2**62),
    DOUBLES,
    DOUBLES,
    st.none() | st.decimals(-(10**8) + 1, 10**8 - 1, places=2),
    st.sampled_from([None, Decimal("0.0001"), Decimal(10) ** 33, -(Decimal(10) ** 33)]),
    st.sampled_from([None, 0.5, -0.0, float("nan")]),
    st.none() | st.integers(-(2**15), 2**15 - 1),
    st.none() | st.timedeltas(dt.timedelta(days=-999), dt.timedelta(days=999)),
    st.sampled_from([None, True, False]),
)


def measure(name: str, *columns: int, condition: int | None = None) -> Measure:
    found = accumulator(name, [TYPES[i] for i in columns])
    assert found is not None, name
    return Measure(found, columns, condition)


MEASURES = {
    "counts": [measure("Count"), measure("Count", 2, 3), measure("Count", condition=10)],
    "sums": [measure("Sum", i) for i in (2, 3, 5, 6, 7, 8, 9)],
    "averages": [measure("Average", i) for i in (2, 3, 5, 6, 7, 8, 9)],
    "moments": [measure(name, 3) for name in MOMENTS],
    "comoments": [measure(name, 3, 4) for name in COMOMENTS],
    "bits": [measure("BitXorAgg", 2), measure("BitXorAgg", 8, condition=10)],
    "mixed": [measure("Sum", 3, condition=10), measure("Count"), measure("Average", 5), measure("Sum", 7)],
    "none": [],
}


@st.composite
def partings(draw: st.DrawFn) -> tuple[int, int]:
    """Into how many parts a delta falls, and how they are shuffled."""
    return draw(st.integers(1, 4)), draw(st.integers(0, 99))


def parted(delta: Delta, parting: tuple[int, int]) -> list[Delta]:
    count, seed = parting
    order = np.random.default_rng(seed).permutation(len(delta))
    bounds = [len(delta) * i // count for i in range(count + 1)]
    return [delta.take(order[a:b]) for a, b in pairwise(bounds) if a < b]


def listed(state: State) -> list[list[str]]:
    """What is in the arrangements, in an order that does not depend on how it came there."""
    found = [arrangement.contents() for arrangement in state]
    rows = ([(tuple(map(cell, row)), w) for row, w in zip(rows_of(c.rows), c.weights.tolist(), strict=True)] for c in found)
    return [sorted(map(repr, part)) for part in rows]


@pytest.mark.parametrize("name", MEASURES)
@scripted
@given(script=scripts(ROWS), keys=st.sampled_from([0, 1, 2]), parting=partings())
def test_parts_are_as_good_as_the_whole(name: str, script: list[tuple[Edit]], keys: int, parting: tuple[int, int]) -> None:
    functions = tuple(MEASURES[name])
    if not functions and not keys:
        return
    operator = Aggregate(TYPES, keys, functions)
    assert operator.combines
    state, _ = operator.start()
    present: list[Row] = []
    for (edit,) in script:
        delta = delta_of(edit.changes(present), TYPES)
        if not len(delta):
            continue
        try:
            expected, change = operator.step(state, [Input(delta)])
        except EvaluationFailed:
            with pytest.raises(EvaluationFailed):
                operator.step_of_sums(state, Delta.concat([operator.sums([part]) for part in parted(delta, parting)]))
            return
        found, found_change = operator.step_of_sums(
            state, Delta.concat([operator.sums([part]) for part in parted(delta, parting)])
        )
        assert weighed(found_change) == weighed(change)
        assert listed(found) == listed(expected)
        state = found


def test_what_cannot_be_combined() -> None:
    assert not Aggregate(TYPES, 1, (Extreme(2, greatest=True, type=TYPES[2]),)).combines
    assert not Aggregate(TYPES, 1, (Measure(measure("Count", 2).accumulator, (2,), None, distinct=True),)).combines
