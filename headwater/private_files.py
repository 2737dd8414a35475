"""Files and folders that only their owner reads, however loose the umask is: 0600 and 0700.

The rule for a directory of state: what is made in it, and the directory itself if it is made, is private. A directory that is
there already keeps the mode that its owner has given it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE = 0o600
_FOLDER = 0o700


def make_folder(path: Path) -> None:
    """Makes a folder, if it is not there; those that it is in, as usual."""
    path.mkdir(_FOLDER, parents=True, exist_ok=True)


def create(path: Path) -> None:
    """Makes an empty file, or empties the one that is there; whoever writes to it next finds it private."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE))


def write_text(path: Path, text: str) -> None:
    """Makes a file with this text, in place of the one that is there."""
    create(path)
    path.write_text(text, encoding="utf-8")
