"""Why a row is there, as a value: the least sets of base rows that suffice, a formula, a graph.

The sets are the prime implicants of the function that a derivation stands for. What every derivation needs, such as all rows of
a group that is summed, is taken out before, so that it costs no more than to name it. Facts of a recursion are the least
solution of their equations: they are false until something derives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater.annotations.absorption import Functions
from headwater.errors import ProvenanceTooLarge
from headwater.provenance.graphs import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.provenance.derivations import Derivation, Row

_MOST_VARIABLES = 20_000
_SETS = 1_000


@dataclass(frozen=True)
class Solved:
    """A derivation as leaves that every set has, and the least sets of others."""

    always: tuple[int, ...]
    sets: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Why:
    """Why `row` is in `view` at `epoch`."""

    view: str
    epoch: int
    row: Row
    derivation: Derivation
    columns: Mapping[str, list[str]]

    def sets(self, limit: int = _SETS) -> list[dict[str, list[Row]]]:
        """The least sets of base rows that make the row true, the smallest first; at most `limit` of them."""
        vertices = self.derivation.vertices
        solved = self._solved(limit, absences=False)
        found = []
        for chosen in solved.sets:
            rows: dict[str, list[Row]] = {}
            for number in sorted((*solved.always, *chosen)):
                vertex = vertices[number]
                if vertex.kind == "row":
                    rows.setdefault(vertex.table, []).append(vertex.row)
            found.append({table: _sorted(those) for table, those in sorted(rows.items())})
        return found

    def rows(self) -> dict[str, list[Row]]:
        """All base rows that matter: those of any of the sets."""
        found: dict[str, list[Row]] = {}
        for rows in self.sets():
            for table, those in rows.items():
                known = found.setdefault(table, [])
                known += [row for row in those if row not in known]
        return {table: _sorted(those) for table, those in sorted(found.items())}

    def absences(self) -> list[str]:
        """What must not be there for the row to be."""
        vertices = self.derivation.vertices
        return [vertices[number].text for number in self._reached if vertices[number].kind == "absence"]

    def formula(self, limit: int = _SETS) -> str:
        """When the row is there, as a disjunction of the sets, and below it what each variable stands for."""
        solved = self._solved(limit, absences=True)
        leaves = sorted({*solved.always, *(number for chosen in solved.sets for number in chosen)})
        names = self._names(leaves)
        terms = [" ∧ ".join(names[number] for number in sorted((*solved.always, *chosen))) for chosen in solved.sets]
        legend = [f"{names[number]} = {self._text(number)}" for number in leaves]
        return "\n".join([" ∨ ".join(term or "true" for term in terms), *legend])

    def graph(self) -> Graph:
        """How the row follows from base rows, step by step."""
        return Graph(f"{self.view}{_shown(self.row)}", self.derivation, dict(self.columns))

    def __str__(self) -> str:
        return f"{self.view}{_shown(self.row)} is there while\n{self.formula()}"

    @cached_property
    def _reached(self) -> list[int]:
        return self.derivation.reached()

    def _names(self, leaves: list[int]) -> dict[int, str]:
        names, counts = {}, {"row": 0, "absence": 0}
        for number in leaves:
            kind = self.derivation.vertices[number].kind
            counts[kind] += 1
            names[number] = f"{'p' if kind == 'row' else 'n'}{counts[kind]}"
        return names

    def _text(self, number: int) -> str:
        vertex = self.derivation.vertices[number]
        if vertex.kind == "absence":
            return vertex.text
        named = ", ".join(f"{name}={value!r}" for name, value in zip(self.columns[vertex.table], vertex.row, strict=True))
        return f"{vertex.table}({named})"

    def _solved(self, limit: int, *, absences: bool) -> Solved:
        return solve(self.derivation, self._reached, limit, absences=absences)


def _sorted(rows: list[Row]) -> list[Row]:
    """The rows in an order of their own, whatever they were found in."""
    return sorted(rows, key=lambda row: [_sort_key(value) for value in row])


def _sort_key(value: object) -> tuple[str, object]:
    ordered = isinstance(value, int | float | str) and value == value  # noqa: PLR0124  (NaN)
    return type(value).__name__, value if ordered else repr(value)


def _shown(row: Row) -> str:
    return f"({', '.join(map(repr, row))})"


def solve(derivation: Derivation, reached: list[int], limit: int | None, *, absences: bool) -> Solved:
    """The least sets of leaves for the root; absences are leaves, or taken for granted."""
    vertices = derivation.vertices
    root = vertices[derivation.root]
    parts = list(root.children) if root.kind == "all" else [derivation.root]
    always = {part for part in parts if vertices[part].kind in ("row", "absence")}
    rest = [part for part in parts if part not in always]
    if not rest:
        return Solved(tuple(sorted(always)), (frozenset(),))
    leaves = [number for number in reached if vertices[number].kind in ("row", "absence") and number not in always]
    if len(leaves) > _MOST_VARIABLES:
        raise ProvenanceTooLarge(
            f"the row depends on {len(leaves):,} base rows in alternative ways, and sets of more than {_MOST_VARIABLES:,} are "
            "not enumerated; graph() shows the derivations"
        )
    equations = _Equations(derivation, reached, frozenset(always), leaves, absences)
    values = equations.least_solution()
    whole = equations.functions.true
    for part in rest:
        whole &= values[part]
    sets = equations.sets(whole, limit)
    return Solved(tuple(sorted(always)), tuple(sorted(sets, key=lambda chosen: (len(chosen), sorted(chosen)))))


class _Equations:
    """The vertices as Boolean equations, with a variable for each leaf that is not always needed."""

    def __init__(
        self,
        derivation: Derivation,
        reached: list[int],
        always: frozenset[int],
        leaves: list[int],
        absences: bool,  # noqa: FBT001
    ) -> None:
        self.functions = Functions(reordering=True)
        self._vertices = derivation.vertices
        self._reached = reached
        self._leaves = {leaf: self.functions.new() for leaf in leaves}
        self._granted = always if absences else always | {n for n in leaves if derivation.vertices[n].kind == "absence"}

    def least_solution(self) -> dict[int, Any]:
        """The function of every vertex: facts are false at first, and grow until nothing changes."""
        values: dict[int, Any] = dict.fromkeys(self._reached, self.functions.false)
        changing = True
        while changing:
            changing = False
            for number in self._reached:
                new = self._value(number, values)
                if new != values[number]:
                    values[number] = self.functions.checked(new)
                    changing = True
        return values

    def sets(self, function: Any, limit: int | None) -> list[frozenset[int]]:  # noqa: ANN401  (a function)
        """The least sets of leaves that make a function true."""
        back = {number: leaf for leaf, number in self._leaves.items()}
        return [frozenset(back[n] for n in chosen) for chosen in self.functions.minimal_sets(function, limit)]

    def _value(self, number: int, values: dict[int, Any]) -> Any:  # noqa: ANN401  (a function)
        vertex = self._vertices[number]
        if vertex.kind in ("row", "absence"):
            return self.functions.true if number in self._granted else self.functions.variable(self._leaves[number])
        new = self.functions.true if vertex.kind == "all" else self.functions.false
        for child in vertex.children:
            new = new & values[child] if vertex.kind == "all" else new | values[child]
        return new
