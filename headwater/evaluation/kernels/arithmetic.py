"""Arithmetic of integers and floating-point numbers. What overflows, or divides by zero, is refused.

    a + b overflows   iff   the sign of the sum is that of neither a nor b
    a × b overflows   only if the product of a and b as doubles is near 2⁶³

Integers of fewer than 64 bits are computed with 64, and refused if they do not come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.rule import DURATION, is_whole, require
from headwater.evaluation.kernels import decimals
from headwater.evaluation.kernels.frames import dtype_of, refuse
from headwater.evaluation.kernels.integers import LOWEST, added, multiplied, quotient, subtracted
from headwater.evaluation.kernels.rule import Kernel, computes, elementwise, mapped, same_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Validity
    from headwater.evaluation.kernels.rule import Operation, Unary

    Arguments = tuple[Kernel, ...]

_CHECKED: dict[str, Operation] = {"Add": added, "Subtract": subtracted, "Multiply": multiplied}
_UFUNCS: dict[str, Callable[..., Any]] = {"Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply}


@computes("Add", "Subtract", "Multiply")
def three_operations(call: Call, arguments: Arguments) -> Kernel:
    left, right = arguments
    if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
        return decimals.combined(call, left, right)
    kind = same_type(call, arguments)
    ufunc = _UFUNCS[call.function]
    if pa.types.is_floating(kind):
        return elementwise(kind, _quietly(ufunc), left, right)
    if kind == pa.int64() or (kind == DURATION and call.function != "Multiply"):
        return elementwise(kind, _CHECKED[call.function], left, right)
    require(is_whole(kind), f"{call.function} of {kind}")
    return elementwise(kind, _widened(ufunc, dtype_of(kind)), left, right)


@computes("Divide")
def divide(call: Call, arguments: Arguments) -> Kernel:
    left, right = arguments
    if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
        return decimals.divided(call, left, right)
    kind = same_type(call, arguments)
    require(kind == pa.float64(), f"Divide of {kind}")
    return elementwise(kind, _unless_zero(np.divide, right), left, right)


@computes("Remainder")
def remainder(call: Call, arguments: Arguments) -> Kernel:
    """With the sign of the dividend."""
    kind = same_type(call, arguments)
    require(is_whole(kind) or pa.types.is_floating(kind), f"Remainder of {kind}")
    return elementwise(kind, _unless_zero(np.fmod, arguments[1]), *arguments)


@computes("Pmod")
def positive_modulus(call: Call, arguments: Arguments) -> Kernel:
    kind = same_type(call, arguments)
    require(is_whole(kind), f"Pmod of {kind}")

    def operate(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse(b <= 0, valid)
        return np.remainder(a, np.maximum(b, 1))

    return elementwise(kind, operate, *arguments)


@computes("IntegralDivide")
def integral_divide(call: Call, arguments: Arguments) -> Kernel:
    kind = same_type(call, arguments)
    require(kind == pa.int64(), f"IntegralDivide of {kind}")

    def operate(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse((b == 0) | (a == LOWEST), valid)
        return quotient(a, np.where(b == 0, 1, b))

    return elementwise(kind, operate, *arguments)


@computes("UnaryMinus", "Abs")
def without_sign(call: Call, arguments: Arguments) -> Kernel:
    (argument,) = arguments
    kind = argument.type
    ufunc = np.negative if call.function == "UnaryMinus" else np.abs
    if pa.types.is_floating(kind):
        return mapped(kind, argument, lambda values, _: ufunc(values))
    require(is_whole(kind) or pa.types.is_decimal(kind) or kind == DURATION, f"{call.function} of {kind}")
    lowest = np.iinfo(dtype_of(kind)).min

    def operate(values: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse(values == lowest, valid)
        found: NDArray[Any] = ufunc(values)
        return found

    return mapped(kind, argument, operate)


@computes("NormalizeNaNAndZero")
def normalised(call: Call, arguments: Arguments) -> Kernel:
    (argument,) = arguments
    require(pa.types.is_floating(argument.type), f"{call.function} of {argument.type}")
    zero = np.zeros((), dtype_of(argument.type))
    return mapped(argument.type, argument, _quiet(lambda values: values + zero))


@computes("KnownFloatingPointNormalized", "KnownNotNull", "KnownNullable")
def same_value(_call: Call, arguments: Arguments) -> Kernel:
    return arguments[0]


@computes("Sqrt")
def square_root(call: Call, arguments: Arguments) -> Kernel:
    require(arguments[0].type == pa.float64(), f"{call.function} of {arguments[0].type}")
    return mapped(pa.float64(), arguments[0], _quiet(np.sqrt))


@computes("Floor", "Ceil")
def whole_number(call: Call, arguments: Arguments) -> Kernel:
    (argument,) = arguments
    if pa.types.is_decimal(argument.type):
        return decimals.whole(call, argument)
    require(argument.type == pa.float64(), f"{call.function} of {argument.type}")
    ufunc = np.floor if call.function == "Floor" else np.ceil

    def operate(values: NDArray[Any], valid: Validity) -> NDArray[Any]:
        # NaN is within no bounds.
        refuse(~(np.abs(values) < float(-LOWEST)), valid)
        with np.errstate(invalid="ignore"):
            found: NDArray[Any] = ufunc(values).astype(np.int64)
        return found

    return mapped(pa.int64(), argument, operate)


def _widened(ufunc: Callable[..., Any], dtype: np.dtype[Any]) -> Operation:
    def operate(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
        wide = ufunc(a, b, dtype=np.int64)
        found: NDArray[Any] = wide.astype(dtype)
        refuse(found != wide, valid)
        return found

    return operate


def _quietly(ufunc: Callable[..., Any]) -> Operation:
    """Infinity and NaN are results like any other."""

    def operate(a: NDArray[Any], b: NDArray[Any], _valid: Validity) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            found: NDArray[Any] = ufunc(a, b)
        return found

    return operate


def _quiet(ufunc: Callable[..., Any]) -> Unary:
    def operate(values: NDArray[Any], _valid: Validity) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            found: NDArray[Any] = ufunc(values)
        return found

    return operate


def _unless_zero(ufunc: Callable[..., Any], divisor: Kernel) -> Operation:
    quiet = _quietly(ufunc)
    if divisor.constant is not None and divisor.constant[0] != 0:
        return quiet

    def operate(a: NDArray[Any], b: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse(b == 0, valid)
        return quiet(a, b, valid)

    return operate
