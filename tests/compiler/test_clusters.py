"""Clusters: trees of inner joins as one join of many inputs, and where they end."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra import plan
from headwater.algebra.expressions import Call, Column, Expression
from headwater.compiler.clusters import absorbed, clustered

INT = pa.int64()


def table(name: str, width: int = 2) -> plan.Scan:
    return plan.Scan(types=(INT,) * width, source=name)


def column(index: int) -> Column:
    return Column(index, INT)


def equal(left: Expression | int, right: Expression | int, function: str = "EqualTo") -> Call:
    sides = (column(side) if isinstance(side, int) else side for side in (left, right))
    return Call(function, tuple(sides))


def join(left: plan.Node, right: plan.Node, *conditions: Expression) -> plan.Join:
    whole = conditions[0]
    for part in conditions[1:]:
        whole = Call("And", (whole, part))
    return plan.Join(types=left.types + right.types, left=left, right=right, kind="inner", condition=whole)


def type_of(_: Expression) -> pa.DataType:
    return INT


def test_a_tree_becomes_one_join() -> None:
    inner = join(table("a"), table("b"), equal(0, 2))
    tree = join(inner, table("c"), equal(3, 4))
    found = clustered(tree, type_of)
    assert isinstance(found, plan.MultiJoin)
    assert found.inputs == (table("a"), table("b"), table("c"))
    assert found.equal == (plan.Equal(((0, 0), (1, 0)), null_safe=False), plan.Equal(((1, 1), (2, 0)), null_safe=False))
    assert found.outputs == ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1))


def test_what_is_equal_to_the_same_is_equal() -> None:
    tree = join(join(table("a"), table("b"), equal(0, 2)), table("c"), equal(2, 4))
    found = clustered(tree, type_of)
    assert isinstance(found, plan.MultiJoin)
    assert found.equal == (plan.Equal(((0, 0), (1, 0), (2, 0)), null_safe=False),)


def test_null_is_no_value_where_one_equality_says_so() -> None:
    for functions, safe in (
        (("EqualNullSafe", "EqualNullSafe"), True),
        (("EqualNullSafe", "EqualTo"), False),
        (("EqualTo", "EqualNullSafe"), False),
    ):
        tree = join(join(table("a"), table("b"), equal(0, 2, functions[0])), table("c"), equal(2, 4, functions[1]))
        found = clustered(tree, type_of)
        assert isinstance(found, plan.MultiJoin)
        assert [part.null_safe for part in found.equal] == [safe]


def test_two_columns_of_one_input_that_must_be_equal_are_compared_there() -> None:
    found = clustered(join(table("a"), table("b"), equal(0, 2), equal(1, 2)), type_of)
    assert isinstance(found, plan.MultiJoin)
    assert found.equal == (plan.Equal(((0, 0), (1, 0)), null_safe=False),)
    assert found.inputs[0] == plan.Filter(types=(INT, INT), child=table("a"), condition=equal(0, 1))


def test_other_conditions_come_after_the_join() -> None:
    less = Call("LessThan", (column(1), column(3)))
    inner = plan.picked(join(table("a"), table("b"), equal(0, 2), less), [0, 2])
    found = clustered(join(inner, table("c"), equal(1, 2)), type_of)
    assert isinstance(found, plan.Project)
    assert isinstance(found.child, plan.Filter)
    cluster = found.child.child
    assert isinstance(cluster, plan.MultiJoin)
    assert len(cluster.inputs) == 3
    assert cluster.outputs == ((0, 0), (1, 0), (2, 0), (2, 1), (0, 1), (1, 1))
    assert found.child.condition == Call("LessThan", (column(4), column(5)))


def test_a_condition_that_may_fail_sees_what_it_saw() -> None:
    """Below another join it must not be spared the pairs which that one drops."""
    fails = Call("GreaterThan", (Call("Divide", (column(1), column(3))), column(0)))
    inner = join(table("a"), table("b"), equal(0, 2), fails)
    found = clustered(join(inner, table("c"), equal(3, 4)), type_of)
    assert isinstance(found, plan.MultiJoin)
    assert found.inputs == (clustered(inner, type_of), table("c"))
    assert isinstance(found.inputs[0], plan.Filter)


def test_a_computed_key_is_one_more_column_of_its_input() -> None:
    wide = Call("Cast", (column(3),), INT)
    found = clustered(join(join(table("a"), table("b"), equal(0, 2)), table("c"), equal(wide, 4)), type_of)
    assert isinstance(found, plan.MultiJoin)
    assert found.equal[1] == plan.Equal(((1, 2), (2, 0)), null_safe=False)
    assert found.inputs[1].types == (INT, INT, INT)
    # What may fail is computed where Spark computes it: on the rows of the join below.
    fails = Call("Divide", (column(3), column(1)))
    inner = join(table("a"), table("b"), equal(0, 2))
    found = clustered(join(inner, table("c"), equal(fails, 4)), type_of)
    assert isinstance(found, plan.MultiJoin)
    assert len(found.inputs) == 2
    assert isinstance(found.inputs[0], plan.Project)
    assert found.inputs[0].child == clustered(inner, type_of)


def test_a_join_gives_the_columns_that_a_projection_picks() -> None:
    cluster = clustered(join(table("a"), table("b"), equal(0, 2)), type_of)
    found = absorbed(plan.picked(cluster, [3, 1]))
    assert found is not None
    assert found.outputs == ((1, 1), (0, 1))
    assert absorbed(plan.picked(table("a"), [1])) is None


def test_an_equality_with_a_scalar_looks_it_up() -> None:
    value = plan.Scalar(types=(INT,), child=table("m", 1))
    beside = plan.Join(types=(INT,) * 3, left=table("a"), right=value, kind="inner", condition=None)
    less = Call("LessThan", (column(0), column(2)))
    condition = Call("And", (less, equal(1, 2)))
    found = clustered(plan.Filter(types=(INT,) * 3, child=beside, condition=condition), type_of)
    assert isinstance(found, plan.Filter)
    assert found.condition == less
    assert isinstance(found.child, plan.MultiJoin)
    assert found.child.equal == (plan.Equal(((0, 1), (1, 0)), null_safe=False),)
    # What else is asked might fail, and would be asked of fewer rows.
    fails = Call("And", (Call("LessThan", (Call("Divide", (column(0), column(1))), column(2))), equal(1, 2)))
    node = plan.Filter(types=(INT,) * 3, child=beside, condition=fails)
    assert clustered(node, type_of) == node
