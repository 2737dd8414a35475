"""Exact, invertible accumulators: the state of an aggregate function is a vector of int64 that merges by + and un-merges by −.

    state(A + B) = state(A) + state(B)          state(A − B) = state(A) − state(B)

**Representation.** Every value is an integer times a power of two (a decimal: of ten), so a sum of values is an integer too.
It is kept in base 2³²: *limbs* of 32 bits, one an int64 slot, the upper half of the slot being room for 2³¹ rows to add up
before anything is carried. Carries are done in `finish` only, on the touched groups.

- integers, intervals: one limb, or two for 64 bits; decimals: two limbs up to 18 digits, else four;
- doubles: 53 bits of mantissa at one of 2046 positions. Covering them all would take 66 slots a group; so the positions are cut
  into windows, a row goes to the *bucket* of its window, and a group has state only in the buckets it uses: one or two;
- moments: exact powers and products of the same limbs, in narrower windows.

A row of state is (group, bucket); its weight is the vector. Counts ride along in a slot of their own, and NaN, +∞ and −∞
are counted, not added, so they go away as they came.

**Why it is exact.** Integers form a group: what was added can be taken away, in any order, and nothing is ever rounded before
the answer is. Slots may even wrap around on the way: arithmetic modulo 2⁶⁴ forgets nothing as long as the *final* sum of a slot
fits, which up to 2³¹ live rows a group guarantee. So an overflow is an error only if the final value overflows.

**The trap.** A running float sum looks invertible and is not: `(1e16 + 1) − 1e16 = 0`, `inf − inf = NaN`, and every epoch
leaves a little dirt that no later epoch removes. Neither is Welford's running variance. Never put a float into a state.

Where Spark's own answer depends on the order of the rows (rounding; a sum of doubles that overflows half-way; the covariance
of infinities), ours is the exact one, rounded once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.operators.accumulators.averages import average
from headwater.operators.accumulators.cells import Accumulator, Cells, States
from headwater.operators.accumulators.comoments import FORMULAS as COMOMENTS
from headwater.operators.accumulators.comoments import CoMoments
from headwater.operators.accumulators.counts import BitXor, Count
from headwater.operators.accumulators.moments import FORMULAS as MOMENTS
from headwater.operators.accumulators.moments import Moments
from headwater.operators.accumulators.overflow import mode_of
from headwater.operators.accumulators.sums import total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["INVERTIBLE", "Accumulator", "Cells", "States", "accumulator"]

INVERTIBLE = ("Count", "Sum", "Average", *MOMENTS, *COMOMENTS, "BitXorAgg")
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def accumulator(function: str, inputs: Sequence[pa.DataType], options: Mapping[str, str] = NO_OPTIONS) -> Accumulator | None:
    """The accumulator of a Catalyst aggregate function over inputs of these types; None if it has no inverse.

    Two options of the function matter: `evalMode` (ANSI unless it says TRY or LEGACY) decides what an overflow gives, and
    `nullOnDivideByZero` whether a statistic of too few rows is NULL (the default) or NaN.
    """
    found: Accumulator | None = None
    undefined_is_nan = options.get("nullOnDivideByZero") == "false"
    if function == "Count":
        found = Count()
    elif function == "Sum" and len(inputs) == 1:
        found = total(inputs[0], mode_of(options))
    elif function == "Average" and len(inputs) == 1:
        found = average(inputs[0], mode_of(options))
    elif function in MOMENTS and list(inputs) == [pa.float64()]:
        found = Moments(function, undefined_is_nan)
    elif function in COMOMENTS and list(inputs) == [pa.float64()] * 2:
        found = CoMoments(function, undefined_is_nan)
    elif function == "BitXorAgg" and len(inputs) == 1 and pa.types.is_signed_integer(inputs[0]):
        found = BitXor(inputs[0])
    return found
