"""Pruning: what is kept as state has the columns that something above reads, and no others."""

from __future__ import annotations

import pyarrow as pa
from test_clusters import INT, column, equal, join, table, type_of

from headwater.algebra import plan
from headwater.algebra.expressions import Call
from headwater.compiler.clusters import clustered
from headwater.compiler.pruning import pruned


def total(index: int) -> Call:
    return Call("AggregateExpression", (Call("Sum", (column(index),)),), None, (("isDistinct", "false"),))


def test_joins_keep_keys_and_what_is_read_above() -> None:
    joined = clustered(join(table("a", 4), table("b", 4), equal(0, 5)), type_of)
    node = plan.Aggregate(types=(INT, INT), child=joined, keys=(column(3),), outputs=(column(3), total(6)))
    found = pruned(node)
    assert isinstance(found, plan.Aggregate)
    cluster = found.child
    assert isinstance(cluster, plan.MultiJoin)
    assert cluster.inputs == (plan.picked(table("a", 4), [0, 3]), plan.picked(table("b", 4), [1, 2]))
    assert cluster.equal == (plan.Equal(((0, 0), (1, 0)), null_safe=False),)
    assert cluster.outputs == ((0, 1), (1, 1))
    assert found.outputs == (column(0), total(1))


def test_a_column_that_only_a_filter_reads_ends_there() -> None:
    less = Call("LessThan", (column(2), column(3)))
    below = plan.Filter(types=(INT,) * 4, child=table("a", 4), condition=less)
    found = pruned(plan.picked(clustered(join(below, table("b"), equal(0, 4)), type_of), [1]))
    cluster = next(part for part in plan.walk(found) if isinstance(part, plan.MultiJoin))
    assert cluster.inputs == (plan.picked(below, [0, 1]), plan.picked(table("b"), [0]))
    assert cluster.outputs == ((0, 1),)


def test_semi_and_outer_joins() -> None:
    for kind in ("semi", "anti", "left", "full", "single"):
        one_sided = kind in ("semi", "anti")
        types = (INT,) * (3 if one_sided else 6)
        node = plan.Join(types=types, left=table("a", 3), right=table("b", 3), kind=kind, condition=equal(2, 4))
        found = pruned(plan.picked(node, [0]))
        inner = next(part for part in plan.walk(found) if isinstance(part, plan.Join))
        assert inner.left == plan.picked(table("a", 3), [0, 2])
        assert inner.right == plan.picked(table("b", 3), [1])
        assert inner.condition == equal(1, 2)
        assert len(inner.types) == (2 if one_sided else 3)


def test_existence_flags_stay_at_their_place() -> None:
    types = (INT, INT, INT, pa.bool_())
    node = plan.Join(types=types, left=table("a", 3), right=table("b", 3), kind="existence", condition=equal(1, 3))
    flag = plan.Project(types=(pa.bool_(),), child=node, expressions=(Call("Not", (plan.Column(3, pa.bool_()),)),))
    found = pruned(flag)
    assert isinstance(found, plan.Project)
    assert found.expressions == (Call("Not", (plan.Column(1, pa.bool_()),)),)
    assert found.child.types == (INT, pa.bool_())


def test_what_looks_at_whole_rows_gets_them() -> None:
    order = (plan.SortKey(column(1), descending=False, nulls_first=True),)
    limit = plan.Limit(types=(INT,) * 3, child=table("a", 3), order=order, count=3, offset=0)
    found = pruned(plan.picked(limit, [0]))
    assert found == plan.picked(limit, [0])


def test_unions_are_cut_alike() -> None:
    node = plan.Union(types=(INT,) * 3, inputs=(table("a", 3), table("b", 3)))
    found = pruned(plan.picked(node, [2, 0]))
    union = next(part for part in plan.walk(found) if isinstance(part, plan.Union))
    assert union.inputs == (plan.picked(table("a", 3), [0, 2]), plan.picked(table("b", 3), [0, 2]))
    assert found == plan.picked(union, [1, 0])


def test_needless_results_of_aggregates_are_not_kept() -> None:
    node = plan.Aggregate(
        types=(INT, INT, INT), child=table("a", 4), keys=(column(0),), outputs=(column(0), total(1), total(2))
    )
    found = pruned(plan.picked(node, [2]))
    assert isinstance(found, plan.Project)
    assert found.child == plan.Aggregate(types=(INT,), child=table("a", 4), keys=(column(0),), outputs=(total(2),))
