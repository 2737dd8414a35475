"""A directory as it would be found if its writer's process had ended at this moment."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import headwater as hw


def crashed(session: hw.Session, copy: Path) -> Path:
    """A copy of the directory of a session that goes on, without its lease."""
    store = session._store
    assert store is not None
    # Whoever copies files one by one must not meet a fold, which removes some of them.
    with store.defining():
        return shutil.copytree(store.disk.path("."), copy, ignore=shutil.ignore_patterns("*lease*"))
