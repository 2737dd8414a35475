"""Absorption provenance where a row has few derivations, as lazy strategies ship them: a function is a set of conjunctions.

    f         masks of variables in their order, of which none contains another: the prime implicants of a monotone function,
              so equal functions are equal tuples
    f ∨ g     those of both          f ∧ g   all unions of one of each          absorption: what contains another one goes
    deletion  conjunctions go that have a variable which is false

Where there are many alternatives, decision diagrams (`absorption`) are smaller: a set of conjunctions has them one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.annotations.absorption import NODE_BYTES
from headwater.errors import ProvenanceTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 4096


class AnyOf:
    """A function: true where all variables of one of its conjunctions are; bit v of a mask is variable v."""

    __slots__ = ("masks",)

    def __init__(self, masks: tuple[int, ...]) -> None:
        # Not a set: masks are numbers of thousands of bits, and hashing one takes longer than all that is done with it.
        self.masks = masks

    def __or__(self, other: AnyOf) -> AnyOf:
        new = [theirs for theirs in other.masks if all(mine & ~theirs for mine in self.masks)]
        if not new:
            return self
        return AnyOf(tuple(sorted([*(mine for mine in self.masks if all(theirs & ~mine for theirs in new)), *new])))

    def __and__(self, other: AnyOf) -> AnyOf:
        count = len(self.masks) * len(other.masks)
        if count == 1:
            # As nearly all of them are.
            (mine,), (theirs,) = self.masks, other.masks
            return AnyOf((mine | theirs,))
        if count > _MOST:
            raise _too_large(count)
        return AnyOf(_least([mine | theirs for mine in self.masks for theirs in other.masks]))

    def __le__(self, other: AnyOf) -> bool:
        """Whether the other one is true wherever this is."""
        return all(any(not theirs & ~mine for theirs in other.masks) for mine in self.masks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyOf) and self.masks == other.masks

    def __hash__(self) -> int:
        return hash(self.masks)


class Conjunctions:
    """Functions of variables that are numbered 0, 1, …, as `absorption.Functions` are."""

    def __init__(self) -> None:
        self.false = AnyOf(())
        self.true = AnyOf((0,))
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
        return AnyOf((1 << number,))

    @staticmethod
    def absent(variables: Iterable[int]) -> AnyOf:
        """The variables that are false, as one conjunction, so that conditions are united by ``&``."""
        return AnyOf((sum(1 << number for number in variables),))

    @staticmethod
    def without(function: AnyOf, absent: AnyOf) -> AnyOf:
        """The function where the variables of the condition are false."""
        (gone,) = absent.masks
        return AnyOf(tuple([mask for mask in function.masks if not mask & gone]))

    @staticmethod
    def checked(function: AnyOf) -> AnyOf:
        """The function, unless it has become too large to go on with."""
        if len(function.masks) > _MOST:
            raise _too_large(len(function.masks))
        return function

    @staticmethod
    def nbytes(function: AnyOf) -> int:
        """The size of a function as it is exchanged: as a diagram of its conjunctions, in which they share nothing."""
        return NODE_BYTES * (1 + sum(mask.bit_count() for mask in function.masks))

    @staticmethod
    def support(function: AnyOf) -> set[int]:
        """The variables that the function depends on."""
        return {variable for mask in function.masks for variable in _variables(mask)}

    @staticmethod
    def one_of(function: AnyOf) -> tuple[AnyOf, list[int]]:
        """The shortest conjunction that makes a function true, and its variables."""
        shortest = min(function.masks, key=lambda mask: (mask.bit_count(), mask))
        return AnyOf((shortest,)), _variables(shortest)

    @staticmethod
    def minimal_sets(function: AnyOf, limit: int | None = None) -> list[frozenset[int]]:
        """The least sets of variables that make a function true; at most `limit`."""
        return [frozenset(_variables(mask)) for mask in function.masks[:limit]]


def _least(masks: list[int]) -> tuple[int, ...]:
    """The masks that contain no other."""
    found: list[int] = []
    for mask in sorted(masks, key=int.bit_count):
        if all(known & ~mask for known in found):
            found.append(mask)
    return tuple(sorted(found))


def _variables(mask: int) -> list[int]:
    found = []
    while mask:
        highest = mask.bit_length() - 1
        found.append(highest)
        mask ^= 1 << highest
    return found


def _too_large(count: int) -> ProvenanceTooLarge:
    return ProvenanceTooLarge(
        f"the provenance of a row would be {count:,} sets of base rows: the data has too many alternative derivations for it. "
        "Choose the strategy dred or counting, which keep no provenance"
    )
