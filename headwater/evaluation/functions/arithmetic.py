"""Arithmetic.

Integers keep their width and overflow raises, in both engines. Decimals get the type that Spark's rules give them,

    a + b, a − b   scale max(s₁, s₂),          a digit more than the wider        a × b   scale s₁ + s₂, precision p₁ + p₂ + 1
    a ÷ b          scale max(6, s₁ + p₂ + 1)   a mod b   scale max(s₁, s₂)

cut down to 38 digits; half is rounded away from zero. DuckDB divides decimals as doubles, so here 128-bit integers are divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.evaluation.functions.rule import (
    DURATION,
    Typed,
    Untranslatable,
    cast,
    constant,
    is_whole,
    macro,
    option,
    require,
    run,
    same_types,
    translates,
)

if TYPE_CHECKING:
    from headwater.algebra.expressions import Call

    Arguments = tuple[Typed, ...]

_SYMBOLS = {"Add": "+", "Subtract": "-", "Multiply": "*", "Remainder": "%"}
_BITS = {"BitwiseAnd": "&", "BitwiseOr": "|"}
_MOST_DIGITS = 38
_ROUNDED_PLACES = 9
# Spark negates decimals with this many digits and rounds the rest away.
_NEGATED_DIGITS = 34

macro("hw_half_up(n, d)", "(2 * abs(n) + abs(d)) // (2 * abs(d)) * sign(n) * sign(d)")
# Spark rounds the decimal that Java writes for a double. Where that could be a half, Java's way of writing decides.
macro(
    "hw_round(x, p)",
    "CASE WHEN NOT isfinite(x) THEN x WHEN abs(x * p) >= 1e12 "
    "OR abs(abs(x * p) - floor(abs(x * p)) - 0.5e0) <= abs(x * p) * 1e-14 THEN hw_raise('close to a half') "
    "WHEN round(x * p) = 0 THEN 0e0 ELSE round(x * p) / p END",
)
macro("hw_sign(x)", "CASE WHEN isnan(x) THEN x WHEN x > 0 THEN 1e0 WHEN x < 0 THEN -1e0 ELSE x END")
macro("hw_normal(x)", "CASE WHEN x = 0 THEN abs(x) ELSE x END")
macro("hw_positive_rest(n, d)", "CASE WHEN n % d < 0 THEN (n % d + d) % d ELSE n % d END")


@translates("Add", "Subtract", "Multiply", "Remainder")
def four_operations(call: Call, arguments: Arguments) -> Typed:
    left, right = arguments
    symbol = _SYMBOLS[call.function]
    if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
        return _decimal(call, left, right, symbol)
    kind = same_types(arguments, call.function)
    require(is_whole(kind) or pa.types.is_floating(kind) or (kind == DURATION and symbol in "+-"), f"{call.function} of {kind}")
    return Typed(f"({left.sql} {symbol} {right.sql})", kind)


@translates("Divide")
def divide(call: Call, arguments: Arguments) -> Typed:
    left, right = arguments
    if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
        kind = result_type(call, left.type, right.type)
        dividend = f"({unscaled(left)} * {_power(kind.scale + right.type.scale - left.type.scale)})"
        return Typed(from_unscaled(run("hw_half_up", dividend, unscaled(right)), kind), kind)
    kind = same_types(arguments, "Divide")
    require(kind == pa.float64(), f"Divide of {kind}")
    return Typed(f"({left.sql} / {right.sql})", kind)


@translates("IntegralDivide")
def integral_divide(_call: Call, arguments: Arguments) -> Typed:
    left, right = arguments
    if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
        scale = max(left.type.scale, right.type.scale)
        dividend, divisor = (f"({unscaled(part)} * {_power(scale - part.type.scale)})" for part in arguments)
        return Typed(cast(f"({dividend} // {divisor})", pa.int64()), pa.int64())
    kind = same_types(arguments, "IntegralDivide")
    require(kind == pa.int64(), f"IntegralDivide of {kind}")
    return Typed(f"({arguments[0].sql} // {arguments[1].sql})", kind)


@translates("Pmod")
def positive_modulus(_call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, "Pmod")
    require(is_whole(kind), f"Pmod of {kind}")
    return Typed(run("hw_positive_rest", arguments[0].sql, arguments[1].sql), kind)


@translates("UnaryMinus")
def minus(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    if is_whole(argument.type) or argument.type == DURATION:
        return Typed(f"({cast('0', argument.type)} - {argument.sql})", argument.type)
    _require_negatable(argument)
    return Typed(f"(-{argument.sql})", argument.type)


@translates("Abs")
def absolute(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    if not is_whole(argument.type) and argument.type != DURATION:
        _require_negatable(argument)
    return Typed(f"abs({argument.sql})", argument.type)


@translates("Signum")
def sign(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(argument.type == pa.float64(), f"Signum of {argument.type}")
    return Typed(run("hw_sign", argument.sql), argument.type)


@translates("Sqrt")
def square_root(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(argument.type == pa.float64(), f"Sqrt of {argument.type}")
    return Typed(f"sqrt({argument.sql})", argument.type)


@translates("Floor", "Ceil")
def whole_number(call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    rounded = f"{call.function.lower()}({argument.sql})"
    if pa.types.is_decimal(argument.type) and argument.type.scale == 0:
        return argument
    if pa.types.is_decimal(argument.type):
        digits = min(argument.type.precision - argument.type.scale + 1, _MOST_DIGITS)
        kind = pa.decimal128(digits, 0)
        return Typed(cast(rounded, kind), kind)
    require(argument.type == pa.float64(), f"{call.function} of {argument.type}")
    return Typed(cast(rounded, pa.int64()), pa.int64())


@translates("Round")
def rounded(call: Call, arguments: Arguments) -> Typed:
    argument, scale = arguments[0], int(constant(call, 1))
    if is_whole(argument.type) and scale >= 0:
        return argument
    if is_whole(argument.type):
        step = f"CAST('{10 ** min(-scale, _MOST_DIGITS - 1)}' AS HUGEINT)"
        return Typed(
            cast(f"({run('hw_half_up', f'CAST({argument.sql} AS HUGEINT)', step)} * {step})", argument.type),
            argument.type,
        )
    require(scale >= 0, "Round of decimals to tens")
    if argument.type == pa.float64() and scale <= _ROUNDED_PLACES:
        return Typed(run("hw_round", argument.sql, f"1e{scale}"), argument.type)
    require(pa.types.is_decimal(argument.type), f"Round of {argument.type}")
    places = min(scale, argument.type.scale)
    kind = pa.decimal128(min(argument.type.precision - argument.type.scale + 1 + places, _MOST_DIGITS), places)
    return Typed(cast(argument.sql, kind), kind)


@translates("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bits(call: Call, arguments: Arguments) -> Typed:
    kind = same_types(arguments, call.function)
    require(is_whole(kind), f"{call.function} of {kind}")
    left, right = (argument.sql for argument in arguments)
    if call.function == "BitwiseXor":
        return Typed(f"xor({left}, {right})", kind)
    return Typed(f"({left} {_BITS[call.function]} {right})", kind)


@translates("ShiftRight")
def shift_right(call: Call, arguments: Arguments) -> Typed:
    kind = arguments[0].type
    distance = int(constant(call, 1))
    require(kind in (pa.int32(), pa.int64()) and 0 <= distance < kind.bit_width, f"ShiftRight of {kind}")
    return Typed(f"({arguments[0].sql} >> {cast(str(distance), kind)})", kind)


@translates("BitwiseCount")
def count_bits(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(is_whole(argument.type), f"BitwiseCount of {argument.type}")
    return Typed(f"CAST(bit_count({cast(argument.sql, pa.int64())}) AS INTEGER)", pa.int32())


@translates("BitwiseNot")
def complement(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(is_whole(argument.type), f"BitwiseNot of {argument.type}")
    return Typed(f"(~{argument.sql})", argument.type)


@translates("UnscaledValue")
def unscaled_value(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(pa.types.is_decimal(argument.type), f"UnscaledValue of {argument.type}")
    return Typed(cast(unscaled(argument), pa.int64()), pa.int64())


@translates("MakeDecimal")
def make_decimal(call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    precision, scale = call.option("precision"), call.option("scale")
    require(argument.type == pa.int64() and precision is not None and scale is not None, "MakeDecimal")
    kind = pa.decimal128(int(precision or 0), int(scale or 0))
    return Typed(from_unscaled(cast(argument.sql, pa.int64()), kind), kind)


@translates("CheckOverflow")
def check_overflow(call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(call.type is not None and pa.types.is_decimal(argument.type), "CheckOverflow")
    return Typed(cast(argument.sql, call.type), call.type)


@translates("NormalizeNaNAndZero")
def normalised(_call: Call, arguments: Arguments) -> Typed:
    (argument,) = arguments
    require(pa.types.is_floating(argument.type), f"NormalizeNaNAndZero of {argument.type}")
    return Typed(run("hw_normal", argument.sql), argument.type)


@translates("KnownFloatingPointNormalized", "KnownNotNull", "KnownNullable")
def same_value(_call: Call, arguments: Arguments) -> Typed:
    return arguments[0]


def result_type(call: Call, left: pa.Decimal128Type, right: pa.Decimal128Type) -> pa.Decimal128Type:
    """The type of a decimal operation, by Spark's rules."""
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    match call.function:
        case "Add" | "Subtract":
            scale = max(left.scale, right.scale)
            precision = max(whole_left, whole_right) + scale + 1
        case "Multiply":
            scale = left.scale + right.scale
            precision = left.precision + right.precision + 1
        case "Divide":
            scale = max(6, left.scale + right.precision + 1)
            precision = whole_left + right.scale + scale
        case _:
            scale = max(left.scale, right.scale)
            precision = min(whole_left, whole_right) + scale
    if precision > _MOST_DIGITS:
        require("false" not in (option(call, "evalMode") or ""), "decimals without loss of precision")
        scale = max(_MOST_DIGITS - (precision - scale), min(scale, 6))
    return pa.decimal128(min(precision, _MOST_DIGITS), scale)


def unscaled(argument: Typed) -> str:
    """The digits of a decimal as a HUGEINT."""
    precision, scale = argument.type.precision, argument.type.scale
    if scale == 0:
        return f"CAST({argument.sql} AS HUGEINT)"
    if precision + scale < _MOST_DIGITS:
        return f"CAST({argument.sql} * CAST({10**scale} AS DECIMAL({scale + 1},0)) AS HUGEINT)"
    return f"CAST(replace(CAST({argument.sql} AS VARCHAR), '.', '') AS HUGEINT)"


def from_unscaled(digits: str, kind: pa.Decimal128Type) -> str:
    """The decimal that has these digits; raises if they are too many."""
    whole = f"CAST({digits} AS DECIMAL(38,0))"
    if kind.scale == 0:
        return cast(whole, kind)
    return cast(f"({whole} * CAST('0.{'0' * (kind.scale - 1)}1' AS DECIMAL({kind.scale},{kind.scale})))", kind)


def _decimal(call: Call, left: Typed, right: Typed, symbol: str) -> Typed:
    kind = result_type(call, left.type, right.type)
    if symbol == "*":
        require(left.type.scale + right.type.scale <= _MOST_DIGITS, "a product with more than 38 decimal places")
        return Typed(cast(f"({left.sql} * {right.sql})", kind), kind)
    scale = max(left.type.scale, right.type.scale)
    same = pa.decimal128(_MOST_DIGITS, scale)
    if max(left.type.precision - left.type.scale, right.type.precision - right.type.scale) + scale < _MOST_DIGITS:
        return Typed(cast(f"({left.sql} {symbol} {right.sql})", kind), kind)
    return Typed(cast(f"({cast(left.sql, same)} {symbol} {cast(right.sql, same)})", kind), kind)


def _power(exponent: int) -> str:
    if exponent < 0 or exponent > _MOST_DIGITS:
        raise Untranslatable("a quotient with too many digits")
    return f"CAST('{10**exponent}' AS HUGEINT)"


def _require_negatable(argument: Typed) -> None:
    kind = argument.type
    few_digits = pa.types.is_decimal(kind) and kind.precision <= _NEGATED_DIGITS
    require(pa.types.is_floating(kind) or few_digits, f"the negative of {kind}")
