"""Origins that were read in an earlier session: found again when Spark really has to evaluate something.

A catalog that is stored keeps, of a part of the algebra, which query it was read from and where it stood in Spark's plan. When
the part itself is needed, Spark reads the query once more, and the part is the one at the same place that means the same. If
Spark has put it elsewhere (the order of conditions is not promised), any part that means the same will do: an expression serves
only as a template whose arguments are replaced, a node as one whose children are. Not so those that have an identity of
their own: two aggregate functions of one form, two variables of a lambda function, two functions of a user.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater.algebra.expressions import Call, Literal
from headwater.algebra.plan import Node, Opaque, cut, parts
from headwater.errors import HeadwaterError, LostQuery
from headwater.frontend.expressions import USER_FUNCTIONS

if TYPE_CHECKING:
    from headwater.algebra.origin import Origin, Reading, Way
    from headwater.frontend.catalyst import Analyser

    Part = Call | Literal | Node
    Places = dict[str, dict[Way, Origin]]

_ONE_OF_ITS_KIND = {"AggregateExpression", "NamedLambdaVariable", *USER_FUNCTIONS}
# What differs between two readings of the same thing.
_PASSING = re.compile(r'"id": \d+, "jvmId": "[^"]*"|\b[0-9a-f]{32}\b')


class Origins:
    """Finds origins, in queries that are read at most once each."""

    def __init__(self, analyser: Analyser) -> None:
        self._analyser = analyser
        self._read: dict[Reading, Places] = {}

    def find(self, reading: Reading, steps: Way, part: Part) -> Origin:
        """The origin of a part that stood at `steps`."""
        if reading not in self._read:
            self._read[reading] = self._places(reading)
        found = self._read[reading].get(_meaning(part), {})
        if steps in found:
            return found[steps]
        if not found or _is_one_of_its_kind(part):
            name = part.function if isinstance(part, Call) else type(part).__name__
            raise LostQuery(
                f"{_described(reading)} is read otherwise by this Spark session than by the one in which it was created: "
                f"it does not have the same {name}. Create the view again"
            )
        return next(iter(found.values()))

    def _places(self, reading: Reading) -> Places:
        if reading.text is None:
            raise LostQuery(
                f"{_described(reading)} was made of a DataFrame, which cannot be read again, and needs Spark to evaluate "
                "a part of it. Create the view again, from SQL if it is to outlive a session"
            )
        try:
            root = self._analyser.again(reading).root
        except HeadwaterError as error:
            raise LostQuery(
                f"{_described(reading)} needs Spark to evaluate a part of it, and this Spark session does not accept it. "
                f"Register the functions that it calls, or create the view again. Spark says: {error}"
            ) from error
        places: Places = {}
        for part in parts(root):
            if part.origin is not None:
                places.setdefault(_meaning(part), {})[part.origin.steps] = part.origin
        return places


@dataclass(frozen=True, eq=False)
class Sought:
    """The origin of a part that was read in an earlier session."""

    reading: Reading
    steps: Way
    part: Part
    origins: Origins

    @cached_property
    def _found(self) -> Origin:
        return self.origins.find(self.reading, self.steps, self.part)

    def get(self) -> Any:  # noqa: ANN401  (whatever lives there)
        return self._found.get()


def _described(reading: Reading) -> str:
    return "a query" if reading.view is None else f"view {reading.view!r}"


def _is_one_of_its_kind(part: Part) -> bool:
    return isinstance(part, Opaque) or (isinstance(part, Call) and part.function in _ONE_OF_ITS_KIND)


def _meaning(part: Part) -> str:
    """What a part says besides its arguments or children, of which only the number or the types count."""
    if isinstance(part, Call):
        return f"{len(part.arguments)} {_told(replace(part, arguments=()))}"
    return _told(cut(part) if isinstance(part, Node) else part)


def _told(value: object) -> str:
    """The value and everything in it, in order; what two readings say differently is left out."""
    told: list[str] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            told.append(f"({len(part)}")
            waiting += reversed(part)
        elif is_dataclass(part):
            told.append(type(part).__name__)
            names = [each.name for each in fields(part) if each.compare]
            waiting += [getattr(part, name) for name in reversed(names)]
        else:
            told.append(_PASSING.sub("", repr(part)))
    return "\n".join(told)
