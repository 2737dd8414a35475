"""Values come back as they went, what is shared is written once, and what is not listed is refused."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Literal
from headwater.algebra.origin import Handle, Reading
from headwater.compiler.linear import Engines
from headwater.compiler.recipes import Fused
from headwater.delta import without_columns
from headwater.errors import NotSupported, UnreadableCatalog
from headwater.frontend.origins import Sought
from headwater.operators.accumulators.counts import Count
from headwater.operators.aggregate import Aggregate, Measure
from headwater.operators.ordering import Order
from headwater.store.codec import Decoder, Encoder

NOTHING: Any = None
ENGINES = Engines(NOTHING, NOTHING)


def decoder(classes: dict[str, list[str]]) -> Decoder:
    return Decoder(classes, {"engines": ENGINES}, cast("Any", "origins"))


def through(value: object) -> Any:
    encoder = Encoder()
    number = encoder.number(value)
    classes, values = json.loads(json.dumps([encoder.classes, encoder.values]))
    reading = decoder(classes)
    reading.read(values)
    return reading.values[number]


def total(levels: int) -> Call | Column:
    found: Call | Column = Column(0, pa.int64())
    for _ in range(levels):
        found = Call("Add", (found, found), None, (("evalMode", '"ANSI"'),))
    return found


NESTED = pa.map_(pa.string(), pa.list_(pa.field("element", pa.struct([pa.field("x", pa.decimal128(7, 2), nullable=False)]))))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, -3, 1 << 70, "é\x00", "", 0.1, math.inf, (), (1, ("a", None)), frozenset({2, 1})),
        *(pa.int32(), pa.timestamp("us", tz="UTC"), pa.date32(), pa.null(), pa.duration("us"), NESTED),
        plan.Limit(types=(NESTED,), child=plan.Scan(types=(NESTED,), source="t"), order=(), count=None, offset=3),
        Aggregate((pa.int32(),), 0, (Measure(Count(), (0,), None, distinct=True),)),
        Order(3, descending=True),
        Literal(None, pa.int8()),
        StructType.fromJson(
            {"type": "struct", "fields": [{"name": "x", "type": "void", "nullable": True, "metadata": {"a": 1}}]}
        ),
    ],
    ids=str,
)
def test_comes_back(value: object) -> None:
    found = through(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "rows",
    [
        pa.RecordBatch.from_pydict({"c0": pa.array([1, None], pa.int8()), "c1": pa.array([b"\x00", b""])}),
        without_columns(3),
        pa.RecordBatch.from_pydict({"c0": pa.array([], NESTED)}),
    ],
)
def test_rows_come_back(rows: pa.RecordBatch) -> None:
    found = through(rows)
    assert found.num_rows == rows.num_rows
    assert found.equals(rows)


def test_what_comes_twice_is_written_once() -> None:
    encoder = Encoder()
    assert encoder.number(total(40)) == encoder.number(total(40))
    assert len(encoder.values) < 100
    first, second = cast("Any", through((total(3), total(3))))
    assert first is second


def test_depth_does_not_matter() -> None:
    found: Any = through(total(20_000))
    for _ in range(20_000):
        found = found.arguments[1]
    assert found == Column(0, pa.int64())


def test_engines_are_those_of_the_reader() -> None:
    recipe = Fused((plan.Node(types=()),), Engines(NOTHING, NOTHING))
    assert through(recipe).engines is ENGINES


def test_an_origin_remembers_where_it_stood() -> None:
    reading = Reading("SELECT 1", (("t", StructType([])),), "UTC", "v")
    literal = through(Literal("1", pa.int32(), Handle("a plan", ("projectList", 0), reading)))
    assert isinstance(literal.origin, Sought)
    assert (literal.origin.steps, literal.origin.origins, literal.origin.part) == (("projectList", 0), "origins", literal)
    assert (literal.origin.reading.text, literal.origin.reading.view) == ("SELECT 1", "v")
    assert through(literal).origin.steps == ("projectList", 0)


def test_equal_expressions_keep_origins_of_their_own() -> None:
    reading = Reading("SELECT 1, 1", (), "UTC", None)
    parts = tuple(Literal("1", pa.int32(), Handle("a plan", ("projectList", i), reading)) for i in range(2))
    first, second = through(parts)
    assert (first.origin.steps, second.origin.steps) == (("projectList", 0), ("projectList", 1))
    assert first.origin.reading is second.origin.reading


@pytest.mark.parametrize("value", [object(), b"bytes", [1], {1: 2}, Handle], ids=["object", "bytes", "list", "dict", "class"])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(NotSupported, match=r"a value of the class \w+ cannot be stored"):
        Encoder().number((1, value))


@pytest.mark.parametrize(
    ("classes", "values", "message"),
    [
        ({"os.system": ["command"]}, [], "there is no class 'os.system'"),
        ({"node.Engine": []}, [], "there is no class 'node.Engine'"),
        (
            {"operator.Order": ["column", "descending"]},
            [],
            "has the fields column, descending, nulls_first, and not column, desc",
        ),
        ({"operator.Order": ["column", "descending", "x"]}, [], "has the fields column, descending, nulls_first, and not"),
        ({}, [{"operator.Order": []}], "there is no kind of value 'operator.Order'"),
        ({}, [{"pickle": "gASVC"}], "there is no kind of value 'pickle'"),
        (
            {"operator.Order": ["column", "descending", "nulls_first"]},
            [True, {"operator.Order": [0, 0]}],
            "value 1 makes no sense",
        ),
        ({}, [[0]], "value 0 makes no sense"),
        ({}, [7, [-1]], "value 1 makes no sense"),
        ({}, [{"given": "files"}], "value 0 makes no sense"),
        ({}, [{"type": "AAAA"}], "value 0 makes no sense"),
        ({}, [{"rows": "?"}], "value 0 makes no sense"),
        ({}, [{"set": 1, "float": 2}], "value 0 makes no sense"),
    ],
)
def test_what_makes_no_sense_is_refused(classes: dict[str, list[str]], values: list[Any], message: str) -> None:
    with pytest.raises(UnreadableCatalog, match=message):
        decoder(classes).read(values)
