"""Rows with their functions, found by the variables that these depend on.

A deletion sets a few variables to false. The functions that do not depend on them stay as they are, and are not even looked at:
for each variable it is known which rows' functions may depend on it. An annotation is a function with a mask of its variables,
which may have more than the function, as absorption takes some away.

    mask       bit v + 1 for variable v;  bit 0: there may be several derivations, else it is the conjunction of the mask
    f ∧ g      masks are united: a conjunction of conjunctions is one;       f ∨ g   united, and several

Of conjunctions the masks alone decide: which absorbs which is which is contained, and without one of its variables it is false.
So lazy provenance, which ships one conjunction a row, seldom asks CUDD.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.annotations.absorption import Functions
    from headwater.annotations.conjunctions import Conjunctions

    Annotation = tuple[Any, int]
    AnyFunctions = Functions | Conjunctions

SEVERAL = 1


def mask_of(variables: Iterable[int]) -> int:
    """The mask of a conjunction of variables."""
    return sum(2 << variable for variable in variables)


def is_absorbed(new: Annotation, known: Annotation) -> bool:
    """Whether a derivation says nothing beyond what is known."""
    if not (new[1] | known[1]) & SEVERAL:
        return not known[1] & ~new[1]
    return bool(new[0] <= known[0])


class Annotated:
    """A mapping from keys, rows for the most part, to annotations."""

    __slots__ = ("_functions", "_users", "kept")

    def __init__(self, functions: AnyFunctions) -> None:
        self._functions = functions
        # By the place of a variable's bit in masks.
        self._users: defaultdict[int, dict[Any, None]] = defaultdict(dict)
        self.kept: dict[Any, Annotation] = {}

    def put(self, key: Any, function: Any, mask: int) -> None:  # noqa: ANN401  (a key, a function)
        """Keeps a function, which may be new to the key or another one than before."""
        old = self.kept.get(key)
        fresh = (mask if old is None else mask & ~old[1]) & ~SEVERAL
        users = self._users
        while fresh:
            # From above, so that what is left becomes shorter.
            highest = fresh.bit_length() - 1
            fresh ^= 1 << highest
            users[highest][key] = None
        self.kept[key] = (self._functions.checked(function), mask)

    def add(self, key: Any, annotation: Annotation) -> bool:  # noqa: ANN401  (a key)
        """Adds a derivation; whether that changes anything, or is absorbed."""
        old = self.kept.get(key)
        if old is None:
            self.put(key, *annotation)
            return True
        several = (old[1] | annotation[1]) & SEVERAL
        if not several and is_absorbed(annotation, old):
            return False
        if not several and is_absorbed(old, annotation):
            self.put(key, *annotation)
            return True
        new = old[0] | annotation[0]
        if new == old[0]:
            return False
        self.put(key, new, old[1] | annotation[1] | SEVERAL)
        return True

    def without(self, variables: Iterable[int], absent: Any, mask: int) -> list[tuple[Any, bool]]:  # noqa: ANN401
        """Sets variables to false; gives the keys whose functions changed, and whether each is false now, and gone."""
        touched: dict[Any, None] = {}
        for variable in variables:
            touched.update(self._users.pop(variable + 1, {}))
        changed = []
        false = self._functions.false
        for key in touched:
            old = self.kept.get(key)
            if old is None or not old[1] & mask:
                continue
            new = self._functions.without(old[0], absent) if old[1] & SEVERAL else false
            if new == false:
                del self.kept[key]
                changed.append((key, True))
            else:
                self.kept[key] = (new, old[1] & ~mask)
                if new != old[0]:
                    changed.append((key, False))
        return changed

    def nbytes(self) -> int:
        """The size of all functions, as they would be exchanged."""
        return sum(self._functions.nbytes(function) for function, _ in self.kept.values())
