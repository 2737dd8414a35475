"""Semi and anti joins after joins: when, and that they ask the same."""

from __future__ import annotations

from test_clusters import INT, column, equal, join, table, type_of

from headwater.algebra import plan
from headwater.algebra.expressions import Call
from headwater.compiler.clusters import clustered
from headwater.compiler.estimates import Estimate
from headwater.compiler.raising import raised


class Sizes:
    """Estimates by the name of the table, with a domain of a thousand values for every column."""

    def __init__(self, **rows: float) -> None:
        self.rows = rows

    def estimate(self, node: plan.Node) -> Estimate:
        rows = min(self.rows[part.source] for part in plan.walk(node) if isinstance(part, plan.Scan))
        return Estimate(rows, True, (), lambda _: 1000.0)  # noqa: FBT003


def asking(kind: str, *conditions: Call) -> plan.Node:
    """Rows of a(x, y) with or without a partner in s, joined with b; of a only y is shown."""
    semi = join(table("a"), table("s"), equal(0, 2), *conditions)
    semi = plan.Join(types=(INT, INT), left=semi.left, right=semi.right, kind=kind, condition=semi.condition)
    return clustered(join(plan.picked(semi, [1]), table("b"), equal(0, 1)), type_of)


def test_a_join_that_leaves_few_rows_comes_first() -> None:
    for kind in ("semi", "anti"):
        found = raised(asking(kind, Call("LessThan", (column(1), column(3)))), Sizes(a=1e6, b=10, s=1e6))  # type: ignore[arg-type]
        assert isinstance(found, plan.Project)
        semi = found.child
        assert isinstance(semi, plan.Join)
        assert (semi.kind, semi.right) == (kind, table("s"))
        below = semi.left
        assert isinstance(below, plan.MultiJoin)
        assert below.inputs == (table("a"), table("b"))
        assert below.equal == (plan.Equal(((0, 1), (1, 0)), null_safe=False),)
        assert below.outputs == ((0, 1), (1, 0), (1, 1), (0, 0))
        assert semi.condition == Call("And", (equal(3, 4), Call("LessThan", (column(0), column(5)))))
        assert found.types == (INT, INT, INT)


def test_otherwise_it_stays_where_it_is() -> None:
    node = asking("semi")
    assert raised(node, Sizes(a=1e3, b=1e6, s=1e6)) == node  # type: ignore[arg-type]
    fails = asking("semi", Call("LessThan", (Call("Divide", (column(1), column(3))), column(0))))
    assert raised(fails, Sizes(a=1e6, b=10, s=1e6)) == fails  # type: ignore[arg-type]
