"""A chain of filters and projections gives by kernels what it gives by a statement, and by a statement what kernels refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.compiler import linear
from headwater.compiler.linear import Engines, stage_for
from headwater.delta import Delta
from headwater.evaluation.computed import Computed
from headwater.evaluation.duckdb_sql import Connection
from headwater.evaluation.stages import Sequence, Sql, Stage

_LONG, _TEXT, _BOOLEAN = pa.int64(), pa.string(), pa.bool_()
_TYPES = (_LONG, _LONG, _TEXT)
_A, _B, _S = Column(0, _LONG), Column(1, _LONG), Column(2, _TEXT)
_ENGINES = Engines(Connection("UTC"), cast("Any", None))


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, None, (("evalMode", '"ANSI"'),))


def kept(condition: Expression, types: tuple[pa.DataType, ...] = _TYPES) -> plan.Filter:
    return plan.Filter(types=types, child=plan.Node(types=types), condition=condition)


def made(*outputs: tuple[Expression, pa.DataType]) -> plan.Project:
    types = tuple(kind for _, kind in outputs)
    return plan.Project(types=types, child=plan.Node(types=_TYPES), expressions=tuple(output for output, _ in outputs))


_SMALL = call("And", call("IsNotNull", _S), call("LessThan", _A, Literal("3", _LONG)))
_SUM = call("Add", _A, _B)
_LENGTH = call("Length", _S)
CHAINS: dict[str, list[plan.Node]] = {
    "a filter": [kept(_SMALL)],
    "a filter and columns": [kept(_SMALL), made((_S, _TEXT), (_A, _LONG), (_S, _TEXT))],
    "a filter and a projection": [
        kept(_SMALL),
        made((_SUM, _LONG), (_S, _TEXT), (Literal(None, _TEXT), _TEXT), (_LENGTH, pa.int32())),
    ],
    "a projection and a filter": [
        made((_SUM, _LONG), (_S, _TEXT)),
        kept(call("EqualTo", _A, Literal("2", _LONG)), (_LONG, _TEXT)),
    ],
    "no columns": [kept(_SMALL), made()],
    "constants": [made((Literal("x", _TEXT), _TEXT), (Literal("7", _LONG), _LONG), (_A, _LONG))],
    "not null": [kept(call("And", call("IsNotNull", _A), call("IsNotNull", _S))), made((_B, _LONG))],
    "one condition": [made((call("EqualTo", _A, _B), _BOOLEAN))],
}
NUMBERS = st.none() | st.integers(-5, 5)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | st.text("aä", max_size=2), st.sampled_from([1, 1, -1, 2])))


def without_kernels(chain: list[plan.Node]) -> Stage:
    parts = [part for node in chain for part in linear._parts(node, _ENGINES)]
    return Sequence(tuple(linear._stages(parts, _ENGINES)))


def delta_of(rows: list[tuple[Any, ...]]) -> Delta:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(_TYPES)]
    weights = np.array([row[3] for row in rows], np.int64)
    return Delta(pa.RecordBatch.from_arrays(columns, names=["c0", "c1", "c2"]), weights)


def same(left: Delta, right: Delta) -> bool:
    return left.rows.equals(right.rows) and left.weights.tolist() == right.weights.tolist()


@pytest.mark.parametrize("name", CHAINS)
@given(rows=ROWS)
def test_kernels_and_statements_give_the_same(name: str, rows: list[tuple[Any, ...]]) -> None:
    stage = stage_for(CHAINS[name], _ENGINES)
    assert stage.engine == "arrow"
    delta = delta_of(rows)
    assert same(stage.run(delta), without_kernels(CHAINS[name]).run(delta))


def test_a_filter_and_the_projection_above_it_are_one_stage() -> None:
    assert isinstance(stage_for(CHAINS["a filter and a projection"], _ENGINES), Computed)
    assert isinstance(stage_for(CHAINS["not null"], _ENGINES), Computed)
    apart = stage_for(CHAINS["a projection and a filter"], _ENGINES)
    assert isinstance(apart, Sequence)
    assert [type(stage) for stage in apart.stages] == [Computed, Computed]


def test_what_has_no_kernel_is_a_statement_between_kernels() -> None:
    reversed_ = made((call("Reverse", _S), _TEXT))
    stage = stage_for(
        [kept(_SMALL), reversed_, kept(call("EqualTo", Column(0, _TEXT), Literal("a", _TEXT)), (_TEXT,))], _ENGINES
    )
    assert isinstance(stage, Sequence)
    assert [type(part) for part in stage.stages] == [Computed, Sql, Computed]
    assert stage.engine == "duckdb"
    assert stage.run(delta_of([(1, 1, "a", 1), (9, 1, "a", 1), (1, 1, "b", 1)])).rows.to_pylist() == [{"c0": "a"}]


@dataclass
class _Other:
    """A stage that remembers what it was asked."""

    asked: list[Delta] = field(default_factory=list)
    engine = "spark"

    def run(self, delta: Delta) -> Delta:
        self.asked.append(delta)
        return delta


def test_what_kernels_refuse_another_stage_answers() -> None:
    other = _Other()
    computed = stage_for([made((_SUM, _LONG))], _ENGINES)
    assert isinstance(computed, Computed)
    stage = Computed(computed.types, outputs=computed.outputs, otherwise=other)
    fine, overflowing = delta_of([(1, 2, "", 1)]), delta_of([(2**63 - 1, 1, "", 1)])
    assert stage.run(fine).rows.to_pylist() == [{"c0": 3}]
    assert not other.asked
    assert stage.run(overflowing) is overflowing
    assert other.asked == [overflowing]


def test_a_projection_is_not_evaluated_for_rows_that_are_not_kept() -> None:
    other = _Other()
    computed = stage_for(CHAINS["a filter and a projection"], _ENGINES)
    assert isinstance(computed, Computed)
    stage = Computed(computed.types, computed.not_null, computed.conditions, computed.outputs, other)
    assert len(stage.run(delta_of([(2**63 - 1, 1, "", 1), (1, 1, "", 1)]))) == 1
    assert not other.asked
