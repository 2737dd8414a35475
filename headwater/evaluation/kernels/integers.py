"""Operations of 64-bit integers that refuse to overflow; what lies under a NULL may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.evaluation.kernels.frames import refuse
from headwater.evaluation.kernels.loops import LARGEST, difference, product, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.evaluation.kernels.frames import Validity

LOWEST = -(2**63)


def added(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
    found, fits = total(_line(a), _line(b))
    if not fits:
        refuse((a ^ found) & (b ^ found) < 0, valid)
    return found


def subtracted(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
    found, fits = difference(_line(a), _line(b))
    if not fits:
        refuse((a ^ b) & (a ^ found) < 0, valid)
    return found


def multiplied(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
    found, fits = product(_line(a), _line(b))
    if not fits:
        refuse(np.abs(np.multiply(a, b, dtype=np.float64)) > LARGEST, valid)
    return found


def _line(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.ndim else values.reshape(1)


def quotient(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Cut off towards zero; `b` is not zero."""
    found: NDArray[Any] = (a - np.fmod(a, b)) // b
    return found


def scaled(values: NDArray[Any], power: int, valid: Validity) -> NDArray[Any]:
    """Times a power of ten."""
    if power == 0:
        return values
    factor = 10**power
    bound = int(LARGEST) // factor
    refuse((values > bound) | (values < -bound), valid)
    found: NDArray[Any] = values * factor
    return found


def rounded(values: NDArray[Any], power: int, valid: Validity) -> NDArray[Any]:
    """Divided by a power of ten; a half is rounded away from zero."""
    if power == 0:
        return values
    refuse(values == LOWEST, valid)
    factor = 10**power
    whole, rest = np.divmod(np.abs(values), factor)
    whole += rest >= factor // 2
    found: NDArray[Any] = np.copysign(1, values).astype(np.int64) * whole
    return found
