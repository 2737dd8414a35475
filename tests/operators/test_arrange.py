"""Arrange: holds what its input holds, finds rows by their key, and hands the delta on as it is."""

from __future__ import annotations

import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, TEXTS, Driven, Row, bag, delta_of, key, rows_of, run, scripted, scripts
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.arrange import Arrange

TYPES = (pa.float64(), pa.int64(), pa.string())
ROWS = st.tuples(FLOATS, INTEGERS, TEXTS)


@scripted
@given(scripts(ROWS), st.sampled_from([(), (0,), (2, 0), (0, 1, 2)]), st.lists(ROWS, min_size=1, max_size=4))
def test_holds_the_input_and_finds_rows_by_key(script: list, by: tuple[int, ...], asked: list[Row]) -> None:
    driven = run(Arrange(TYPES, by), [TYPES], script, lambda inputs: inputs[0])
    arrangement = driven.state[0]
    (present,) = driven.present
    contents = arrangement.contents()
    assert bag([row for row, n in zip(rows_of(contents.rows), contents.weights, strict=True) for _ in range(n)]) == bag(present)

    matches = arrangement.lookup(delta_of([(row, 1) for row in asked], TYPES).rows, by).consolidated()
    found = zip(matches.probe.tolist(), rows_of(matches.rows), matches.weights.tolist(), strict=True)
    expected = [
        (probe, row)
        for probe, wanted in enumerate(asked)
        for row in present
        if [key(row[i]) for i in by] == [key(wanted[i]) for i in by]
    ]
    assert bag([(probe, *row) for probe, row, n in found for _ in range(n)]) == bag([(probe, *row) for probe, row in expected])


def test_rows_of_other_types_are_refused_and_change_nothing() -> None:
    driven = Driven(Arrange(TYPES, (0,)), [TYPES])
    driven.step([delta_of([((1.0, 1, "a"), 1)], TYPES)])
    with pytest.raises(TypeError, match="were due"):
        driven.operator.step(
            driven.state, [type(driven.taken[0].inputs[0])(delta_of([(("x", 1), 1)], (pa.string(), pa.int64())))]
        )
    driven.step([delta_of([((1.0, 1, "a"), -1)], TYPES)])
    assert not len(driven.state[0].contents())
