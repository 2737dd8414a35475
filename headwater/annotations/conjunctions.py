"""Absorption provenance where a row has few derivations, as lazy strategies ship them: a function is a set of conjunctions.

    f         { sets of variables }, of which none contains another: the prime implicants of a monotone function, so equal
              functions are equal sets
    f ∨ g     those of both          f ∧ g   all unions of one of each          absorption: what contains another one goes
    deletion  conjunctions go that have a variable which is false

Where there are many alternatives, decision diagrams (`absorption`) are smaller: a set of conjunctions has them one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.annotations.absorption import NODE_BYTES
from headwater.errors import ProvenanceTooLarge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Conjunction = frozenset[int]

_MOST = 4096


class AnyOf:
    """A function: true where all variables of one of its conjunctions are."""

    __slots__ = ("conjunctions",)

    def __init__(self, conjunctions: frozenset[Conjunction]) -> None:
        self.conjunctions = conjunctions

    def __or__(self, other: AnyOf) -> AnyOf:
        found = self.conjunctions
        for theirs in other.conjunctions:
            if not _has_part(found, theirs):
                found = frozenset([theirs, *[mine for mine in found if not theirs <= mine]])
        return self if found is self.conjunctions else AnyOf(found)

    def __and__(self, other: AnyOf) -> AnyOf:
        count = len(self.conjunctions) * len(other.conjunctions)
        if count == 1:
            # As nearly all of them are.
            (mine,), (theirs,) = self.conjunctions, other.conjunctions
            return AnyOf(frozenset((mine | theirs,)))
        if count > _MOST:
            raise _too_large(count)
        return AnyOf(_least({mine | theirs for mine in self.conjunctions for theirs in other.conjunctions}))

    def __le__(self, other: AnyOf) -> bool:
        """Whether the other one is true wherever this is."""
        return all(_has_part(other.conjunctions, mine) for mine in self.conjunctions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyOf) and self.conjunctions == other.conjunctions

    def __hash__(self) -> int:
        return hash(self.conjunctions)


class Conjunctions:
    """Functions of variables that are numbered 0, 1, …, as `absorption.Functions` are."""

    def __init__(self) -> None:
        self.false = AnyOf(frozenset())
        self.true = AnyOf(frozenset({frozenset()}))
        self._count = 0
        self._free: list[int] = []

    def new(self) -> int:
        """A variable that no function depends on."""
        if self._free:
            return self._free.pop()
        self._count += 1
        return self._count - 1

    def free(self, variables: Iterable[int]) -> None:
        """Says that no function depends on these any more."""
        self._free += variables

    @staticmethod
    def variable(number: int) -> AnyOf:
        return AnyOf(frozenset({frozenset({number})}))

    @staticmethod
    def absent(variables: Iterable[int]) -> AnyOf:
        """The variables that are false, as one conjunction, so that conditions are united by ``&``."""
        return AnyOf(frozenset({frozenset(variables)}))

    @staticmethod
    def without(function: AnyOf, absent: AnyOf) -> AnyOf:
        """The function where the variables of the condition are false."""
        (gone,) = absent.conjunctions
        left = [conjunction for conjunction in function.conjunctions if conjunction.isdisjoint(gone)]
        return function if len(left) == len(function.conjunctions) else AnyOf(frozenset(left))

    @staticmethod
    def checked(function: AnyOf) -> AnyOf:
        """The function, unless it has become too large to go on with."""
        if len(function.conjunctions) > _MOST:
            raise _too_large(len(function.conjunctions))
        return function

    @staticmethod
    def nbytes(function: AnyOf) -> int:
        """The size of a function as it is exchanged: as a diagram of its conjunctions, in which they share nothing."""
        return NODE_BYTES * (1 + sum(map(len, function.conjunctions)))

    @staticmethod
    def support(function: AnyOf) -> frozenset[int]:
        """The variables that the function depends on."""
        if len(function.conjunctions) == 1:
            return next(iter(function.conjunctions))
        return frozenset().union(*function.conjunctions)

    @staticmethod
    def one_of(function: AnyOf) -> AnyOf:
        """The shortest conjunction that makes a function true."""
        if len(function.conjunctions) == 1:
            return function
        return AnyOf(frozenset({min(function.conjunctions, key=_length_first)}))

    @staticmethod
    def minimal_sets(function: AnyOf, limit: int | None = None) -> list[frozenset[int]]:
        """The least sets of variables that make a function true; at most `limit`, the shortest."""
        return sorted(function.conjunctions, key=_length_first)[:limit]


def _has_part(conjunctions: Collection[Conjunction], whole: Conjunction) -> bool:
    """Whether one of them is contained in another conjunction. A loop, as it is asked most of all, and of one or two."""
    for conjunction in conjunctions:  # noqa: SIM110
        if conjunction <= whole:
            return True
    return False


def _least(conjunctions: set[Conjunction]) -> frozenset[Conjunction]:
    """Those that contain no other."""
    found: list[Conjunction] = []
    for conjunction in sorted(conjunctions, key=len):
        if not _has_part(found, conjunction):
            found.append(conjunction)
    return frozenset(found)


def _length_first(conjunction: Conjunction) -> tuple[int, list[int]]:
    return len(conjunction), sorted(conjunction)


def _too_large(count: int) -> ProvenanceTooLarge:
    return ProvenanceTooLarge(
        f"the provenance of a row would be {count:,} sets of base rows: the data has too many alternative derivations for it. "
        "Choose the strategy dred or counting, which keep no provenance"
    )
