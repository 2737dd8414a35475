"""Which keys a run certainly does not have: a bit for each prefix of a hash. Most keys without rows are then not searched for.

    bit p is set  iff  a row has a hash with the prefix p          (8 to 16 bits a row, at most a quarter of the hashes)

Hashes are spread evenly, so of the keys that are not there about one in ten passes, and is searched for in vain; one that is
there always passes. The bits are made when so many keys were looked for that it pays to have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import uint64

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Bits = NDArray[np.uint64]

# A run of fewer rows stays in the processor's cache.
_SMALL = 1 << 14
# The bits pay when the keys looked for are this part of the rows.
_WORTH = 64
_BITS_A_ROW = 8


class KeyFilter:
    """The bits of one run."""

    __slots__ = ("_asked", "_bits")

    def __init__(self) -> None:
        self._asked = 0
        self._bits: Bits | None = None

    def passing(self, hashes: Hashes, wanted: Hashes) -> Indices | None:
        """Which of the wanted hashes may be among those of the run; None if that is not known, or of no use."""
        if len(hashes) < _SMALL:
            return None
        bits = self._bits
        if bits is None:
            self._asked += len(wanted)
            if self._asked < len(hashes) // _WORTH:
                return None
            bits = self._bits = _marked(hashes, (_BITS_A_ROW * len(hashes) - 1).bit_length())
        found = _passing(bits, wanted)
        return found if 2 * len(found) < len(wanted) else None

    @property
    def nbytes(self) -> int:
        return 0 if self._bits is None else self._bits.nbytes


@compiled
def _marked(hashes: Hashes, width: int) -> Bits:
    bits = np.zeros(1 << (width - 6), np.uint64)
    shift = uint64(64 - width)
    for i in range(hashes.size):
        prefix = hashes[i] >> shift
        bits[prefix >> uint64(6)] |= uint64(1) << (prefix & uint64(63))
    return bits


@compiled
def _passing(bits: Bits, wanted: Hashes) -> Indices:
    width = 6
    while (bits.size << 6) > (1 << width):
        width += 1
    shift = uint64(64 - width)
    kept = np.empty(wanted.size, np.int64)
    count = 0
    for i in range(wanted.size):
        prefix = wanted[i] >> shift
        kept[count] = i
        count += int((bits[prefix >> uint64(6)] >> (prefix & uint64(63))) & uint64(1))
    return kept[:count]
