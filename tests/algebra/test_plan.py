"""Every kind of node declares its children, so that whoever walks or rewrites a plan reaches all of it."""

from __future__ import annotations

import doctest
from dataclasses import fields, replace

import pyarrow as pa
import pytest

from headwater.algebra import plan
from headwater.algebra.expressions import Column

LEAF = plan.Scan(types=(pa.int64(),), source="r")
OTHER = plan.Scan(types=(pa.int64(),), source="s")
FIXPOINT = plan.Fixpoint(
    types=LEAF.types, relations=tuple(plan.Relation(name=name, body=LEAF, duplicates=False) for name in "ab"), result=0
)
HOLDING = {"Node", "Fixpoint", "tuple[Node, ...]", "tuple[Relation, ...]"}
COLUMN = Column(0, pa.int64())
SAMPLES: list[plan.Node] = [
    LEAF,
    plan.Values(types=LEAF.types, rows=pa.record_batch([pa.array([1])], names=["c0"])),
    plan.Project(types=LEAF.types, child=LEAF, expressions=(COLUMN,)),
    plan.Union(types=LEAF.types, inputs=(LEAF, LEAF, LEAF)),
    plan.Join(types=LEAF.types * 2, left=LEAF, right=LEAF, kind="inner", condition=None),
    plan.MultiJoin(types=LEAF.types, inputs=(LEAF, LEAF), equal=(), outputs=((0, 0),)),
    plan.Opaque(types=LEAF.types, name="X", inputs=(LEAF,), meaning="", by_row=False),
    plan.Recursive(types=LEAF.types, relation=0),
    FIXPOINT,
    plan.Explained(types=LEAF.types, child=LEAF, annotation=FIXPOINT),
]


def kinds(base: type) -> set[type]:
    return {base}.union(*(kinds(each) for each in base.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(kinds(plan.Node), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_fields_that_hold_nodes_are_declared(kind: type[plan.Node]) -> None:
    holding = [
        each.name for each in fields(kind) if each.type in {"Node", "tuple[Node, ...]", "tuple[Relation, ...]", "Fixpoint"}
    ]
    assert list(kind.child_fields) == holding


@pytest.mark.parametrize("node", SAMPLES, ids=lambda node: type(node).__name__)
def test_children_are_exchanged_one_by_one(node: plan.Node) -> None:
    assert plan.with_children(node, node.children) == node
    for i, child in enumerate(node.children):
        other = OTHER if child is LEAF else replace(FIXPOINT, result=1)
        children = [*node.children[:i], other, *node.children[i + 1 :]]
        assert list(plan.with_children(node, children).children) == children


@pytest.mark.parametrize("node", SAMPLES, ids=lambda node: type(node).__name__)
def test_too_many_children_are_refused(node: plan.Node) -> None:
    with pytest.raises(ValueError, match="children, not"):
        plan.with_children(node, [*node.children, LEAF])


def test_examples() -> None:
    assert doctest.testmod(plan).failed == 0
