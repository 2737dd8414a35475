"""Constants: from the text that Spark writes for a value to a value of a kernel."""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.rule import DURATION, INSTANT, LOCAL, Untranslatable
from headwater.evaluation.kernels.frames import dtype_of, is_fixed
from headwater.evaluation.kernels.rule import constant

if TYPE_CHECKING:
    from headwater.algebra.expressions import Literal
    from headwater.evaluation.kernels.rule import Kernel

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE = re.compile(r"-?\d+")
_LARGEST = 2**63 - 1


def literal(written: Literal) -> Kernel:
    """The kernel of a constant."""
    kind = written.type
    if kind == pa.string():
        return constant(kind, pa.scalar(written.value, kind))
    if not is_fixed(kind):
        raise Untranslatable(f"a constant of type {kind}")
    dtype = dtype_of(kind)
    if written.value is None:
        return constant(kind, (np.zeros((), dtype), np.zeros((), np.bool_)))
    return constant(kind, (np.array(_value(written.value, kind), dtype), None))


def member(written: str, kind: pa.DataType) -> Any:  # noqa: ANN401  (a number or a string)
    """A member of an `InSet`, which holds dates and times as numbers."""
    if kind == pa.date32():
        return int(written)
    return written if kind == pa.string() else _value(written, kind)


def _value(written: str, kind: pa.DataType) -> Any:  # noqa: ANN401  (what NumPy makes a number of)
    if pa.types.is_floating(kind):
        return float(written)
    if pa.types.is_decimal128(kind):
        digits = Decimal(written).scaleb(kind.scale, Context(prec=76))
        if digits != digits.to_integral_value() or abs(digits) > _LARGEST:
            raise Untranslatable(f"a constant of more than 64 bits: {written}")
        return int(digits)
    if kind == pa.bool_() and written in ("true", "false"):
        return written == "true"
    if kind == pa.date32() and _DATE.fullmatch(written):
        return np.datetime64(written, "D").astype(np.int64)
    whole = pa.types.is_signed_integer(kind) or kind in (INSTANT, LOCAL, DURATION)
    if whole and _WHOLE.fullmatch(written):
        return int(written)
    raise Untranslatable(f"a constant of type {kind}: {written}")
