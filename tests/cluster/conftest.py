"""What tests of the cluster share: a master and two workers, and drivers that are closed in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from driving import Driver
from standalone import Standalone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Drive = Callable[..., Driver]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A standalone cluster with two workers of one core each."""
    started = Standalone(tmp_path_factory.mktemp("standalone"))
    try:
        started.start(workers=2)
        yield started
    finally:
        started.stop()


@pytest.fixture
def drive(cluster: Standalone) -> Iterator[Drive]:
    """Starts drivers on the cluster. Of two, the second gets executors when the first has ended."""
    drivers: list[Driver] = []

    def driver(settings: dict[str, str] | None = None, *, executors: int = 2, **environment: str) -> Driver:
        drivers.append(Driver(cluster.url, settings, **environment))
        drivers[-1].ask("start", executors=executors)
        return drivers[-1]

    yield driver
    for each in drivers:
        each.close()
