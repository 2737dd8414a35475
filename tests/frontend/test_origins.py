"""Parts that were read in an earlier session are found by their place and meaning; those with an identity by both alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression, Literal
from headwater.algebra.origin import Handle, Reading
from headwater.errors import LostQuery, UnknownName
from headwater.frontend.origins import Origins, Sought

LONG = pa.int64()
SCAN = plan.Scan(types=(LONG, LONG), source="t")
READING = Reading("SELECT …", (), "UTC", "v")


class Again:
    """Reads every query as the same projection of the given expressions."""

    def __init__(self, *expressions: Expression) -> None:
        self.readings = 0
        placed = tuple(replace(cast("Call", part), origin=at(i)) for i, part in enumerate(expressions))
        self.root = plan.Project(types=(LONG,) * len(placed), child=SCAN, expressions=placed, origin=Handle("plan", ()))

    def again(self, _reading: Reading) -> Any:
        self.readings += 1
        return self


def at(place: int) -> Handle:
    return Handle("plan", ("projectList", place))


def call(function: str, column: int, *options: tuple[str, str]) -> Call:
    return Call(function, (Column(column, LONG),), None, options)


def find(analyser: Any, part: Any, place: int, reading: Reading = READING) -> Any:
    return Origins(analyser).find(reading, ("projectList", place), part)


def test_place_and_meaning_decide() -> None:
    analyser = Again(call("Abs", 0), call("Abs", 1), call("Not", 0))
    assert find(analyser, call("Abs", 7), 1) is analyser.root.expressions[1].origin


def test_a_part_that_moved_is_found_by_its_meaning() -> None:
    analyser = Again(call("Not", 0), call("Abs", 1))
    assert find(analyser, call("Abs", 0), 0) is analyser.root.expressions[1].origin
    assert find(analyser, replace(analyser.root, child=SCAN, origin=None), 5) is analyser.root.origin


@pytest.mark.parametrize(
    "part",
    [
        call("Abs", 0, ("failOnError", "true")),
        replace(call("Abs", 0), arguments=()),
        replace(call("Abs", 0), type=LONG),
        call("Not", 0),
        Literal("2", LONG),
        plan.Project(types=(LONG,), child=plan.Node(types=(LONG,)), expressions=(call("Abs", 0),)),
    ],
)
def test_another_meaning_is_not_taken(part: Any) -> None:
    with pytest.raises(LostQuery, match=r"view 'v' is read otherwise by this Spark session .* Create the view again"):
        find(Again(call("Abs", 0), Literal("1", LONG)), part, 0)


@pytest.mark.parametrize("function", ["AggregateExpression", "NamedLambdaVariable", "ScalaUDF"])
def test_what_has_an_identity_is_found_at_its_place_only(function: str) -> None:
    analyser = Again(call("Not", 0), call(function, 0))
    assert find(analyser, call(function, 0), 1) is analyser.root.expressions[1].origin
    with pytest.raises(LostQuery, match=f"does not have the same {function}"):
        find(analyser, call(function, 0), 0)


def test_ids_of_a_reading_do_not_count() -> None:
    ids = ['{"id": 7, "jvmId": "1-2"}', '{"id": 12, "jvmId": "3-4"}']
    analyser = Again(call("ScalaUDF", 0, ("instance", ids[0])))
    assert find(analyser, call("ScalaUDF", 0, ("instance", ids[1])), 0) is analyser.root.expressions[0].origin


def test_a_query_is_read_when_it_is_needed_and_once() -> None:
    analyser = Again(call("Abs", 0), call("Not", 0))
    origins = Origins(cast("Any", analyser))
    sought = [Sought(READING, ("projectList", i), call(name, 0), origins) for i, name in enumerate(("Abs", "Not"))]
    assert analyser.readings == 0
    for one in sought:
        with pytest.raises(AttributeError):  # the plan is a text here
            one.get()
    assert analyser.readings == 1


def test_what_spark_says_is_told() -> None:
    class Refusing:
        def again(self, _reading: Reading) -> Any:
            raise UnknownName("there is no function f")

    with pytest.raises(LostQuery, match=r"view 'v' needs Spark .* Register the functions .* there is no function f"):
        find(Refusing(), call("Abs", 0), 0)


def test_a_dataframe_cannot_be_read_again() -> None:
    with pytest.raises(LostQuery, match="a query was made of a DataFrame, which cannot be read again"):
        find(Again(), call("Abs", 0), 0, Reading(None, (), "UTC", None))
