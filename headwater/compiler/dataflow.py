"""The dataflow: operators connected by their inputs. Steps are shared by all views that need the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.algebra.plan import Types
    from headwater.delta import Delta
    from headwater.operators.operator import Operator


@dataclass(frozen=True, eq=False)
class Step:
    """An operator at its place in the dataflow; two steps are the same only if they are the same object."""

    operator: Operator
    inputs: tuple[Step, ...]
    label: str

    @property
    def types(self) -> Types:
        return self.operator.types

    @cached_property
    def nothing(self) -> Delta:
        """What it gives where nothing changes."""
        return self.operator.nothing()


def in_order(roots: Iterable[Step]) -> list[Step]:
    """All steps that the roots need, each after its inputs."""
    seen: set[Step] = set()
    found: list[Step] = []
    stack: list[tuple[Step, Iterator[Step]]] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack.append((root, iter(root.inputs)))
        while stack:
            step, remaining = stack[-1]
            child = next(remaining, None)
            if child is None:
                found.append(step)
                stack.pop()
            elif child not in seen:
                seen.add(child)
                stack.append((child, iter(child.inputs)))
    return found
