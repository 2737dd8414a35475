"""Where machine code is kept between processes: one folder for each state of the compiled sources.

    folder  =  cache / hash of all sources that compiled functions are made of

Numba notices when the file of a function changes, but not when a compiled function that it calls does, in another file. Here
any change of these sources leads to another folder, so code that was compiled from an older source is never found.

The cache is `$HEADWATER_CACHE`, else `headwater` in `$XDG_CACHE_HOME` or `~/.cache`. Numba reads its files as pickles, so the
folder must belong to this user alone; where no such folder can be had, there is a temporary one that ends with the process.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from time import time
from typing import TYPE_CHECKING, Any

from numba.core.caching import _CacheLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

VARIABLE = "HEADWATER_CACHE"
# So many seconds.
_UNUSED = 30 * 24 * 3600
_IMPORT = re.compile(rb"^from (headwater\.[\w.]+) import", re.MULTILINE)


class PackageLocator(_CacheLocator):
    """Tells Numba where the machine code of one of our functions is kept."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        # Two modules of one name, in different packages, may have functions of one name in the same line.
        self._module = PurePath(file).parent.name
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return stamp()

    def get_disambiguator(self) -> str:
        return f"{self._module}-{self._line}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> PackageLocator:
        return cls(function, file)


def compiled_sources() -> dict[str, bytes]:
    """The modules that have compiled functions and those that they import: a constant of another module is compiled in."""
    modules = dict(_modules(files("headwater")))
    waiting = [path for path, text in modules.items() if b"headwater/compiled.py" in _imported(text)]
    found: dict[str, bytes] = {}
    while waiting:
        path = waiting.pop()
        if path not in found and path in modules:
            found[path] = modules[path]
            waiting += [name.decode().removeprefix("headwater/") for name in _imported(modules[path])]
    return found


def _imported(text: bytes) -> set[bytes]:
    """The modules from which a module imports when it is imported itself."""
    return {name.replace(b".", b"/") + b".py" for name in _IMPORT.findall(text)}


@cache
def stamp() -> str:
    """A hash of the sources of all compiled functions."""
    found = hashlib.sha256()
    for path, text in sorted(compiled_sources().items()):
        found.update(f"{path}\0{len(text)}\0".encode())
        found.update(text)
    return found.hexdigest()[:32]


@cache
def folder() -> Path:
    """The folder of this process."""
    for place in _places():
        path = place / stamp()
        if _is_private(place) and _is_private(path):
            os.utime(path)
            _remove_unused(place)
            return path
    temporary = tempfile.mkdtemp(prefix="headwater-cache-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary)


def _places() -> Iterator[Path]:
    if os.environ.get(VARIABLE):
        yield Path(os.environ[VARIABLE])
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  (never raises)
        if os.path.isabs(base):  # noqa: PTH117  (it is text)
            yield Path(base) / "headwater"


def _is_private(path: Path) -> bool:
    """Whether the folder is there, or could be made, and only this user can write to it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = path.stat()
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return known.st_uid == os.getuid() and not known.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _remove_unused(place: Path) -> None:
    """Removes the code of sources that no process has asked for in a long time."""
    with os.scandir(place) as entries:
        unused = [each.path for each in entries if each.is_dir() and time() - each.stat().st_mtime > _UNUSED]
    for path in unused:
        shutil.rmtree(path, ignore_errors=True)


def _modules(where: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """All modules below a folder, which may be within a zip file."""
    for each in where.iterdir():
        name = f"{prefix}{each.name}"
        if each.is_dir():
            yield from _modules(each, f"{name}/")
        elif name.endswith(".py"):
            yield name, each.read_bytes()
