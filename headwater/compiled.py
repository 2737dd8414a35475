"""Loops that NumPy has no words for, compiled to machine code at their first call and kept on disk for the next process.

A compiled function takes and gives NumPy arrays and plain numbers, knows nothing of Arrow, and lets other threads run.
Integers wrap around, as they do in C; a mixture of signed and unsigned ones becomes a float, so casts are written out.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

from numba import config, njit

from headwater.compile_cache import PackageLocator

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = TypeVar("Function", bound=Callable[..., Any])

_LOCATOR = f"{PackageLocator.__module__}.{PackageLocator.__qualname__}"
_locating = Lock()


def compiled(function: Function) -> Function:
    """The function as machine code."""
    return _kept(function, nogil=True)


def inner(function: Function) -> Function:
    """The same for a part of compiled functions, which makes no arrays, and gives none; Python cannot call it, and must not.

    So it need not count who holds the arrays that it uses: for a loop over rows, that would be most of its work. And it takes
    less time to compile.
    """
    return _kept(function, _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)


def _kept(function: Function, **options: bool) -> Function:
    """The function as machine code that is kept where `compile_cache` says."""
    # Numba asks for the place when it takes the function; what others compile is kept where they want it.
    with _locating:
        others, config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES, _LOCATOR  # type: ignore[attr-defined]
        try:
            return cast("Function", njit(cache=True, **options)(function))  # type: ignore[call-overload]
        finally:
            config.CACHE_LOCATOR_CLASSES = others  # type: ignore[attr-defined]
