"""How long tests wait for what other threads and processes do: no test is about speed, so the limit is one of last resort."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Below the limit of a test, so that the message of whoever waits is seen. A busy machine needs a small part of it.
PATIENCE = 400.0


def wait_until(done: Callable[[], object], what: str = "what was waited for did not happen", pause: float = 0.01) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, what
        time.sleep(pause)
