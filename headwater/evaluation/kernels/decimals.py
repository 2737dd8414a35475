"""Arithmetic of decimals, as integers of their digits.

Types are those of Spark's rules (see `functions.arithmetic`). Digits of more than 64 bits, on the way or in the result, are
refused; so all values are exact until the one rounding to the scale of the result, in which a half goes away from zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.arithmetic import result_type
from headwater.evaluation.functions.rule import constant as constant_of
from headwater.evaluation.functions.rule import require
from headwater.evaluation.kernels.frames import refuse
from headwater.evaluation.kernels.integers import LOWEST, added, multiplied, rounded, scaled, subtracted
from headwater.evaluation.kernels.loops import LARGEST
from headwater.evaluation.kernels.rule import Kernel, computes, elementwise, mapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Validity
    from headwater.evaluation.kernels.rule import Operation

    Arguments = tuple[Kernel, ...]

# 64 bits hold every number of this many digits.
_DIGITS = 18
_MOST_DIGITS = 38


def combined(call: Call, left: Kernel, right: Kernel) -> Kernel:
    """The sum, difference or product."""
    kind = result_type(call, left.type, right.type)
    if call.function == "Multiply":
        return elementwise(kind, _fitted(multiplied, left.type.scale + right.type.scale, kind), left, right)
    scale = max(left.type.scale, right.type.scale)
    operate = added if call.function == "Add" else subtracted
    return elementwise(kind, _fitted(operate, scale, kind), _at_scale(left, scale), _at_scale(right, scale))


def divided(call: Call, left: Kernel, right: Kernel) -> Kernel:
    """The quotient, by long division: as many digits at a time as fit."""
    kind = result_type(call, left.type, right.type)
    places = kind.scale + right.type.scale - left.type.scale
    require(places >= 0, "a quotient of fewer places than the dividend")

    def operate(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse((b == 0) | (b == LOWEST) | (a == LOWEST), valid)
        dividend, divisor = np.abs(a), np.maximum(np.abs(b), 1)
        refuse(dividend / divisor > LARGEST / 10.0**places, valid)
        found = _long_division(dividend, divisor, places)
        found = np.where((a < 0) != (b < 0), -found, found)
        return within(found, kind, valid)

    return elementwise(kind, operate, left, right)


def whole(call: Call, argument: Kernel) -> Kernel:
    """The next whole number below or above."""
    source = argument.type
    if source.scale == 0:
        return argument
    require(source.scale <= _DIGITS, f"{call.function} of {source}")
    kind = pa.decimal128(min(source.precision - source.scale + 1, _MOST_DIGITS), 0)
    factor = 10**source.scale
    if call.function == "Floor":
        return mapped(kind, argument, lambda values, _: values // factor)

    def operate(values: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse(values == LOWEST, valid)
        return -(-values // factor)

    return mapped(kind, argument, operate)


@computes("Round")
def to_places(call: Call, arguments: Arguments) -> Kernel:
    argument, places = arguments[0], int(constant_of(call, 1))
    if pa.types.is_signed_integer(argument.type) and places >= 0:
        return argument
    require(pa.types.is_decimal(argument.type) and places >= 0, f"Round of {argument.type} to {places}")
    source = argument.type
    scale = min(places, source.scale)
    kind = pa.decimal128(min(source.precision - source.scale + 1 + scale, _MOST_DIGITS), scale)
    return converted(argument, kind)


@computes("CheckOverflow")
def check_overflow(call: Call, arguments: Arguments) -> Kernel:
    (argument,) = arguments
    require(call.type is not None and pa.types.is_decimal(argument.type), "CheckOverflow")
    return converted(argument, call.type)


@computes("UnscaledValue")
def unscaled_value(call: Call, arguments: Arguments) -> Kernel:
    require(pa.types.is_decimal(arguments[0].type), f"{call.function} of {arguments[0].type}")
    return Kernel(pa.int64(), arguments[0].evaluate)


@computes("MakeDecimal")
def make_decimal(call: Call, arguments: Arguments) -> Kernel:
    (argument,) = arguments
    precision, scale = call.option("precision"), call.option("scale")
    require(argument.type == pa.int64() and precision is not None and scale is not None, "MakeDecimal")
    kind = pa.decimal128(int(precision or 0), int(scale or 0))
    return mapped(kind, argument, lambda values, valid: within(values, kind, valid))


def converted(argument: Kernel, kind: pa.Decimal128Type) -> Kernel:
    """The same number with other places and fewer or more digits."""
    source = argument.type
    require(abs(kind.scale - source.scale) <= _DIGITS, f"a cast from {source} to {kind}")
    if kind.scale < source.scale:
        power = source.scale - kind.scale
        return mapped(kind, argument, lambda values, valid: within(rounded(values, power, valid), kind, valid))
    wider = kind.precision - kind.scale >= source.precision - source.scale
    scaled_up = _at_scale(argument, kind.scale)
    if wider:
        return Kernel(kind, scaled_up.evaluate)
    return mapped(kind, scaled_up, lambda values, valid: within(values, kind, valid))


def within(values: NDArray[Any], kind: pa.Decimal128Type, valid: Validity) -> NDArray[Any]:
    """The values, refused if one has more digits than the type."""
    if kind.precision <= _DIGITS:
        bound = 10**kind.precision
        refuse((values >= bound) | (values <= -bound), valid)
    return values


def _at_scale(argument: Kernel, scale: int) -> Kernel:
    power = scale - argument.type.scale
    require(power <= _DIGITS, "a decimal of too many places")
    if power == 0:
        return argument
    if argument.constant is not None:
        digits, valid = argument.constant
        factor = 10**power
        require(abs(int(digits)) <= LARGEST / factor, "a constant of too many digits")
        value = np.array(int(digits) * factor, np.int64), valid
        return Kernel(argument.type, lambda _: value, value)
    return mapped(argument.type, argument, lambda values, valid: scaled(values, power, valid))


def _fitted(operate: Operation, scale: int, kind: pa.Decimal128Type) -> Operation:
    """The operation, brought to the scale of the result, whose type has at least the digits that can come, or 38."""
    power = scale - kind.scale
    require(0 <= power <= _DIGITS, f"{scale} places in {kind}")
    if power == 0:
        return operate
    return lambda a, b, valid: rounded(operate(a, b, valid), power, valid)


def _long_division(dividend: NDArray[Any], divisor: NDArray[Any], places: int) -> NDArray[Any]:
    """`dividend` × 10^`places` ÷ `divisor`, none of them negative, with a half rounded up."""
    found, rest = np.divmod(dividend, divisor)
    room = int(LARGEST) // int(divisor.max())
    most = len(str(room)) - 1
    # Without room for a digit the rest cannot be divided further.
    refuse(np.array(places > 0 and most == 0), None)
    while places:
        digits = min(places, most)
        more, rest = np.divmod(rest * 10**digits, divisor)
        found = found * 10**digits + more
        places -= digits
    nearer: NDArray[Any] = found + (rest >= divisor - rest)
    return nearer
