"""Edit scripts: random changes of an operator's inputs, and the operator driven by them as the runtime drives it.

After each step the sum of all deltas must be what a naive twin makes of the inputs from scratch (D ∘ Q ∘ I = the incremental
operator). Then every step is repeated from the state it started from: states are values, so it must give the same again.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from headwater.delta import Delta, without_columns
from headwater.operators.operator import Exhausted, Input, Operator, schema_of
from headwater.state import runs
from headwater.state.arrangement import Arrangement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.operators.operator import State

Row = tuple[Any, ...]
Bag = Counter[Row]

# The machine may be busy, and the first call imports: time is for the benchmarks.
scripted = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])

KEYS = st.sampled_from([None, 0, 1, 2])
FLOATS = st.sampled_from([None, math.nan, 0.0, -0.0, 1.5, -1.5, math.inf, -math.inf])
INTEGERS = st.none() | st.integers(-3, 3)
TEXTS = st.sampled_from([None, "", "a", "b", "ä", "𝄞"])


def cell(value: Any) -> Any:
    """A hashable stand-in for a value of a row: one NaN is as good as another, but −0.0 is not 0.0."""
    if isinstance(value, list):
        return tuple(map(cell, value))
    if isinstance(value, dict):
        return tuple((name, cell(part)) for name, part in value.items())
    return ("float", value.hex()) if isinstance(value, float) else value


def key(value: Any) -> Any:
    """The same for a value of a key: here −0.0 is 0.0, too."""
    return cell(value + 0.0 if isinstance(value, float) else value)


def bag(rows: Sequence[Row]) -> Bag:
    return Counter(tuple(map(cell, row)) for row in rows)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True)) if batch.num_columns else [()] * len(batch)


def weighed(delta: Delta) -> Bag:
    """A delta as a bag in which rows may be negative; its zeros are gone."""
    total: Bag = Counter()
    for row, weight in zip(rows_of(delta.rows), delta.weights.tolist(), strict=True):
        total[tuple(map(cell, row))] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def delta_of(changes: Sequence[tuple[Row, int]], types: Sequence[pa.DataType]) -> Delta:
    weights = np.array([weight for _, weight in changes], np.int64)
    if not types:
        return Delta(without_columns(len(changes)), weights)
    arrays = [pa.array([row[i] for row, _ in changes], kind) for i, kind in enumerate(types)]
    return Delta(pa.RecordBatch.from_arrays(arrays, schema=schema_of(types)), weights)


@dataclass(frozen=True)
class Edit:
    """What happens to one input in one step: rows that come, places (modulo the size) of rows that go, or all rows go.

    `passing` rows come and go at once, as in the deltas that one operator hands to the next before anything is merged.
    """

    inserted: Sequence[Row] = ()
    deleted: Sequence[int] = ()
    cleared: bool = False
    passing: Sequence[Row] = ()

    def changes(self, present: list[Row]) -> list[tuple[Row, int]]:
        """The changed rows with their weights; `present` becomes what is there afterwards."""
        gone = list(present) if self.cleared else []
        if self.cleared:
            present.clear()
        for place in self.deleted:
            if present:
                gone.append(present.pop(place % len(present)))
        present.extend(self.inserted)
        passing = [(row, weight) for row in self.passing for weight in (1, -1)]
        return [(row, -1) for row in gone] + [(row, 1) for row in self.inserted] + passing


def edits(rows: st.SearchStrategy[Row], *, passing: bool = True) -> st.SearchStrategy[Edit]:
    return st.builds(
        Edit,
        st.lists(rows, max_size=4),
        st.lists(st.integers(0, 30), max_size=4),
        st.sampled_from([False, False, False, True]),
        st.lists(rows, max_size=1 if passing else 0),
    )


def scripts(*inputs: st.SearchStrategy[Row], passing: bool = True) -> st.SearchStrategy[list[tuple[Edit, ...]]]:
    """A first load that is larger than what follows, so that later changes live in runs of their own; then some steps."""
    load = st.tuples(*(st.builds(Edit, st.lists(rows, max_size=12)) for rows in inputs))
    step = st.tuples(*(edits(rows, passing=passing) for rows in inputs))
    return st.builds(lambda first, rest: [first, *rest], load, st.lists(step, min_size=1, max_size=5))


@dataclass(frozen=True)
class Taken:
    """A step as it was taken."""

    state: State
    inputs: list[Input]
    output: Bag
    after: State


@dataclass
class Driven:
    """An operator with its state, its arranged inputs, and the sum of what it gave."""

    operator: Operator
    input_types: Sequence[Sequence[pa.DataType]]
    present: list[list[Row]] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    refills: int = 0

    def __post_init__(self) -> None:
        self.state, first = self.operator.start()
        self.output = weighed(first)
        self.present = [[] for _ in self.input_types]
        self.arranged = [
            None if by is None else Arrangement.empty(schema_of(types), by)
            for types, by in zip(self.input_types, self.operator.arranged_by(), strict=True)
        ]

    def apply(self, edit: Sequence[Edit]) -> Delta:
        """Takes the step that the edit asks for, unless it changes nothing: then the runtime takes none."""
        present = [list(rows) for rows in self.present]
        deltas = [
            delta_of(part.changes(rows), types) for part, rows, types in zip(edit, present, self.input_types, strict=True)
        ]
        if not any(map(len, deltas)):
            return self.operator.nothing()
        change = self.step(deltas)
        self.present = present
        return change

    def step(self, deltas: Sequence[Delta]) -> Delta:
        """Takes a step; if it raises, nothing here has changed."""
        after = [old if old is None else old.insert(delta) for old, delta in zip(self.arranged, deltas, strict=True)]
        inputs = [Input(*parts) for parts in zip(deltas, self.arranged, after, strict=True)]
        try:
            state, change = self.operator.step(self.state, inputs)
        except Exhausted:
            inputs = [self._with_all_rows(deltas[0])]
            self.refills += 1
            state, change = self.operator.step(self.state, inputs)
        assert change.schema.equals(schema_of(self.operator.types)), "the output is not of the operator's types"
        self.taken.append(Taken(self.state, inputs, weighed(change), state))
        self.state, self.arranged = state, after
        self.output = Counter({row: n for row, n in _sum(self.output, weighed(change)).items() if n})
        return change

    def _with_all_rows(self, delta: Delta) -> Input:
        """The only input as the runtime gives it to a step whose buffer has run empty."""
        by, types = self.operator.refilled_by(), self.input_types[0]
        assert by is not None
        present = delta_of([(row, 1) for row in self.present[0]], types)
        return Input(delta, after=Arrangement.empty(schema_of(types), by).insert(present).insert(delta))

    def repeat(self) -> None:
        """Every step once more, from the state it started from."""
        for taken in self.taken:
            state, change = self.operator.step(taken.state, taken.inputs)
            assert weighed(change) == taken.output, "a step gave something else when it was repeated"
            for again, then in zip(state, taken.after, strict=True):
                assert _contents(again) == _contents(then), "a step left another state when it was repeated"


def run(
    operator: Operator, input_types: Sequence[Sequence[pa.DataType]], script: Sequence[Sequence[Edit]], twin: Any
) -> Driven:
    """Drives the operator through the script, and compares with the twin after each step."""
    driven = Driven(operator, input_types)
    assert driven.output == bag(twin(driven.present)), "the first output differs"
    # The steps are small: so that some of them leave runs of their own, only very small ones are put together.
    with mock.patch.object(runs, "FEW", 4):
        for edit in script:
            driven.apply(edit)
            assert driven.output == bag(twin(driven.present))
        driven.repeat()
    return driven


def _sum(a: Bag, b: Bag) -> Bag:
    total = Counter(a)
    total.update(b)
    return total


def _contents(arrangement: Arrangement) -> list[tuple[Row, list[int]]]:
    contents = arrangement.contents()
    found = zip(rows_of(contents.rows), contents.weights.tolist(), strict=True)
    return sorted(((tuple(map(cell, row)), weight) for row, weight in found), key=repr)
