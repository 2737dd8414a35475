"""Aggregate: against a dictionary of lists, with filters, distinct values, deletions, groups that empty and fill again."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from edit_scripts import FLOATS, INTEGERS, KEYS, TEXTS, Driven, Edit, Row, bag, delta_of, key, run, scripted, scripts, weighed
from hypothesis import given
from hypothesis import strategies as st

from headwater.delta import Delta
from headwater.errors import EvaluationFailed
from headwater.operators import aggregate as aggregates
from headwater.operators import extremes
from headwater.operators.accumulators import accumulator
from headwater.operators.aggregate import Aggregate, Extreme, Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.operators.operator import Input, State

pytestmark = pytest.mark.usefixtures("slices")

# Two columns to group by, then: a number, a float, a text, a filter.
TYPES = (pa.float64(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_())
ROWS = st.tuples(FLOATS, KEYS, INTEGERS, FLOATS, TEXTS, st.sampled_from([True, False, None]))
NUMBER, FLOAT, TEXT, FILTER = 2, 3, 4, 5


def measure(name: str, *columns: int, condition: int | None = None, distinct: bool = False) -> Measure:
    found = accumulator(name, [TYPES[i] for i in columns])
    assert found is not None
    return Measure(found, columns, condition, distinct)


def extreme(column: int, *, greatest: bool, condition: int | None = None) -> Extreme:
    return Extreme(column, greatest, TYPES[column], condition, counted=True)


def rank(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def float_sum(values: list[float]) -> float | None:
    """Correctly rounded; of what is not finite, as the processor adds it up."""
    if not values:
        return None
    strange = [value for value in values if not math.isfinite(value)]
    return sum(strange) if strange else math.fsum(values)


def total(values: list[Any]) -> Any:
    if any(isinstance(value, float) for value in values):
        return float_sum(values)
    return sum(values) if values else None


def naive(function: Measure | Extreme, rows: list[Row], name: str) -> Any:
    """The value of one function over the rows of one group."""
    if function.condition is not None:
        rows = [row for row in rows if row[function.condition]]
    if isinstance(function, Extreme):
        values = [row[function.column] for row in rows if row[function.column] is not None]
        return (max if function.greatest else min)(values, key=rank, default=None)
    inputs = [[row[i] for i in function.inputs] for row in rows]
    inputs = [values for values in inputs if None not in values]
    if function.distinct:
        inputs = list({tuple(map(key, values)): values for values in inputs}.values())
    if name == "Count":
        return len(inputs)
    values = [values[0] for values in inputs]
    return total(values) if name == "Sum" else (total(values) / len(values) if values else None)


Named = tuple[str, Measure | Extreme]


def grouped(keys: int, functions: list[Named]) -> Callable[[list[list[Row]]], list[Row]]:
    """The twin: one row per group, and one of no rows if there are no keys."""

    def twin(inputs: list[list[Row]]) -> list[Row]:
        groups: dict[Row, list[Row]] = {} if keys else {(): []}
        shown: dict[Row, Row] = {(): ()}
        for row in inputs[0]:
            at = tuple(key(value) for value in row[:keys])
            groups.setdefault(at, []).append(row)
            shown[at] = tuple(value + 0.0 if isinstance(value, float) else value for value in row[:keys])
        return [
            (*shown[at], *(zeroless(naive(function, rows, name)) for name, function in functions))
            for at, rows in groups.items()
        ]

    return twin


def zeroless(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


SUMS: list[Named] = [
    ("Count", measure("Count")),
    ("Count", measure("Count", NUMBER, FLOAT)),
    ("Sum", measure("Sum", NUMBER)),
    ("Sum", measure("Sum", FLOAT)),
    ("Average", measure("Average", NUMBER)),
    ("Sum", measure("Sum", NUMBER, condition=FILTER)),
]
DISTINCT: list[Named] = [
    ("Count", measure("Count", FLOAT, distinct=True)),
    ("Count", measure("Count", NUMBER, TEXT, condition=FILTER, distinct=True)),
    ("Sum", measure("Sum", NUMBER, distinct=True)),
    ("Count", measure("Count")),
]
EXTREMES: list[Named] = [
    ("", extreme(NUMBER, greatest=False)),
    ("", extreme(NUMBER, greatest=True)),
    ("", extreme(TEXT, greatest=False)),
    ("", extreme(TEXT, greatest=True, condition=FILTER)),
]
MIXED: list[Named] = [EXTREMES[1], SUMS[2], DISTINCT[0], EXTREMES[3], DISTINCT[1], SUMS[3]]


def aggregate(keys: int, functions: list[Named]) -> Aggregate:
    return Aggregate(TYPES, keys, tuple(function for _, function in functions))


@pytest.mark.parametrize("functions", [SUMS, []], ids=["sums", "none"])
@pytest.mark.parametrize("keys", [0, 1, 2])
@given(slices=st.lists(st.lists(ROWS, min_size=1, max_size=6), min_size=1, max_size=5))
def test_sums_take_in_slices(keys: int, functions: list[Named], slices: list[list[Row]]) -> None:
    operator = aggregate(keys, functions)
    assert operator.combines
    state, _ = operator.start()
    for rows in slices:
        state = operator.absorb(state, delta_of([(row, 1) for row in rows], TYPES))
    expected = grouped(keys, functions)([[row for rows in slices for row in rows]])
    assert weighed(operator.present(state)) == bag(expected)


def test_sums_in_between_may_be_too_large() -> None:
    operator = aggregate(0, [("Sum", measure("Sum", NUMBER))])
    state, _ = operator.start()
    for number in (2**63 - 1, 2**63 - 1, -(2**63), -(2**63) + 3):
        state = operator.absorb(state, delta_of([((0.0, 0, number, 0.0, "", True), 1)], TYPES))
    assert weighed(operator.present(state)) == bag([(1,)])


@pytest.mark.parametrize("functions", [DISTINCT, EXTREMES, MIXED], ids=["distinct", "extremes", "mixed"])
def test_other_functions_take_all_at_once(functions: list[Named]) -> None:
    assert not aggregate(1, functions).combines


@pytest.mark.parametrize(
    "functions", [SUMS, DISTINCT, EXTREMES, MIXED, []], ids=["sums", "distinct", "extremes", "mixed", "none"]
)
@scripted
@given(script=scripts(ROWS), keys=st.sampled_from([0, 1, 2]))
def test_a_dictionary_of_lists(functions: list[Named], script: list, keys: int) -> None:
    if functions or keys:
        run(aggregate(keys, functions), [TYPES], script, grouped(keys, functions))


@scripted
@given(scripts(ROWS), st.sampled_from([0, 1]), st.sampled_from([1, 3]))
def test_rows_are_summed_up_a_few_at_a_time(script: list, keys: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregates, "_PIECE", piece)
        run(aggregate(keys, MIXED), [TYPES], script, grouped(keys, MIXED))


@scripted
@given(st.lists(st.tuples(ROWS, st.integers(-3, 3)), max_size=8), st.sampled_from([0, 1]))
def test_weights_of_any_size_and_sign(changes: list[tuple[Row, int]], keys: int) -> None:
    """Rows that come several at a time, and then fewer; in one epoch and in two."""
    functions: list[Named] = [*SUMS, *DISTINCT[:2], EXTREMES[0]]
    present = [row for row, weight in changes for _ in range(4 + weight)]
    for epochs in ([[(row, 4) for row, _ in changes], changes], [[(row, 4) for row, _ in changes] + changes]):
        driven = Driven(aggregate(keys, functions), [TYPES])
        for epoch in epochs:
            if epoch:
                driven.step([delta_of(epoch, TYPES)])
        assert driven.output == bag(grouped(keys, functions)([present]))


@scripted
@given(scripts(ROWS), st.sampled_from([0, 1]))
def test_least_and_greatest_floats(script: list, keys: int) -> None:
    """NaN is the greatest. Of two zeros either may be the least, as in Spark: but one at a time, and none is left behind."""
    functions: list[Named] = [("", extreme(FLOAT, greatest=False)), ("", extreme(FLOAT, greatest=True))]
    driven = Driven(aggregate(keys, functions), [TYPES])
    for edit in script:
        driven.apply(edit)
        assert all(count > 0 for count in driven.output.values())
        shown = [tuple(_plain_zero(value) for value in row) for row in driven.output.elements()]
        assert sorted(shown, key=repr) == sorted(bag(grouped(keys, functions)(driven.present)).elements(), key=repr)
    driven.repeat()


def test_a_zero_that_is_left_is_the_one_shown() -> None:
    driven = Driven(aggregate(0, [("", extreme(FLOAT, greatest=False))]), [TYPES])
    for left, *changes in (
        (None, (0.0, 1), (-0.0, 1)),
        (-0.0, (0.0, -1)),
        (0.0, (0.0, 1), (-0.0, -1)),
        (-0.0, (0.0, -1), (-0.0, 1)),
    ):
        driven.step([delta_of([((None, None, None, value, None, None), weight) for value, weight in changes], TYPES)])
        assert left is None or driven.output == bag([(left,)])


@pytest.mark.parametrize("greatest", [True, False])
def test_a_group_is_looked_through_only_when_its_last_best_row_goes(
    greatest: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    rescanned = extremes._rescanned
    monkeypatch.setattr(extremes, "_rescanned", lambda *given: looks.append(1) or rescanned(*given))
    driven = Driven(aggregate(1, [("", extreme(NUMBER, greatest=greatest))]), [TYPES])

    def step(*changes: tuple[int, int]) -> tuple[int, Row]:
        looks.clear()
        driven.step([delta_of([((1.0, None, value, None, None, None), weight) for value, weight in changes], TYPES)])
        (row,) = driven.output.elements()
        return len(looks), row[1]

    sign = -1 if greatest else 1
    assert step((sign, 3), (2 * sign, 1)) == (0, sign)
    assert step((sign, -2)) == (0, sign)
    assert step((sign, -1), (3 * sign, 1)) == (1, 2 * sign)
    assert step((2 * sign, 1), (3 * sign, -1)) == (0, 2 * sign)
    assert step((2 * sign, -1)) == (0, 2 * sign), "that looking told how many there were"
    assert step((0, 1), (2 * sign, -1)) == (0, 0)


def _plain_zero(stand_in: Any) -> Any:
    return ("float", (0.0).hex()) if stand_in == ("float", (-0.0).hex()) else stand_in


def test_sums_of_doubles_do_not_drift() -> None:
    functions = [SUMS[3]]
    driven = Driven(aggregate(0, functions), [TYPES])

    def step(*changes: tuple[float, int]) -> list[Row]:
        driven.step([delta_of([((None, None, None, value, None, None), weight) for value, weight in changes], TYPES)])
        return list(driven.output.elements())

    step((0.1, 1), (0.2, 1))
    for strange in (1e16, -1e300, math.nan, math.inf, -math.inf, 5e-324):
        step((strange, 3))
        assert step((strange, -3)) == list(bag([(math.fsum([0.1, 0.2]),)]))


def test_a_group_that_empties_is_gone_and_comes_back_as_new() -> None:
    functions: list[Named] = [SUMS[2], EXTREMES[1], DISTINCT[0]]
    driven = Driven(aggregate(1, functions), [TYPES])
    row = (1.5, 0, 7, 2.0, "a", True)
    for _ in range(3):
        driven.apply((Edit([row, row]),))
        assert driven.output == bag([(1.5, 14, 7, 1)])
        driven.apply((Edit(cleared=True),))
        assert not driven.output
    assert not sum(len(arrangement.contents()) for arrangement in driven.state), "an empty group leaves nothing behind"


def test_an_overflow_raises_and_changes_nothing() -> None:
    functions: list[Named] = [SUMS[2], EXTREMES[1], DISTINCT[2]]
    driven = Driven(aggregate(1, functions), [TYPES])
    top = 2**63 - 1
    driven.apply((Edit([(0.0, 0, top, None, None, None), (1.5, 0, 1, None, None, None)]),))
    before = driven.output
    with pytest.raises(EvaluationFailed, match="ARITHMETIC_OVERFLOW"):
        driven.apply((Edit([(1.5, 0, 9, None, None, None), (-0.0, 0, 1, None, None, None)]),))
    assert driven.output == before
    driven.apply((Edit([(-0.0, 0, -1, None, None, None), (1.5, 0, 2, None, None, None)]),))
    assert driven.output == bag([(0.0, top - 1, top, top - 1), (1.5, 3, 2, 3)])


@scripted
@given(st.permutations([1, 2, 3]))
def test_a_sum_that_overflows_only_on_the_way_is_fine(order: list[int]) -> None:
    driven = Driven(aggregate(0, [SUMS[2]]), [TYPES])
    values = {1: 2**63 - 1, 2: 5, 3: -(2**63)}
    rows = [((None, None, values[i], None, None, None), 1) for i in order]
    driven.step([delta_of(rows, TYPES)])
    assert driven.output == bag([(4,)])


def buffered(functions: list[Named], best: int) -> list[Named]:
    return [(name, replace(f, best=best) if isinstance(f, Extreme) else f) for name, f in functions]


@pytest.mark.parametrize(
    "functions", [EXTREMES, MIXED, [("", extreme(FLOAT, greatest=True))]], ids=["extremes", "mixed", "floats"]
)
@pytest.mark.parametrize("keys", [0, 1, 2])
@scripted
@given(script=scripts(ROWS), best=st.sampled_from([1, 2]))
def test_the_best_values_are_kept_and_rows_asked_for_again(keys: int, functions: list[Named], script: list, best: int) -> None:
    few = buffered(functions, best)
    operator = Zeroless(TYPES, keys, tuple(function for _, function in few))
    assert operator.arranged_by() == (None,)
    run(operator, [TYPES], script, grouped(keys, few))


class Zeroless(Aggregate):
    """An aggregate that gives 0.0 for −0.0: either is the least of both."""

    def step(self, state: State, inputs: Sequence[Input]) -> tuple[State, Delta]:
        state, change = super().step(state, inputs)
        columns = [pc.add(c, 0.0) if pa.types.is_floating(c.type) else c for c in change.rows.columns]
        return state, Delta(pa.RecordBatch.from_arrays(columns, schema=change.schema), change.weights)


def test_of_buffers_nothing_else_is_kept() -> None:
    rows = [(float(i % 3), 0, i, 0.0, "", True) for i in range(3_000)]
    driven = Driven(aggregate(1, buffered(EXTREMES[:1], 5)), [TYPES])
    driven.apply((Edit(rows),))
    assert sum(map(len, driven.state)) <= 3 * 12
    for _ in range(4):
        driven.apply((Edit(deleted=[0] * 4),))
    assert driven.refills == 1
    assert driven.output == bag([(float(i % 3), i) for i in range(16, 19)])
