"""Where the work of an epoch is done if not in the driver: what the line of epochs asks of executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headwater.compiler.dataflow import Step
    from headwater.delta import Delta
    from headwater.operators.operator import State
    from headwater.runtime.catalog import Catalog, Snapshot
    from headwater.runtime.driver import Outcome, Outer


class Executors(Protocol):
    """Runs epochs elsewhere than in the driver, where that is wanted or pays."""

    def epoch(self, now: Snapshot, sources: Mapping[Step, Delta]) -> Outcome | None:
        """The next states after changes of tables; None if the driver is to compute them."""
        ...

    def build(self, now: Snapshot, catalog: Catalog, steps: Sequence[Step], loads: Outer) -> dict[Step, State] | None:
        """The states of new steps of a catalog, each after its inputs, over the content of a snapshot; None: by the driver.

        New tables begin with what they load.
        """
        ...

    def learn(self, sources: Mapping[Step, Delta], seconds: float) -> None:
        """An epoch took so many seconds in the driver."""
        ...

    def committed(self, now: Callable[[], Snapshot]) -> None:
        """What `epoch` or `build` gave this thread is in the present snapshot, or never will be."""
        ...


class NoExecutors:
    """Everything is done in the driver."""

    def epoch(self, now: Snapshot, sources: Mapping[Step, Delta]) -> Outcome | None: ...

    def build(self, now: Snapshot, catalog: Catalog, steps: Sequence[Step], loads: Outer) -> dict[Step, State] | None: ...

    def learn(self, sources: Mapping[Step, Delta], seconds: float) -> None: ...

    def committed(self, now: Callable[[], Snapshot]) -> None: ...
