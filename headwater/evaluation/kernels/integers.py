"""Operations of 64-bit integers that refuse to overflow; what lies under a NULL may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.evaluation.kernels.frames import refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.evaluation.kernels.frames import Validity

LOWEST = -(2**63)
# A double nearer to 2⁶³ than this may stand for a product beyond it.
LARGEST = 9.2e18


def added(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
    found: NDArray[Any] = a + b
    refuse((a ^ found) & (b ^ found) < 0, valid)
    return found


def subtracted(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
    found: NDArray[Any] = a - b
    refuse((a ^ b) & (a ^ found) < 0, valid)
    return found


def multiplied(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
    refuse(np.abs(np.multiply(a, b, dtype=np.float64)) > LARGEST, valid)
    found: NDArray[Any] = a * b
    return found


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
