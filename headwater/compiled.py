"""Loops that NumPy has no words for, compiled to machine code at their first call and kept on disk for the next process.

A compiled function takes and gives NumPy arrays and plain numbers, knows nothing of Arrow, and lets other threads run.
Integers wrap around, as they do in C; a mixture of signed and unsigned ones becomes a float, so casts are written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code."""
    return cast("Function", njit(cache=True, nogil=True)(function))


def inner(function: Function) -> Function:
    """The same for a part of compiled functions, which makes no arrays, and gives none; Python cannot call it, and must not.

    So it need not count who holds the arrays that it uses: for a loop over rows, that would be most of its work. And it takes
    less time to compile.
    """
    made = njit(cache=True, _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)  # type: ignore[call-overload]
    return cast("Function", made(function))
