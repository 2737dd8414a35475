"""What an epoch must pass before anyone sees it, where epochs are to outlive the process."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from headwater.runtime.history import history_gone

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.runtime.history import Changed


class Journal(Protocol):
    """Keeps epochs. Raising means that the epoch does not come to be."""

    def commit(self, then: Snapshot, tables: Mapping[str, Delta], views: Mapping[str, Delta], seconds: float) -> None:
        """Notes what an epoch changed, by names in lower case; views with the columns that only serve to order them."""
        ...

    def make_room(self) -> None:
        """Waits, before a transaction begins, until there is memory for what it may bring."""
        ...

    def defining(self) -> AbstractContextManager[object]:
        """Held by who is about to define, before the lock of writers."""
        ...

    def prepare(self, catalog: Catalog, states: Mapping[Step, State]) -> dict[Step, State]:
        """Takes a catalog and its new states ahead, while commits go on; gives the same states as they are kept now."""
        ...

    def define(self, then: Snapshot, views: Mapping[str, Changed], began: Collection[str]) -> Snapshot:
        """Notes an epoch with another catalog; `began` are the tables and views that cannot be read as of epochs before it."""
        ...

    def changes(self, name: str, after: int, earliest: int) -> list[Changed]:
        """What changed in a table or view after an epoch, where memory only has what is after the `earliest`."""
        ...


class NoJournal:
    """Epochs that end with the process."""

    def commit(self, then: Snapshot, tables: Mapping[str, Delta], views: Mapping[str, Delta], seconds: float) -> None: ...

    def make_room(self) -> None: ...

    def defining(self) -> AbstractContextManager[object]:
        return nullcontext()

    def prepare(self, catalog: Catalog, states: Mapping[Step, State]) -> dict[Step, State]:  # noqa: ARG002
        return dict(states)

    def define(self, then: Snapshot, views: Mapping[str, Changed], began: Collection[str]) -> Snapshot:  # noqa: ARG002
        return then

    def changes(self, name: str, after: int, earliest: int) -> list[Changed]:
        raise history_gone(name, after, earliest)
