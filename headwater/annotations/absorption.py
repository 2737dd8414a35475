"""Absorption provenance: for a row the Boolean function of base rows that says when it is there.

    variable   one a base row, true while the row is there
    rules      select keeps, join: f ∧ g, union and projection: f ∨ g;  absorption: a ∨ (a ∧ b) = a, for functions are canonical
    deletion   f[x := false], for all base rows of a transaction at once;  the row is there  iff  f ≠ false

Functions are reduced ordered binary decision diagrams by CUDD. They are monotone, and stay so: a deletion restricts, it never
negates. A variable that was set to false everywhere is unreachable, and may then stand for another row.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from headwater.errors import ProvenanceTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable

# A node of CUDD's is three words; what is exchanged needs a variable and two places a node.
NODE_BYTES = 12
# Larger ones grow on, and soon take minutes each.
LARGEST_FUNCTION = 20_000
_LARGEST_IN_ALL = 20_000_000
_LOOKED_AT_EVERY = 4096


class Functions:
    """Boolean functions of variables that are numbered 0, 1, …; a function is a value that `&`, `|`, `<=` and `==` work on."""

    def __init__(self, *, reordering: bool = False) -> None:
        """With `reordering`, variables are put into a better order when diagrams grow: worth its time where they are large."""
        import dd.cudd

        self._cudd: Any = dd.cudd
        self._bdd: Any = dd.cudd.BDD()
        self._bdd.configure(reordering=reordering)
        self.false: Any = self._bdd.false
        self.true: Any = self._bdd.true
        self._variables: list[Any] = []
        self._free: list[int] = []
        self._operations = 0

    def new(self) -> int:
        """A variable that no function depends on."""
        if self._free:
            return self._free.pop()
        name = f"x{len(self._variables)}"
        self._bdd.declare(name)
        self._variables.append(self._bdd.var(name))
        return len(self._variables) - 1

    def free(self, variables: Iterable[int]) -> None:
        """Says that no function depends on these any more."""
        self._free += variables

    def variable(self, number: int) -> Any:  # noqa: ANN401  (a function)
        return self._variables[number]

    def absent(self, variables: Iterable[int]) -> Any:  # noqa: ANN401  (a function)
        """The condition that all of these are false, to restrict functions by."""
        cube = self.true
        for number in variables:
            cube &= ~self._variables[number]
        return cube

    def without(self, function: Any, absent: Any) -> Any:  # noqa: ANN401  (functions)
        """The function where the variables of the condition are false."""
        return self._cudd.restrict(function, absent)

    def checked(self, function: Any) -> Any:  # noqa: ANN401  (a function)
        """The function, unless it, or all of them, have become too large to go on with."""
        self._operations += 1
        counted = self._operations % _LOOKED_AT_EVERY == 0
        if function.dag_size > LARGEST_FUNCTION or (counted and self._nodes() > _LARGEST_IN_ALL):
            raise ProvenanceTooLarge(
                f"the provenance of a row is a function of {function.dag_size:,} nodes, and there are {self._nodes():,} in "
                "all: the data has too many alternative derivations for it. Choose the strategy absorption-lazy if this was "
                "absorption-eager, else dred or counting, which keep no provenance"
            )
        return function

    def _nodes(self) -> int:
        """How many nodes there are, or were and are not collected yet."""
        with warnings.catch_warnings():
            # A word on how memory is counted since some version.
            warnings.simplefilter("ignore")
            return int(self._bdd.statistics()["n_nodes"])

    def nbytes(self, function: Any) -> int:  # noqa: ANN401  (a function)
        """The size of a function as it is exchanged: a variable and two places for each of its nodes."""
        return NODE_BYTES * function.dag_size

    def support(self, function: Any) -> set[int]:  # noqa: ANN401  (a function)
        """The variables that the function depends on."""
        return {int(name[1:]) for name in self._bdd.support(function)}

    def one_of(self, function: Any) -> Any:  # noqa: ANN401  (functions)
        """One conjunction of variables that makes a monotone function true."""
        cube, negated, rest = self.true, False, function
        while rest.var is not None:
            negated ^= rest.negated
            low, high, name = rest.low, rest.high, rest.var
            # Without the variable, if that is possible.
            if (~low if negated else low) == self.false:
                cube &= self._variables[int(name[1:])]
                rest = high
            else:
                rest = low
        return function if cube == function else cube

    def minimal_sets(self, function: Any, limit: int | None = None) -> list[frozenset[int]]:  # noqa: ANN401  (a function)
        """The least sets of variables that make a monotone function true: its prime implicants; at most `limit`.

        f = f₀ ∨ (x ∧ f₁): those of f₀, and x with those of f₁ that do not make f₀ true already.
        """
        known: dict[int, list[frozenset[int]]] = {}
        stack = [function]
        while stack:
            f = stack[-1]
            if int(f) in known:
                stack.pop()
            elif f == self.false:
                known[int(f)] = []
            elif f == self.true:
                known[int(f)] = [frozenset()]
            else:
                low, high = (~f.low, ~f.high) if f.negated else (f.low, f.high)
                missing = [part for part in (low, high) if int(part) not in known]
                if missing:
                    stack += missing
                    continue
                known[int(f)] = self._primes(int(f.var[1:]), low, known[int(low)], known[int(high)], limit)
                stack.pop()
        return known[int(function)]

    def _primes(
        self,
        variable: int,
        low: Any,  # noqa: ANN401  (a function)
        without: list[frozenset[int]],
        beside: list[frozenset[int]],
        limit: int | None,
    ) -> list[frozenset[int]]:
        found = list(without)
        for chosen in beside:
            if limit is not None and len(found) >= limit:
                break
            if low == self.false or not self._holds(low, chosen):
                found.append(chosen | {variable})
        return found

    def _holds(self, function: Any, chosen: frozenset[int]) -> bool:  # noqa: ANN401  (a function)
        """Whether a function is true where exactly the chosen variables are."""
        negated = False
        while function.var is not None:
            negated ^= function.negated
            function = function.high if int(function.var[1:]) in chosen else function.low
        return bool((function == self.true) ^ negated)
