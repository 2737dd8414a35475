"""Rows with their functions, found by the variables that these depend on.

A deletion sets a few variables to false. The functions that do not depend on them stay as they are, and are not even looked at:
for each variable it is known which rows' functions may depend on it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.annotations.absorption import Functions
    from headwater.annotations.conjunctions import Conjunctions

    AnyFunctions = Functions | Conjunctions


class Annotated:
    """A mapping from keys, rows for the most part, to functions."""

    __slots__ = ("_functions", "_users", "kept")

    def __init__(self, functions: AnyFunctions) -> None:
        self._functions = functions
        # A variable's keys stay listed when their functions do not depend on it any more.
        self._users: defaultdict[int, dict[Any, None]] = defaultdict(dict)
        self.kept: dict[Any, Any] = {}

    def add(self, key: Any, function: Any) -> bool:  # noqa: ANN401  (a key, a function)
        """Adds a derivation; whether that changes anything, or is absorbed."""
        old = self.kept.get(key)
        new = function if old is None else old | function
        if old is not None and new == old:
            return False
        self.kept[key] = self._functions.checked(new)
        users = self._users
        for variable in self._functions.support(function):
            users[variable][key] = None
        return True

    def without(self, variables: Iterable[int], absent: Any) -> list[tuple[Any, bool]]:  # noqa: ANN401  (a function)
        """Sets variables to false; gives the keys whose functions changed, and whether each is false now, and gone."""
        touched: dict[Any, None] = {}
        for variable in variables:
            touched.update(self._users.pop(variable, {}))
        changed = []
        false = self._functions.false
        for key in touched:
            old = self.kept.get(key)
            if old is None:
                continue
            new = self._functions.without(old, absent)
            if new == false:
                del self.kept[key]
                changed.append((key, True))
            elif new != old:
                self.kept[key] = new
                changed.append((key, False))
        return changed

    def nbytes(self) -> int:
        """The size of all functions, as they would be exchanged."""
        return sum(map(self._functions.nbytes, self.kept.values()))
