"""Casts of numbers. What does not fit is refused: whether Spark raises, gives NULL or wraps around, it knows itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.rule import INSTANT, LOCAL, Untranslatable, is_whole, require
from headwater.evaluation.kernels import decimals, times
from headwater.evaluation.kernels.frames import dtype_of, refuse
from headwater.evaluation.kernels.integers import quotient, scaled
from headwater.evaluation.kernels.rule import Kernel, computes, mapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Validity

# Of integers below this, and of powers of ten up to this, the quotient as doubles is the double nearest to the quotient.
_EXACT = 2**53
_EXACT_PLACES = 22
_DIGITS = 18


@computes("Cast")
def convert(call: Call, arguments: tuple[Kernel, ...]) -> Kernel:  # noqa: PLR0911  (one for each way)
    (argument,) = arguments
    source, to = argument.type, call.type
    if to is None:
        raise Untranslatable("a cast to a type that Arrow does not know")
    if source == to:
        return argument
    if any(kind in (pa.date32(), INSTANT, LOCAL) for kind in (source, to)):
        return times.converted(call, argument, to)
    require(_is_number(source) and _is_number(to), f"a cast from {source} to {to}")
    if pa.types.is_decimal(source):
        return _from_decimal(argument, to)
    if pa.types.is_decimal(to):
        return _to_decimal(argument, to)
    dtype = dtype_of(to)
    if to == pa.bool_():
        return mapped(to, argument, lambda values, _: values != 0)
    if is_whole(to) and pa.types.is_floating(source):
        return mapped(to, argument, lambda values, valid: _cut(values, dtype, valid))
    if is_whole(to) and source != pa.bool_() and to.bit_width < source.bit_width:
        return mapped(to, argument, lambda values, valid: _narrowed(values, dtype, valid))
    if pa.types.is_floating(source):
        return mapped(to, argument, lambda values, _: _refloated(values, dtype))
    return mapped(to, argument, lambda values, _: values.astype(dtype))


def _from_decimal(argument: Kernel, to: pa.DataType) -> Kernel:
    scale = argument.type.scale
    if pa.types.is_decimal(to):
        return decimals.converted(argument, to)
    if to == pa.bool_():
        return mapped(to, argument, lambda values, _: values != 0)
    if is_whole(to):
        require(scale <= _DIGITS, f"a cast from {argument.type} to {to}")
        factor, dtype = np.array(10**scale), dtype_of(to)
        return mapped(to, argument, lambda values, valid: _narrowed(quotient(values, factor), dtype, valid))
    require(to == pa.float64() and scale <= _EXACT_PLACES, f"a cast from {argument.type} to {to}")
    divisor = 10.0**scale

    def operate(values: NDArray[Any], valid: Validity) -> NDArray[Any]:
        refuse((values > _EXACT) | (values < -_EXACT), valid)
        return values / divisor

    return mapped(to, argument, operate)


def _to_decimal(argument: Kernel, to: pa.Decimal128Type) -> Kernel:
    source = argument.type
    require(is_whole(source) or source == pa.bool_(), f"a cast from {source} to {to}")
    require(to.scale <= _DIGITS, f"a cast from {source} to {to}")

    def operate(values: NDArray[Any], valid: Validity) -> NDArray[Any]:
        return decimals.within(scaled(values.astype(np.int64), to.scale, valid), to, valid)

    return mapped(to, argument, operate)


def _cut(values: NDArray[Any], dtype: np.dtype[Any], valid: Validity) -> NDArray[Any]:
    """Cut off towards zero. NaN is within no bounds."""
    bound = 2.0 ** (8 * dtype.itemsize - 1)
    refuse(~((values < bound) & (values > -bound)), valid)
    with np.errstate(invalid="ignore"):
        found: NDArray[Any] = values.astype(dtype)
    return found


def _narrowed(values: NDArray[Any], dtype: np.dtype[Any], valid: Validity) -> NDArray[Any]:
    found: NDArray[Any] = values.astype(dtype)
    refuse(found != values, valid)
    return found


def _refloated(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """What is too large becomes infinite."""
    with np.errstate(all="ignore"):
        found: NDArray[Any] = values.astype(dtype)
    return found


def _is_number(kind: pa.DataType) -> bool:
    return is_whole(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind) or kind == pa.bool_()
