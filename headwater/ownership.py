"""What belongs to one process: a fork copies a session into the child, but not its threads, its lease or its right to write.

So everything that changes files or ends something asks first whether it is still in the process that it was made in.
"""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from headwater.errors import ForkedSession


class Owner:
    """The process in which this was made."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this process is the owner, and not a fork of it."""
        return os.getpid() == self._process

    def require(self) -> None:
        """Raises in a fork of the owner."""
        if not self.is_here:
            raise ForkedSession(
                f"the session belongs to process {self._process}, and this is process {os.getpid()}, a fork of it; "
                'use the session there, or connect here: with mode="r" while the other one writes the same directory'
            )


class ScratchFolder:
    """A temporary folder, which is removed with this object or at the exit of its process; a fork leaves it alone."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="headwater-"))
        self.remove = finalize(self, _remove, Owner(), self.path)


def _remove(owner: Owner, path: Path) -> None:
    if owner.is_here:
        rmtree(path, ignore_errors=True)
