"""Places: which logical shard a row is at, and what goes from one to another.

A row of an input or of a relation is at home where the hash of its first column says; for a join it is brought to where the
hash of its key says. Only what changes its place is exchanged, and only that is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.operators.recursive.network import Row, Update

HOME = (0,)


class Places:
    """So many shards; without a number, each key is a place of its own, as each node of a network is."""

    def __init__(self, shards: int | None) -> None:
        self.shards = shards
        self._known: dict[Row, Any] = {}

    def of(self, row: Row, columns: Sequence[int]) -> Any:  # noqa: ANN401  (a number, or a key)
        key = (row[columns[0]],) if len(columns) == 1 else tuple(row[column] for column in columns)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = key if self.shards is None else crc32(repr(key).encode()) % self.shards
        return place

    def home(self, row: Row) -> Any:  # noqa: ANN401  (a place)
        return self.of(row, HOME) if row else 0

    @property
    def count(self) -> int:
        """How many places there are."""
        return len(self._known) if self.shards is None else self.shards


def _no_bytes(_: object) -> int:
    return 0


@dataclass
class Counters:
    """What was exchanged between places: rows and bytes, and how many rows said what was not known when the round began."""

    rows: int = 0
    bytes: int = 0
    effective: int = 0
    size: Callable[[Any], int] = _no_bytes
    """The bytes of an annotation."""

    def count(self, row: Row, annotation: Any) -> None:  # noqa: ANN401  (an annotation)
        """Counts a row with its annotation."""
        self.add(row_bytes(row) + self.size(annotation))

    def add(self, size: int, *, effective: bool = True) -> None:
        self.rows += 1
        self.bytes += size
        self.effective += effective


def row_bytes(row: Row) -> int:
    """The size of a row as it is exchanged: eight bytes a number, texts as they are."""
    return sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)


class Shipping(Protocol):
    """What holds back, or lets through, updates that change their place."""

    def ship(self, updates: list[tuple[Update, Any]]) -> list[Update]: ...


class Exchange:
    """Brings updates to the places of their keys."""

    def __init__(self, places: Places, counters: Counters, ship: Callable[[], Shipping]) -> None:
        """`ship` makes what lets updates of relations pass on an edge."""
        self.places = places
        self._counters = counters
        self._make = ship
        self.edges: dict[Any, Shipping] = {}

    def to_key(self, edge: Any, updates: list[Update], key: Sequence[int], *, recursive: bool) -> list[Update]:  # noqa: ANN401
        """Updates at the place of their key; those of relations go through what their edge lets pass."""
        found: list[Update] = []
        leaving: list[tuple[Update, Any]] = []
        for update in updates:
            row, annotation, place = update
            target = self.places.of(row, key) if key else 0
            if target == place:
                found.append(update)
            elif recursive:
                leaving.append((update, target))
            else:
                self._counters.count(row, annotation)
                found.append((row, annotation, target))
        if leaving:
            if edge not in self.edges:
                self.edges[edge] = self._make()
            found += self.edges[edge].ship(leaving)
        return found
