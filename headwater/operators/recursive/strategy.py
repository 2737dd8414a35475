"""A strategy: how relations that are defined by themselves are kept up to date, over logical shards.

All strategies give the same rows. They differ in what they keep, in what they exchange, and in what a deletion costs.
"""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headwater.durations import microseconds
from headwater.errors import RecursionLimit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.operators.recursive.network import Network, Row, Update

    Changed = tuple[list[Row], list[Row]]

SHARDS = 12
NAMES = ("counting", "absorption-lazy", "relative", "dred", "recompute")
EAGER = "absorption-eager"
_EVERY_ROWS = re.compile(rf"{EAGER} every (\d+) rows?")
_EVERY = f"{EAGER} every "


@dataclass(frozen=True)
class Chosen:
    """A strategy by its name; if it is eager, when what waits is shipped: after so many rows, or seconds."""

    name: str
    batch: int | None = None
    interval: float | None = None


def chosen(text: str) -> Chosen | None:
    """What a user has chosen: a name, and after an eager one `every 100 rows` or `every 10 milliseconds`; else None."""
    if text in (*NAMES, EAGER):
        return Chosen(text, batch=1 if text == EAGER else None)
    rows = _EVERY_ROWS.fullmatch(text)
    if rows is not None:
        return Chosen(EAGER, batch=int(rows[1])) if int(rows[1]) else None
    span = microseconds(text.removeprefix(_EVERY)) if text.startswith(_EVERY) else None
    return Chosen(EAGER, interval=span / 1e6) if span else None


@dataclass(frozen=True)
class Selection:
    """Of the rows of a relation only the best of each group matter: by columns, and whether more of them is better."""

    keys: tuple[int, ...]
    best: tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Settings:
    """What a strategy runs: a network, over so many shards, within limits."""

    network: Network
    names: tuple[str, ...]
    result: int
    rounds: int
    rows: int
    shards: int | None = SHARDS
    batch: int | None = None
    selection: Selection | None = None
    interval: float | None = None
    """Seconds after which derivations that wait are shipped, as they are when `batch` rows do; lazy without both."""


class Strategy(Protocol):
    """Keeps relations up to date while rows of inputs come and go."""

    def apply(self, gone: Sequence[Sequence[Row]], come: Sequence[Sequence[Row]]) -> Changed:
        """What comes and goes in the result when, for each input, rows go and come."""
        ...

    def figures(self) -> dict[str, Any]:
        """What was exchanged and is kept."""
        ...


@contextmanager
def no_cycles() -> Iterator[None]:
    """Python does not look for cycles meanwhile: a strategy makes none, of so many small tuples that it would take longest."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Bounds:
    """Ends a recursion that does not end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._touched = 0
        self.rounds = 0

    def start(self) -> None:
        """An epoch begins."""
        self._touched = self.rounds = 0

    def round(self, emitted: Sequence[Sequence[Update]]) -> None:
        """Counts a round, and what goes on to the next one."""
        settings = self._settings
        self.rounds += 1
        self._touched += sum(map(len, emitted))
        if self.rounds <= settings.rounds and self._touched <= settings.rows:
            return
        which = next((i for i, updates in enumerate(emitted) if updates), 0)
        row = emitted[which][-1][0] if emitted[which] else ()
        what = f"{settings.rounds} rounds" if self.rounds > settings.rounds else f"{settings.rows} rows"
        raise RecursionLimit(
            f"the recursion of {settings.names[which]!r} has not ended after {what}, and nothing was changed. "
            f"It was about to add {row!r}. Bound it: by a condition on the row that grows, or by MIN or MAX over its groups"
        )
