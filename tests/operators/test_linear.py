"""Linear steps: a function of each row by itself gives the delta of the answer from the delta of the input; so does a union."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, TEXTS, Driven, Edit, Row, bag, delta_of, rows_of, run, scripted, scripts
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EvaluationFailed
from headwater.evaluation.duckdb_sql import Connection
from headwater.evaluation.stages import Columns, Explode, NotNull, OnSpark, Replicate, Sequence, Several, Sql, Stage
from headwater.operators.linear import Linear, Union
from headwater.operators.values import Source, Values

if TYPE_CHECKING:
    from collections.abc import Callable

LISTS = pa.list_(pa.int64())
MAPS = pa.map_(pa.string(), pa.int64())
TYPES = (pa.int64(), pa.float64(), LISTS, MAPS)
ROWS = st.tuples(
    INTEGERS,
    FLOATS,
    st.none() | st.lists(INTEGERS, max_size=3),
    st.none() | st.dictionaries(st.sampled_from("ab"), INTEGERS, max_size=2).map(lambda entries: list(entries.items())),
)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row function as Spark would evaluate it: drops odd numbers, doubles the others."""
    rows = [(2 * row[0],) for row in rows_of(batch) if row[0] is not None and row[0] % 2 == 0]
    return delta_of([(row, 1) for row in rows], (pa.int64(),)).rows


@dataclass(frozen=True)
class Case:
    """A stage and the same as a function from a row to rows."""

    stage: Stage
    types: tuple[pa.DataType, ...]
    function: Callable[[Row], list[Row]]


def elements(row: Row) -> list[Any]:
    return row[2] or []


never = OnSpark(doubled, (pa.int64(),))
pick = Columns((1, None, 0), (pa.float64(), pa.string(), pa.int64()))
with_list = Columns((0, 2), (pa.int64(), LISTS))
with_map = Columns((0, 3), (pa.int64(), MAPS))
CASES = {
    "columns": Case(pick, pick.types, lambda row: [(row[1], None, row[0])]),
    "no columns": Case(Columns((), ()), (), lambda row: [row[:0]]),
    "not null": Case(NotNull((0, 1)), TYPES, lambda row: [row] if None not in row[:2] else []),
    "spark": Case(never, (pa.int64(),), lambda row: [(2 * row[0],)] if row[0] is not None and row[0] % 2 == 0 else []),
    "sequence": Case(
        Sequence((NotNull((0,)), Columns((0,), (pa.int64(),)))),
        (pa.int64(),),
        lambda row: [(row[0],)] if row[0] is not None else [],
    ),
    "several": Case(
        Several((Columns((0, None), (pa.int64(), pa.float64())), Columns((None, 1), (pa.int64(), pa.float64())))),
        (pa.int64(), pa.float64()),
        lambda row: [(row[0], None), (None, row[1])],
    ),
    "explode": Case(
        Sequence((with_list, Explode((0,), position=False, outer=False, fields=False, types=(pa.int64(), pa.int64())))),
        (pa.int64(), pa.int64()),
        lambda row: [(row[0], part) for part in elements(row)],
    ),
    "posexplode outer": Case(
        Sequence(
            (with_list, Explode((0,), position=True, outer=True, fields=False, types=(pa.int64(), pa.int32(), pa.int64())))
        ),
        (pa.int64(), pa.int32(), pa.int64()),
        lambda row: [(row[0], i, part) for i, part in enumerate(elements(row))] or [(row[0], None, None)],
    ),
    "explode map": Case(
        Sequence(
            (with_map, Explode((0,), position=False, outer=False, fields=False, types=(pa.int64(), pa.string(), pa.int64())))
        ),
        (pa.int64(), pa.string(), pa.int64()),
        lambda row: [(row[0], name, value) for name, value in row[3] or []],
    ),
    "replicate": Case(
        Sequence((NotNull((0,)), Replicate(0, (1,)))),
        (pa.float64(),),
        lambda row: [(row[1],)] * (row[0] or 0),
    ),
}


@pytest.fixture(scope="module")
def connection() -> Connection:
    return Connection("UTC")


@pytest.mark.parametrize("name", CASES)
@scripted
@given(data=st.data())
def test_each_row_by_itself(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    rows = ROWS if name != "replicate" else st.tuples(st.none() | st.integers(0, 3), FLOATS, st.none(), st.none())
    script = data.draw(scripts(rows))
    run(
        Linear(case.types, case.stage),
        [TYPES],
        script,
        lambda inputs: [made for row in inputs[0] for made in case.function(row)],
    )


@scripted
@given(script=scripts(ROWS), divisor=st.sampled_from(["1", "(c0 - c0)"]))
def test_a_statement_or_the_other_way_if_it_fails(connection: Connection, script: list, divisor: str) -> None:
    """Where DuckDB raises, on a number divided by zero, the answer comes from the other stage."""
    checked = f"CASE WHEN {divisor} = 0 THEN error('no') ELSE 2 * c0 END"
    statement = f"SELECT {checked} AS c0, w FROM delta WHERE c0 % 2 = 0"
    run(
        Linear((pa.int64(),), Sql(connection, statement, (pa.int64(),), never)),
        [TYPES],
        script,
        lambda inputs: [made for row in inputs[0] for made in CASES["spark"].function(row)],
    )


@scripted
@given(scripts(st.tuples(INTEGERS, TEXTS), st.tuples(INTEGERS, TEXTS), st.tuples(INTEGERS, TEXTS)))
def test_union_of_three_of_which_some_change(script: list) -> None:
    types = (pa.int64(), pa.string())
    narrower = (pa.int32(), pa.string())
    run(Union(types, 3), [types, narrower, types], script, lambda inputs: [row for rows in inputs for row in rows])


def test_values_are_there_from_the_start_and_sources_hand_on_what_they_get() -> None:
    rows = delta_of([((1,), 1), ((1,), 1)], (pa.int64(),)).rows
    assert Driven(Values((pa.int64(),), rows), []).output == bag([(1,), (1,)])
    source = Driven(Source((pa.int64(),), "t"), [])
    assert not source.output


def test_a_function_that_raises_changes_nothing() -> None:
    def picky(batch: pa.RecordBatch) -> pa.RecordBatch:
        if any(row[0] == 0 for row in rows_of(batch)):
            raise EvaluationFailed("[DIVIDE_BY_ZERO]")
        return batch.select([0])

    driven = Driven(Linear((pa.int64(),), OnSpark(picky, (pa.int64(),))), [TYPES])
    driven.apply((Edit([(1, None, None, None)]),))
    with pytest.raises(EvaluationFailed, match="DIVIDE_BY_ZERO"):
        driven.apply((Edit([(2, None, None, None), (0, None, None, None)], [0]),))
    assert driven.output == bag([(1,)])
    driven.apply((Edit([(2, None, None, None)], [0]),))
    assert driven.output == bag([(2,)])
