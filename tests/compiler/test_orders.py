"""The order of joins: which way is chosen for sizes like those of a shop, and what a change looks up first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from test_clusters import INT, table

from headwater.algebra import plan
from headwater.algebra.expressions import Call
from headwater.compiler.estimates import Estimate, Estimator, Facts
from headwater.compiler.orders import Shape, decide
from headwater.compiler.paths import described, wider
from headwater.delta import Delta
from headwater.operators.operator import schema_of
from headwater.state.arrangement import Arrangement

KEY = frozenset({0})


def sized(rows: float, domains: dict[tuple[int, ...], float], *, known: bool = True, unique: bool = False) -> Estimate:
    return Estimate(rows, known, (KEY,) if unique else (), lambda columns: domains.get(columns, rows))


def snowflake() -> plan.MultiJoin:
    """Lines of orders of customers."""
    equal = (plan.Equal(((0, 0), (1, 0)), null_safe=False), plan.Equal(((1, 1), (2, 0)), null_safe=False))
    inputs = (table("lines"), table("orders"), table("customers"))
    return plan.MultiJoin(types=(INT, INT), inputs=inputs, equal=equal, outputs=((0, 1), (2, 1)))


def ways(node: plan.MultiJoin, estimates: list[Estimate], kept: set | None = None) -> tuple:
    shape = Shape(node, estimates)
    decision = decide(shape, lambda relation, classes: (relation, classes) in (kept or set()))
    return decision, described(node, decision, known=shape.known)


def star() -> plan.MultiJoin:
    """Lines with parts and suppliers."""
    equal = (plan.Equal(((0, 0), (1, 0)), null_safe=False), plan.Equal(((0, 1), (2, 0)), null_safe=False))
    inputs = (table("lines"), table("parts"), table("suppliers"))
    return plan.MultiJoin(types=(INT,), inputs=inputs, equal=equal, outputs=((0, 1),))


def test_a_large_result_is_not_kept() -> None:
    lines, parts, suppliers = sized(1e6, {(0,): 1e5, (1,): 1e4}), sized(1e5, {}), sized(1e4, {})
    own = {(1, frozenset({0})), (2, frozenset({1}))}
    decision, choice = ways(star(), [lines, parts, suppliers], own)
    assert decision.tree is None
    assert [[hop.relation for hop in hops] for hops in decision.paths] == [[1, 2], [0, 2], [0, 1]]
    assert (decision.kept_by_paths, round(decision.rows)) == (2e6, 1_000_000)
    assert choice.text == "delta query, which keeps 2,000,000 rows; binary joins would keep 2,000,000 rows"
    assert choice.ways == ("Δlines → parts → suppliers", "Δparts → lines → suppliers", "Δsuppliers → lines → parts")


def test_a_small_result_is_kept_rather_than_a_large_relation_twice() -> None:
    """Both small relations find their rows of the large one in what is left of it after the first join."""
    lines, parts, suppliers = sized(1e6, {(0,): 1e5, (1,): 1e4}), sized(10, {(0,): 1e5}), sized(1e4, {})
    decision, choice = ways(star(), [lines, parts, suppliers])
    assert decision.tree is not None
    assert set(decision.tree.bound[:2]) == {0, 1}
    assert decision.kept_by_tree < decision.kept_by_paths
    assert choice.text is not None
    assert choice.text.startswith("binary joins, which keep ")


def test_without_rows_declared_keys_tell_the_larger_relation_and_nothing_is_stored() -> None:
    estimates = [sized(1e5, {}, known=False, unique=number > 0) for number in range(3)]
    shape = Shape(snowflake(), estimates)
    assert shape.rows[0] > shape.rows[1] > shape.rows[2]
    decision, choice = ways(snowflake(), estimates)
    assert decision.tree is None
    assert choice.text == "delta query, for there were no rows yet to estimate from"
    assert choice.rows is None


def test_estimates_come_from_the_rows_there_are() -> None:
    numbers = np.arange(10_000)
    rows = pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(numbers % 500)], schema=schema_of((INT, INT)))
    kept = Arrangement.empty(rows.schema, (0,)).insert(Delta.inserting(rows))
    estimator = Estimator({"t": Facts(kept, (0,))}, None)  # type: ignore[arg-type]
    found = estimator.estimate(plan.picked(table("T"), [1, 0]))
    assert (found.rows, found.known, found.unique) == (10_000, True, (frozenset({1}),))
    assert (found.domain((0,)), found.domain((1,)), found.domain((0, 1))) == (500, 10_000, 10_000)
    groups = plan.Aggregate(types=(INT,), child=table("t"), keys=(plan.Column(1, INT),), outputs=(plan.Column(1, INT),))
    assert (estimator.estimate(groups).rows, estimator.estimate(groups).unique) == (500, (frozenset({0}),))
    assert not estimator.estimate(table("nobody")).known


def test_rows_with_null_in_a_key_may_be_kept() -> None:
    """So that a table that is kept by its key serves joins that do not want NULLs."""
    there = Call("IsNotNull", (plan.Column(1, INT),))
    node = plan.picked(plan.Filter(types=(INT, INT), child=table("t"), condition=there), [1])
    assert [columns for _, columns in wider(node, {0})] == [{0: 0}, {0: 1}, {0: 1}]
    assert [base for base, _ in wider(node, {0})][-1] == table("t")
    assert [base for base, _ in wider(node, ())][-1] == node.children[0]
