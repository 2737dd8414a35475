"""Where a part of the algebra came from: a way into a tree elsewhere, walked only when someone needs the thing itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    Way = tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class Reading:
    """One reading of a query by Spark: its text, None for a DataFrame, the columns of the relations that it names, and where.

    `view` is the view that it was made for, None if it was for an answer only; `settings` are those of the session that change
    what a query means, where they were not Spark's usual ones.
    """

    text: str | None
    relations: tuple[tuple[str, StructType], ...]
    time_zone: str
    view: str | None
    settings: tuple[tuple[str, str], ...] = field(default=(), metadata={"later": True})


class Origin(Protocol):
    """A thing in Spark: where it stood in the plan that a reading gave, and the thing itself."""

    @property
    def reading(self) -> Reading | None: ...

    @property
    def steps(self) -> Way: ...

    def get(self) -> Any: ...  # noqa: ANN401  (whatever lives there)


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """The object reached from `root` by `steps`: a name is a method to call, a number an element to take."""

    root: Any
    steps: Way = ()
    reading: Reading | None = None

    def then(self, *steps: str | int) -> Handle:
        return Handle(self.root, self.steps + steps, self.reading)

    def child(self, ordinal: int) -> Handle:
        return self.then("children", ordinal)

    def get(self) -> Any:  # noqa: ANN401  (whatever lives there)
        found = self.root
        for step in self.steps:
            found = found.apply(step) if isinstance(step, int) else getattr(found, step)()
        return found
