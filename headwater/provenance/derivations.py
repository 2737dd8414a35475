"""Derivations: how rows follow from base rows, as a graph of conjunctions and disjunctions.

    row of a table   a variable: true, while the row is there
    all              a pair of a join, a group of an aggregate: every one of these
    any              equal rows of a union, a projection, a distinct: one of these
    fact             a row of a recursive relation: whatever is found to derive it, perhaps from itself
    absence          no row that would stand in the way (an anti join, EXCEPT, the padding of an outer join)

A vertex is known by its number, so that a batch of rows carries its derivations as an array. Equal vertices are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.values import python_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Row = tuple[Any, ...]

TRUE = 0


@dataclass(frozen=True)
class Vertex:
    """One node of the graph; `table` and `row` of a base row or a fact, `text` of an absence."""

    kind: str
    children: tuple[int, ...] = ()
    table: str = ""
    row: Row = ()
    text: str = ""


@dataclass(frozen=True)
class Derivation:
    """Everything that a row follows from: vertices, of which those that the root reaches count."""

    vertices: tuple[Vertex, ...]
    root: int

    def reached(self) -> list[int]:
        """The vertices that matter, each after those it follows from, but where facts follow from themselves."""
        order: list[int] = []
        seen = {self.root}
        stack: list[tuple[int, Iterator[int]]] = [(self.root, iter(self.vertices[self.root].children))]
        while stack:
            vertex, remaining = stack[-1]
            child = next(remaining, None)
            if child is None:
                order.append(vertex)
                stack.pop()
            elif child not in seen:
                seen.add(child)
                stack.append((child, iter(self.vertices[child].children)))
        return order


class Builder:
    """Makes vertices, each once."""

    def __init__(self) -> None:
        self._vertices: list[Vertex] = [Vertex("all")]
        self._known: dict[object, int] = {("all", ()): TRUE}

    def base(self, table: str, row: Row) -> int:
        return self._made(("row", table, frozen(row)), lambda: Vertex("row", table=table, row=row))

    def absence(self, text: str) -> int:
        return self._made(("absence", text), lambda: Vertex("absence", text=text))

    def fact(self, scope: int, relation: str, row: Row) -> int:
        """A row of a recursive relation, of the fixpoint with the given number, whose derivations are told later."""
        return self._made(("fact", scope, relation, frozen(row)), lambda: Vertex("fact", table=relation, row=row))

    def define(self, fact: int, derivations: Iterable[int]) -> None:
        """Tells what a fact follows from."""
        known = self._vertices[fact]
        self._vertices[fact] = Vertex("fact", tuple(sorted(set(derivations))), known.table, known.row)

    def all(self, parts: Iterable[int]) -> int:
        """All of the parts; parts that are conjunctions themselves are taken apart."""
        flat: dict[int, None] = {}
        for part in parts:
            vertex = self._vertices[part]
            flat |= dict.fromkeys(vertex.children if vertex.kind == "all" else (part,))
        return self._joined("all", tuple(flat))

    def any(self, parts: Sequence[int]) -> int:
        """One of the parts, of which there is at least one."""
        distinct = tuple(dict.fromkeys(parts))
        return TRUE if TRUE in distinct else self._joined("any", distinct)

    def derivation(self, root: int) -> Derivation:
        return Derivation(tuple(self._vertices), root)

    def _joined(self, kind: str, parts: tuple[int, ...]) -> int:
        if len(parts) == 1:
            return parts[0]
        return self._made((kind, frozenset(parts)) if parts else ("all", ()), lambda: Vertex(kind, parts))

    def _made(self, key: object, make: Any) -> int:  # noqa: ANN401  (a function without arguments)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._vertices)
            self._vertices.append(make())
        return number


def frozen(value: Any) -> Any:  # noqa: ANN401  (a value of a row)
    """The value in a form that can be looked up; NaN is NaN."""
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((name, frozen(inner)) for name, inner in value.items())
    return "NaN" if isinstance(value, float) and value != value else value  # noqa: PLR0124  (NaN)


def tuples(columns: Sequence[Any], count: int) -> list[Row]:
    """The rows of Arrow columns as tuples of Python values."""
    if not columns:
        return [()] * count
    return list(zip(*map(python_values, columns), strict=True))
