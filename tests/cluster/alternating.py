"""Epochs and builds that are placed at random, in the driver or on executors, and a count of what was run where.

As a plugin of pytest (`-p alternating`) it lets any test of views run on both placements; SEED and COUNTS are told by
the environment. What an operator did on executors counts once for each job.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from headwater.cluster.cluster import Cluster
from headwater.cluster.placement import Placement
from headwater.runtime.epochs import Epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Counts = Counter[str]
# Of three epochs, so many are asked to run on executors.
MODES = ("cluster", "cluster", "driver")


@contextmanager
def alternating(seed: int) -> Iterator[Counts]:
    """Meanwhile each epoch, and each build, of any session is placed at random; gives what was run on executors."""
    random, counts = Random(seed), Counter[str]()

    def placed(act: Callable[..., Any]) -> Callable[..., Any]:
        def at_random(self: Epochs, *arguments: Any, **options: Any) -> Any:
            if isinstance(self.executors, Placement):
                self.executors.mode = random.choice(MODES)
            return act(self, *arguments, **options)

        return at_random

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            counts["asked"] += 1
            ran = run(*arguments, **options)
            counts["done"] += 1
            counts.update({type(step.operator).__name__ for step in ran.outcome.work})
            return ran

        return counting

    with (
        mock.patch.object(Epochs, "commit", placed(Epochs.commit)),
        mock.patch.object(Epochs, "define", placed(Epochs.define)),
        mock.patch.object(Cluster, "run", counted(Cluster.run)),
    ):
        yield counts


@pytest.fixture(autouse=True, scope="session")
def placed_at_random() -> Iterator[None]:
    with alternating(int(os.environ["SEED"])) as counts:
        yield
    Path(os.environ["COUNTS"]).write_text(json.dumps(counts), "utf-8")
