"""What an overflow gives: Spark's error, NULL, or the wrapped value, by the evaluation mode of the function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headwater.errors import EvaluationFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    Mode = Literal["ANSI", "TRY", "LEGACY"]

_BYPASS = 'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error'
_QUOTIENT_DIGITS = 39


def mode_of(options: Mapping[str, str]) -> Mode:
    """The evaluation mode among the options of a Catalyst function; ANSI if they do not tell."""
    told = options.get("evalMode", "")
    return "TRY" if "TRY" in told else "LEGACY" if "LEGACY" in told else "ANSI"


def integer_overflow() -> EvaluationFailed:
    return EvaluationFailed(
        "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add' to tolerate overflow and return NULL instead. "
        f"{_BYPASS}. SQLSTATE: 22003"
    )


def interval_overflow() -> EvaluationFailed:
    return EvaluationFailed(
        "[INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION] Integer overflow while operating with intervals. "
        "Use `try_add` to tolerate overflow and return NULL instead. SQLSTATE: 22015"
    )


def decimal_overflow(function: str) -> EvaluationFailed:
    return EvaluationFailed(
        f"[ARITHMETIC_OVERFLOW] Overflow in sum of decimals. Use '{function}' to tolerate overflow and return NULL instead. "
        f"{_BYPASS}. SQLSTATE: 22003"
    )


def decimal_out_of_range(numerator: int, denominator: int, type_: pa.DataType) -> EvaluationFailed:
    # Spark divides to this many digits after the point, and shows them all.
    whole, fraction = divmod(abs(numerator) * 10**_QUOTIENT_DIGITS // denominator, 10**_QUOTIENT_DIGITS)
    shown = f"{'-' if numerator < 0 else ''}{whole}.{fraction:0{_QUOTIENT_DIGITS}}"
    return EvaluationFailed(
        f"[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION]  {shown} cannot be represented as "
        f"Decimal({type_.precision}, {type_.scale}). {_BYPASS}, and return NULL instead. SQLSTATE: 22003"
    )


def division_by_zero() -> EvaluationFailed:
    return EvaluationFailed(
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. "
        f"{_BYPASS}. SQLSTATE: 22012"
    )
