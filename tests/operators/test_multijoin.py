"""MultiJoin: against nested loops; two to five relations that all change at once, on paths chosen for random sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from edit_scripts import FLOATS, INTEGERS, Driven, Row, bag, cell, delta_of, key, rows_of, scripted, scripts, weighed
from hypothesis import given
from hypothesis import strategies as st

from headwater.algebra import plan
from headwater.compiler.dataflow import Step
from headwater.compiler.estimates import Estimate
from headwater.compiler.orders import Shape, decide
from headwater.compiler.paths import Arranged, Routes, binary
from headwater.operators.arrange import Arrange
from headwater.operators.multijoin import MultiJoin

if TYPE_CHECKING:
    from headwater.compiler.orders import Decision
    from headwater.delta import Delta

pytestmark = pytest.mark.usefixtures("slices")

# Column c of every relation can be in class c: two of integers, two of floating-point numbers. The last one is never.
TYPES = (pa.int32(), pa.float64(), pa.int32(), pa.float64(), pa.int64())
KEYS = st.sampled_from([None, *range(7)])
ROWS = st.tuples(KEYS, FLOATS, KEYS, FLOATS, INTEGERS)


def relation(number: int) -> plan.Scan:
    return plan.Scan(types=TYPES, source=f"r{number}")


@st.composite
def joins(draw: st.DrawFn, most: int = 5) -> plan.MultiJoin:
    """A join in which every relation is connected to one before it, and some classes have more members."""
    count = draw(st.integers(2, most))
    classes: dict[int, set[int]] = {}
    for number in range(1, count):
        classes.setdefault(draw(st.integers(0, 3)), set()).update((number, draw(st.integers(0, number - 1))))
    for members in classes.values():
        members.update(draw(st.sets(st.integers(0, count - 1), max_size=1)))
    equal = tuple(plan.Equal(tuple((i, c) for i in sorted(classes[c])), draw(st.booleans())) for c in sorted(classes))
    every = [(i, c) for i in range(count) for c in range(len(TYPES))]
    outputs = tuple(draw(st.lists(st.sampled_from(every), max_size=6)))
    types = tuple(TYPES[c] for _, c in outputs)
    return plan.MultiJoin(types=types, inputs=tuple(map(relation, range(count))), equal=equal, outputs=outputs)


@st.composite
def decisions(draw: st.DrawFn, node: plan.MultiJoin) -> tuple[Shape, Decision]:
    """Paths that are best for sizes nobody has seen."""
    sizes = st.sampled_from([1.0, 10.0, 1e3, 1e6])
    known = draw(st.booleans())

    def estimate() -> Estimate:
        domain = draw(sizes)
        return Estimate(draw(sizes), known, (frozenset({draw(st.integers(0, 3))}),), lambda _: domain)

    shape = Shape(node, [estimate() for _ in node.inputs])
    kept = draw(st.sets(st.tuples(st.integers(0, 4), st.frozensets(st.integers(0, 3), min_size=1, max_size=2))))
    return shape, decide(shape, lambda number, classes: (number, classes) in kept)


@dataclass
class Joined:
    """The operator for a join, and its inputs: the same relation several times, some with a column more."""

    node: plan.MultiJoin
    shape: Shape
    decision: Decision
    wide: bool

    def __post_init__(self) -> None:
        needs = sorted({(hop.relation, hop.key) for hops in self.decision.paths for hop in hops}, key=repr)
        inputs = []
        for place, (number, classes) in enumerate(needs):
            shift = 1 if self.wide and place % 2 else 0
            columns = tuple(c + shift for c in reversed(self.shape.columns(number, classes)))
            step = Step(Arrange((pa.string(),) * shift + TYPES, columns), (), "Arrange")
            inputs.append(
                (number, classes, Arranged(self.node.inputs[number], step, columns, {c: c + shift for c in range(len(TYPES))}))
            )
        ranks = sorted(range(self.shape.count), key=lambda i: self.shape.rows[i])
        routes = Routes(self.node, inputs)
        operator = MultiJoin(
            types=self.node.types,
            relations=tuple(ranks.index(number) for number, _, _ in inputs),
            keys=tuple(arranged.key for _, _, arranged in inputs),
            paths=tuple(routes.path(number, self.decision.paths[number]) for number in ranks),
        )
        self.inputs = inputs
        self.driven = Driven(operator, [arranged.step.types for _, _, arranged in inputs])
        self.present: list[list[Row]] = [[] for _ in self.node.inputs]

    def apply(self, edit: tuple) -> Delta:
        """Takes the step that the edit of the relations asks for."""
        changes = [part.changes(rows) for part, rows in zip(edit, self.present, strict=False)]
        if not any(changes):
            return self.driven.operator.nothing()
        deltas = []
        for number, _, arranged in self.inputs:
            prefix = ("extra",) * (len(arranged.step.types) - len(TYPES))
            deltas.append(delta_of([(prefix + row, weight) for row, weight in changes[number]], arranged.step.types))
        return self.driven.step(deltas)


def nested_loops(node: plan.MultiJoin, relations: list[list[Row]]) -> list[Row]:
    found: list[tuple[Row, ...]] = [()]
    for number, present in enumerate(relations[: len(node.inputs)]):
        longer = [(*rows, row) for rows in found for row in present]
        # Only so far as the relations are there yet.
        classes = [([(i, c) for i, c in equal.columns if i <= number], equal.null_safe) for equal in node.equal]
        found = [rows for rows in longer if all(fits([rows[i][c] for i, c in places], safe) for places, safe in classes)]
    return [tuple(rows[i][c] for i, c in node.outputs) for rows in found]


def fits(values: list, safe: bool) -> bool:  # noqa: FBT001
    return len(set(map(key, values))) <= 1 and (safe or None not in values)


@scripted
@given(st.data(), scripts(*[ROWS] * 5), st.booleans())
def test_nested_loops(data: st.DataObject, script: list, wide: bool) -> None:  # noqa: FBT001
    node = data.draw(joins())
    joined = Joined(node, *data.draw(decisions(node)), wide)
    for edit in script:
        joined.apply(edit)
        assert joined.driven.output == bag(nested_loops(node, joined.present))
    joined.driven.repeat()


@scripted
@given(st.data(), scripts(*[ROWS] * 5, passing=False))
def test_no_row_is_made_that_is_neither_in_the_old_answer_nor_in_the_new_one(data: st.DataObject, script: list) -> None:
    """What is above the join may fail on such a row, and then a good transaction would be refused."""
    node = data.draw(joins(3))
    joined = Joined(node, *data.draw(decisions(node)), wide=False)
    for edit in script:
        old = set(bag(nested_loops(node, joined.present)))
        change = joined.apply(edit)
        assert {tuple(map(cell, row)) for row in rows_of(change.rows)} <= old | set(bag(nested_loops(node, joined.present)))


@scripted
@given(st.data())
def test_a_tree_of_binary_joins_means_the_same(data: st.DataObject) -> None:
    node = data.draw(joins())
    _, decision = data.draw(decisions(node))
    relations = [data.draw(st.lists(ROWS, max_size=4)) for _ in node.inputs]
    if decision.tree is None:
        return
    tree, made = binary(node, decision.tree)
    assert tree == made[-1]
    assert all(isinstance(part, plan.MultiJoin) and len(part.inputs) == 2 for part in made)

    def rows(part: plan.Node) -> list[Row]:
        if isinstance(part, plan.Scan):
            return relations[int(part.source[1:])]
        assert isinstance(part, plan.MultiJoin)
        return nested_loops(part, [rows(child) for child in part.inputs])

    assert bag(rows(tree)) == bag(nested_loops(node, relations))


def test_several_relations_at_once_are_counted_once() -> None:
    """The rule's trap: what changed on both sides is neither forgotten nor doubled."""
    node = plan.MultiJoin(
        types=(pa.int64(),) * 3,
        inputs=tuple(map(relation, range(3))),
        equal=(plan.Equal(((0, 0), (1, 0), (2, 0)), null_safe=False),),
        outputs=((0, 4), (1, 4), (2, 4)),
    )
    shape = Shape(node, [Estimate(1.0, True, (), lambda _: 1.0)] * 3)  # noqa: FBT003
    joined = Joined(node, shape, decide(shape, lambda *_: False), wide=False)
    row = (1, 0.0, 1, 0.0, 7)
    deltas = [delta_of([(row, 2 + number)], TYPES) for number, _, _ in joined.inputs]
    assert weighed(joined.driven.step(deltas)) == {(7, 7, 7): 2 * 3 * 4}
    gone = [delta_of([(row, -2 - number)], TYPES) for number, _, _ in joined.inputs]
    assert weighed(joined.driven.step(gone)) == {(7, 7, 7): -2 * 3 * 4}
