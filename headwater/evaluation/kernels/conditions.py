"""Logic and choice.

Three-valued logic: a conjunction is known if both sides are, or one is known to be false; a disjunction likewise with true.

Spark skips what it need not evaluate. Here everything is evaluated for all rows, which is quicker; should that be refused, only
for those rows that Spark would look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.evaluation.functions.rule import require
from headwater.evaluation.kernels.frames import Unusual, is_fixed
from headwater.evaluation.kernels.rule import Kernel, arrow, computes, mapped, mask, same_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headwater.algebra.expressions import Call
    from headwater.evaluation.kernels.frames import Frame, Vector

    Arguments = tuple[Kernel, ...]
    Choose = Callable[[NDArray[np.bool_], Any, Any], Any]

_BOOLEAN = pa.bool_()
_if_else = arrow("if_else")


@computes("And", "Or")
def junction(call: Call, arguments: Arguments) -> Kernel:
    left, right = arguments
    decisive = call.function == "Or"

    def evaluate(frame: Frame) -> Vector:
        a, there = left.evaluate(frame)
        try:
            b, also = right.evaluate(frame)
        except Unusual:
            decided = a if decisive else ~a
            open_ = ~decided if there is None else ~(decided & there)
            b, also = _among(right, frame, open_)
        values = a | b if decisive else a & b
        if there is None and also is None:
            return values, None
        known, known_too = (a, b) if decisive else (~a, ~b)
        if there is None:
            return values, also | known
        if also is None:
            return values, there | known_too
        return values, (there & also) | (there & known) | (also & known_too)

    return Kernel(_BOOLEAN, evaluate)


@computes("Not")
def negation(_call: Call, arguments: Arguments) -> Kernel:
    return mapped(_BOOLEAN, arguments[0], lambda values, _: ~values)


@computes("If", "CaseWhen")
def case_when(call: Call, arguments: Arguments) -> Kernel:
    """The arguments are conditions and values in turn, and at the end the value for all other rows, if there is one."""
    conditions, values = arguments[0:-1:2], arguments[1::2]
    last = arguments[-1] if len(arguments) % 2 else None
    kind = same_type(call, values if last is None else (*values, last))
    require(is_fixed(kind) or kind == pa.string(), f"{call.function} of {kind}")
    if last is None:
        last = _null(kind)
    choose = _choose_vector if is_fixed(kind) else _choose_text
    branches = tuple(zip(conditions, values, strict=True))

    def evaluate(frame: Frame) -> Any:  # noqa: ANN401  (a vector or an array)
        try:
            taken = [_true(condition.evaluate(frame)) for condition, _ in branches]
            found = last.evaluate(frame)
            for (_, value), chosen in zip(reversed(branches), reversed(taken), strict=True):
                found = choose(chosen, value.evaluate(frame), found)
        except Unusual:
            return _in_turn(branches, last, choose, frame)
        return found

    return Kernel(kind, evaluate)


@computes("Coalesce")
def coalesce(call: Call, arguments: Arguments) -> Kernel:
    kind = same_type(call, arguments)
    require(is_fixed(kind) or kind == pa.string(), f"{call.function} of {kind}")
    first, *others = arguments
    if not others:
        return first
    rest = others[0] if len(others) == 1 else coalesce(call, tuple(others))
    if first.constant is not None:
        return rest if first.null else first
    if not is_fixed(kind):
        joined = arrow("coalesce")
        return Kernel(kind, lambda frame: joined(first.evaluate(frame), rest.evaluate(frame)))

    def evaluate(frame: Frame) -> Vector:
        values, valid = first.evaluate(frame)
        if valid is None:
            return values, None
        try:
            other = rest.evaluate(frame)
        except Unusual:
            other = _among(rest, frame, ~valid)
        found: Vector = _choose_vector(valid, (values, None), other)
        return found

    return Kernel(kind, evaluate)


def _true(vector: Vector) -> NDArray[np.bool_]:
    values, valid = vector
    return values if valid is None else values & valid


def _choose_vector(chosen: NDArray[np.bool_], value: Vector, other: Vector) -> Vector:
    values, valid = value
    others, also = other
    found = np.where(chosen, values, others)
    if valid is None and also is None:
        return found, None
    return found, np.where(chosen, True if valid is None else valid, True if also is None else also)


def _choose_text(chosen: NDArray[np.bool_], value: pa.Array, other: pa.Array) -> pa.Array:
    return _if_else(mask(chosen), value, other)


def _in_turn(branches: tuple[tuple[Kernel, Kernel], ...], last: Kernel, choose: Choose, frame: Frame) -> Any:  # noqa: ANN401
    """As Spark does it: each condition for the rows left over, each value for the rows it is for."""
    left = np.ones(frame.count, np.bool_)
    parts = []
    for condition, value in branches:
        taken = _true(_among(condition, frame, left)) & left
        parts.append((taken, value))
        left = left & ~taken
    found = _among(last, frame, left)
    for taken, value in parts:
        found = choose(taken, _among(value, frame, taken), found)
    return found


def _among(kernel: Kernel, frame: Frame, rows: NDArray[np.bool_]) -> Any:  # noqa: ANN401  (a vector or an array)
    """The kernel's values for some of the rows, and NULL for the others."""
    if kernel.constant is not None:
        return kernel.constant
    indices = rows.nonzero()[0]
    if not len(indices):
        return _null(kernel.type).constant
    found = kernel.evaluate(frame.take(indices))
    if not is_fixed(kernel.type):
        places = np.zeros(frame.count, np.int64)
        places[indices] = np.arange(len(indices))
        return _choose_text(rows, found.take(pa.array(places)), pa.scalar(None, kernel.type))
    values, valid = found
    spread = np.zeros(frame.count, values.dtype)
    spread[indices] = values
    there = np.zeros(frame.count, np.bool_)
    there[indices] = True if valid is None else valid
    return spread, there


def _null(kind: pa.DataType) -> Kernel:
    from headwater.algebra.expressions import Literal
    from headwater.evaluation.kernels.constants import literal

    return literal(Literal(None, kind))
