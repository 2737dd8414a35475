"""Reading: what a stream asks of whoever brings its batches, be it Spark or a thread of the driver.

    start(applied, take)   goes on after the batch that was applied last, and calls take(number, read) for each further one

`read` gives the batch and what an epoch is to note of it; it is not called for a batch that was applied before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.sources.frames import Batch

    # What an epoch notes of the batch that it applies: its number and its offsets.
    Position = dict[str, Any]
    Take = Callable[[int, Callable[[], tuple[Batch, Position]]], None]


class Running(Protocol):
    """A reading that was started."""

    @property
    def is_active(self) -> bool: ...

    @property
    def has_more(self) -> bool:
        """Whether something waits to be applied."""
        ...

    @property
    def rows_per_second(self) -> float:
        """Of the last batch."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """Why it has ended, if something went wrong."""
        ...

    def await_idle(self) -> None:
        """Waits until all that was there when this was called is applied, or the reading has ended."""
        ...

    def stop(self) -> None: ...


class Reading(Protocol):
    """Where batches come from."""

    def start(self, name: str, applied: Position | None, take: Take) -> Running: ...
