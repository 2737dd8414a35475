"""Scalar: one row always; NULLs for none, and an error, which changes nothing, for two."""

from __future__ import annotations

import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, Driven, Row, bag, delta_of, scripted
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.operators.scalar import Scalar

pytestmark = pytest.mark.usefixtures("slices")

TYPES = (pa.float64(), pa.int64())
ROWS = st.tuples(FLOATS, INTEGERS)


@scripted
@given(st.lists(st.lists(ROWS, max_size=2), max_size=8))
def test_holds_the_one_row_there_is(contents: list[list[Row]]) -> None:
    driven = Driven(Scalar(TYPES), [TYPES])
    assert driven.output == bag([(None, None)])
    held: list[Row] = []
    for wanted in contents:
        delta = delta_of([(row, -1) for row in held] + [(row, 1) for row in wanted], TYPES)
        if not len(delta):
            continue
        if len(wanted) > 1:
            before = driven.output
            with pytest.raises(EvaluationFailed, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
                driven.step([delta])
            assert driven.output == before
            continue
        driven.step([delta])
        held = wanted
        assert driven.output == bag(held or [(None, None)])
    driven.repeat()
