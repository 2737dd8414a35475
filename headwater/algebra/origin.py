"""Where a part of the algebra came from: a way into a tree elsewhere, walked only when someone needs the thing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """The object reached from `root` by `steps`: a name is a method to call, a number an element to take."""

    root: Any
    steps: tuple[str | int, ...] = ()

    def then(self, *steps: str | int) -> Handle:
        return Handle(self.root, self.steps + steps)

    def child(self, ordinal: int) -> Handle:
        return self.then("children", ordinal)

    def get(self) -> Any:  # noqa: ANN401  (whatever lives there)
        found = self.root
        for step in self.steps:
            found = found.apply(step) if isinstance(step, int) else getattr(found, step)()
        return found
