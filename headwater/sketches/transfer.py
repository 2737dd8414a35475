"""Ranges of one access serve others that are joined with it: what has no partner there is not needed either.

    σ k ∈ P (R) ⋈ R.k = S.k₂ S   =   σ k ∈ P (R) ⋈ R.k = S.k₂ σ k₂ ∈ P (S)

So for inner and semi joins both ways, and from the left to the right side of outer and anti joins, where both columns come
from their tables as they are, also as keys of groups; but not through a limit, which would take other rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from headwater.algebra import plan
from headwater.algebra.expressions import Column
from headwater.compiler.joins import analyse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.sketches.facts import Access

    # For each column of a node, the access that it comes from as it is.
    Sources = list[Access | None]

_BOTH, _ONE = ("inner", "semi"), ("left", "anti")


def transfers(root: plan.Node) -> list[tuple[Access, Access]]:
    """Pairs of accesses such that ranges of the first, NULL aside, are ranges of the second."""
    walk = _Walk()
    walk.sources(root)
    return walk.joined


def groupings(root: plan.Node) -> list[list[Access]]:
    """For each aggregate, from the bottom: the accesses that its keys come from as they are, or that these are joined with."""
    walk = _Walk()
    walk.sources(root)
    direct = ([access for access in keys if access is not None] for keys in walk.grouped)
    return [[*keys, *(other for one, other in walk.joined if one in keys)] for keys in direct]


@dataclass
class _Walk:
    scans: Iterator[int] = field(default_factory=count)
    joined: list[tuple[Access, Access]] = field(default_factory=list)
    grouped: list[Sources] = field(default_factory=list)

    def sources(self, node: plan.Node) -> Sources:  # noqa: PLR0911  (one case a kind)
        if isinstance(node, plan.Scan):
            number = next(self.scans)
            return [(number, column) for column in range(len(node.types))]
        children = [self.sources(child) for child in node.children]
        match node:
            case plan.Filter() | plan.Sort():
                return children[0]
            case plan.Project():
                return [children[0][part.index] if isinstance(part, Column) else None for part in node.expressions]
            case plan.Aggregate():
                self.grouped.append([children[0][key.index] for key in node.keys if isinstance(key, Column)])
                return [
                    children[0][part.index] if isinstance(part, Column) and part in node.keys else None for part in node.outputs
                ]
            case plan.Join():
                _joined(node, children[0], children[1], self.joined)
                if node.kind in ("semi", "anti"):
                    return children[0]
                if node.kind == "inner":
                    return [*children[0], *children[1]]
                if node.kind == "left":
                    return [*children[0], *[None] * len(children[1])]
        return [None] * len(node.types)


def _joined(node: plan.Join, left: Sources, right: Sources, found: list[tuple[Access, Access]]) -> None:
    condition = analyse(node)
    for one, other, safe in zip(condition.left, condition.right, condition.null_safe, strict=True):
        if safe or not isinstance(one, Column) or not isinstance(other, Column) or one.type != other.type:
            continue
        first, second = left[one.index], right[other.index]
        if first is None or second is None:
            continue
        if node.kind in (*_BOTH, *_ONE):
            found.append((first, second))
        if node.kind in _BOTH:
            found.append((second, first))
