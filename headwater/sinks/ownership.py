"""Whose a target is: an export writes to what it has made itself, or was told to replace, and to nothing else.

Whatever an export makes carries its owner: the directory, the view, the export's name, and what of the view is there. A target
that carries another one, or none, is foreign, also if it is of another directory or another view. It is refused before anything
about it is changed. A directory of Headwater's is never a target, nor is what is in it or around it, also not to be replaced.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING
from urllib.parse import quote

from headwater.errors import InvalidTarget
from headwater.store.disk import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def owner_of(directory: str, view: str, name: str, *what: str) -> str:
    """What a target carries that an export has made."""
    return "/".join(quote(part, safe="") for part in (directory, view.lower(), name, *what))


def foreign(place: str, what: str) -> InvalidTarget:
    """The error for a target that is not the export's own; `what` says what is there."""
    return InvalidTarget(
        f"{place!r} {what}, and was not made by this export of this view; nothing was changed. Give another target, or "
        "write_to(…, replace=True), which removes what is there"
    )


def taken_over(place: str) -> InvalidTarget:
    return InvalidTarget(f"{place!r} was given to another export, or made anew, since; this one has stopped")


def strange_files(folder: Path, own: Sequence[str] = ()) -> str | None:
    """What is at a path, other than files of these names, as words; None if nothing is."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        return "is a file"
    found = sorted(entry.name for entry in folder.iterdir() if entry.name not in own)
    return f"has other files, such as {found[0]!r}" if found else None


def require_apart(place: Path) -> None:
    """Raises if a target is, or is in, a directory of Headwater's, or is neither a file nor a directory: a device, a pipe."""
    real = place.resolve()
    if real.exists() and not real.is_dir() and not real.is_file():
        raise InvalidTarget(f"{str(place)!r} is neither a directory nor a file; give a directory")
    for folder in (real, *real.parents):
        if (folder / MARK).exists():
            is_it = "is" if folder == real else f"is in {str(folder)!r},"
            raise InvalidTarget(f"{str(place)!r} {is_it} a directory of Headwater's; give a directory of its own")


def require_replaceable(place: Path) -> None:
    """Raises if what is at a path must not go, whoever says so: a directory of Headwater's, or what is around one."""
    require_apart(place)
    for folder, _, files in os.walk(place):
        if MARK in files:
            raise InvalidTarget(
                f"{str(place)!r} has a directory of Headwater's in it, {folder!r}, and stays; give a directory of its own"
            )


def clear(folder: Path) -> None:
    """Removes what is at a path, as who writes there was told to."""
    require_replaceable(folder)
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
